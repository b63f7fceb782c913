"""The pools, asked what the pods of nodes that go would be launched on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Final

import msgspec

from tenure.model.values.fact import Fact
from tenure.packing.consolidate.bound import Bound
from tenure.packing.consolidate.facts import PodFitsNowhereElse, PodsFitNoOneNode
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.dealing.dealer import Dealer
from tenure.packing.dealing.sites import Sites
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import PodClass, Wants, least_wanted
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.steps import CLASSES_A_STEP, Steps, at_once, letting_go
from tenure.packing.demand.terms import Group
from tenure.packing.index.whatif import Load, Point, Trial, WhatIf
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.daemons import DaemonPod
from tenure.packing.offers.limits import Budget, reservations
from tenure.packing.offers.narrowing import Narrowing
from tenure.packing.opening.drafts import Draft, listing_of, used_by
from tenure.packing.opening.lots import Lot
from tenure.packing.opening.market import Market
from tenure.packing.opening.merging import merging
from tenure.packing.opening.opener import Opener
from tenure.packing.why import explain

#: What the price of a pod follows from.
_Kind = tuple[Signature, Wants]


class Opened(msgspec.Struct):
    """Claims for the pods that a trial had left, and the lots that they were made of."""

    drafts: list[Draft]
    lots: list[Lot]
    #: The trial, and how it was before pods gave up preferences.
    trial: Trial
    before: Point


class Pools:
    """``index``: the nodes that there are, which the pods leave."""

    def __init__(self, question: Question, index: WhatIf, daemons: tuple[DaemonPod, ...]) -> None:
        self._question, self._index = question, index
        #: By class and preferences given up: whether a claim can be had, as far as it was asked.
        self._launched: Final[dict[tuple[int, int], bool]] = {}
        #: By class and preferences given up: what keeps its pods from sharing a node, and how many may.
        self._forced: Final[dict[tuple[int, int], list[tuple[Group, int]]]] = {}
        #: Reads the pools, in steps.
        self.reading: Final = self._read(daemons)

    def _read(self, daemons: tuple[DaemonPod, ...]) -> Iterator[None]:
        question, index = self._question, self._index
        units = index.units
        served = [one for one in index.classes if not one.missing]
        amounts = least_wanted(served, units)
        least = {
            name: amount * size
            for name, size, amount in zip(units.names, units.sizes, amounts, strict=True)
        }
        self._catalogues = [
            Catalogue(each, daemons=daemons, units=units, dry=question.dry, least=least)
            for each in sorted(
                question.templates, key=lambda each: (each.weight, each.pool), reverse=True
            )
        ]
        self._sites = Sites(self._catalogues)
        index.nodes.domains.passes = self._sites.passes
        index.for_sale = self._sites.for_sale
        reserved = reservations(self._catalogues)
        self._budgets = {c.template.pool: Budget(c, reserved) for c in self._catalogues}
        self._market = Market(self._catalogues, units, question.avoid, question.node_fee_cpus)
        yield
        self._bound = Bound(self._catalogues)
        #: Whether a claim is launched for any pod that an offer holds: nothing else may refuse it.
        self._open = not any(each.whole.varied for each in self._catalogues)
        yield
        first: dict[_Kind, PodClass] = {}
        counts: Counter[_Kind] = Counter()
        for number, one in enumerate(served, start=1):
            kind = one.demand.signature, one.wants
            first.setdefault(kind, one)
            counts[kind] += len(one.pods)
            if not number % CLASSES_A_STEP:
                yield
        # Only how many pods there are matters here.
        lots = {kind: Lot(one, [""] * counts[kind], kind[0]) for kind, one in first.items()}
        yield
        #: By class, what a pod of it is worth: at prices alone, and with the fee of its nodes.
        free = Market(self._catalogues, units, question.avoid, 0)
        self._prices = yield from self._pricing(free, lots)
        yield
        self._worths = yield from self._pricing(self._market, lots)
        yield
        self._plain = [_is_plain(one) for one in index.classes]
        self._asked = {group for all_, *_ in index.relaxed for group in all_.rules.groups()}

    def _pricing(self, market: Market, lots: Mapping[_Kind, Lot]) -> Steps[list[float]]:
        if lots and self._catalogues:
            yield from market.pricing(tuple(lots.values()))
            yield
        worths = {kind: lot.worth for kind, lot in lots.items()}
        return [
            0.0 if one.missing else worths[one.demand.signature, one.wants]
            for one in self._index.classes
        ]

    def letting_go(self) -> Iterator[None]:
        """In steps: nothing is asked any more."""
        yield from self._market.letting_go()
        yield from letting_go(self._asked, self._launched, self._forced)

    @property
    def fee(self) -> float:
        """What a node costs beyond its price."""
        return self._market.fee

    @property
    def _limited(self) -> bool:
        return any(budget.limited for budget in self._budgets.values())

    @property
    def reserves(self) -> bool:
        """Whether reserved capacity is left: it may be cheaper than what is used well."""
        return any(
            count > 0 for budget in self._budgets.values() for count in budget.reserved.values()
        )

    def worth(self, load: Load) -> float:
        """What nodes for these pods cost at the least, with their fees."""
        return sum(self._worths[index] * len(pods) for index, pods in load.items())

    def price(self, load: Load) -> float:
        """What nodes for these pods cost at the least."""
        return sum(self._prices[index] * len(pods) for index, pods in load.items())

    def least(self, trial: Trial, fee: float) -> Steps[float]:
        """In steps: what claims for the pods that are left cost at the least, with a fee for each claim.

        Only pods count that surely get a claim: others may fit on nodes without a preference.
        """
        if self.reserves or not self._open or self._limited:
            return 0.0
        index, demand = self._index, [0] * len(self._index.units.names)
        apart: dict[Group, float] = {}
        for place, (number, pods) in enumerate(trial.left.items(), start=1):
            if not place % CLASSES_A_STEP:
                yield
            given_up = trial.given_up.get(number, 0)
            last = given_up + 1 == len(index.relaxed[number])
            if not last and not self._sure(number, given_up):
                continue
            for column, amount in index.classes[number].wants:
                demand[column] += amount * len(pods)
            for group, most in self._forcing(number, given_up):
                apart[group] = apart.get(group, 0.0) + len(pods) / most
        return self._bound.least(demand, ceil(max(apart.values(), default=0.0)), fee)

    def _forcing(self, number: int, given_up: int) -> list[tuple[Group, int]]:
        """The groups over the hostname of which the class belongs to and allows so many on a node."""
        found = self._forced.get((number, given_up))
        if found is None:
            one = self._index.relaxed[number][given_up]
            caps = [(group, 1) for group in one.rules.far]
            caps += [(spread.group, spread.skew) for spread in one.rules.spreads]
            found = self._forced[number, given_up] = [
                (group, most)
                for group, most in caps
                if group.on_hostname and group in one.member_of
            ]
        return found

    # -- claims ----------------------------------------------------------------------------------

    def one(self, trial: Trial, going: Sequence[Candidate] = ()) -> Opened | None:
        """One claim for the pods that are left: those for which ``are_plain``.

        ``going``: what these have is free again under the limits of their pools.
        """
        with self._freed(going):
            return self._one(trial)

    def _one(self, trial: Trial) -> Opened | None:
        left = trial.left
        lots = [self._lot(index, left) for index in sorted(left)]
        used = used_by(((lot, lot.left) for lot in lots), len(self._index.units.names))
        for catalogue in self._catalogues:
            narrowing = self._joined(catalogue, lots)
            if narrowing is None:
                continue
            draft = Draft(catalogue, narrowing, used, [(lot, lot.left) for lot in lots])
            draft.uids = [uid for lot in lots for uid in lot.uids]
            budget = self._budgets[catalogue.template.pool]
            draft.listing = listing_of(draft, budget)
            if draft.listing:
                draft.charge = budget.charge_of(draft.listing)
                return Opened([draft], lots, trial, self._index.point(trial))
        return None

    def _lot(self, index: int, left: Load) -> Lot:
        one = self._index.classes[index]
        return Lot(one, [pod.uid for pod in left[index]], one.demand.signature)

    def _joined(self, catalogue: Catalogue, lots: Sequence[Lot]) -> Narrowing | None:
        """A claim with all of these on it, each by the first alternative that is possible."""
        so_far: Narrowing | None = catalogue.whole
        for signature in dict.fromkeys(lot.signature for lot in lots):
            assert so_far is not None
            narrowed = (
                catalogue.narrow(so_far, wanted)
                for wanted in signature.alternatives
                if catalogue.entrance(signature, wanted) is not None
            )
            so_far = next((each for each in narrowed if each is not None and each.sold), None)
            if so_far is None:
                return None
        return so_far

    def some(self, trial: Trial, going: Sequence[Candidate] = ()) -> Opened | None:
        """As many claims as the pods that are left need; None where there is none for one of them.

        As in a packing, pods that find none give up their next preference, and may then fit on nodes.
        """
        return at_once(self.opening(trial, going))

    def opening(self, trial: Trial, going: Sequence[Candidate] = ()) -> Steps[Opened | None]:
        """The same in steps."""
        with self._freed(going):
            return (yield from self._opening(trial))

    def _opening(self, trial: Trial) -> Steps[Opened | None]:
        opener = Opener(
            self._catalogues,
            self._index.units,
            self._question.avoid,
            fee_cpus=self._question.node_fee_cpus,
        )
        for pool, budget in opener.budgets.items():
            budget.left = dict(self._budgets[pool].left)
            budget.reserved.update(self._budgets[pool].reserved)
        opened = Opened([], [], trial, self._index.point(trial))
        yield
        while trial.left:
            opened.lots += yield from self._serving(trial, opener, again=bool(opened.lots))
            if trial.left and not (yield from self._index.relaxing(trial)):
                self.undo(opened)
                return None
        opened.drafts = yield from merging(opener.drafts, opener.budgets, opener.fee)
        return opened

    def _serving(self, trial: Trial, opener: Opener, *, again: bool) -> Steps[list[Lot]]:
        """Claims for the pods that are left, with the preferences that they still have."""
        index, left = self._index, trial.left
        nodes, queue = index.nodes, list[Waiting]()
        for number in sorted(left):
            one = index.asked(trial, number)
            queue.append(Waiting(msgspec.structs.replace(one, pods=tuple(left[number]))))
            if not len(queue) % CLASSES_A_STEP:
                yield
        yield
        dealer = Dealer(nodes.domains, self._sites, self._question.avoid, asked=self._asked)
        dealt = yield from dealer.dealing(queue, {})
        yield
        hopeless = any(not waiting.one.wishes for waiting in queue if waiting.left)
        if not hopeless:
            if again:
                yield from opener.topping_up(dealt.lots)
                yield
            yield from opener.serving(dealt.lots, nodes.bins.present_groups())
        rest = {uid for waiting in queue for uid in waiting.rest()}
        for lot in dealt.lots:
            rest.update(lot.rest())
            nodes.domains.put(lot.one, dict(lot.pins), count=-lot.left)
        unserved = {
            number: [pod for pod in pods if pod.uid in rest] for number, pods in left.items()
        }
        trial.left = {number: pods for number, pods in unserved.items() if pods}
        return dealt.lots

    def surely(self, trial: Trial) -> bool:
        """Whether a claim can be had for one of the pods that are left, without looking any further."""
        if self._limited:
            return False
        return any(self._sure(index, trial.given_up.get(index, 0)) for index in trial.left)

    def _sure(self, index: int, given_up: int) -> bool:
        known = self._launched.get((index, given_up))
        if known is None:
            one = self._index.relaxed[index][given_up]
            groups = (*one.rules.groups(), *one.member_of)
            alone = not one.rules.near and all(group.on_hostname for group in groups)
            known = alone and bool(self._sites.options(one, ()))
            self._launched[index, given_up] = known
        return known

    def are_plain(self, left: Load) -> bool:
        """Whether nothing but resources and requirements decides where these pods go."""
        return not self._question.avoid and all(self._plain[index] for index in left)

    def refused(self, left: Load, going: Sequence[Candidate]) -> Steps[Fact]:
        """In steps: why there is no claim for these pods."""
        with self._freed(going):
            for index in sorted(left):
                first = left[index][0]
                none_kept = {index: len(self._index.relaxed[index]) - 1}
                alone = Trial((), 0, (), left={index: [first]}, given_up=none_kept)
                opened = yield from self._opening(alone)
                if opened is None:
                    return PodFitsNowhereElse(first.key, self._why(self._index.classes[index]))
                self.undo(opened)
        return PodsFitNoOneNode(sum(map(len, left.values())))

    def _why(self, one: PodClass) -> tuple[Fact, ...]:
        pools = [(each, self._budgets[each.template.pool]) for each in self._catalogues]
        return explain(one, pools, node_count=0).facts

    def undo(self, opened: Opened) -> None:
        """Pods that were dealt to domains do not count there any more; the trial has them left again."""
        for lot in opened.lots:
            if lot.pins:
                count = lot.left - len(lot.uids)
                self._index.nodes.domains.put(lot.one, dict(lot.pins), count=count)
        self._index.back_to(opened.before, opened.trial)

    def take(self, drafts: Sequence[Draft], going: Sequence[Candidate] = ()) -> None:
        """These claims are planned instead of the candidates."""
        self._free(going)
        for draft in drafts:
            self._budgets[draft.catalogue.template.pool].take(draft.charge)

    @contextmanager
    def _freed(self, going: Sequence[Candidate]) -> Iterator[None]:
        self._free(going)
        try:
            yield
        finally:
            self._free(going, -1)

    def _free(self, going: Sequence[Candidate], times: int = 1) -> None:
        """What candidates have no longer counts under the limits of their pools."""
        for one in going:
            budget = self._budgets.get(one.pool)
            if budget is not None and one.pool not in self._question.awaited:
                for name in budget.left:
                    budget.left[name] += times * one.capacity.get(name, 0)


def _is_plain(one: PodClass) -> bool:
    """Whether nothing but resources and requirements decides where its pods go."""
    rules = one.rules
    ruled = rules.spreads or rules.near or rules.far or one.wishes
    return not (ruled or one.member_of or one.repels or one.demand.ports)
