"""What of a dump is not taken, and why: typed, and told in one line for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final

import msgspec

from tenure.errors import ApiError, SpecError, shown
from tenure.model.api.resource import PODS, Resource
from tenure.sim.apiserver.objects.kinds import KINDS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.shapes.decoding import Mistake, metadata_mistakes, mistakes

_FORMS: Final = ("an object", "a list", "a plain value", "null", "nothing")
_ANOTHER: Final = "a value of another form"
#: Objects in every object, where they are there.
_OBJECTS: Final = ("metadata", "spec", "status")


class Problem(msgspec.Struct, frozen=True):
    """``got`` is empty where the API server's own words say all of it."""

    where: str
    got: str
    expected: str

    def __str__(self) -> str:
        said = f"got {self.got}, expected {self.expected}" if self.got else self.expected
        return f"{self.where}: {said}" if self.where else said


class How(StrEnum):
    """What becomes of such an object."""

    NOT_AT_ALL = "left out"
    WITHOUT_FIELD = "taken without a field that cannot be read"
    AS_IT_IS = "taken as it is, though an API server would refuse it"


class LeftOut(msgspec.Struct, frozen=True):
    #: The kind of the object; ``line`` for one that is no object.
    kind: str
    name: str
    problem: Problem
    how: How = How.NOT_AT_ALL
    #: Of a pod: the Node that it runs on.
    node: str = ""


def told(found: Iterable[LeftOut]) -> Iterator[str]:
    """One line for each kind; of several objects the first is named."""
    groups: dict[tuple[str, How], list[LeftOut]] = {}
    for one in found:
        groups.setdefault((one.kind, one.how), []).append(one)
    for (kind, how), of_kind in groups.items():
        first = of_kind[0]
        if len(of_kind) == 1:
            yield f"{kind} {first.name} is {how}: {first.problem}"
        else:
            yield f"{counted(len(of_kind), kind)} are {how}, the first of them {first.name}: {first.problem}"


def counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {_plural(noun)}"


def _plural(kind: str) -> str:
    if kind.endswith("s"):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def name_of(obj: Any) -> str:
    """``namespace/name``, as far as it can be read."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    parts = (
        [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, dict) else []
    )
    return "/".join(shown(part) for part in parts if isinstance(part, str) and part)


def node_of(resource: Resource, obj: Obj) -> str:
    """Of a pod that runs, the Node, as far as it can be read; of everything else nothing."""
    if resource != PODS or dig(obj, "status", "phase") in ("Succeeded", "Failed"):
        return ""
    node = dig(obj, "spec", "nodeName")
    return node if isinstance(node, str) else ""


def problem_of(
    resource: Resource, obj: Obj, error: Exception | None = None, *, hidden: bool = False
) -> Problem:
    """What is wrong with an object that cannot be taken; the first thing, if there are several.

    ``hidden``: the object is not redacted yet, so no value of it is shown.
    """
    if isinstance(error, SpecError):
        return of_spec(error)
    if mistake := next((one for one in _mistakes(resource, obj) if one.fatal), None):
        plain = not hidden or mistake.got in _FORMS
        return Problem(mistake.at, mistake.got if plain else _ANOTHER, mistake.expected)
    if isinstance(error, ApiError):
        cause = next(iter(error.causes), None)
        return (
            Problem("", "", error.message)
            if cause is None
            else Problem(cause.field, "", cause.message)
        )
    return Problem("", "other fields", f"those of a {resource.kind}")


def of_spec(error: SpecError, place: str = "") -> Problem:
    """``place``: where the object stands, if that is told already."""
    return Problem("" if error.at == place else error.at, shown(repr(error.got)), error.expected)


def _mistakes(resource: Resource, obj: Obj) -> Iterator[Mistake]:
    for part in _OBJECTS:
        if obj.get(part) is not None and not isinstance(obj[part], dict):
            form = "a list" if isinstance(obj[part], list) else "a plain value"
            yield Mistake(part, "an object", form)
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        yield Mistake("metadata.name", "a name", "nothing")
        return
    yield from metadata_mistakes(metadata)
    if resource in KINDS and not KINDS[resource].custom:
        yield from mistakes(resource, obj)
