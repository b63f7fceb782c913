"""Pods that their topology spread keeps from every node: told again without a packing.

Where a zone is sold out, the pods of each of its nodes are refused for the same reason, and a packing for each of
them takes long. So what a packing said of a pod is remembered for the next node of that domain with such a pod, and
told again where it is certain that the pod fits nowhere there either.

It is certain where no domain is left. A pod that moves counts no more in its old domain, ``h``, and neither do those
that moved before it: all come from the same node. So ``h`` has at most one less than now when it is the pod's turn,
and every other domain at least as many as now. The pod may come back to ``h``, or go to a domain with so few pods
that this is within the skew. If no node there has room for it, and no pool launches one there, it fits nowhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.api.pod import Pod
from tenure.packing.asking import asking_index, daemons_on_nodes
from tenure.packing.demand.asked import Asked, Demand, read_pods
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.demand.terms import Spread
from tenure.packing.existing import sold_in
from tenure.packing.index.kept import KeptIndex
from tenure.packing.index.reading import domains_of
from tenure.packing.index.shapes import keys_asked
from tenure.packing.nowhere import alone, limits_of, taken_by, unconstrained
from tenure.packing.pack import packing
from tenure.packing.result import Packing, Unplaced


class Unspread:
    """What packings said, and what is known of new nodes. All questions are about the same instant."""

    def __init__(self) -> None:
        self._told: dict[Hashable, Unplaced] = {}
        #: By what a pod asks for, limits, key and value: whether a node can be launched there.
        self._sold: dict[Hashable, bool] = {}

    def learn(self, problem: Problem, packing: Packing) -> None:
        """``packing``: of the problem."""
        if not packing.unplaced:
            return
        nodes = {node.name: node for node in problem.nodes}
        for asked, pods in _spread_pods(problem):
            for pod in pods:
                if pod.uid in packing.unplaced:
                    told = packing.unplaced[pod.uid]
                    self._told.setdefault(_key(asked, pod, problem, nodes), told)

    def first(
        self, problem: Problem, nodes: Sequence[ExistingNode]
    ) -> Steps[tuple[Pod, Unplaced] | None]:
        """In steps: a pod of which it is known that it fits nowhere, and why; None: a packing has to say.

        ``nodes``: those of the problem, as they are kept from question to question.
        """
        if not self._told or len({pod.spec.node_name for pod in problem.pods}) > 1:
            return None
        by_name = {node.name: node for node in nodes}
        for asked, pods in _spread_pods(problem):
            told = self._told.get(_key(asked, pods[0], problem, by_name))
            if told is not None and (yield from self._keeps_out(asked, pods[0], problem, nodes)):
                return pods[0], told
        return None

    def _keeps_out(
        self, asked: Asked, pod: Pod, problem: Problem, nodes: Sequence[ExistingNode]
    ) -> Steps[bool]:
        """Whether one of its spreads leaves no domain with room."""
        daemons = daemons_on_nodes(problem, nodes)
        keys = frozenset(keys_asked({asked.demand.signature}, daemons))

        def ask(index: KeptIndex) -> list[tuple[str, set[str]]]:
            found = []
            for spread in asked.rules.spreads:
                values = _left_by(spread, asked, pod, index, problem.templates)
                if values is not None and not _any_takes(asked.demand, spread, values, index):
                    found.append((spread.group.key, values))
            return found

        full = (yield from asking_index(problem, nodes, keys, daemons, ask)) or ()
        for key, values in full:
            sold = False
            for value in values:
                sold = sold or (yield from self._is_sold(asked.demand, pod, key, value, problem))
            if not sold:
                return True
        return False

    def _is_sold(
        self, demand: Demand, pod: Pod, key: str, value: str, problem: Problem
    ) -> Steps[bool]:
        """Whether a pool might launch a node for the pod in the domain."""
        asked = demand, limits_of(problem), key, value
        if asked not in self._sold:
            wanted = pod.spec.node_selector
            there = msgspec.structs.replace(pod.spec, node_selector={**wanted, key: value})
            pinned = unconstrained(msgspec.structs.replace(pod, spec=there))
            other = wanted.get(key, value) != value
            found = yield from packing(alone(pinned, problem))
            self._sold[asked] = not other and not found.unplaced
        return self._sold[asked]


def _spread_pods(problem: Problem) -> list[tuple[Asked, list[Pod]]]:
    """Those that can be told apart by what they ask for alone, in the order of the problem."""
    read, _ = read_pods(problem.pods, problem.derived, problem.volumes)
    special = (problem.nominated, problem.no_claim, problem.apart, problem.volumes)
    found = [
        (asked, [pod for pod in pods if not any(pod.uid in each for each in special)])
        for asked, pods in read.items()
        if any(not one.group.on_hostname for one in asked.rules.spreads)
    ]
    return [(asked, pods) for asked, pods in found if pods]


def _key(
    asked: Asked, pod: Pod, problem: Problem, nodes: Mapping[str, ExistingNode]
) -> tuple[object, ...]:
    keys = {one.group.key for one in asked.rules.spreads if not one.group.on_hostname}
    node = nodes.get(pod.spec.node_name)
    home = () if node is None else tuple(sorted(domains_of(node, keys).items()))
    return asked, home, limits_of(problem)


def _left_by(
    spread: Spread,
    asked: Asked,
    pod: Pod,
    index: KeptIndex,
    templates: Sequence[PoolTemplate],
) -> set[str] | None:
    """The domains that the spread may leave to the pod; None: any."""
    group = spread.group
    if group.on_hostname:
        return None
    index.learn((group,))
    seat = index.seats().get(pod.spec.node_name)
    home = seat.values.get(group.key) if seat is not None else None
    rule = index.nodes.domains.rule(spread, asked.demand.signature)
    if seat is None or home is None or home not in rule.counts:
        return None
    shape = index.nodes.bins.shapes[seat.number]
    counted = rule.shapes is None or shape in rule.shapes
    there = any(each.uid == pod.uid and each.active for each in seat.node.pods)
    member = group in index.groups.of(asked.namespace, asked.labels)
    if not (counted and there and member):
        return None
    most = rule.counts[home] - 1 + spread.skew - 1
    left = {home, *(value for value, count in rule.counts.items() if count <= most)}
    if most < 0:
        return left
    # A new node may be in a domain that has none yet: of these two keys all values are known.
    if group.key not in (ZONE, CAPACITY_TYPE):
        return None
    return left | (sold_in(group.key, templates) - rule.counts.keys())


def _any_takes(demand: Demand, spread: Spread, values: set[str], index: KeptIndex) -> bool:
    masks = index.nodes.masks.get(spread.group.key, {})
    within = 0
    for value in values:
        within |= masks.get(value, 0)
    return next(taken_by(demand, index, within), None) is not None
