"""What was refused, and when it is tried again: new claims, and what a disruption begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from tenure.core.decision import Patch
from tenure.core.provision.placement import BATCH
from tenure.errors import shown
from tenure.model.api.meta import ApiObject
from tenure.model.api.pod import Pod
from tenure.model.snapshot.observations import ClaimRefusal, WriteRefusal
from tenure.runtime.observe.noted import Noted, move_all

#: How long no claim is created for pods whose own claim the API server refused, and no disruption
#: begins of a claim, or in a pool, whose write was refused.
PAUSE_MIN: Final = timedelta(minutes=1)
PAUSE_MAX: Final = timedelta(minutes=30)


class RefusedStarts:
    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        #: By the UID of the claim, Node or pool.
        self.by_uid: dict[str, WriteRefusal] = {}

    def refused(self, action: Patch, message: str, now: datetime) -> None:
        last = self.by_uid.get(action.uid)
        pause = min(2 * (last.retry_at - last.at), PAUSE_MAX) if last is not None else PAUSE_MIN
        self.by_uid[action.uid] = WriteRefusal(
            message=shown(message),
            at=now,
            retry_at=now + pause,
            subresource=action.subresource,
        )
        self._noted.note(BATCH)

    def written(self, action: Patch) -> None:
        """Its status may still be refused where the object itself is written, and the reverse."""
        last = self.by_uid.get(action.uid)
        if last is not None and last.subresource == action.subresource:
            del self.by_uid[action.uid]
            self._noted.note(BATCH)

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.by_uid, step)

    def forget(self, uid: str) -> None:
        self.by_uid.pop(uid, None)


class RefusedClaims:
    """Claims that the API server refused, by the UIDs of the pods that they were for."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.by_pod: dict[str, ClaimRefusal] = {}

    def created(self, pods: Iterable[str]) -> None:
        for uid in pods:
            self.by_pod.pop(uid, None)

    def refused(self, claim: str, pods: Sequence[str], message: str, now: datetime) -> None:
        """The pods are planned apart next. Those that were wait, longer each time: the refusal is
        theirs."""
        alone = len(pods) == 1 or all(uid in self.by_pod for uid in pods)
        for uid in pods:
            retry_at = now + self._pause(uid) if alone else None
            self.by_pod[uid] = ClaimRefusal(
                claim=claim, message=shown(message), at=now, retry_at=retry_at
            )
        self._noted.note(BATCH)

    def _pause(self, uid: str) -> timedelta:
        last = self.by_pod.get(uid)
        if last is None or last.retry_at is None:
            return PAUSE_MIN
        return min(2 * (last.retry_at - last.at), PAUSE_MAX)

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.by_pod, step)

    def changed(self, old: ApiObject, new: ApiObject | None) -> None:
        """A pod that is bound or gone needs no claim any more."""
        if isinstance(old, Pod) and (
            not isinstance(new, Pod) or old.spec.node_name != new.spec.node_name
        ):
            self.by_pod.pop(old.uid, None)
