"""What the API would answer to an eviction, read off the budgets: a look may not ask.

The replica that acts knows the answers, because it called. ``plan`` and ``explain`` would otherwise say that a
pod is about to be evicted which a budget has held for hours. The rules are the API server's: a
pod without a budget goes; several budgets are a no; a pod that is not ready costs nothing where
enough others are healthy, or its budget says so; and each other pod takes one of the disruptions
that its budget allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from tenure.core.decision import Subject
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.matching.selectors import matches
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import EvictionAnswer
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.observe.store import ObservationStore


def foresee_refusals(
    snapshot: Snapshot, observations: ObservationStore, settings: Settings, now: datetime
) -> None:
    """Notes a refusal for every pod of a leaving node whose budget holds it."""
    spent: Counter[str] = Counter()
    for node in sorted(snapshot.leaving_nodes()):
        pods = snapshot.pods_on(node)
        for name in sorted(pods):
            if why := _refusal(pods[name], snapshot, spent):
                retry_at = now + settings.eviction_retry_max
                answer = EvictionAnswer(at=now, retry_at=retry_at, message=why)
                observations.pods.eviction_refused(Subject.of(PODS.kind, pods[name]), answer)


def _refusal(pod: Pod, snapshot: Snapshot, spent: Counter[str]) -> str:
    if pod.deleting or pod.finished or pod.status.phase == "Pending":
        return ""
    budgets = list(_budgets(pod, snapshot))
    if len(budgets) > 1:
        return f"{len(budgets)} PDBs cover the pod, and the API evicts no such pod"
    if not budgets or _costs_nothing(pod, budgets[0]):
        return ""
    budget = budgets[0]
    spent[budget.key] += 1
    if spent[budget.key] <= budget.status.disruptions_allowed:
        return ""
    allowed = budget.status.disruptions_allowed
    disruptions = "disruption" if allowed == 1 else "disruptions"
    return f"PDB {budget.key} allows {allowed} more {disruptions}, for pods that are evicted first"


def _budgets(pod: Pod, snapshot: Snapshot) -> Iterator[PodDisruptionBudget]:
    for budget in snapshot.budgets_in(pod.namespace).values():
        if matches(budget.spec.selector, pod.labels):
            yield budget


def _costs_nothing(pod: Pod, budget: PodDisruptionBudget) -> bool:
    if pod.ready:
        return False
    status = budget.status
    enough = status.current_healthy >= status.desired_healthy > 0
    return enough or budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
