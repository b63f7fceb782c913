"""What the API would answer to an eviction, read off the PDBs: a look may not ask.

The replica that acts knows the answers, because it called. ``plan`` and ``explain`` would otherwise say that a
pod is about to be evicted which a PDB has held for hours. The rules are the API server's: a
pod without a PDB goes; several PDBs are a no; a pod that is not ready costs nothing where
enough others are healthy, or its PDB says so; and each other pod takes one of the disruptions
that its PDB allows.
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
    """Notes a refusal for every pod of a leaving node whose PDB blocks it."""
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
    pdbs = list(_pdbs(pod, snapshot))
    if len(pdbs) > 1:
        return f"{len(pdbs)} PDBs cover the pod, and the API evicts no such pod"
    if not pdbs or _costs_nothing(pod, pdbs[0]):
        return ""
    pdb = pdbs[0]
    spent[pdb.key] += 1
    if spent[pdb.key] <= pdb.status.disruptions_allowed:
        return ""
    allowed = pdb.status.disruptions_allowed
    disruptions = "disruption" if allowed == 1 else "disruptions"
    return f"PDB {pdb.key} allows {allowed} more {disruptions}, for pods that are evicted first"


def _pdbs(pod: Pod, snapshot: Snapshot) -> Iterator[PodDisruptionBudget]:
    for pdb in snapshot.pdbs_in(pod.namespace).values():
        if matches(pdb.spec.selector, pod.labels):
            yield pdb


def _costs_nothing(pod: Pod, pdb: PodDisruptionBudget) -> bool:
    if pod.ready:
        return False
    status = pdb.status
    enough = status.current_healthy >= status.desired_healthy > 0
    return enough or pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
