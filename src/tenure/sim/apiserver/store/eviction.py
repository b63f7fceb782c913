"""The eviction subresource: a deletion that asks the disruption budget first.

In the order in which the rules bite:

1. A pod that is finished, pending or already terminating needs no budget: it is deleted.
2. Several budgets over one pod are an error of the server's, whatever they say.
3. An unready pod may go if its budget says AlwaysAllow, or if enough others are healthy.
4. A budget whose status is older than its spec answers "still being processed, in 10 s".
5. No disruption allowed: 429 with the budget's numbers.
6. Otherwise the budget is charged, then the pod is deleted. The charge stays even when the
   deletion then fails on its precondition; the budget's controller forgives it later.

A pod that is not going already is told why, by its condition ``DisruptionTarget``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from tenure.errors import Cause, Conflict, TooManyRequests
from tenure.model.api.resource import POD_DISRUPTION_BUDGETS, PODS
from tenure.sim.apiserver.objects.refusals import Unexplained, forbidden
from tenure.sim.apiserver.objects.tree import Obj, dig, put
from tenure.sim.apiserver.store.deletion import DeleteOptions
from tenure.sim.apiserver.store.selection import covers

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

_REFUSAL: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_TARGET: Final = "DisruptionTarget"
_EVICTED: Final[Obj] = {
    "type": _TARGET,
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
    "lastProbeTime": None,
}
_PROCESSING_RETRY: Final = timedelta(seconds=10)
#: More evictions than this that the budget's controller has not seen yet are refused.
_UNSEEN_EVICTIONS_MAX: Final = 2000
_UNDISTURBED_PHASES: Final = ("Succeeded", "Failed", "Pending")


def evict(store: Store, namespace: str, name: str, options: DeleteOptions) -> None:
    """Delete the pod, or raise what the eviction API would answer."""
    pod = store.get(PODS, namespace, name)
    if _undisturbed(pod):
        _take(store, pod, options)
        return
    budgets = [
        b
        for b in store.list(POD_DISRUPTION_BUDGETS, namespace)
        if covers(dig(b, "spec", "selector"), pod)
    ]
    if len(budgets) > 1:
        raise Unexplained(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource "
            "does not support."
        )
    free = not budgets or _unready_and_free(budgets[0], pod)
    if not free:
        _charge(store, budgets[0], name)
    try:
        _take(store, pod, options)
    except Conflict:
        if budgets and free and not options.resource_version and not options.uid:
            raise _processing(budgets[0]) from None
        raise


def _take(store: Store, pod: Obj, options: DeleteOptions) -> None:
    """Write down why, then delete; what fails on its precondition is not written to."""
    metadata = pod["metadata"]
    same = options.uid in ("", metadata["uid"])
    if same and options.resource_version in ("", metadata["resourceVersion"]):
        conditions = dig(pod, "status", "conditions") or []
        if not any(c.get("type") == _TARGET and c.get("status") == "True" for c in conditions):
            others = [c for c in conditions if c.get("type") != _TARGET]
            target = {**_EVICTED, "lastTransitionTime": store.stamp()}
            store.rewrite(PODS, put(pod, ("status", "conditions"), [*others, target]))
        options = msgspec.structs.replace(options, resource_version="")
    store.remove(PODS, metadata["namespace"], metadata["name"], options)


def _undisturbed(pod: Obj) -> bool:
    return (
        dig(pod, "status", "phase") in _UNDISTURBED_PHASES or "deletionTimestamp" in pod["metadata"]
    )


def _unready_and_free(budget: Obj, pod: Obj) -> bool:
    """An unready pod counts for nothing in its budget, so it may go without a charge."""
    conditions = dig(pod, "status", "conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if dig(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _charge(store: Store, budget: Obj, pod_name: str) -> None:
    status = budget.get("status") or {}
    metadata = budget["metadata"]
    if status.get("observedGeneration", 0) < metadata["generation"]:
        raise _processing(budget)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise forbidden(POD_DISRUPTION_BUDGETS, metadata["name"], why)
    if len(status.get("disruptedPods") or {}) > _UNSEEN_EVICTIONS_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(POD_DISRUPTION_BUDGETS, metadata["name"], why)
    if allowed == 0:
        raise TooManyRequests(_REFUSAL, causes=[_cause(budget)])
    charged = {**status, "disruptionsAllowed": allowed - 1}
    charged["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod_name: store.stamp()}
    if allowed == 1:
        charged["conditions"] = _exhausted(status, store.stamp())
    store.rewrite(POD_DISRUPTION_BUDGETS, {**budget, "status": charged})


def _processing(budget: Obj) -> TooManyRequests:
    message = f"The disruption budget {budget['metadata']['name']} is still being processed by the server."
    cause = Cause(reason="DisruptionBudget", message=message)
    return TooManyRequests(_REFUSAL, causes=[cause], retry_after=_PROCESSING_RETRY)


def _cause(budget: Obj) -> Cause:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    failed = [
        c
        for c in status.get("conditions") or []
        if c.get("type") == "DisruptionAllowed" and c.get("reason") == "SyncFailed"
    ]
    if failed:
        message = (
            f"The disruption budget {name} does not allow evicting pods currently because it "
            f"failed sync: {failed[0].get('message', '')}"
        )
    else:
        message = (
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
    return Cause(reason="DisruptionBudget", message=message)


def _exhausted(status: Obj, now: str) -> list[Obj]:
    """The conditions after the last allowed disruption was spent."""
    conditions = status.get("conditions") or []
    before = next((c for c in conditions if c.get("type") == "DisruptionAllowed"), None)
    unchanged = before is not None and before.get("status") == "False"
    after = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": before["lastTransitionTime"] if before and unchanged else now,
    }
    return [*(c for c in conditions if c is not before), after]
