"""Which objects a failed evaluation may be about: those that its traceback had in hand.

A collection is no evidence: which of its objects it is, the traceback does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, TypeGuard

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import Resource
from tenure.model.snapshot.kinds import TYPES
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import type_of

#: How many others an object concerns: a narrow one is suspected before a wide one.
_WIDTHS: Final[dict[type[ApiObject], int]] = {Pod: 1, Node: 2, NodeClaim: 3, NodePool: 4}
_RESOURCE_OF: Final = {type_: resource for resource, type_ in TYPES.items()}

#: Of the source: file and number.
Line = tuple[str, int]


class Place(msgspec.Struct, frozen=True):
    """Where an object is kept."""

    resource: Resource
    key: str


class Failure(msgspec.Struct, frozen=True):
    """The line that raised an exception, and the objects that it may be about.

    Without the exception itself, which would keep all that its traceback has in hand.
    """

    line: Line
    #: What was raised, for a sentence, and the field that it names.
    problem: str
    field: str
    #: It says that something in the object's spec is wrong, so it is the object's.
    of_spec: bool
    #: Narrow before wide.
    suspects: tuple[Place, ...]
    #: How many of the suspects are as narrow as the first.
    narrowest: int


def failure_of(error: Exception, snapshot: Snapshot) -> Failure:
    """The suspects are the objects in the innermost frame that has any."""
    frames = list(_frames(error.__traceback__))
    line = (frames[0][0].f_code.co_filename, frames[0][1]) if frames else ("", 0)
    for frame, _ in frames:
        if suspects := _suspects(frame, snapshot):
            widths = list(suspects.values())
            return _failure(error, line, tuple(suspects), widths.count(widths[0]))
    return _failure(error, line, (), 0)


def _failure(error: Exception, line: Line, suspects: tuple[Place, ...], narrowest: int) -> Failure:
    field = error.at if isinstance(error, SpecError) else ""
    of_spec = isinstance(error, SpecError)
    return Failure(line, described(error), field, of_spec, suspects, narrowest)


def described(error: Exception) -> str:
    """The error and where it was raised, for a report: it is a fault of ours."""
    frames = list(_frames(error.__traceback__))
    name = type(error).__name__
    said = f"{name}: {error}" if str(error) else name
    if not frames or isinstance(error, SpecError):
        return said
    frame, line = frames[0]
    return f"{said} ({Path(frame.f_code.co_filename).name}:{line})"


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """The innermost first."""
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return reversed(found)


def _suspects(frame: FrameType, snapshot: Snapshot) -> dict[Place, int]:
    """The objects in the frame's variables, with their widths: its own before those of the function
    around it; else those in the values of its variables."""
    own = [v for name, v in frame.f_locals.items() if name not in frame.f_code.co_freevars]
    others = [v for name, v in frame.f_locals.items() if name in frame.f_code.co_freevars]
    parts = [part for value in own for part in _parts(value)]
    found = _places(own, snapshot)
    found |= {
        place: width for place, width in _places(others, snapshot).items() if place not in found
    }
    return found or _places(parts, snapshot)


def _places(values: Iterable[object], snapshot: Snapshot) -> dict[Place, int]:
    objects = sorted(filter(_is_object, values), key=_width)
    places = [(_place(one, snapshot), _width(one)) for one in objects]
    return {place: width for place, width in places if place is not None}


def _is_object(value: object) -> TypeGuard[ApiObject]:
    return isinstance(value, ApiObject)


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, msgspec.Struct) and not isinstance(value, ApiObject):
        yield from (getattr(value, name) for name in value.__struct_fields__)


def _width(item: ApiObject) -> int:
    return _WIDTHS.get(type_of(item), 0)


def _node_class_kind(key: str, snapshot: Snapshot) -> Resource | None:
    """A kind that is not in the table is the node class of a provider."""
    others = (kind for kind in snapshot.kinds() if kind not in TYPES)
    return next((kind for kind in others if key in snapshot.objects(kind)), None)


def _place(item: ApiObject, snapshot: Snapshot) -> Place | None:
    """None for an object that is none of the snapshot's: a claim that is still to be created."""
    try:
        key = item.key
    except Exception:  # noqa: BLE001  # not even that can be read of it
        return None
    resource = _RESOURCE_OF.get(type_of(item)) or _node_class_kind(key, snapshot)
    known = snapshot.objects(resource).get(key) if resource is not None else None
    if resource is None or known is None or getattr(known, "bare", False):
        return None
    return Place(resource, key)
