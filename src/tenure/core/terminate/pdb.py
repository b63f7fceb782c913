"""What PodDisruptionBudgets will say to an eviction, as far as their status tells.

A budget that cannot be read allows nothing.

The API server is asked when we think that it will agree. A status may be stale, so one pod of
each budget is asked about all the same, now and then: asking for hundreds helps nobody. Its rules, in order:

1. a pod that does not run yet may always go;
2. a pod under several budgets cannot be evicted at all;
3. one that runs but is not Ready may go where the budget says ``AlwaysAllow``, or has as many
   healthy pods as it wants without it;
4. otherwise the budget must allow one more disruption than we have asked for.
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

#: How many pods a sentence names.
_NAMED_MAX: Final = 3


class Allowances:
    """Counts down what budgets allow, over the pods of one look."""

    def __init__(self) -> None:
        #: By the budget's UID: the pods that use up what it allows.
        self._taken: dict[str, list[str]] = {}

    def grants(self, pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> bool:
        """Whether the API server will probably agree; counts the pod if so."""
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
        """The pods that were granted a disruption in this look."""
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
    """Why it allows as many as it does."""
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

    ``evicted``: pods that are known to be on their way out; the budget's status may know others.
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
    """Why the numbers say nothing; empty when they do."""
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
