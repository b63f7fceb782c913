"""``minValues`` as a wish, where the operator says so: Karpenter's ``--min-values-policy=BestEffort``.

Claims are planned as if every ``minValues`` were required. Where pods are left because of that alone, what
their pools ask for is lowered to what can be had, and packing starts over. A claim that has as many values as
its pool asked for at first says so still; the others say how many they have, and are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.facts import MinValuesUnmet
from tenure.packing.result import Packing, PlannedClaim

#: How often packing starts over with what was found; after that without any ``minValues``.
_PATIENCE: Final = 4
#: By pool and key: how many values it may be.
_Found = dict[tuple[str, str], int]


def as_many_as_possible(
    problem: Problem, packed: Callable[[Problem], Steps[Packing]]
) -> Steps[Packing]:
    packing = yield from packed(problem)
    lowered = problem
    for start in range(_PATIENCE + 1):
        short = _short(packing)
        if not short:
            break
        last = start == _PATIENCE
        templates = (_lowered(one, short, last=last) for one in lowered.templates)
        lowered = msgspec.structs.replace(lowered, templates=tuple(templates))
        packing = yield from packed(lowered)
    if lowered is problem:
        return packing
    templates_by_name = {one.pool: one for one in problem.templates}
    claims = tuple(_marked(claim, templates_by_name[claim.pool]) for claim in packing.claims)
    return msgspec.structs.replace(packing, claims=claims)


def _short(packing: Packing) -> _Found:
    """What is found where too little is."""
    found: _Found = {}
    for unplaced in {id(one): one for one in packing.unplaced.values()}.values():
        for refusal in unplaced.refusals:
            cause = refusal.cause
            if isinstance(cause, MinValuesUnmet):
                at = refusal.pool, cause.key
                found[at] = min(cause.found, found.get(at, cause.found))
    return found


def _lowered(
    template: PoolTemplate, found: Mapping[tuple[str, str], int], *, last: bool
) -> PoolTemplate:
    pool = template.pool
    if not any(name == pool for name, _ in found):
        return template
    changed = Requirements.of(
        one.with_min_values(None if last else found[pool, key] or None)
        if (pool, key) in found
        else one
        for key, one in template.requirements.items()
    )
    return msgspec.structs.replace(template, requirements=changed)


def _marked(claim: PlannedClaim, template: PoolTemplate) -> PlannedClaim:
    """With the ``minValues`` of its pool, or with as many values as it has."""
    types = {kind.name: kind.requirements for kind in template.instance_types}
    wanted, relaxed = dict(claim.requirements.items()), False
    for key, asked in template.requirements.items():
        if asked.min_values is None:
            continue
        allowed = wanted.get(key, asked)
        values = {
            value
            for name in claim.instance_types
            for value in types[name].allowed(key).listed
            if allowed.has(value)
        }
        relaxed |= len(values) < asked.min_values
        wanted[key] = allowed.with_min_values(min(len(values), asked.min_values) or None)
    requirements = Requirements(wanted)
    return msgspec.structs.replace(claim, requirements=requirements, min_values_relaxed=relaxed)
