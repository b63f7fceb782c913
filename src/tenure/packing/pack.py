"""Where pods fit: on the nodes there are, else on claims to be made, else nowhere, and why.

``pack`` answers for all pods at once, in this order:

1. pods are grouped into classes of equals (``demand.classes``); a class that asks for a resource that
   nothing offers stays out, and so does one with a constraint that is not modelled yet;
2. a pod that is nominated to a node stays there for as long as it fits, and gets no claim
   while that node is still to come: not initialized, and the scheduler has bound no pod to it.
   Every other class, by priority and the largest first, is put onto existing nodes: the first that
   takes it, those that are initialized before the others, then by name (``index``);
3. what is left, but for the pods that may get no claim, is dealt to zones and other domains
   (``opening.dealing``), and claims are planned in the pools by weight (``opening.opener``);
4. pods with preferences that found no place are tried again without the first of them
   (``relaxing``); where limits are short, pods of lower priority only see what the others left;
5. who is left then is told why, pool by pool (``why``).

Same problem, same answer, whatever the order of its parts. Pods are not bound here, and the cloud
chooses among the types of a claim; this module only promises that each of them will do.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from itertools import count, groupby
from typing import Final

import msgspec

from tenure.model.api.meta import controller_of
from tenure.model.api.pod import Pod
from tenure.model.values.quantity import add
from tenure.packing.demand.asked import Asked, read_pods
from tenure.packing.demand.classes import PodClass, least_wanted, sort_pods
from tenure.packing.demand.facts import VolumeFact
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.terms import NO_SOFT_TAINTS
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.facts import (
    ConstraintNotSupported,
    KeptOff,
    NoZoneWithinSkew,
    PodUnreadable,
    Why,
)
from tenure.packing.finished import finished
from tenure.packing.index.nodes import Nodes, avoided_by_running
from tenure.packing.offers.catalogue import Catalogue, resources_of
from tenure.packing.offers.daemons import read_daemons, that_fit
from tenure.packing.opening.dealing import Dealer, LeftOver
from tenure.packing.opening.lots import Lot
from tenure.packing.opening.merging import merged
from tenure.packing.opening.opener import Opener
from tenure.packing.relaxing import groups_of, relaxed, with_wishes
from tenure.packing.result import Packing, Unplaced
from tenure.packing.why import explain

#: How often packing starts over with exactly what was served (each start is a whole packing);
#: after that with half, so that it ends soon.
_PATIENCE: Final = 4
#: By a class's first pod: how many of its pods are dealt at the most.
Caps = dict[str, int]


def pack(problem: Problem) -> Packing:
    """Find a place for every pod, or say why there is none."""
    packer = _Packer(problem)
    caps: Caps = {}
    for start in count(1):
        packing, short = packer.attempt(caps)
        if not short:
            break
        caps |= {one: got if start <= _PATIENCE else got // 2 for one, got in short.items()}
    return packing


class _Packer:
    """One problem, read."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        asked, unreadable = read_pods(problem.pods, problem.derived, problem.volumes)
        self._soft = problem.preferences and _any_soft_taint(problem)
        self.groups = _groups(problem, asked)
        self.pods = sort_pods(
            asked,
            self.groups,
            lambda names: _offered(names, problem),
            unreadable=unreadable,
            with_wishes=problem.preferences,
        )
        self.daemons = that_fit(read_daemons(problem.daemons), _sizes(problem))
        units = self.pods.units
        least = {
            name: amount * size
            for name, size, amount in zip(
                units.names, units.sizes, least_wanted(self.pods.classes, units), strict=True
            )
        }
        self.catalogues = [
            Catalogue(t, daemons=self.daemons, units=units, dry=problem.dry, least=least)
            for t in sorted(problem.templates, key=lambda t: (t.weight, t.pool), reverse=True)
        ]

    def attempt(self, caps: Caps) -> tuple[Packing, Caps]:
        """A packing, and the spread classes that came short with what they got."""
        return _Attempt(self, caps).packing()

    def awaiting(self) -> frozenset[str]:
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

    def soft(self, one: PodClass) -> PodClass:
        if not self._soft:
            return one
        return msgspec.structs.replace(one, wishes=(*one.wishes, NO_SOFT_TAINTS))


