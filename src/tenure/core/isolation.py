"""One object must never stop another: evaluation that sets aside the object it fails on.

A decider may look at every object of the cluster under one key. If that raises, whatever it raises:

1. blame       the innermost frame of the traceback that has an object in its hands names it;
2. set aside   a stand-in takes the object's place in the snapshot (``model.unreadable``): from then
               on it counts as one that cannot be read, so it protects what belongs to it;
3. again       the work is repeated, as if the object were not there.

Where several objects in a row fail at the same line and have a wider one in common (the Nodes of
one pool), the wider one is blamed in their stead. Where nobody can be blamed, or too many would
be, the work has failed as a whole: that is for the caller to say.

This is asked of every decider from outside, so that no decider has to care for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Generic, TypeGuard, TypeVar

import msgspec

from tenure.core.decision import (
    Action,
    Delete,
    DeletePod,
    Evict,
    Patch,
    Subject,
    Terminate,
    Verdict,
)
from tenure.core.reasons import Reason
from tenure.errors import SpecError
from tenure.model.kinds import TYPES
from tenure.model.meta import ApiObject
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.pod import Pod
from tenure.model.resource import BY_KIND, PODS, Resource
from tenure.model.snapshot import Change, Snapshot
from tenure.model.unreadable import type_of, why_unreadable

T = TypeVar("T")

#: So many objects are set aside for one piece of work at once; the rest has its turn in the next.
SET_ASIDE_MAX: Final = 16
#: So many failures at one line that have an object in common are that object's.
COMMON_AFTER: Final = 4

#: What else is blamed first: it concerns fewer others.
_WIDTHS: Final[dict[type[ApiObject], int]] = {Pod: 1, Node: 2, NodeClaim: 3, NodePool: 4}


class Place(msgspec.Struct, frozen=True):
    """Where an object is kept."""

    resource: Resource
    key: str


class Failure(msgspec.Struct, frozen=True):
    """An exception, where it was raised, and whom it may be about; who comes first is blamed."""

    error: Exception
    line: tuple[str, int]
    suspects: tuple[Place, ...]


class Outcome(msgspec.Struct, Generic[T], frozen=True):
    #: None where the work has failed as a whole.
    result: T | None = None
    #: Who was set aside, as changes of the snapshot.
    changes: tuple[Change, ...] = ()
    #: Why it has failed as a whole; None where it has not.
    error: Exception | None = None
    #: So many objects fail that the rest has to wait for the next time.
    unfinished: bool = False


def isolated(work: Callable[[], T], snapshot: Snapshot) -> Outcome[T]:
    """Do it; whoever it fails on is set aside, and it is done again."""
    changes: list[Change] = []
    failures: list[Failure] = []
    while True:
        try:
            return Outcome(work(), tuple(changes))
        except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
            failure = _failure(error, snapshot)
        if len(failures) >= SET_ASIDE_MAX:
            return Outcome(None, tuple(changes), failure.error, unfinished=True)
        failures.append(failure)
        if not failure.suspects:
            alike = [one for one in failures if one.line == failure.line and one.suspects]
            changes += _put_back({one.suspects[0] for one in alike}, changes, snapshot)
            return Outcome(None, tuple(changes), failure.error)
        changes += _blame(failures, changes, snapshot)


def _blame(
    failures: Sequence[Failure], changes: Sequence[Change], snapshot: Snapshot
) -> list[Change]:
    """Set the one aside that the newest failure is about, and put back who was blamed in vain."""
    newest = failures[-1]
    alike = [one for one in failures if one.line == newest.line]
    blamed = newest.suspects[0]
    if len(alike) >= COMMON_AFTER:
        common = set.intersection(*(set(one.suspects) for one in alike))
        blamed = next((one for one in newest.suspects if one in common), blamed)
    in_vain = {one.suspects[0] for one in alike if blamed in one.suspects} - {blamed}
    back = _put_back(in_vain, changes, snapshot)
    return [*back, _set_aside(blamed, newest.error, snapshot)]


def _put_back(
    places: Collection[Place], changes: Sequence[Change], snapshot: Snapshot
) -> list[Change]:
    """As they were before the first of these changes."""
    first: dict[Place, Change] = {}
    for change in changes:
        first.setdefault(Place(change.resource, change.key), change)
    return [snapshot.put_back(change) for place, change in first.items() if place in places]


def _set_aside(blamed: Place, error: Exception, snapshot: Snapshot) -> Change:
    field = error.at if isinstance(error, SpecError) else ""
    return snapshot.set_aside(blamed.resource, blamed.key, described(error), field)


def described(error: Exception) -> str:
    """The error and where it was raised, for a report: it is a fault of ours."""
    frames = list(_frames(error.__traceback__))
    name = type(error).__name__
    said = f"{name}: {error}" if str(error) else name
    if not frames or isinstance(error, SpecError):
        return said
    frame, line = frames[0]
    return f"{said} ({Path(frame.f_code.co_filename).name}:{line})"


# -- whom a traceback is about -------------------------------------------------------------------


def _failure(error: Exception, snapshot: Snapshot) -> Failure:
    frames = list(_frames(error.__traceback__))
    line = (frames[0][0].f_code.co_filename, frames[0][1]) if frames else ("", 0)
    for frame, _ in frames:
        if suspects := tuple(_suspects(frame, snapshot)):
            return Failure(error, line, suspects)
    return Failure(error, line, ())


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """The innermost first."""
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return reversed(found)


def _suspects(frame: FrameType, snapshot: Snapshot) -> Iterator[Place]:
    """The objects in its hands: its own before those of the function around it, narrow before wide;
    else those in the values that it has in its hands."""
    own = [v for name, v in frame.f_locals.items() if name not in frame.f_code.co_freevars]
    others = [v for name, v in frame.f_locals.items() if name in frame.f_code.co_freevars]
    found: dict[Place, None] = {}
    for values in (own, others, [part for value in own for part in _parts(value)]):
        objects = sorted(filter(_is_object, values), key=_width)
        found |= dict.fromkeys(filter(None, (_place(one, snapshot) for one in objects)))
        if values is others and found:
            break
    return iter(found)


def _is_object(value: object) -> TypeGuard[ApiObject]:
    return isinstance(value, ApiObject)


def _parts(value: object) -> Iterator[object]:
    """Of a value that has one object of a kind, that object; which of many it is, nobody can tell."""
    if isinstance(value, msgspec.Struct) and not isinstance(value, ApiObject):
        yield from (getattr(value, name) for name in value.__struct_fields__)


def _width(item: ApiObject) -> int:
    return _WIDTHS.get(type_of(item), 0)


def _place(item: ApiObject, snapshot: Snapshot) -> Place | None:
    """None for an object that is none of the snapshot's: a claim that is still to be created."""
    resource = _RESOURCE_OF.get(type_of(item))
    try:
        key = item.key
    except Exception:  # noqa: BLE001  # not even that can be read of it
        return None
    known = snapshot.objects(resource).get(key) if resource is not None else None
    if resource is None or known is None or getattr(known, "bare", False):
        return None
    return Place(resource, key)


