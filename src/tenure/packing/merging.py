"""Put small claims together where one node serves both for no more.

Each claim was opened for the best price per pod at that moment, which leaves odd ends: two
pods on one node and a third on another, where one node of twice the size costs the
same and is one node less. Claims are tried from the cheapest up, each with its next few
neighbours in price; of several partners the one that saves most is taken. The price of a
node is counted with the same fee as in ``opening``, so that fewer nodes win a draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tenure.packing.claims import Draft, holds, listing_of
from tenure.packing.limits import Budget

#: How many neighbours a claim is tried with.
NEIGHBOURS: Final = 8


def merged(drafts: Iterable[Draft], budgets: Mapping[str, Budget], fee: int) -> list[Draft]:
    """The drafts, fewer of them where that costs no more."""
    result: list[Draft] = []
    by_pool: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_pool.setdefault(draft.catalogue.template.pool, []).append(draft)
    for pool, theirs in by_pool.items():
        result += _merged(theirs, budgets[pool], fee)
    return result


def _merged(drafts: list[Draft], budget: Budget, fee: int) -> list[Draft]:
    # A stable sort: at one price, in the order in which they were opened.
    waiting = sorted(drafts, key=lambda draft: draft.price)
    done: list[Draft] = []
    while waiting:
        draft = waiting.pop(0)
        together = _best_partner(draft, waiting[:NEIGHBOURS], budget, fee)
        if together is None:
            done.append(draft)
            continue
        partner, both = together
        waiting.pop(partner)
        position = sum(other.price < both.price for other in waiting)
        waiting.insert(position, both)
    return done


def _best_partner(
    draft: Draft, others: list[Draft], budget: Budget, fee: int
) -> tuple[int, Draft] | None:
    """The position of the partner to merge with, and the two together."""
    found: list[tuple[int, int, Draft]] = []
    for position, other in enumerate(others):
        saved = draft.price + other.price + fee
        both = _together(draft, other, saved)
        if both is not None:
            found.append((both.price - saved, position, both))
    for _, position, both in sorted(found, key=lambda each: each[:2]):
        if _listed(both, draft, others[position], budget):
            return position, both
    return None


def _together(draft: Draft, other: Draft, price_max: int) -> Draft | None:
    """Both on one node that costs no more than that; only its cheapest offer is listed."""
    catalogue = draft.catalogue
    joined = catalogue.narrow(draft.narrowing, other.narrowing.requirements)
    if joined is None:
        return None
    used = [a + b for a, b in zip(draft.used, other.used, strict=True)]
    for offer in catalogue.front(joined.places, joined.types):
        if offer.price > price_max:
            return None
        if holds(catalogue.available[offer.type], used):
            break
    else:
        return None
    both = draft.copy()
    for one, count in other.parts:
        if both.allowed_beside(one, count) < count:
            return None
        both.put(one, count)
    return msgspec.structs.replace(
        both, narrowing=joined, uids=draft.uids + other.uids, listing=(offer,)
    )


def _listed(both: Draft, draft: Draft, other: Draft, budget: Budget) -> bool:
    """Whether the two together are within limits and minValues; if so, both is charged."""
    price = both.price
    budget.give_back(draft.charge)
    budget.give_back(other.charge)
    both.listing = listing_of(both, budget)
    if both.listing and both.price <= price:
        both.charge = budget.charge(offer.type for offer in both.listing)
        budget.take(both.charge)
        return True
    budget.take(draft.charge)
    budget.take(other.charge)
    return False