class _Attempt:
    """One packing, from the first pod to the last."""

    def __init__(self, packer: _Packer, caps: Caps) -> None:
        self._packer, self._problem, self._caps = packer, packer.problem, caps
        pods = packer.pods
        modelled = [packer.soft(one) for one in pods.classes if not one.rules.not_modelled]
        self._signed = [with_wishes(one) for one in modelled]
        everything = msgspec.structs.replace(pods, classes=(*modelled, *self._signed))
        self._nodes = Nodes(
            self._problem.nodes, pods=everything, groups=packer.groups, daemons=packer.daemons
        )
        self._opener = Opener(
            packer.catalogues,
            pods.units,
            self._problem.avoid,
            fee_cpus=self._problem.node_fee_cpus,
            present=self._nodes.bins.present_groups(),
        )
        self._modelled = modelled
        self._placed: dict[str, str] = {}
        #: Pods that found no place: what is left of each class.
        self._left: list[tuple[PodClass, list[str], LeftOver | None]] = []
        self._short: Caps = {}

    def packing(self) -> tuple[Packing, Caps]:
        problem, packer = self._problem, self._packer
        self._placed |= self._nodes.keep(self._modelled, problem.nominated)
        classes = self._modelled
        awaiting = packer.awaiting()
        if problem.nominated or problem.no_claim or problem.apart:
            classes = _split(classes, self._placed, awaiting, problem)
        for tier in self._tiers(classes):
            self._serve(list(tier))
        drafts = merged(self._opener.drafts, self._opener.budgets, self._opener.fee)
        apart = _split(packer.pods.apart, (), awaiting, problem)
        left = [*self._left, *((one, [pod.uid for pod in one.pods], None) for one in apart)]
        packing = Packing(
            placed=self._placed,
            claims=finished(drafts),
            unplaced=self._unplaced(left),
            displaced={
                uid: problem.nominated[uid] for one, uids, _ in left if one.claimed for uid in uids
            },
            no_claim=frozenset(uid for one, uids, _ in left if one.no_claim for uid in uids),
            left_out={
                c.template.pool: tuple(sorted(daemon.name for daemon in c.left_out))
                for c in packer.catalogues
                if c.left_out
            },
        )
        return packing, self._short

    def _tiers(self, classes: Sequence[PodClass]) -> Iterable[Iterable[PodClass]]:
        """All at once; where limits may be short, one priority after the other."""
        if not any(budget.limited for budget in self._opener.budgets.values()):
            return [classes]
        return [list(same) for _, same in groupby(classes, key=lambda one: one.priority)]

    def _serve(self, classes: list[PodClass]) -> None:
        """Place these; those with preferences again, without the first, while some are left."""
        first = True
        while classes:
            self._round(classes, first=first)
            first = False
            again = [each for each in self._left if each[0].wishes]
            if not again:
                return
            self._left = [each for each in self._left if not each[0].wishes]
            classes = []
            for one, uids, _ in again:
                pods = {pod.uid: pod for pod in one.pods}
                some = msgspec.structs.replace(one, pods=tuple(pods[uid] for uid in uids))
                classes.append(relaxed(some))

    def _round(self, classes: Sequence[PodClass], *, first: bool) -> None:
        """Onto nodes, onto claims planned before, then onto new ones."""
        homes = self._nodes.domains.homes
        queue = []
        for one in classes:
            waiting = Waiting(with_wishes(one), homes)
            self._placed |= self._nodes.place(waiting)
            queue.append(waiting)
        open_ = [
            position
            for position, waiting in enumerate(queue)
            if waiting.left and waiting.one.may_be_claimed_for
        ]
        caps = {
            place: cap
            for place, position in enumerate(open_)
            if (cap := self._caps.get(classes[position].pods[0].uid)) is not None
        }
        dealer = Dealer(self._nodes.domains, self._packer.catalogues, self._problem.avoid)
        before = [queue[position].left for position in open_]
        dealt = dealer.deal([queue[position] for position in open_], caps)
        if not first or self._opener.drafts:
            self._opener.top_up(dealt.lots)
        self._open(dealt.lots)
        self._note_left(classes, queue, open_, before, dealt.lots, dealt.left_over)

    def _open(self, lots: list[Lot]) -> None:
        """Open claims and merge them; for who is left, again as long as merging frees limits."""
        opener = self._opener
        limited = any(budget.limited for budget in opener.budgets.values())
        left = -1
        while left != (left := sum(lot.left for lot in lots)):
            opener.serve(lots)
            if not limited or not any(lot.left for lot in lots):
                break
            opener.drafts[:] = merged(opener.drafts, opener.budgets, opener.fee)

    def _note_left(
        self,
        classes: Sequence[PodClass],
        queue: Sequence[Waiting],
        open_: Sequence[int],
        before: Sequence[int],
        lots: Iterable[Lot],
        left_over: Iterable[LeftOver],
    ) -> None:
        rest: dict[int, list[str]] = {}
        by_class = {id(queue[position].one): position for position in open_}
        for lot in lots:
            if lot.left:
                rest.setdefault(by_class[id(lot.one)], []).extend(lot.rest())
        over = {by_class[id(each.one)]: each for each in left_over}
        for position, waiting in enumerate(queue):
            uids = [*rest.get(position, ()), *waiting.rest()]
            if not uids:
                continue
            one = classes[position]
            self._left.append((one, uids, over.get(position)))
            came_short = position in rest and any(
                not spread.group.on_hostname for spread in waiting.one.rules.spreads
            )
            if came_short:
                # Its other domains would have run ahead of the one that came short.
                had = before[open_.index(position)]
                self._short[one.pods[0].uid] = had - len(uids)

    # -- who stays out ---------------------------------------------------------------------------

    def _unplaced(
        self, left: Iterable[tuple[PodClass, list[str], LeftOver | None]]
    ) -> dict[str, Unplaced]:
        packer = self._packer
        unplaced = {
            uid: _alone(PodUnreadable(error)) for uid, error in packer.pods.unreadable.items()
        }
        for uid, fact in self._problem.volumes.items():
            if isinstance(fact, VolumeFact):
                unplaced[uid] = Unplaced(why=Why.VOLUME_UNUSABLE, facts=(fact,))
        for one in packer.pods.classes:
            if one.rules.not_modelled:
                why = _alone(ConstraintNotSupported(one.rules.not_modelled))
                unplaced |= dict.fromkeys((pod.uid for pod in one.pods), why)
        pools = [(c, self._opener.budgets[c.template.pool]) for c in packer.catalogues]
        node_count = sum(not node.closed for node in self._problem.nodes)
        for one, uids, over in left:
            if not one.may_be_claimed_for:
                continue
            why = explain(one, pools, node_count=node_count, kept_off=_kept_off(one, self._problem))
            if over is not None and why.why is Why.TOPOLOGY_UNSATISFIABLE and over.counts:
                why = _alone(_no_domain(over))
            unplaced |= dict.fromkeys(uids, why)
        return unplaced


