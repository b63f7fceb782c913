"""Pods: refused evictions, pods that wait for a Node, and when claims were created for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tenure.core.decision import Subject
from tenure.core.provision.placement import BATCH
from tenure.model.api.meta import controller_of
from tenure.model.api.pod import Pod
from tenure.model.snapshot.observations import EvictionAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.observe.noted import Noted, move_all

#: Controllers of which it is known when they last created a pod.
CREATORS_MAX: Final = 1000


class PodObservations:
    """By pod UID."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.evictions: dict[str, EvictionAnswer] = {}
        #: When the API first refused to delete a pod.
        self.failed_deletions: dict[str, datetime] = {}
        #: When a pod was first seen to be unschedulable.
        self.waiting_seen: dict[str, datetime] = {}
        #: By UID of a controller: when it last created a pod that was not bound yet.
        self.created_seen: dict[str, datetime] = {}
        self.decided_at: datetime | None = None

    def eviction_refused(self, pod: Subject, answer: EvictionAnswer) -> None:
        self.evictions[pod.uid] = answer
        self._noted.note(pod)

    def deletion_failed(self, pod: Subject, now: datetime) -> None:
        """Only the first failure counts: from then on the pod has its last minute."""
        if pod.uid not in self.failed_deletions:
            self.failed_deletions[pod.uid] = now
            self._noted.note(pod)

    def see_waiting(self, changes: Iterable[Change], now: datetime) -> None:
        for change in changes:
            pod = change.new
            if not isinstance(pod, Pod):
                continue
            if pod.unschedulable:
                self.waiting_seen.setdefault(pod.uid, now)
            if change.old is None and not pod.spec.node_name and not pod.daemon:
                self._created(pod, now)

    def _created(self, pod: Pod, now: datetime) -> None:
        controller = controller_of(pod.metadata)
        if controller is None:
            return
        self.created_seen[controller.uid] = now
        if len(self.created_seen) > CREATORS_MAX:
            oldest_first = sorted(self.created_seen, key=self.created_seen.__getitem__)
            for uid in oldest_first[: CREATORS_MAX // 2]:
                del self.created_seen[uid]

    def decided(self, now: datetime) -> None:
        """A claim was created for the pods of a batch: the batch is closed."""
        self.decided_at = now
        self._noted.note(BATCH)

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.evictions, step)
        move_all(self.failed_deletions, step)
        move_all(self.waiting_seen, step)
        move_all(self.created_seen, step)
        if self.decided_at is not None:
            self.decided_at += step

    def forget(self, uid: str) -> None:
        self.evictions.pop(uid, None)
        self.failed_deletions.pop(uid, None)
