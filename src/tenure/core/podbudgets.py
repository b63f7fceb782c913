"""What PodDisruptionBudgets will say to an eviction, as far as their status tells.

The API server is asked when we think that it will agree. A status may be stale, so one pod of
each budget is asked about all the same, now and then: asking for hundreds helps nobody. Its rules, in order:

1. a pod that does not run yet may always go;
2. a pod under several budgets cannot be evicted at all;
3. one that runs but is not Ready may go where the budget says ``AlwaysAllow``, or has as many
   healthy pods as it wants without it;
4. otherwise the budget must allow one more disruption than we have asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.core.decision import Blocker, Subject
from tenure.model.pod import Pod
from tenure.model.resource import POD_DISRUPTION_BUDGETS
from tenure.model.workload import PodDisruptionBudget


class Allowances:
    """Counts down what budgets allow, over the pods of one look."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def grants(self, pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> bool:
        """Whether the API server will probably agree; counts the pod if so."""
        if not budgets or pod.status.phase == "Pending":
            return True
        if len(budgets) > 1:
            return False
        (budget,) = budgets
        if not pod.ready and _spares_unready(budget):
            return True
        taken = self._taken.get(budget.uid, 0)
        if taken >= budget.status.disruptions_allowed:
            return False
        self._taken[budget.uid] = taken + 1
        return True


def _spares_unready(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    return status.desired_healthy > 0 and status.current_healthy >= status.desired_healthy


def never_allows(budget: PodDisruptionBudget) -> bool:
    """Whether it cannot allow a disruption even with every pod healthy."""
    status = budget.status
    return 0 < status.expected_pods <= status.desired_healthy


def arithmetic(budget: PodDisruptionBudget) -> str:
    """Why it allows as many as it does."""
    spec, status = budget.spec, budget.status
    if spec.max_unavailable is not None:
        wish = f"maxUnavailable {spec.max_unavailable}"
    else:
        wish = f"minAvailable {spec.min_available if spec.min_available is not None else 1}"
    pods = "1 pod" if status.expected_pods == 1 else f"{status.expected_pods} pods"
    if never_allows(budget):
        return f"{wish} of {pods} can never allow an eviction"
    allowed = status.disruptions_allowed
    return (
        f"{wish} allows {allowed} {'disruption' if allowed == 1 else 'disruptions'}: "
        f"{status.current_healthy} of {pods} are healthy, {status.desired_healthy} must be"
    )


def blocks(budget: PodDisruptionBudget) -> Blocker:
    subject = Subject.of(POD_DISRUPTION_BUDGETS.kind, budget)
    return Blocker(subject=subject, message=arithmetic(budget))
