"""What the pods on a node are to its consolidation, kept with the node while they stay as they are."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

import msgspec

from tenure.core.disrupt.consolidation.figures import disruption_cost
from tenure.core.disrupt.facts.consolidation import (
    PodComing,
    PodNotEvicted,
    PodStillTerminating,
    PodWithoutController,
)
from tenure.core.facts import Fact
from tenure.core.provision.demand import is_reschedulable
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot


class PodsThere(msgspec.Struct, frozen=True):
    #: Why the node cannot go: one of them would be lost with it.
    not_movable: Fact | None
    #: Whether any has to be created elsewhere.
    any_reschedulable: bool
    #: What the disruption of the node costs.
    cost: float


def _read(_: Node, pods: tuple[Pod, ...]) -> PodsThere:
    stays = (
        why for pod in sorted(pods, key=attrgetter("key")) if (why := _not_movable(pod)) is not None
    )
    return PodsThere(next(stays, None), any(map(is_reschedulable, pods)), disruption_cost(pods))


#: All nodes are asked for every plan, and the pods on most of them are the same as for the last one.
_PODS_THERE: Final = Derivation("pods there", _read)


def pods_there(node: Node, snapshot: Snapshot) -> PodsThere:
    pods = tuple(snapshot.pods_on(node.name).values())
    return snapshot.derived.of(_PODS_THERE, node, pods)


def not_movable(node: Node, snapshot: Snapshot) -> Fact | None:
    """A pod that would be lost with the node, or whose place is not known yet."""
    if (why := pods_there(node, snapshot).not_movable) is not None:
        return why
    for _, pod in sorted(snapshot.pods_coming_to(node.name).items()):
        if not pod.daemon:
            return PodComing(pod.key)
    return None


def _not_movable(pod: Pod) -> Fact | None:
    if pod.finished or pod.daemon or pod.mirror:
        return None
    if pod.tolerates_disruption:
        return PodNotEvicted(pod.key)
    if not pod.active:
        return PodStillTerminating(pod.key) if is_reschedulable(pod) else None
    return None if is_reschedulable(pod) else PodWithoutController(pod.key)
