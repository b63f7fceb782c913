"""What one delete request does to one object.

In the order in which the rules bite:

1. A pod that is already going may only be hurried: the new grace counts from the *first*
   request, and where that instant has passed the pod is due now, with one second of grace
   so that the kubelet still stops it. A longer or equal grace changes nothing.
2. A pod that does not run (unbound or finished) needs no grace; otherwise the grace is the
   request's, else the pod's own.
3. The propagation policy leaves its finalizer for the garbage collector.
4. With a grace or with finalizers the object stays, marked; otherwise it goes now. A pod is
   marked even then, so that a watcher sees the deletionTimestamp first, as on a real server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from tenure.model.api.meta import earlier, format_time, later, wrapped_seconds_of
from tenure.sim.apiserver.objects.tree import Obj, dig, with_metadata

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"

POLICIES: Final = ("Background", "Foreground", "Orphan")
_FINALIZER_OF: Final = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    grace_period_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    #: Background, Foreground, Orphan; empty = whatever finalizers are there already say.
    propagation_policy: str = ""


class Deletion(msgspec.Struct, frozen=True):
    """``obj`` is what to write first (the very same object: nothing); then it may go."""

    obj: Obj
    gone: bool


def plan_deletion(obj: Obj, options: DeleteOptions, *, graceful: bool, now: datetime) -> Deletion:
    metadata = obj["metadata"]
    grace = 0
    deleting = "deletionTimestamp" in metadata
    if graceful and deleting:
        due = _hurried(metadata, options.grace_period_seconds, now)
        if due is None:
            return Deletion(obj, gone=False)
        grace, at = due
    elif graceful:
        grace = _first_grace(obj, options.grace_period_seconds)
        at = later(now, wrapped_seconds_of(grace))
    else:
        at = now
    finalizers = _finalizers(metadata.get("finalizers", []), options.propagation_policy)
    if not graceful and not finalizers:
        return Deletion(obj, gone=True)
    fields: Obj = {"deletionGracePeriodSeconds": grace}
    if graceful or not deleting:
        fields["deletionTimestamp"] = format_time(at)
    if not deleting and "generation" in metadata:
        # Deleting counts as a change of what is wanted, once.
        fields["generation"] = metadata["generation"] + 1
    if finalizers != metadata.get("finalizers", []):
        fields["finalizers"] = finalizers
    if all(metadata.get(key) == value for key, value in fields.items()):
        return Deletion(obj, gone=False)
    return Deletion(with_metadata(obj, **fields), gone=grace == 0 and not finalizers)


def finished(obj: Obj) -> bool:
    """A deleted object for which neither a grace nor a finalizer is pending any more."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (obj["kind"] == "Namespace" and dig(obj, "spec", "finalizers"))
    )


def _first_grace(pod: Obj, asked: int | None) -> int:
    if not dig(pod, "spec", "nodeName") or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    own = dig(pod, "spec", "terminationGracePeriodSeconds") or 0
    grace: int = own if asked is None else asked
    return 1 if grace < 0 else grace


def _hurried(metadata: Obj, asked: int | None, now: datetime) -> tuple[int, datetime] | None:
    """The shortened grace and its end; None when the request does not shorten anything."""
    current: int = metadata["deletionGracePeriodSeconds"]
    if asked is None or asked >= current:
        return None
    due = datetime.fromisoformat(metadata["deletionTimestamp"])
    due = later(earlier(due, wrapped_seconds_of(current)), wrapped_seconds_of(asked))
    if due >= now:
        return asked, due
    return (1 if asked else 0), now


def _finalizers(current: list[str], policy: str) -> list[str]:
    if not policy:
        return current
    wanted = _FINALIZER_OF.get(policy)
    kept = [f for f in current if f == wanted or f not in (ORPHAN, FOREGROUND)]
    return kept if wanted is None or wanted in kept else [*kept, wanted]