def _kept_off(one: PodClass, problem: Problem) -> list[KeptOff]:
    """Where running pods do not let the class in, over other keys than the hostname."""
    found: dict[tuple[str, str], KeptOff] = {}
    if one.member_of:
        for group, node, pod in avoided_by_running(problem.nodes):
            value = node.labels.get(group.key)
            if not group.on_hostname and group in one.member_of and value is not None:
                off = KeptOff(pod.key, group.key, value)
                known = found.get((group.key, value))
                if known is None or off.by < known.by:
                    found[group.key, value] = off
    return [found[each] for each in sorted(found)]


def _groups(problem: Problem, asked: Iterable[Asked]) -> Groups:
    """All groups that constraints are about: of waiting pods, and whom running ones avoid."""
    groups = Groups(problem.namespaces)
    for one in asked:
        groups.add(one.rules.groups())
        if problem.preferences:
            groups.add(groups_of(one.wishes))
    groups.add(group for group, _, _ in avoided_by_running(problem.nodes))
    return groups


def _any_soft_taint(problem: Problem) -> bool:
    return any(
        taint.effect == "PreferNoSchedule" for one in problem.templates for taint in one.taints
    )


def _offered(asked: Collection[str], problem: Problem) -> set[str]:
    """Which of these resources some type has, or some node has left."""
    offered: set[str] = {name for name in asked if is_attachable(name)}
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


def _alone(fact: PodUnreadable | ConstraintNotSupported | NoZoneWithinSkew) -> Unplaced:
    """Of the pod alone: no pool could take it."""
    return Unplaced(why=fact.why, facts=(fact,))


def _no_domain(over: LeftOver) -> NoZoneWithinSkew:
    skews = [s.skew for s in over.one.rules.spreads if s.group.key == over.key]
    return NoZoneWithinSkew(skews[0] if skews else 1, tuple(sorted(over.counts.items())))
