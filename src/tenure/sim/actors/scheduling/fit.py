"""Does a pod of this class fit on that node, and how well?

The filters bite in kube-scheduler's order, and the first that refuses names the reason:
cordon · taints · node selector and affinity · host ports · resources (all that are short).
What volumes and other pods have to say (spread, affinity) is asked afterwards, in
``tenure.sim.actors.scheduling.volumes`` and ``topology``.

The score prefers, in this order of weight: nodes without a ``PreferNoSchedule`` taint that
the pod does not tolerate, preferred node affinity, few of the pod's own kin, much free
space. Soft spread constraints, soft pod affinity and image locality are not modelled: they
move pods between nodes that are all good, and no decision about nodes depends on them.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api.names import UNSCHEDULABLE_TAINT
from tenure.model.api.node import Taint
from tenure.model.api.taints import tolerates, untolerated
from tenure.sim.actors.scheduling.classes import PodClass
from tenure.sim.actors.scheduling.demand import ports_collide
from tenure.sim.actors.scheduling.matching import matches_node, matches_term
from tenure.sim.actors.scheduling.placement import NodeState

_SOFT_EFFECTS: Final = ("PreferNoSchedule",)
_CORDON: Final = Taint(key=UNSCHEDULABLE_TAINT, effect="NoSchedule")

#: A preference weighs up to 100, a whole node's free space counts 100, as in kube-scheduler.
_SOFT_TAINT_WEIGHT: Final = 300
_KIN_WEIGHT: Final = 20


class Fit:
    """The answer of one node to one class, remembered until the node or its pods change."""

    __slots__ = ("eligible", "node", "preference", "refusals", "score", "shape", "static", "usage")

    def __init__(self, node: NodeState) -> None:
        self.node = node
        self.shape = self.usage = -1
        #: Matches node selector and affinity, whatever else is in the way.
        self.eligible = False
        self.static: tuple[str, ...] = ()
        self.preference = 0
        #: Why not; empty when it fits.
        self.refusals: tuple[str, ...] = ()
        self.score = 0

    def refresh(self, cls: PodClass) -> None:
        node = self.node
        if self.shape != node.shape:
            self.shape, self.usage = node.shape, -1
            self.eligible = matches_node(cls.spec, node.name, node.labels)
            self.static = static_refusals(cls, node, eligible=self.eligible)
            self.preference = _preference(cls, node)
        if self.usage != node.usage:
            self.usage = node.usage
            self.refusals = self.static or usage_refusals(cls, node)
            if not self.refusals:
                kin = cls.kin.placed.get(node.name, 0)
                self.score = self.preference + node.room - _KIN_WEIGHT * kin


def static_refusals(cls: PodClass, node: NodeState, *, eligible: bool) -> tuple[str, ...]:
    """What stands in the way whatever runs on the node."""
    tolerations = cls.spec.tolerations
    if node.unschedulable and not tolerates(tolerations, _CORDON):
        return ("node(s) were unschedulable",)
    taint = untolerated(node.taints, tolerations)
    if taint is not None:
        return (f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",)
    if not eligible:
        return ("node(s) didn't match Pod's node affinity/selector",)
    return ()


def usage_refusals(cls: PodClass, node: NodeState) -> tuple[str, ...]:
    """What the pods that are there leave too little of."""
    if cls.ports and any(ports_collide(a, b) for a in cls.ports for b in node.ports):
        return ("node(s) didn't have free ports for the requested pod ports",)
    free = node.free
    short: list[str] | None = None
    for name, amount in cls.requests:  # The hot loop: most nodes are short of nothing.
        if amount > free.get(name, 0):
            short = [*(short or ()), name]
    if short is None:
        return ()
    return tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in short)


def _preference(cls: PodClass, node: NodeState) -> int:
    affinity = cls.spec.affinity.node_affinity if cls.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    score = sum(
        term.weight for term in terms if matches_term(term.preference, node.name, node.labels)
    )
    if untolerated(node.taints, cls.spec.tolerations, _SOFT_EFFECTS) is not None:
        score -= _SOFT_TAINT_WEIGHT
    return score
