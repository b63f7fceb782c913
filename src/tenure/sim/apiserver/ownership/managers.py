"""The managers of an object's fields, as ``metadata.managedFields`` has them.

A manager is a name, an operation (Apply or Update) and a subresource; what it has written and no other has
changed since is its own. Some fields never belong to a manager: what the server sets itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.ownership import fieldsets
from tenure.sim.apiserver.ownership.fieldsets import FieldSet, Path

APPLY: Final = "Apply"
UPDATE: Final = "Update"
#: Owns what was there before an object's fields had managers.
BEFORE_FIRST_APPLY: Final = "before-first-apply"
_OF_METADATA: Final = (
    *("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields"),
    *("resourceVersion",),
)
_OF_NO_MANAGER: Final[FieldSet] = frozenset(
    {
        *(("f:apiVersion",), ("f:kind",), ("f:metadata",)),
        *(("f:metadata", f"f:{name}") for name in _OF_METADATA),
    }
)


class Manager(NamedTuple):
    name: str
    operation: str
    #: Of the request, so that a field can be found under another version; nothing for Apply.
    version: str
    subresource: str = ""

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Claim:
    """What a manager owns, and since when it has been so."""

    fields: FieldSet
    version: str
    at: str = ""


Claims = dict[Manager, Claim]


class Writer(NamedTuple):
    """Who writes: its name, and whether the objects that it creates are tracked from the start."""

    name: str
    tracks: bool = True


#: The embedded cluster's own controllers. They track nothing by themselves: a virtual day writes a hundred
#: thousand objects whose managers no client reads.
CONTROLLERS: Final = Writer("kube-controller-manager", tracks=False)
TENURE: Final = Writer("tenure", tracks=False)


def manager_of(writer: Writer, operation: str, version: str, subresource: str) -> Manager:
    return Manager(writer.name, operation, "" if operation == APPLY else version, subresource)


def read(entries: Any) -> Claims:
    """The claims in ``managedFields``; none where one of them cannot be read."""
    try:
        return dict(map(_read, entries or ()))
    except (AttributeError, KeyError, TypeError):
        return {}


def _read(entry: Obj) -> tuple[Manager, Claim]:
    operation, version = entry["operation"], entry["apiVersion"]
    if operation not in (APPLY, UPDATE):
        raise KeyError(operation)
    name, part = entry.get("manager", ""), entry.get("subresource", "")
    manager = Manager(name, operation, "" if operation == APPLY else version, part)
    return manager, Claim(fieldsets.read(entry["fieldsV1"]), version, entry.get("time", ""))


def written(claims: Claims) -> list[Obj]:
    ordered = sorted(claims.items(), key=lambda item: (item[0].operation, item[1].at, item[0]))
    return [_written(manager, claim) for manager, claim in ordered if claim.fields]


def _written(manager: Manager, claim: Claim) -> Obj:
    entry: Obj = {"manager": manager.name, "operation": manager.operation}
    entry["apiVersion"] = claim.version
    if claim.at:
        entry["time"] = claim.at
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": fieldsets.written(claim.fields)}
    return {**entry, "subresource": manager.subresource} if manager.subresource else entry


def same_claims(left: Claims, right: Claims) -> bool:
    """Whether both say the same, whenever it was said."""
    return {m: c.fields for m, c in left.items()} == {m: c.fields for m, c in right.items()}


def ownable(paths: Iterable[Path], excluded: FieldSet) -> FieldSet:
    """Those of them that a manager can own; ``excluded``: what this request cannot write."""
    return frozenset(_ownable(paths, excluded))


def _ownable(paths: Iterable[Path], excluded: FieldSet) -> Iterator[Path]:
    for path in paths:
        if path not in _OF_NO_MANAGER and path[:1] not in excluded:
            yield path
