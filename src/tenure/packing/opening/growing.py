"""Put more pods onto a claim that is planned already."""

from __future__ import annotations

from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.classes import how_many
from tenure.packing.offers.limits import Budget
from tenure.packing.opening.drafts import Draft, listing_of, used_by
from tenure.packing.opening.lots import Lot
from tenure.packing.opening.together import allowed_beside


def join(draft: Draft, lot: Lot, budget: Budget, *, grow: bool) -> int:
    """How many pods of the lot have come to the claim. ``grow``: also where that makes it dearer."""
    there = [(other.one, count) for other, count in draft.parts]
    most = allowed_beside(there, lot.one, lot.left)
    if not most or not _came_before(draft, lot):
        return 0
    count = 0
    budget.give_back(draft.charge)
    for wanted in lot.signature.alternatives:
        larger = _larger(draft, budget, lot, wanted, most, grow=grow)
        if larger is not None:
            count = larger.parts[-1][1]
            draft.narrowing, draft.used, draft.parts = larger.narrowing, larger.used, larger.parts
            draft.listing, draft.charge = larger.listing, larger.charge
            draft.uids = [*draft.uids, *lot.take(count)]
            break
    budget.take(draft.charge)
    return count


def _came_before(draft: Draft, lot: Lot) -> bool:
    """Whether the pods that it must be on one node with do not wait for it in turn."""
    return all(
        any(group in other.one.member_of and other.level < lot.level for other, _ in draft.parts)
        for group in lot.one.rules.near
        if group.on_hostname
    )


def _larger(
    draft: Draft, budget: Budget, lot: Lot, wanted: Requirements, most: int, *, grow: bool
) -> Draft | None:
    """The draft with as many more pods of the lot as one of its types holds."""
    catalogue = draft.catalogue
    joined = catalogue.narrow(draft.narrowing, wanted)
    if joined is None or catalogue.entrance(lot.signature, wanted) is None:
        return None
    trial = Draft(catalogue, joined, draft.used, [*draft.parts, (lot, 0)])
    types = catalogue.holding(draft.used) & catalogue.clear_of(trial.ports) & budget.affordable()
    count = 0
    for offer in catalogue.listing(joined, types):
        if grow or offer.price <= draft.price:
            free = [a - u for a, u in zip(catalogue.available[offer.type], draft.used, strict=True)]
            count = max(count, how_many(free, lot.wants, most))
    if not count:
        return None
    trial.parts[-1] = lot, count
    trial.used = used_by(trial.parts, len(draft.used))
    trial.listing = listing_of(trial, budget)
    if not trial.listing or (not grow and trial.price > draft.price):
        return None
    trial.charge = budget.charge_of(trial.listing)
    return trial
