"""The managers of fields in the way of a write: what becomes of ``metadata.managedFields``.

An object is tracked from its creation by a client that says its name, or from the first time that it is
applied. What the embedded cluster writes to a tracked object counts, too; what it creates is not tracked.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tenure.schema.structure.structural import Schema
from tenure.sim.apiserver.admission.admission import rules_of
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import bad_request
from tenure.sim.apiserver.objects.tree import Obj, with_metadata
from tenure.sim.apiserver.ownership import managers
from tenure.sim.apiserver.ownership.apply import EMPTY, after_apply, after_update, first_claims
from tenure.sim.apiserver.ownership.fieldsets import FieldSet
from tenure.sim.apiserver.ownership.managers import APPLY, UPDATE, Claims, Writer, manager_of
from tenure.sim.apiserver.ownership.typed import check_types
from tenure.sim.apiserver.shapes.definitions import definition, with_type_and_metadata

MANAGED: Final = "managedFields"
#: What a client writes there to have all managers forgotten.
_RESET: Final[list[Any]] = [{}]


class Applied(NamedTuple):
    """A configuration merged into an object, and the managers after it."""

    obj: Obj
    claims: Claims


def merge_schema(kind: Kind) -> Schema:
    if not kind.custom:
        return definition(kind.resource)
    return with_type_and_metadata(rules_of(kind).schema)


def created(kind: Kind, obj: Obj, writer: Writer, now: str) -> Obj:
    """A new object with its first manager."""
    if not writer.tracks:
        return obj
    version = kind.resource.api_version
    manager = manager_of(writer, UPDATE, version, "")
    claims = after_update(EMPTY, obj, {}, manager, merge_schema(kind), version=version, now=now)
    return _with_claims(obj, claims)


def updated(kind: Kind, old: Obj, new: Obj, writer: Writer, subresource: str, now: str) -> Obj:
    """The new version of an object with its managers; ``new`` has those that the client gave."""
    given, before = new["metadata"].get(MANAGED), old["metadata"].get(MANAGED)
    if given == _RESET:
        return with_metadata(new, managedFields=None)
    # A client may write down managers; what cannot be read is as if it had not.
    claims = managers.read(given) or managers.read(before)
    if not claims:
        return new if given is None else with_metadata(new, managedFields=None)
    version, schema = kind.resource.api_version, merge_schema(kind)
    manager = manager_of(writer, UPDATE, version, subresource)
    claims = after_update(old, new, claims, manager, schema, version=version, now=now)
    return settled(old, new, claims)


def settled(old: Obj, new: Obj, claims: Claims) -> Obj:
    """With its managers; as they were written down before, if they own the same."""
    before = old["metadata"].get(MANAGED)
    if managers.same_claims(managers.read(before), claims):
        if before is None:
            return with_metadata(new, managedFields=None) if MANAGED in new["metadata"] else new
        return with_metadata(new, managedFields=before)
    return _with_claims(new, claims)


def applied(
    kind: Kind,
    live: Obj | None,
    config: Obj,
    writer: Writer,
    *,
    subresource: str,
    force: bool,
    now: str,
) -> Applied:
    """The configuration merged into the object; into nothing for a new one. Raises 409."""
    version, schema = kind.resource.api_version, merge_schema(kind)
    check_types(kind.resource, config, schema)
    base = live if live is not None else {}
    claims = managers.read(base.get("metadata", {}).get(MANAGED))
    if live is not None and not claims:
        claims = first_claims(live, schema, version=version, now=now)
    obj, claims = after_apply(
        base,
        config,
        claims,
        manager_of(writer, APPLY, version, subresource),
        schema,
        version=version,
        now=now,
        force=force,
        excluded=_not_written(kind, subresource),
    )
    return Applied(obj, claims)


def _not_written(kind: Kind, subresource: str) -> FieldSet:
    """The parts that an apply to this subresource leaves alone."""
    if subresource == "status":
        return frozenset({("f:spec",), *([("f:metadata",)] if kind.custom else [])})
    return frozenset({("f:status",)} if kind.status else ())


def check_config(kind: Kind, config: Any) -> Obj:
    """What is applied has to say which kind it is, and no managers. Raises 400."""
    if not isinstance(config, dict):
        raise bad_request("an applied configuration is an object")
    version, name = config.get("apiVersion", ""), config.get("kind", "")
    expected = kind.resource.api_version
    if not version or not name:
        missing = "apiVersion" if not version else "kind"
        raise bad_request(f"invalid object type: {missing} must be set in an applied configuration")
    if version != expected:
        raise bad_request(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version}, expected: {expected}"
        )
    if name != kind.resource.kind:
        raise bad_request(f"kind {name!r} cannot be handled as {kind.resource.kind!r}")
    metadata = config.get("metadata") or {}
    if isinstance(metadata, dict) and metadata.get(MANAGED) is not None:
        raise bad_request("metadata.managedFields must be nil")
    return {**config, "metadata": metadata}


def _with_claims(obj: Obj, claims: Claims) -> Obj:
    return with_metadata(obj, managedFields=managers.written(claims)) if claims else obj
