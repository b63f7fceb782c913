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
from typing import Final

from tenure.core.decision import Blocker, Subject
from tenure.core.facts import as_fact
from tenure.model.api.meta import find_condition
from tenure.model.api.pod import Pod
from tenure.model.api.resource import POD_DISRUPTION_BUDGETS
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.unreadable import is_unreadable, why_unreadable

#: How many pods a message names.
_NAMED_MAX: Final = 3


class Allowances:
    """Counts down the disruptions that PDBs allow, over the pods of one evaluation."""

    def __init__(self) -> None:
        #: By the PDB's UID: the pods that use the disruptions that it allows.
        self._taken: dict[str, list[str]] = {}

    def grants(self, pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> bool:
        """Whether the API server will probably allow the eviction; counts the pod if so."""
        if any(is_unreadable(budget) for budget in budgets):
            return False
        if not budgets or pod.status.phase == "Pending":
            return True
        if len(budgets) > 1:
            return False
        (budget,) = budgets
        if not pod.ready and _spares_unready(budget):
            return True
        taken = self._taken.setdefault(budget.uid, [])
        if len(taken) >= budget.status.disruptions_allowed:
            return False
        taken.append(pod.key)
        return True

    def taken_by(self, budget: PodDisruptionBudget) -> Sequence[str]:
        """The pods that were granted a disruption in this evaluation."""
        return self._taken.get(budget.uid, ())


def _spares_unready(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    return status.desired_healthy > 0 and status.current_healthy >= status.desired_healthy


def never_allows(budget: PodDisruptionBudget) -> bool:
    """Whether it cannot allow a disruption even with every pod healthy."""
    status = budget.status
    return 0 < status.expected_pods <= status.desired_healthy


def _wish(budget: PodDisruptionBudget) -> str:
    spec = budget.spec
    if spec.max_unavailable is not None:
        return f"maxUnavailable {spec.max_unavailable}"
    return f"minAvailable {spec.min_available if spec.min_available is not None else 1}"


def arithmetic(budget: PodDisruptionBudget) -> str:
    """How many disruptions it allows, and the numbers behind that."""
    if is_unreadable(budget):
        return f"cannot be read, so it allows no disruption: {why_unreadable(budget)}"
    status, wish = budget.status, _wish(budget)
    pods = "1 pod" if status.expected_pods == 1 else f"{status.expected_pods} pods"
    if never_allows(budget):
        return f"{wish} of {pods} can never allow an eviction"
    allowed = status.disruptions_allowed
    return (
        f"{wish} allows {allowed} {'disruption' if allowed == 1 else 'disruptions'}: "
        f"{status.current_healthy} of {pods} are healthy, {status.desired_healthy} must be"
    )


def blocked_since(budget: PodDisruptionBudget) -> datetime | None:
    """When it last allowed a disruption, as its controller says; None where that is not known."""
    allowed = find_condition(budget.status.conditions, "DisruptionAllowed")
    return allowed.last_transition_time if allowed and allowed.status == "False" else None


def refusal(
    budget: PodDisruptionBudget, evicted: Iterable[str] = (), first: Sequence[str] = ()
) -> str:
    """Why it allows no more, completing "PDB default/web …": what has used the allowance up.

    ``evicted``: pods that are known to terminate; the PDB's status may name others.
    ``first``: pods that would be evicted before.
    """
    status = budget.status
    pods = "1 pod" if status.expected_pods == 1 else f"{status.expected_pods} pods"
    if never_allows(budget):
        return f"can never allow an eviction ({_wish(budget)} of {pods})"
    processed = (f"{budget.namespace}/{name}" for name in sorted(status.disrupted_pods))
    going = list(dict.fromkeys((*evicted, *processed)))
    healthy = f"{status.current_healthy} of {status.expected_pods} healthy"
    if going:
        used_up = f"{_pods(going)} already being evicted"
    elif first:
        used_up = f"{_pods(first)} evicted first"
    else:
        used_up = _uncounted(budget) or f"{status.desired_healthy} must be healthy"
    return f"allows 0 more disruptions: {used_up} ({_wish(budget)}, {healthy})"


def _uncounted(budget: PodDisruptionBudget) -> str:
    """Why the status cannot be used; empty when it can."""
    allowed = find_condition(budget.status.conditions, "DisruptionAllowed")
    if allowed is not None and allowed.reason == "SyncFailed":
        return allowed.message
    if budget.status.observed_generation < budget.metadata.generation:
        return "its pods are not counted yet"
    return ""


def _pods(keys: Sequence[str]) -> str:
    if len(keys) == 1:
        return f"pod {keys[0]} is"
    more = f" and {len(keys) - _NAMED_MAX} more" if len(keys) > _NAMED_MAX else ""
    return f"pods {', '.join(keys[:_NAMED_MAX])}{more} are"


def blocks(
    budget: PodDisruptionBudget, evicted: Iterable[str] = (), first: Sequence[str] = ()
) -> Blocker:
    subject = Subject.of(POD_DISRUPTION_BUDGETS.kind, budget)
    return Blocker(subject=subject, fact=as_fact(refusal(budget, evicted, first)))
