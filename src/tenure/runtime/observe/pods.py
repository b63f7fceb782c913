"""Pods: refused evictions, pods that wait for a Node, and when claims were created for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from tenure.core.decision import Subject
from tenure.core.provision.placement import BATCH
from tenure.model.api.pod import Pod
from tenure.model.snapshot.observations import EvictionAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.observe.noted import Noted, move_all


class PodObservations:
    """By pod UID."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.evictions: dict[str, EvictionAnswer] = {}
        #: When the API first refused to delete a pod.
        self.failed_deletions: dict[str, datetime] = {}
        #: When a pod was first seen to be unschedulable.
        self.waiting_seen: dict[str, datetime] = {}
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
            if isinstance(change.new, Pod) and change.new.unschedulable:
                self.waiting_seen.setdefault(change.new.uid, now)

    def decided(self, now: datetime) -> None:
        """A claim was created for the pods of a batch: the batch is closed."""
        self.decided_at = now
        self._noted.note(BATCH)

    def clock_stepped(self, step: timedelta) -> None:
        move_all(self.evictions, step)
        move_all(self.failed_deletions, step)
        move_all(self.waiting_seen, step)
        if self.decided_at is not None:
            self.decided_at += step

    def forget(self, uid: str) -> None:
        self.evictions.pop(uid, None)
        self.failed_deletions.pop(uid, None)
