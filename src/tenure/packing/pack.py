"""Where pods fit: on the nodes there are, else on claims to be made, else nowhere, and why.

``pack`` answers for all pods at once, in this order:

1. pods are grouped into classes of equals (``classes``); a class that asks for a resource that
   nothing offers stays out, and so does one with a constraint that is not modelled yet
   (``topology``); one that is spread over zones is split (``zones``);
2. a pod that is nominated to a node stays there for as long as it fits, and gets no claim
   while that node is still to come: not initialized, and the scheduler has bound no pod to it.
   Every other class, the largest first, is put onto existing nodes: the first that takes it,
   those that are initialized before the others, then by name (``nodes``);
3. for what is left, but for the pods that may get no claim, claims are planned in the pools by
   weight: the cheapest instance types for what they hold (``opening``);
4. who is left then is told why, pool by pool (``why``).

Same problem, same answer, whatever the order of its parts. Preferences (``preferred…``,
``ScheduleAnyway``, ``PreferNoSchedule``) are ignored. Pods are not bound here, and the cloud
chooses among the types of a claim; this module only promises that each of them will do.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import count
from typing import Final, Literal

import msgspec

from tenure.model.api.meta import controller_of
from tenure.model.api.pod import Pod
from tenure.model.values.quantity import add
from tenure.packing.catalogue import Catalogue, resources_of
from tenure.packing.claims import Draft, finished
from tenure.packing.daemons import DaemonPod, read_daemons, that_fit
from tenure.packing.demand.classes import PodClass, Sorted, least_wanted, sort_pods
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.topology import Topology
from tenure.packing.facts import ConstraintNotSupported, NoZoneWithinSkew, PodUnreadable, Why
from tenure.packing.merging import merged
from tenure.packing.nodes import Nodes
from tenure.packing.opening import ClaimOpener
from tenure.packing.result import Packing, Unplaced
from tenure.packing.why import explain
from tenure.packing.zones import Caps, Dealt, LeftOver, Part, deal

#: How often packing starts over with exactly what zones took (each start is a whole packing);
#: after that with half, so that it ends soon.
_PATIENCE: Final = 4


def pack(problem: Problem) -> Packing:
    """Find a place for every pod, or say why there is none."""
    topology = Topology(problem.pods, problem.nodes)
    pods = sort_pods(
        problem.pods, topology, lambda asked: _offered(asked, problem), problem.derived
    )
    daemons = that_fit(read_daemons(problem.daemons), _sizes(problem))
    by_weight = sorted(problem.templates, key=lambda t: (t.weight, t.pool), reverse=True)
    least = dict(zip(pods.resources, least_wanted(pods.classes), strict=False))
    catalogues = [
        Catalogue(t, daemons=daemons, resources=pods.resources, dry=problem.dry, least=least)
        for t in by_weight
    ]
    packer = _Packer(problem, topology, pods, daemons, catalogues)
    caps: dict[Part, int] = {}
    for start in count(1):
        packing, short = packer.attempt(caps)
        if not short:
            break
        caps |= {part: got if start <= _PATIENCE else got // 2 for part, got in short.items()}
    return packing


def _offered(asked: Collection[str], problem: Problem) -> set[str]:
    """Which of these resources some type has, or some node has left."""
    offered: set[str] = set()
    for template in problem.templates:
        offered |= resources_of(template.instance_types)
    unknown = set(asked) - offered
    if unknown:
        # What pods on the node ask for is there, too, but without a node's own it is not above 0.
        for node in problem.nodes:
            offered.update(name for name, nano in node.available.items() if nano > 0)
    return offered.intersection(asked)


def _sizes(problem: Problem) -> list[Resources]:
    """What new nodes have for their pods; where none can be had, what is there."""
    types = [one.allocatable for t in problem.templates for one in t.instance_types]
    return types or [add(node.available, node.daemon_requests) for node in problem.nodes]


class _Packer(msgspec.Struct, frozen=True):
    """One problem, read."""

    problem: Problem
    topology: Topology
    pods: Sorted
    daemons: tuple[DaemonPod, ...]
    catalogues: list[Catalogue]

    def attempt(self, caps: Caps) -> tuple[Packing, Mapping[Part, int]]:
        """A packing, and the parts of spread classes that came short with what they got."""
        nodes = Nodes(
            self.problem.nodes, pods=self.pods, daemons=self.daemons, topology=self.topology
        )
        modelled = [one for one in self.pods.classes if not one.rules.not_modelled]
        placed = nodes.keep(modelled, self.problem.nominated)
        if self.problem.nominated or self.problem.no_claim or self.problem.apart:
            modelled = _split(modelled, placed, self._awaiting(), self.problem)
        apart = _split(self.pods.apart, (), self._awaiting(), self.problem)
        avoid = self.problem.avoid
        dealt = deal(
            modelled, nodes=nodes.zones(), catalogues=self.catalogues, caps=caps, avoid=avoid
        )
        for waiting in dealt.queue:
            placed |= nodes.place(waiting)
        unclaimed = [waiting for waiting in dealt.queue if waiting.one.may_be_claimed_for]
        opener = ClaimOpener(self.catalogues, unclaimed, avoid, fee_cpus=self.problem.node_fee_cpus)
        drafts = _open_claims(opener, unclaimed)
        packing = Packing(
            placed=placed,
            claims=finished(drafts),
            unplaced=self._unplaced(dealt, unclaimed, opener, apart),
            displaced={uid: self.problem.nominated[uid] for uid in _left(dealt, apart, "claimed")},
            no_claim=frozenset(_left(dealt, apart, "no_claim")),
            left_out={
                c.template.pool: tuple(sorted(daemon.name for daemon in c.left_out))
                for c in self.catalogues
                if c.left_out
            },
        )
        return packing, dealt.came_short()

    def _awaiting(self) -> frozenset[str]:
        """Pods whose own node is still to come: what else comes may have room for them.

        Where the scheduler has bound pods already, the node has come, and the room is taken.
        """
        coming = {
            node.name
            for node in self.problem.nodes
            if not node.initialized and all(pod.daemon or pod.mirror for pod in node.pods)
        }
        nominated = self.problem.nominated.items()
        return frozenset(uid for uid, name in nominated if name in coming)

    def _unplaced(
        self, dealt: Dealt, queue: Iterable[Waiting], opener: ClaimOpener, apart: Iterable[PodClass]
    ) -> dict[str, Unplaced]:
        unplaced = {
            uid: _alone(PodUnreadable(error)) for uid, error in self.pods.unreadable.items()
        }
        for one in self.pods.classes:
            if one.rules.not_modelled:
                why = _alone(ConstraintNotSupported(one.rules.not_modelled))
                unplaced |= dict.fromkeys((pod.uid for pod in one.pods), why)
        pools = [(c, opener.budgets[c.template.pool]) for c in self.catalogues]
        node_count = sum(not node.closed for node in self.problem.nodes)
        for waiting in queue:
            if waiting.left:
                why = explain(waiting.one, pools, node_count=node_count)
                unplaced |= dict.fromkeys(waiting.rest(), why)
        for one in (one for one in apart if one.may_be_claimed_for):
            why = explain(one, pools, node_count=node_count)
            unplaced |= dict.fromkeys((pod.uid for pod in one.pods), why)
        for rest in (rest for rest in dealt.left_over if rest.one.may_be_claimed_for):
            why = explain(rest.one, pools, node_count=node_count)
            if why.why is Why.TOPOLOGY_UNSATISFIABLE:
                why = _alone(_no_zone(rest))
            unplaced |= dict.fromkeys((pod.uid for pod in rest.pods), why)
        return unplaced


def _open_claims(opener: ClaimOpener, queue: Sequence[Waiting]) -> list[Draft]:
    """Open claims and merge them; for who is left, again as long as merging frees limits."""
    limited = any(budget.limited for budget in opener.budgets.values())
    left = -1
    while left != (left := sum(waiting.left for waiting in queue)):
        for waiting in queue:
            opener.serve(waiting)
        opener.drafts[:] = merged(opener.drafts, opener.budgets, opener.fee)
        if not limited:
            break
    return opener.drafts


def _split(
    classes: Iterable[PodClass],
    placed: Container[str],
    awaiting: Container[str],
    problem: Problem,
) -> list[PodClass]:
    """The classes without the pods that stay with their node, in the same order.

    Those whose node is still to come and has no room for them are a class of their own, and so are
    those that may not get a claim, and each owner's that may not share one.
    """
    split: list[PodClass] = []
    for one in classes:
        kinds: dict[tuple[bool, bool, str], list[Pod]] = {}
        for pod in one.pods:
            if pod.uid not in placed:
                claimed = pod.uid in awaiting
                none = not claimed and pod.uid in problem.no_claim
                alone = _owner(pod) if pod.uid in problem.apart else ""
                kinds.setdefault((claimed, none, alone), []).append(pod)
        for (claimed, none, alone), pods in sorted(kinds.items(), reverse=True):
            split.append(
                msgspec.structs.replace(
                    one, pods=tuple(pods), claimed=claimed, no_claim=none, apart=alone
                )
            )
    return split


def _owner(pod: Pod) -> str:
    controller = controller_of(pod.metadata)
    return f"{pod.namespace}/{controller.uid or controller.name if controller else pod.uid}"


def _left(
    dealt: Dealt, apart: Iterable[PodClass], kind: Literal["claimed", "no_claim"]
) -> list[str]:
    """UIDs of the pods of that kind of class that found no place."""
    left = [pod.uid for one in apart if getattr(one, kind) for pod in one.pods]
    left += [uid for one in dealt.queue if getattr(one.one, kind) for uid in one.rest()]
    return left + [p.uid for rest in dealt.left_over if getattr(rest.one, kind) for p in rest.pods]


def _alone(fact: PodUnreadable | ConstraintNotSupported | NoZoneWithinSkew) -> Unplaced:
    """Of the pod alone: no pool could take it."""
    return Unplaced(why=fact.why, facts=(fact,))


def _no_zone(rest: LeftOver) -> NoZoneWithinSkew:
    return NoZoneWithinSkew(rest.one.rules.zones[0].skew, tuple(sorted(rest.counts.items())))
