"""Put claims together where one node serves both for no more.

Each claim was opened for the best price at that moment, which leaves odd ends: two pods on one node
and a third on another, where one node of twice the size costs the same and is one node less. The
claims that pay most for what their pods are worth are tried with each other, until nothing is gained;
of several partners the one that saves most is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.offers.limits import Budget
from tenure.packing.opening.drafts import Draft, listing_of
from tenure.packing.opening.together import allowed_beside

#: How many claims are tried with each other, in each pool.
TRIED_MAX: Final = 40
#: Lots that are held against all of another claim in one step: some milliseconds.
LOTS_A_STEP: Final = 25


def merged(drafts: Iterable[Draft], budgets: Mapping[str, Budget], fee: float) -> list[Draft]:
    """The drafts, fewer of them where that costs no more."""
    return at_once(merging(drafts, budgets, fee))


def merging(
    drafts: Iterable[Draft], budgets: Mapping[str, Budget], fee: float
) -> Steps[list[Draft]]:
    """The same in steps: one for each two claims that are tried together."""
    by_pool: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_pool.setdefault(draft.catalogue.template.pool, []).append(draft)
    result: list[Draft] = []
    for pool, theirs in by_pool.items():
        result += yield from _merging(theirs, budgets[pool], fee)
    return result


def _merging(drafts: list[Draft], budget: Budget, fee: float) -> Steps[list[Draft]]:
    if len(drafts) > TRIED_MAX:
        order = sorted(range(len(drafts)), key=lambda i: (-_waste(drafts[i], fee), i))
        tried = {*order[:TRIED_MAX]}
    else:
        tried = {*range(len(drafts))}
    rest = [draft for i, draft in enumerate(drafts) if i not in tried]
    # A stable sort: at one price, in the order in which they were opened.
    waiting = sorted((drafts[i] for i in sorted(tried)), key=lambda draft: draft.price)
    done: list[Draft] = []
    while waiting:
        draft = waiting.pop(0)
        found = yield from _best_partner(draft, waiting, budget, fee)
        if found is None:
            done.append(draft)
            continue
        partner, both = found
        waiting.pop(partner)
        position = sum(other.price < both.price for other in waiting)
        waiting.insert(position, both)
    return rest + done


def _waste(draft: Draft, fee: float) -> float:
    worth = sum(lot.worth * count for lot, count in draft.parts)
    return (draft.price + fee) / (worth or 1.0)


def _best_partner(
    draft: Draft, others: list[Draft], budget: Budget, fee: float
) -> Steps[tuple[int, Draft] | None]:
    """The position of the partner to merge with, and the two together."""
    found: list[tuple[float, int, Draft]] = []
    alike: set[tuple[int, int]] = set()
    for position, other in enumerate(others):
        kind = id(other.parts), id(other.listing)
        if kind in alike:
            continue  # The same pods by kind were tried.
        alike.add(kind)
        yield
        most = draft.price + other.price + fee
        both = yield from _together(draft, other, most, budget)
        if both is not None:
            found.append((both.price - most, position, both))
    for _, position, both in sorted(found, key=lambda each: each[:2]):
        if _charged(both, draft, others[position], budget):
            return position, both
    return None


def _together(draft: Draft, other: Draft, price_max: float, budget: Budget) -> Steps[Draft | None]:
    """Both on one node that costs no more than that."""
    catalogue = draft.catalogue
    joined = catalogue.narrow(draft.narrowing, other.narrowing.requirements)
    if joined is None:
        return None
    used = [a + b for a, b in zip(draft.used, other.used, strict=True)]
    listing = budget.on_hand(joined, catalogue.listing(joined, catalogue.holding(used)))
    if not listing or listing[0].price > price_max:
        return None
    if draft.choosy or other.choosy:
        there = [(lot.one, count) for lot, count in draft.parts]
        for number, (lot, count) in enumerate(other.parts, start=1):
            if not number % LOTS_A_STEP:
                yield
            if allowed_beside(there, lot.one, count) < count:
                return None
            there.append((lot.one, count))
    parts, uids = [*draft.parts, *other.parts], [*draft.uids, *other.uids]
    return Draft(catalogue, joined, used, parts, uids, listing)


def _charged(both: Draft, draft: Draft, other: Draft, budget: Budget) -> bool:
    """Whether the two together are within limits and minValues; if so, both is charged."""
    price = both.price
    budget.give_back(draft.charge)
    budget.give_back(other.charge)
    both.listing = listing_of(both, budget)
    if both.listing and both.price <= price:
        both.charge = budget.charge_of(both.listing)
        budget.take(both.charge)
        return True
    budget.take(draft.charge)
    budget.take(other.charge)
    return False
