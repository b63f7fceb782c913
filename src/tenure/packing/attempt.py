"""One packing, from the first pod to the last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import msgspec

from tenure.model.api.pod import Pod
from tenure.packing.asking import lending_nodes
from tenure.packing.dealing.dealer import Dealer, LeftOver
from tenure.packing.dealing.following import asked_groups
from tenure.packing.dealing.foreseen import unforeseen
from tenure.packing.dealing.seating import seating_in_order
from tenure.packing.dealing.sites import Pins
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.facts import VolumeFact
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.relaxing import every_level, relaxed, with_wishes
from tenure.packing.demand.steps import CLASSES_A_STEP, NODES_A_STEP, Steps, some_at_a_time
from tenure.packing.demand.terms import Group
from tenure.packing.facts import (
    KeptOff,
    NamespacesUnknown,
    NoZoneWithinSkew,
    PodUnreadable,
    TopologyFact,
    Why,
)
from tenure.packing.finished import finishing
from tenure.packing.index.domains import Foreseen
from tenure.packing.index.nodes import Nodes
from tenure.packing.index.reading import avoided_by_running, reading_nodes
from tenure.packing.opening.lots import Lot
from tenure.packing.opening.merging import merging
from tenure.packing.opening.opener import Opener
from tenure.packing.question import Question, split
from tenure.packing.refusals.topology import Topology
from tenure.packing.result import Packing, Unplaced
from tenure.packing.why import explain
from tenure.packing.whyvolumes import with_volumes

#: More than there are levels in one round (``dealing.following``).
LEVELS: Final = 1 << 20
#: Classes that are put onto nodes in one step.
CLASSES_A_ROUND: Final = 4
#: Classes that are tried again in vain, at the end.
TRIES_MAX: Final = 64
#: By group, then by the value of its key: a running pod that avoids it there.
Avoided = dict[Group, dict[str, str]]
#: By class: how many of its pods are dealt at the most.
Caps = dict[tuple[str, str, int], int]


class Attempt:
    """One packing, from the first pod to the last."""

    def __init__(self, question: Question, caps: Caps, foreseen: Foreseen) -> None:
        self._question, self._problem, self._caps = question, question.problem, caps
        pods = question.pods
        self._foreseen = foreseen
        #: Classes that are served; the same with their preferences as requirements.
        self._modelled: list[PodClass] = []
        self._signed: list[PodClass] = []
        self._opener = Opener(
            question.catalogues,
            pods.units,
            self._problem.avoid,
            fee_cpus=self._problem.node_fee_cpus,
        )
        self._placed: dict[str, str] = {}
        #: Pods that found no place: what is left of each class.
        self._left: list[tuple[PodClass, list[str], LeftOver | None]] = []
        self._short: Caps = {}
        #: Classes with pods that came short in the domain that they were dealt to.
        self._undealt: set[tuple[str, str, int]] = set()
        self._rounds = 0

    def _reading(self) -> Steps[Nodes]:
        question, pods = self._question, self._question.pods
        levels: list[PodClass] = []
        for some in some_at_a_time(pods.classes, CLASSES_A_STEP):
            yield
            modelled = [question.soft(one) for one in some if not one.rules.not_modelled]
            self._modelled += modelled
            self._signed += map(with_wishes, modelled)
            # Of several preferred node affinities only one counts at a time, and each has labels of its own.
            for one in modelled:
                if sum(wish.node is not None for wish in one.wishes) > 1:
                    levels += every_level(one)
        yield
        self._groups = asked_groups(self._signed)
        yield
        everything = msgspec.structs.replace(
            pods, classes=(*self._modelled, *self._signed, *levels)
        )
        nodes = yield from lending_nodes(
            self._problem, everything, question.groups, question.daemons
        )
        if nodes is None:
            nodes = yield from reading_nodes(
                self._problem.nodes,
                pods=everything,
                groups=question.groups,
                daemons=question.daemons,
                moving=True,
                last=(),
                derived=self._problem.derived,
            )
        nodes.domains.passes, nodes.domains.foreseen = question.sites.passes, self._foreseen
        return nodes

    def packing(self) -> Steps[tuple[Packing, Caps, Foreseen]]:
        """In steps: the packing; which classes came short, and which domains it did not foresee."""
        problem, question = self._problem, self._question
        yield
        self._nodes = yield from self._reading()
        yield
        self._placed |= yield from self._nodes.keeping(self._modelled, problem.nominated)
        yield
        classes = self._modelled
        awaiting = question.awaiting()
        if problem.nominated or problem.no_claim or problem.apart:
            classes = split(classes, self._placed, awaiting, problem)
        for tier in self._tiers(classes):
            yield from self._serve(list(tier))
        if self._left and not self._short:
            yield from self._add_singly()
        yield
        opener = self._opener
        drafts = yield from merging(opener.drafts, opener.budgets, opener.fee)
        yield
        fixed = {*problem.nominated, *problem.no_claim, *problem.apart}
        yield from seating_in_order(self._modelled, drafts, self._nodes.domains, fixed)
        yield
        apart = split(question.pods.apart, (), awaiting, problem)
        left = [*self._left, *((one, [pod.uid for pod in one.pods], None) for one in apart)]
        packing = Packing(
            placed=self._placed,
            claims=(yield from finishing(drafts)),
            unplaced=(yield from self._unplaced(left)),
            displaced={
                uid: problem.nominated[uid] for one, uids, _ in left if one.claimed for uid in uids
            },
            no_claim=frozenset(uid for one, uids, _ in left if one.no_claim for uid in uids),
            left_out={
                c.template.pool: tuple(sorted(daemon.name for daemon in c.left_out))
                for c in question.catalogues
                if c.left_out
            },
        )
        yield
        for_sale = question.sites.for_sale
        more = yield from unforeseen(self._signed, drafts, self._nodes.domains, for_sale)
        return packing, self._short, more

    def _tiers(self, classes: Sequence[PodClass]) -> Iterable[Iterable[PodClass]]:
        """All at once; where limits may be short, one priority after the other."""
        if not any(budget.limited for budget in self._opener.budgets.values()):
            return [classes]
        return [list(same) for _, same in groupby(classes, key=lambda one: one.priority)]

    def _serve(self, classes: list[PodClass]) -> Steps[None]:
        """Place these; those with preferences again, without the first, while some are left."""
        first = True
        while classes:
            yield from self._round(classes, first=first)
            yield
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

    def _add_singly(self) -> Steps[None]:
        """Pods that no domain took, or that came short in theirs: once more, one at a time."""
        again = self._caps.keys() | self._undealt
        left, self._left = self._left, []
        self._caps = {}
        tries = TRIES_MAX
        for one, uids, over in left:
            rest = uids
            if one.key in again or any(not group.on_hostname for group in one.rules.groups()):
                pods = {pod.uid: pod for pod in one.pods}
                while rest and tries and one.may_be_claimed_for:
                    if not (yield from self._added(one, pods[rest[0]])):
                        tries -= 1
                        break
                    rest = rest[1:]
            if rest:
                self._left.append((one, rest, over))
        # What came short now was taken back at once: no pod had followed it.
        self._short = {}

    def _added(self, one: PodClass, pod: Pod) -> Steps[bool]:
        """Whether one pod of the class has found a place, in one domain or another."""
        single = msgspec.structs.replace(one, pods=(pod,))
        tried: set[Pins] = set()
        while True:
            yield
            lots = yield from self._round([single], first=False, without=tried)
            if not self._left or self._left[-1][0] is not single:
                return True
            self._left.pop()
            if not lots or not lots[0].pins:
                return False
            tried.add(lots[0].pins)

    def _round(
        self, classes: Sequence[PodClass], *, first: bool, without: Collection[Pins] = ()
    ) -> Steps[list[Lot]]:
        """Onto nodes, onto claims planned before, then onto new ones; not in domains ``without``."""
        homes = self._nodes.domains.homes
        self._rounds += 1
        dealer = Dealer(
            self._nodes.domains,
            self._question.sites,
            self._problem.avoid,
            asked=self._groups.asked,
            level=self._rounds * LEVELS,
            without=without,
        )
        queue = []
        for number, one in enumerate(classes, start=1):
            waiting = Waiting(with_wishes(one), homes)
            if self._problem.nodes:
                more = self._question.sites.for_sale(waiting.one) if one.may_be_claimed_for else {}
                self._placed |= yield from self._nodes.placing(waiting, more)
            queue.append(waiting)
            if not number % CLASSES_A_ROUND:
                yield
        open_ = [
            position
            for position, waiting in enumerate(queue)
            if waiting.left and waiting.one.may_be_claimed_for
        ]
        caps = {
            place: cap
            for place, position in enumerate(open_)
            if (cap := self._caps.get(classes[position].key)) is not None
        }
        before = [queue[position].left for position in open_]
        yield
        dealt = yield from dealer.dealing([queue[position] for position in open_], caps)
        yield
        if self._problem.nodes:
            yield from self._fill(dealt.lots)
        if not first or self._opener.drafts:
            yield from self._opener.topping_up(dealt.lots)
        yield from self._open(dealt.lots)
        yield
        if self._groups.beside:
            self._nodes.bins.note_elsewhere(
                group
                for lot in dealt.lots
                if lot.left < len(lot.uids)
                for group in self._groups.beside & lot.one.member_of
            )
        self._note_left(classes, queue, open_, before, dealt.lots, dealt.left_over)
        return dealt.lots

    def _fill(self, lots: Iterable[Lot]) -> Steps[None]:
        """Onto nodes that are there, of their domain: a spread allows that once others have come."""
        for number, lot in enumerate(lots, start=1):
            if not number % CLASSES_A_STEP:
                yield
            rules = lot.one.rules
            if not lot.pins or rules.near or any(not group.on_hostname for group in rules.far):
                continue
            while lot.left and (found := self._nodes.fill(lot.one, dict(lot.pins), lot.left)):
                name, count = found
                self._placed |= dict.fromkeys(lot.take(count), name)
                yield

    def _open(self, lots: list[Lot]) -> Steps[None]:
        """Open claims and merge them; for who is left, again as long as merging frees limits."""
        opener = self._opener
        limited = any(budget.limited for budget in opener.budgets.values())
        left = -1
        while left != (left := sum(lot.left for lot in lots)):
            yield from opener.serving(lots, self._nodes.bins.present_groups())
            if not limited or not any(lot.left for lot in lots):
                break
            yield
            opener.drafts[:] = yield from merging(opener.drafts, opener.budgets, opener.fee)

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
        in_domains: set[int] = set()
        by_class = {id(queue[position].one): position for position in open_}
        for lot in lots:
            if lot.left:
                if lot.pins:
                    in_domains.add(by_class[id(lot.one)])
                    self._undealt.add(classes[by_class[id(lot.one)]].key)
                rest.setdefault(by_class[id(lot.one)], []).extend(lot.rest())
                self._nodes.domains.put(lot.one, dict(lot.pins), count=-lot.left)
        over = {by_class[id(each.one)]: each for each in left_over}
        for position, waiting in enumerate(queue):
            uids = [*rest.get(position, ()), *waiting.rest()]
            if not uids:
                continue
            one = classes[position]
            self._left.append((one, uids, over.get(position)))
            if position in in_domains and not self._groups.followed.isdisjoint(one.member_of):
                # Other domains ran ahead of the one that came short, and others followed it there.
                had = before[open_.index(position)]
                self._short[one.key] = had - len(uids)

    # -- who stays out ---------------------------------------------------------------------------

    def _unplaced(
        self, left: Sequence[tuple[PodClass, list[str], LeftOver | None]]
    ) -> Steps[dict[str, Unplaced]]:
        question = self._question
        unplaced = {
            uid: _alone(PodUnreadable(error)) for uid, error in question.pods.unreadable.items()
        }
        for uid, fact in self._problem.volumes.items():
            if isinstance(fact, VolumeFact):
                unplaced[uid] = Unplaced(why=Why.VOLUME_UNUSABLE, facts=(fact,))
        for one in question.pods.classes:
            if one.rules.not_modelled:
                why = _alone(NamespacesUnknown(one.rules.not_modelled))
                unplaced |= dict.fromkeys((pod.uid for pod in one.pods), why)
        pools = [(c, self._opener.budgets[c.template.pool]) for c in question.catalogues]
        topology = Topology(self._nodes, question.pods.classes, question.catalogues)
        node_count = sum(not node.closed for node in self._problem.nodes)
        avoided: Avoided = {}
        if any(one.member_of for one, _, _ in left):
            avoided = yield from _avoided((yield from question.avoiding()))
        for one, uids, over in left:
            if not one.may_be_claimed_for:
                continue
            yield
            why = explain(
                one,
                pools,
                node_count=node_count,
                kept_off=_kept_off(one, avoided),
                topology=partial(_in_the_way, one, over, topology),
            )
            unplaced |= dict.fromkeys(uids, why)
            if self._problem.volumes:
                left_out = set(uids)
                unplaced |= {
                    pod.uid: with_volumes(why, pod, self._problem.volumes.get(pod.uid))
                    for pod in one.pods
                    if pod.uid in left_out
                }
        return unplaced


def _in_the_way(one: PodClass, over: LeftOver | None, topology: Topology) -> TopologyFact | None:
    """Which topology constraint is in the way; None: several together."""
    found = topology.affinity(one)
    if found is None and over is not None and over.counts:
        return _no_domain(over)
    return found


def _avoided(avoiding: Iterable[ExistingNode]) -> Steps[Avoided]:
    """Whom running pods avoid over other keys than the hostname: by value, the first such pod."""
    found: Avoided = {}
    for some in some_at_a_time(avoiding, NODES_A_STEP):
        yield
        for group, node, pod in avoided_by_running(some):
            value = node.labels.get(group.key)
            if not group.on_hostname and value is not None:
                by_value = found.setdefault(group, {})
                by_value[value] = min(by_value.get(value, pod.key), pod.key)
    return found


def _kept_off(one: PodClass, avoided: Avoided) -> list[KeptOff]:
    """Where running pods do not let the class in."""
    found: dict[tuple[str, str], str] = {}
    for group in one.member_of & avoided.keys():
        for value, by in avoided[group].items():
            where = group.key, value
            found[where] = min(found.get(where, by), by)
    return [KeptOff(found[key, value], key, value) for key, value in sorted(found)]


def _alone(fact: PodUnreadable | NamespacesUnknown) -> Unplaced:
    """Of the pod alone: no pool could take it."""
    return Unplaced(why=fact.why, facts=(fact,))


def _no_domain(over: LeftOver) -> NoZoneWithinSkew:
    skews = [s.skew for s in over.one.rules.spreads if s.group.key == over.key]
    counts = tuple(sorted(over.counts.items()))
    return NoZoneWithinSkew(skews[0] if skews else 1, counts, over.key)
