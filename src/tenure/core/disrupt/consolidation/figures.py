"""What consolidation has to know of a node: what it costs, what it disturbs, since when it is quiet.

The figures are Karpenter's. A price that the provider does not have is none: 0 would make every other
node look dear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from tenure.core.disrupt.consolidation.podcost import ONE_POD, written_cost
from tenure.core.provision.demand import is_reschedulable
from tenure.model.api import names
from tenure.model.api.meta import earlier, seconds_of
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType

#: One for the eviction itself; then each pod has a cost of 1, more or less by these parts of it.
_PRIORITY_PART: Final = 2.0**25
_COST_MOST: Final = 10.0


def disruption_cost(pods: Iterable[Pod]) -> float:
    """What the disruption of a node with these pods costs, without a unit: 1, and more by its pods."""
    return 1.0 + sum(max(0.0, eviction_cost(pod)) for pod in pods if is_reschedulable(pod))


def eviction_cost(pod: Pod) -> float:
    """Negative: the pod would rather go."""
    cost = (
        1.0
        + written_cost(pod.metadata.annotations) / ONE_POD
        + (pod.spec.priority or 0) / _PRIORITY_PART
    )
    return min(max(cost, -_COST_MOST), _COST_MOST)


def price_of(node: Node, types: Mapping[str, InstanceType]) -> int | None:
    """Micro-dollars per hour, whether it can be had now or not; None where there is no price."""
    return price_at(node.labels, types)


def price_at(labels: Mapping[str, str], types: Mapping[str, InstanceType]) -> int | None:
    """Of a node with these labels."""
    kind = types.get(labels.get(names.INSTANCE_TYPE, ""))
    place = labels.get(names.ZONE), labels.get(names.CAPACITY_TYPE)
    offerings = kind.offerings if kind is not None else ()
    found = (one.price for one in offerings if (one.zone, one.capacity_type) == place)
    price = next(found, 0)
    return price if price > 0 else None


def quiet_since(claim: NodeClaim, pods: Iterable[Pod], left: datetime | None) -> datetime | None:
    """Since when no pod has come or gone; None before the node is initialized.

    ``left``: when the last pod has left, as far as that was seen. ``consolidateAfter`` counts from here.
    """
    condition = claim.condition("Initialized")
    if not claim.initialized or condition is None or condition.last_transition_time is None:
        return None
    own = [pod for pod in pods if not pod.daemon and not pod.mirror]
    came, goes = map(_scheduled_at, own), map(_deleted_at, own)
    instants = (condition.last_transition_time, left, *came, *goes)
    return max(at for at in instants if at is not None)


def _deleted_at(pod: Pod) -> datetime | None:
    """When it began to terminate: its requests are free from then on."""
    ends, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return None if ends is None else earlier(ends, seconds_of(grace or 0))


def _scheduled_at(pod: Pod) -> datetime | None:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return condition.last_transition_time
    return pod.metadata.creation_timestamp
