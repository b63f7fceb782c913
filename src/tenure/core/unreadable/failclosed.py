"""Fail closed: nothing is written to an object that cannot be read, and nothing guessed about it.

These are objects that cannot be decoded, and those on which a decider fails (``runtime.evaluate``).
"""

from __future__ import annotations

from typing import Final

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
from tenure.core.unreadable.facts import NothingWritten
from tenure.model.api.resource import BY_KIND, PODS, Resource
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import unreadable_object

#: The reasons that verdicts on an unreadable object may have; all others would be guesses.
_ALLOWED: Final = frozenset(
    {
        Reason.OBJECT_UNREADABLE,
        Reason.EVALUATION_FAILED,
        Reason.BLOCKED_BY_UNREADABLE,
        # A deadline applies to it as well.
        Reason.FORCED,
        Reason.INSTANCE_TERMINATING,
    }
)
_RESOURCES: Final = {kind: resource for (_, kind), resource in BY_KIND.items()}


def fail_closed(verdicts: tuple[Verdict, ...], snapshot: Snapshot) -> tuple[Verdict, ...]:
    """Nothing is written to what cannot be read, and nothing guessed about it."""
    if not snapshot.unreadable():
        return verdicts  # Nearly always.
    known = [v for v in verdicts if v.reason in _ALLOWED or not _is_unreadable(v.subject, snapshot)]
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
    why = NothingWritten(unreadable_object(found))
    return msgspec.structs.replace(
        verdict,
        reason=Reason.BLOCKED_BY_UNREADABLE,
        facts=(*verdict.facts, why),
        action=None,
        commits=None,
    )


def _target(action: Action | None) -> tuple[Resource, str] | None:
    match action:
        case Patch() | Delete():
            key = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return action.resource, key
        case Evict():
            return PODS, f"{action.namespace}/{action.name}"
        case DeletePod() | Terminate():
            return None  # Only for a deadline, which applies all the same.
    return None