# -- what is said of those that were set aside -----------------------------------------------------

#: What may be said of an object that cannot be read; all else would be guessed.
_SAID: Final = frozenset(
    {
        Reason.OBJECT_UNREADABLE,
        Reason.EVALUATION_FAILED,
        Reason.BLOCKED_BY_UNREADABLE,
        # A deadline holds for it as well.
        Reason.FORCED,
        Reason.INSTANCE_TERMINATING,
    }
)
_RESOURCE_OF: Final = {type_: resource for resource, type_ in TYPES.items()}
_RESOURCES: Final = {kind: resource for (_, kind), resource in BY_KIND.items()}


def fail_closed(verdicts: tuple[Verdict, ...], snapshot: Snapshot) -> tuple[Verdict, ...]:
    """Nothing is written to what cannot be read, and nothing guessed about it."""
    if not snapshot.unreadable():
        return verdicts  # Nearly always.
    known = [v for v in verdicts if v.reason in _SAID or not _is_unreadable(v.subject, snapshot)]
    return tuple(_without_write(verdict, snapshot) for verdict in known)


def _is_unreadable(subject: Subject, snapshot: Snapshot) -> bool:
    resource = _RESOURCES.get(subject.kind)
    key = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
    return resource is not None and (resource, key) in snapshot.unreadable()


def _without_write(verdict: Verdict, snapshot: Snapshot) -> Verdict:
    target = _target(verdict.action)
    found = snapshot.unreadable().get(target) if target is not None else None
    if found is None:
        return verdict
    message = f"{verdict.message}; {why_unreadable(found)}, so nothing is written to it"
    return msgspec.structs.replace(
        verdict, reason=Reason.BLOCKED_BY_UNREADABLE, message=message, action=None, commits=None
    )


def _target(action: Action | None) -> tuple[Resource, str] | None:
    match action:
        case Patch() | Delete():
            key = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return action.resource, key
        case Evict():
            return PODS, f"{action.namespace}/{action.name}"
        case DeletePod() | Terminate():
            return None  # Only for a deadline, which holds all the same.
    return None
