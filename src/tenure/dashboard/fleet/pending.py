"""Pods that wait for a node: those that the scheduler found none for."""

from __future__ import annotations

import heapq
from typing import Final

from tenure.dashboard.fleet.governing import Verdicts
from tenure.dashboard.fleet.texts import cut
from tenure.dashboard.fleet.values import PendingPod
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.snapshot.snapshot import Snapshot

LISTED_MAX: Final = 100


def pending_pods(
    snapshot: Snapshot, verdicts: Verdicts | None
) -> tuple[tuple[PendingPod, ...], int]:
    """Those that have waited longest, and how many there are."""
    waiting = snapshot.unschedulable_pods()
    oldest = heapq.nsmallest(
        LISTED_MAX, waiting.values(), key=lambda pod: (pod.unscheduled_since, pod.key)
    )
    return tuple(_pending(pod, verdicts) for pod in oldest), len(waiting)


def _pending(pod: Pod, verdicts: Verdicts | None) -> PendingPod:
    about = [] if verdicts is None else verdicts.about(PODS.kind, pod.name, pod.namespace)
    return PendingPod(
        key=f"{PODS.kind}/{pod.key}",
        name=pod.name,
        namespace=pod.namespace,
        reason=str(about[0].reason) if about else "",
        because=cut(about[0].message) if about else "",
        since=pod.unscheduled_since,
    )
