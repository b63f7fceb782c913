"""Predict from the status of PodDisruptionBudgets whether the API server allows an eviction.

A PDB that cannot be read allows nothing.

Tenure sends an eviction when the prediction is yes. A status may be stale, so for each PDB that
seems to allow nothing, the eviction of one pod is tried from time to time: trying hundreds would
only load the API server. Its rules, in order:

1. a pod that does not run yet can always be evicted;
2. a pod that several PDBs select can never be evicted;
3. a running pod that is not Ready can be evicted if the PDB says ``AlwaysAllow``, or if it has as
   many healthy pods as it requires without this one;
4. otherwise the PDB must allow one more disruption than Tenure has requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tenure.core.decision import Blocker, Subject
from tenure.core.facts import Fact
from tenure.core.terminate.facts.pods import (
    PdbAllowsNoMore,
    PdbNeverAllows,
    PdbUnreadable,
    SeveralPdbs,
)
from tenure.model.api.meta import find_condition
from tenure.model.api.pod import Pod
from tenure.model.api.resource import POD_DISRUPTION_BUDGETS
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object


class Allowances:
    """Counts down the disruptions that PDBs allow, over the pods of one evaluation."""

    def __init__(self) -> None:
        #: By the PDB's UID: the pods that use the disruptions that it allows.
        self._taken: dict[str, list[str]] = {}

    def grants(self, pod: Pod, pdbs: Sequence[PodDisruptionBudget]) -> bool:
        """Whether the API server will probably allow the eviction; counts the pod if so."""
        if (granted := _whatever_is_left(pod, pdbs)) is not None:
            return granted
        (pdb,) = pdbs
        taken = self._taken.setdefault(pdb.uid, [])
        if len(taken) >= pdb.status.disruptions_allowed:
            return False
        taken.append(pod.key)
        return True

    def taken_by(self, pdb: PodDisruptionBudget) -> Sequence[str]:
        """The pods that were granted a disruption in this evaluation."""
        return self._taken.get(pdb.uid, ())


def allows_one(pod: Pod, pdbs: Sequence[PodDisruptionBudget]) -> bool:
    """Whether the API server will probably allow the eviction of this pod, if of no other."""
    granted = _whatever_is_left(pod, pdbs)
    return pdbs[0].status.disruptions_allowed > 0 if granted is None else granted


def _whatever_is_left(pod: Pod, pdbs: Sequence[PodDisruptionBudget]) -> bool | None:
    """The answer that does not depend on what the PDB still allows; None: the one PDB decides."""
    for pdb in pdbs:
        if is_unreadable(pdb):
            return False
    if not pdbs or pod.status.phase == "Pending":
        return True
    if len(pdbs) > 1:
        return False
    return True if not pod.ready and _spares_unready(pdbs[0]) else None


def _spares_unready(pdb: PodDisruptionBudget) -> bool:
    if pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = pdb.status
    return status.desired_healthy > 0 and status.current_healthy >= status.desired_healthy


def never_allows(pdb: PodDisruptionBudget) -> bool:
    """Whether it cannot allow a disruption even with every pod healthy."""
    status = pdb.status
    return 0 < status.expected_pods <= status.desired_healthy


def bars(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether it can never allow the eviction of the pod, which it selects."""
    if is_unreadable(pdb) or pod.status.phase == "Pending":
        return False
    return never_allows(pdb) and (pod.ready or not _spares_unready(pdb))


def changes_what_it_bars(old: object, new: object) -> bool:
    """Of two versions, None: there is none. Most changes of a PDB only count its pods."""
    return _barring(old) != _barring(new)


def _barring(pdb: object) -> tuple[object, ...]:
    if not isinstance(pdb, PodDisruptionBudget) or is_unreadable(pdb) or not never_allows(pdb):
        return ()
    return pdb.spec.selector, _spares_unready(pdb)


def setting_of(pdb: PodDisruptionBudget) -> str:
    spec = pdb.spec
    if spec.max_unavailable is not None:
        return f"maxUnavailable {spec.max_unavailable}"
    return f"minAvailable {spec.min_available if spec.min_available is not None else 1}"


def blocked_since(pdb: PodDisruptionBudget, began_at: datetime | None) -> datetime | None:
    """Since when it has paced a drain that began at ``began_at``, as its controller says.

    That is when it last allowed a disruption. One that allows some again paces the drain since then
    at the earliest: a pod may have left the Node until then.
    """
    allowed = find_condition(pdb.status.conditions, "DisruptionAllowed")
    changed_at = allowed.last_transition_time if allowed is not None else None
    if allowed is None or changed_at is None:
        return began_at
    return changed_at if allowed.status == "False" else max(changed_at, began_at or changed_at)


def refusal(
    pdb: PodDisruptionBudget, evicted: Iterable[str] = (), first: Sequence[str] = ()
) -> PdbUnreadable | PdbNeverAllows | PdbAllowsNoMore:
    """Why it allows no more evictions, and what has used the allowance up.

    ``evicted``: pods that are known to terminate; the PDB's status may name others.
    ``first``: pods that would be evicted before.
    """
    if is_unreadable(pdb):
        return PdbUnreadable(unreadable_object(pdb))
    status, setting = pdb.status, setting_of(pdb)
    if never_allows(pdb):
        return PdbNeverAllows(pdb.key, setting, status.expected_pods)
    processed = (f"{pdb.namespace}/{name}" for name in sorted(status.disrupted_pods))
    return PdbAllowsNoMore(
        pdb=pdb.key,
        setting=setting,
        pods=status.expected_pods,
        healthy=status.current_healthy,
        must_be_healthy=status.desired_healthy,
        evicted=tuple(dict.fromkeys((*evicted, *processed))),
        first=tuple(first),
        uncounted=status.observed_generation < pdb.metadata.generation,
        problem=_problem(pdb),
    )


def _problem(pdb: PodDisruptionBudget) -> str:
    """Why its controller cannot count its pods; empty when it can."""
    allowed = find_condition(pdb.status.conditions, "DisruptionAllowed")
    failed = allowed is not None and allowed.reason == "SyncFailed"
    return allowed.message if allowed is not None and failed else ""


def blocks(
    pdb: PodDisruptionBudget, evicted: Iterable[str] = (), first: Sequence[str] = ()
) -> Blocker:
    subject = Subject.of(POD_DISRUPTION_BUDGETS.kind, pdb)
    return Blocker(subject=subject, fact=refusal(pdb, evicted, first))


def refusal_of(pdbs: Sequence[Blocker]) -> Fact:
    """Why these PDBs together do not allow an eviction."""
    if len(pdbs) == 1:
        return pdbs[0].fact
    return SeveralPdbs(tuple(f"{one.subject.namespace}/{one.subject.name}" for one in pdbs))
