"""What a replacement may cost: the price rules, which always hold.

One set of rules, over replacements as any caller reads them: the search reads drafts (``drafted``), the
pipeline claims that it would create (``core/disrupt/consolidation/prices``).

1. The *worst launch price* of a type is the highest at which it may be launched: a claim says a zone or
   several, and one capacity type. The sum over all claims of a move is strictly below what its
   candidates cost, whichever types are launched; types that would break that are not listed.
2. Spot nodes are not replaced by on-demand nodes while the replacement may be spot, whatever spot costs
   now: that would go back and forth with its price. By spot only with the feature gate; where they do not
   become fewer only with 15 cheaper types for each, and those are listed.
3. Of several candidates: a type that is being removed is listed only below the cheapest node of that type.
   Else they would be replaced by one of them, where the others could just be deleted.
4. A part of the price is saved, a larger one where prices move more. It is a part and no amount, so that it
   is the same for small nodes and large ones.
5. More nodes than before save more than the fee of each further one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from tenure.model.api.names import CAPACITY_ON_DEMAND, CAPACITY_SPOT
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirements
from tenure.model.values.fact import Fact
from tenure.model.values.quantity import UNIT
from tenure.packing.consolidate.facts import (
    LIST_PART,
    OF_SPOT_PART,
    TO_SPOT_PART,
    MinValuesNotKept,
    MoreNodesSaveTooLittle,
    NoCheaperReplacement,
    SavesTooLittle,
    SpotToSpotDisabled,
    TooFewSpotTypes,
)
from tenure.packing.consolidate.question import Candidate
from tenure.packing.opening.drafts import shortfall_of

#: Types that must be cheaper before as many spot nodes replace others, and that are listed then: with
#: fewer to choose from, the cloud would soon take it back.
SPOT_TYPES: Final = 15


class Listed(NamedTuple):
    """A type that a claim may list; sorts by price, then by name."""

    #: Of its cheapest offering, and where that is.
    price: int
    name: str
    zone: str
    #: The highest at which it may be launched.
    worst: int


FallsShort = Callable[[Sequence[Listed]], bool]


class Priced(msgspec.Struct, frozen=True):
    """A claim of one capacity type."""

    capacity_type: str
    #: The cheapest first: all whose price is below that of the candidates; else the cheapest one. A type
    #: whose price is not known, or nothing, is none of them.
    types: Sequence[Listed]
    #: Whether types are too few for ``minValues``; None: there are none.
    falls_short: FallsShort | None = None

    @property
    def least(self) -> int:
        return min(one.worst for one in self.types)


def short_of(requirements: Requirements, types: Mapping[str, InstanceType]) -> FallsShort | None:
    """``types``: by name, those that may be listed."""
    if not any(one.min_values for one in requirements.values()):
        return None
    return lambda found: shortfall_of(requirements, (types[one.name] for one in found)) is not None


class Replacement(msgspec.Struct, frozen=True):
    """A claim that would be launched: by each capacity type that it may be of."""

    by_capacity_type: Sequence[Priced]
    #: Whether its pool and pods allow spot, sold out or not.
    may_be_spot: bool


class Accepted(msgspec.Struct, frozen=True):
    #: For each claim: with the types that it may list.
    claims: Sequence[Priced]
    #: What they cost at the most.
    worst: int


class PriceRules(msgspec.Struct, frozen=True, kw_only=True):
    #: Whether spot nodes may be replaced by cheaper spot nodes.
    spot_to_spot: bool
    #: How many cpus a node counts beyond its price.
    fee_cpus: int

    def accepted(
        self, claims: Sequence[Replacement], going: Sequence[Candidate], *, came: Sequence[int] = ()
    ) -> Accepted | Fact:
        """The claims as they may be launched instead of the candidates; or why not.

        ``came``: what replacements cost at the most that exist already.
        """
        total, launched = price_of(going), sum(came)
        if launched >= total:
            return NoCheaperReplacement(total, launched)
        # Many claims are the same object: what follows from it is worked out once.
        known: dict[int, Priced] = {}
        for claim in claims:
            if id(claim) not in known:
                one = self._priced(claim, going)
                if isinstance(one, Fact):
                    return one
                known[id(claim)] = one
        priced = [known[id(claim)] for claim in claims]
        if not priced:
            return Accepted((), 0)
        leasts = {id(one): one.least for one in known.values()}
        least = sum(leasts[id(one)] for one in priced)
        saves = total - launched - least
        why = self._too_little(saves, priced, going, len(came))
        if why is not None:
            return why
        as_many = len(priced) + len(came) >= len(going) and _all_spot(going)
        spare = saves - _least_saving(priced, going)
        listed: dict[int, Priced] = {}
        worsts: dict[int, int] = {}
        for one in known.values():
            most = leasts[id(one)] + spare * leasts[id(one)] // least
            types = _within(one, most, as_many=as_many)
            if isinstance(types, Fact):
                return types
            worsts[id(one)] = max(each.worst for each in types)
            listed[id(one)] = msgspec.structs.replace(one, types=types)
        found = [listed[id(one)] for one in priced]
        return Accepted(found, sum(worsts[id(one)] for one in priced))

    def _priced(self, claim: Replacement, going: Sequence[Candidate]) -> Priced | Fact:
        """With the capacity type that is cheapest at worst."""
        bound_to_spot = claim.may_be_spot and _all_spot(going)
        allowed = [
            one
            for one in claim.by_capacity_type
            if not (bound_to_spot and one.capacity_type == CAPACITY_ON_DEMAND)
        ]
        found = [left for one in allowed if (left := _below(one, going)).types]
        if not found:
            return _none_cheaper(allowed, going)
        if _all_spot(going) and not self.spot_to_spot:
            found = [one for one in found if one.capacity_type != CAPACITY_SPOT]
            if not found:
                return SpotToSpotDisabled()
        if len(found) == 1:
            return found[0]
        return min(found, key=lambda each: (each.least, each.capacity_type))

    def _too_little(
        self, saves: int, priced: Sequence[Priced], going: Sequence[Candidate], came: int
    ) -> Fact | None:
        total, wanted = price_of(going), _least_saving(priced, going)
        if saves <= 0:
            names = tuple(min(one.types, key=lambda each: each.worst).name for one in priced)
            return NoCheaperReplacement(total, total - saves, names)
        if saves < wanted:
            return SavesTooLittle(saves, total, _part(priced, going))
        more = len(priced) + came - len(going)
        fees = more * fee_of(going, self.fee_cpus)
        if more > 0 and saves <= fees:
            return MoreNodesSaveTooLittle(more, saves, fees, self.fee_cpus)
        return None


def price_of(going: Sequence[Candidate]) -> int:
    return sum(one.price for one in going)


def fee_of(going: Sequence[Candidate], fee_cpus: int) -> int:
    """What a node counts beyond its price: some cpus, at what the candidates pay for one."""
    cpus = sum(one.capacity.get("cpu", 0) for one in going)
    return fee_cpus * price_of(going) * UNIT // cpus if cpus > 0 else 0


def _all_spot(going: Sequence[Candidate]) -> bool:
    return all(one.capacity_type == CAPACITY_SPOT for one in going)


def _part(priced: Sequence[Priced], going: Sequence[Candidate]) -> int:
    """One in how many of the price must be saved."""
    if any(one.capacity_type == CAPACITY_SPOT for one in going):
        return OF_SPOT_PART
    to_spot = any(one.capacity_type == CAPACITY_SPOT for one in priced)
    return TO_SPOT_PART if to_spot else LIST_PART


def _least_saving(priced: Sequence[Priced], going: Sequence[Candidate]) -> int:
    return max(1, price_of(going) // _part(priced, going))


def _below(one: Priced, going: Sequence[Candidate]) -> Priced:
    """With the types that cost less than the candidates, whichever is launched."""
    below = _bound(one, going)
    types = [each for each in one.types if each.worst < below]
    return msgspec.structs.replace(one, types=types)


def _bound(one: Priced, going: Sequence[Candidate]) -> int:
    """What each type must cost less than."""
    below = price_of(going)
    if len(going) > 1:
        removed = {each.instance_type for each in going}
        names = {each.name for each in one.types if each.name in removed and each.worst < below}
        below = min([below, *(each.price for each in going if each.instance_type in names)])
    return below


def _none_cheaper(allowed: Sequence[Priced], going: Sequence[Candidate]) -> NoCheaperReplacement:
    """With what the cheapest costs at the most."""
    if not allowed:
        return NoCheaperReplacement(price_of(going))
    cheapest = min(allowed, key=lambda one: one.types[0])
    first = cheapest.types[0]
    return NoCheaperReplacement(_bound(cheapest, going), first.worst, (first.name,))


def _within(one: Priced, most: int, *, as_many: bool) -> Sequence[Listed] | Fact:
    """What the claim may list at this price at the most; or why that is too little.

    ``as_many``: spot nodes are replaced, and do not become fewer.
    """
    types = [each for each in one.types if each.worst <= most]
    short = one.falls_short
    if as_many and one.capacity_type == CAPACITY_SPOT:
        if len(types) < SPOT_TYPES:
            return TooFewSpotTypes(len(types), SPOT_TYPES)
        count = SPOT_TYPES  # The cheapest, and more where ``minValues`` ask for it.
        while short is not None and count < len(types) and short(types[:count]):
            count += 1
        types = types[:count]
    return MinValuesNotKept() if short is not None and short(types) else types
