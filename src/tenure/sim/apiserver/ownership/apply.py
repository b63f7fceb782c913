"""Who owns what after a write.

An update takes every field that it changes from all other managers. Apply says all that its manager wants:
a field that another manager owns and that would change is a conflict, unless it is forced; a field
that the manager applied last time and leaves out now is removed, unless another one owns it.
"""

from __future__ import annotations

from typing import Final

from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.ownership import fieldsets
from tenure.sim.apiserver.ownership.conflicts import check_conflicts
from tenure.sim.apiserver.ownership.fieldsets import Comparison, FieldSet, compared
from tenure.sim.apiserver.ownership.lastapplied import KUBECTL, noted, own_fields
from tenure.sim.apiserver.ownership.managers import (
    BEFORE_FIRST_APPLY,
    UPDATE,
    Claim,
    Claims,
    Manager,
    ownable,
)
from tenure.sim.apiserver.ownership.merging import merged, without

#: What every object has, so that its first fields are not a field of their own.
EMPTY: Final[Obj] = {"metadata": {}, "spec": {}, "status": {}}


def after_update(
    old: Obj, new: Obj, claims: Claims, manager: Manager, schema: Schema, *, version: str, now: str
) -> Claims:
    """The claims after a write that is no apply. ``old`` is ``EMPTY`` for a new object."""
    change = compared(old, new, schema)
    left = _without(claims, change)
    gained = ownable(change.written, fieldsets.NOTHING)
    if gained:
        before = left.get(manager)
        fields = gained | (before.fields if before is not None else fieldsets.NOTHING)
        left[manager] = Claim(fields, version, now)
    return left


def first_claims(live: Obj, schema: Schema, *, version: str, now: str) -> Claims:
    """The claims of an object that has had none until it is applied to."""
    manager = Manager(BEFORE_FIRST_APPLY, UPDATE, version)
    return after_update(EMPTY, live, {}, manager, schema, version=version, now=now)


def after_apply(
    live: Obj,
    config: Obj,
    claims: Claims,
    manager: Manager,
    schema: Schema,
    *,
    version: str,
    now: str,
    force: bool,
    excluded: FieldSet,
) -> tuple[Obj, Claims]:
    """The object with the configuration in it, and its claims. Raises 409."""
    wanted = ownable(fieldsets.fields_of(config, schema), excluded)
    last = claims.get(manager)
    others = {one: claim for one, claim in claims.items() if one != manager}
    new = merged(live, config, schema)
    if last is not None:
        owned = wanted.union(*(claim.fields for claim in others.values()))
        there = fieldsets.all_fields_of(new, schema)
        left_out = there & fieldsets.with_parents(last.fields) - fieldsets.with_parents(owned)
        new = without(new, left_out, schema)
    change = compared(live, new, schema)
    change = Comparison(*(frozenset(p for p in part if p[:1] not in excluded) for part in change))
    if not force:
        taken = {one: claim.fields & change.written for one, claim in others.items()}
        allowed = (
            own_fields(live, schema) if manager.name == KUBECTL and any(taken.values()) else ()
        )
        check_conflicts({one: fields - set(allowed) for one, fields in taken.items()})
    kept = _without(others, change)
    if wanted:
        unchanged = last is not None and not any(change)
        at = last.at if last is not None and unchanged else now
        kept[manager] = Claim(wanted, version, at)
    if manager.name == KUBECTL:
        new = noted(live, new, config)
    return new, kept


def _without(claims: Claims, change: Comparison) -> Claims:
    taken = change.written | change.removed
    rest = {m: Claim(c.fields - taken, c.version, c.at) for m, c in claims.items()}
    return {manager: claim for manager, claim in rest.items() if claim.fields}
