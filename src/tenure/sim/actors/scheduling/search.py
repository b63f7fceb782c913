"""Find the best node for a class, or say why there is none.

Each class remembers every node's answer; a search asks again only where the node or its
pods have changed since. So a thousand equal pods cost little more than a thousand looks at
a table. Ties between equally good nodes are drawn from the scheduler's own random stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import msgspec

from tenure.sim.actors.scheduling.classes import Classes, PodClass
from tenure.sim.actors.scheduling.fit import Fit
from tenure.sim.actors.scheduling.message import (
    ELSEWHERE,
    no_node_will_do,
    unschedulable_message,
)
from tenure.sim.actors.scheduling.placement import NodeState, Placement
from tenure.sim.actors.scheduling.topology import NamespaceLabels, Rule, Topology
from tenure.sim.actors.scheduling.volumes import PodVolumes


class Outcome(msgspec.Struct, frozen=True):
    """A node, or the reason why there is none."""

    node: NodeState | None
    message: str = ""
    #: Other pods, or volumes, stand in the way of a node that is otherwise fine: when pods move,
    #: look again.
    crowded_out: bool = False


class Search:
    def __init__(
        self,
        placement: Placement,
        classes: Classes,
        random: Random,
        namespace_labels: NamespaceLabels,
        volumes: PodVolumes,
    ) -> None:
        self._volumes = volumes
        self._placement = placement
        self._classes = classes
        self._random = random
        self._topology = Topology(placement, classes, namespace_labels)
        self._fits: dict[PodClass, dict[str, Fit]] = {}
        #: Up to which change each class knows the answers of all nodes.
        self._known: dict[PodClass, int] = {}

    def find(self, cls: PodClass) -> Outcome:
        if cls.claims and (problem := self._volumes.problem(cls)):
            return Outcome(None, no_node_will_do(problem, nodes=len(self._placement.nodes)))
        fits = self._refreshed(cls)
        rules: list[Rule] = [self._volumes.rule(cls)] if cls.claims else []
        if cls.social or self._classes.touchy:
            if cls.social and cls.only_node is not None:
                _refresh(cls, fits, self._placement.nodes.values())
            rules += self._topology.rules(cls, fits)
        first = fits.get(cls.nominated) if cls.nominated in self._placement.nodes else None
        if first is not None and not first.refusals and not _refusal(rules, first.node):
            return Outcome(first.node)
        best, crowded_out = self._best(self._candidates(cls, fits), rules)
        if best:
            node = best[0] if len(best) == 1 else self._random.choice(best)
            return Outcome(node)
        message = self._explain(cls, fits, rules)
        return Outcome(None, message, crowded_out)

    def may_fit(self, cls: PodClass, node: NodeState) -> bool:
        """Whether this node, as it is now, stands in no one's way but that of other pods."""
        if cls.only_node not in (None, node.name):
            return False
        fits = self._fits.setdefault(cls, {})
        _refresh(cls, fits, (node,))
        return not fits[node.name].refusals

    def accepts(self, cls: PodClass, node: NodeState) -> bool:
        """Whether the node takes such pods at all, full or not."""
        self.may_fit(cls, node)
        fit = self._fits.get(cls, {}).get(node.name)
        return fit is not None and not fit.static

    def crowded(self, cls: PodClass) -> Callable[[NodeState], bool]:
        """Which nodes are refused for the pod's volumes, or by other pods."""
        if cls.claims and self._volumes.problem(cls):
            return lambda _: True
        rules: list[Rule] = [self._volumes.rule(cls)] if cls.claims else []
        if cls.social or self._classes.touchy:
            fits = self._fits.setdefault(cls, {})
            _refresh(cls, fits, self._placement.nodes.values())
            rules += self._topology.rules(cls, fits)
        return lambda node: bool(rules) and bool(_refusal(rules, node))

    def forget(self, cls: PodClass) -> None:
        """The class has no pods any more."""
        self._fits.pop(cls, None)
        self._known.pop(cls, None)

    def _refreshed(self, cls: PodClass) -> dict[str, Fit]:
        nodes = self._placement.nodes
        fits = self._fits.setdefault(cls, {})
        if len(fits) > 2 * len(nodes) + 10:  # Mostly answers of nodes that are gone.
            fits.clear()
            self._known.pop(cls, None)
        if cls.only_node is None:
            _refresh(cls, fits, self._placement.changed_since(self._known.get(cls, 0)))
            self._known[cls] = self._placement.changes
        elif cls.only_node in nodes:
            _refresh(cls, fits, (nodes[cls.only_node],))
        return fits

    def _candidates(self, cls: PodClass, fits: dict[str, Fit]) -> Iterable[Fit]:
        nodes = self._placement.nodes
        if cls.only_node is None:
            return [fits[name] for name in nodes]
        return [fits[cls.only_node]] if cls.only_node in nodes else []

    @staticmethod
    def _best(candidates: Iterable[Fit], rules: list[Rule]) -> tuple[list[NodeState], bool]:
        """The nodes with the highest score, and whether other pods refused some node."""
        best: list[NodeState] = []
        top = 0
        crowded_out = False
        for fit in candidates:
            if fit.refusals or (best and fit.score < top):
                continue
            if rules and _refusal(rules, fit.node):
                crowded_out = True
            elif not best or fit.score > top:
                best, top = [fit.node], fit.score
            else:
                best.append(fit.node)
        return best, crowded_out

    def _explain(self, cls: PodClass, fits: dict[str, Fit], rules: list[Rule]) -> str:
        nodes = self._placement.nodes
        refusals = [
            fit.refusals or (_refusal(rules, fit.node),) for fit in self._candidates(cls, fits)
        ]
        refusals += [(ELSEWHERE,)] * (len(nodes) - len(refusals))
        return unschedulable_message(refusals, nodes=len(nodes))


def _refusal(rules: list[Rule], node: NodeState) -> str:
    for rule in rules:
        if reason := rule.refusal(node):
            return reason
    return ""


def _refresh(cls: PodClass, fits: dict[str, Fit], nodes: Iterable[NodeState]) -> None:
    for node in nodes:
        fit = fits.get(node.name)
        if fit is None or fit.node is not node:
            fit = fits[node.name] = Fit(node)
        if fit.usage != node.usage or fit.shape != node.shape:
            fit.refresh(cls)
