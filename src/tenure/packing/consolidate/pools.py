"""The pools, asked what the pods of nodes that go would be launched on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tenure.packing.consolidate.question import Question
from tenure.packing.dealing.dealer import Dealer
from tenure.packing.dealing.sites import Sites
from tenure.packing.demand.classes import PodClass, least_wanted
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.steps import PODS_A_STEP
from tenure.packing.index.whatif import Load, WhatIf
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.daemons import DaemonPod
from tenure.packing.offers.limits import Budget, reservations
from tenure.packing.offers.narrowing import Narrowing
from tenure.packing.opening.drafts import Draft, listing_of, used_by
from tenure.packing.opening.lots import Lot
from tenure.packing.opening.market import Market
from tenure.packing.opening.merging import merged
from tenure.packing.opening.opener import Opener


class Opened(msgspec.Struct):
    """Claims for pods, and the lots that they were made of."""

    drafts: list[Draft]
    lots: list[Lot]


class Pools:
    """``index``: the nodes that there are, which the pods leave."""

    def __init__(self, question: Question, index: WhatIf, daemons: tuple[DaemonPod, ...]) -> None:
        self._question, self._index = question, index
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
        reserved = reservations(self._catalogues)
        self._budgets = {c.template.pool: Budget(c, reserved) for c in self._catalogues}
        self._market = Market(self._catalogues, units, question.avoid, question.node_fee_cpus)
        yield
        lots: list[Lot] = []
        read = 0
        for one in served:
            lots.append(Lot(one, [pod.uid for pod in one.pods], one.demand.signature))
            if (read := read + len(one.pods)) >= PODS_A_STEP:
                read = 0
                yield
        #: By class, what a pod of it is worth: at prices alone, and with the fee of its nodes.
        free = Market(self._catalogues, units, question.avoid, 0)
        self._prices = self._priced(free, lots)
        yield
        self._worths = self._priced(self._market, lots)
        self._plain = [_is_plain(one) for one in index.classes]
        self._asked = {group for one in index.classes for group in one.rules.groups()}

    def _priced(self, market: Market, lots: Sequence[Lot]) -> list[float]:
        if lots and self._catalogues:
            market.price(lots)
        worths = {id(lot.one): lot.worth for lot in lots}
        return [worths.get(id(one), 0.0) for one in self._index.classes]

    @property
    def fee(self) -> float:
        """What a node costs beyond its price."""
        return self._market.fee

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

    # -- claims ----------------------------------------------------------------------------------

    def one(self, left: Load) -> Opened | None:
        """One claim for all of these pods, where nothing but resources and requirements decides."""
        if self._question.avoid or not all(self._plain[index] for index in left):
            return self.some(left)
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
                return Opened([draft], lots)
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

    def some(self, left: Load) -> Opened | None:
        """As many claims as these pods need; None where there is none for one of them."""
        classes, nodes = self._index.classes, self._index.nodes
        question = self._question
        queue = [
            Waiting(msgspec.structs.replace(classes[index], pods=tuple(left[index])))
            for index in sorted(left)
        ]
        dealer = Dealer(nodes.domains, self._sites, question.avoid, asked=self._asked)
        dealt = dealer.deal(queue, {})
        opener = Opener(
            self._catalogues,
            self._index.units,
            question.avoid,
            fee_cpus=question.node_fee_cpus,
        )
        for pool, budget in opener.budgets.items():
            budget.left = dict(self._budgets[pool].left)
            budget.reserved.update(self._budgets[pool].reserved)
        if not dealt.left_over:
            opener.serve(dealt.lots, nodes.bins.present_groups())
        if dealt.left_over or any(lot.left for lot in dealt.lots):
            self.undo(dealt.lots)
            return None
        return Opened(merged(opener.drafts, opener.budgets, opener.fee), dealt.lots)

    def undo(self, lots: Sequence[Lot]) -> None:
        """Pods that were dealt to domains do not count there any more."""
        for lot in lots:
            if lot.pins:
                self._index.nodes.domains.put(lot.one, dict(lot.pins), count=-len(lot.uids))

    def take(self, drafts: Sequence[Draft]) -> None:
        """These claims are planned."""
        for draft in drafts:
            self._budgets[draft.catalogue.template.pool].take(draft.charge)

    def give_back(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            self._budgets[draft.catalogue.template.pool].give_back(draft.charge)


def _is_plain(one: PodClass) -> bool:
    """Whether nothing but resources and requirements decides where its pods go."""
    rules = one.rules
    ruled = rules.spreads or rules.near or rules.far
    return not (ruled or one.member_of or one.repels or one.demand.ports)
