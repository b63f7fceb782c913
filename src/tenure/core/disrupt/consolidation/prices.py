"""The price rules, asked again right before something is written or terminates.

The same rules as those of the search (``packing/consolidate/rules``), over claims as they would be
created, and over claims that are launched already:

1. what is launched costs less than the nodes that go, whichever of the listed types it becomes; types
   that would break that are not listed;
2. one capacity type for each claim. Where all nodes that go are spot nodes and spot is cheaper, it is
   spot, and only with the feature gate; one for one only with 15 cheaper types, and those are listed;
3. of several nodes: a type that is being removed is listed only below the cheapest node of that type;
4. enough is saved: prices that go up and down move nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tenure.core.facts import Fact
from tenure.model.api.names import CAPACITY_SPOT, CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.cloud.offering import InstanceType, Offering, OfferingKey
from tenure.model.matching.requirement import Requirement
from tenure.packing.consolidate.facts import (
    MinValuesNotKept,
    NoCheaperReplacement,
    SavesTooLittle,
    SpotToSpotDisabled,
    TooFewSpotTypes,
)
from tenure.packing.consolidate.rules import LEAST_PART, SPOT_TYPES
from tenure.packing.result import PlannedClaim

#: By name.
Types = Mapping[str, InstanceType]


class Going(msgspec.Struct, frozen=True):
    """A node that goes."""

    price: int
    instance_type: str
    capacity_type: str


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    #: By pool.
    types: Mapping[str, Types]
    #: Offerings that were sold out lately.
    dry: frozenset[OfferingKey] = frozenset()
    spot_to_spot: bool = False
    #: What a node costs beyond its price.
    fee: float = 0.0


class Cheaper(msgspec.Struct, frozen=True):
    """Claims as they may be created."""

    claims: tuple[PlannedClaim, ...]
    #: What they cost at the most.
    worst: int


class _Listed(msgspec.Struct, frozen=True):
    """A type that a claim may list: what it costs at the most, and its cheapest offering."""

    worst: int
    kind: InstanceType
    cheapest: Offering


class _Priced(msgspec.Struct, frozen=True):
    claim: PlannedClaim
    capacity_type: str
    #: The cheapest first.
    types: tuple[_Listed, ...]

    @property
    def least(self) -> int:
        return min(one.worst for one in self.types)


def cheaper(
    claims: Sequence[PlannedClaim], going: Sequence[Going], rules: Rules, *, launched: int = 0
) -> Cheaper | Fact:
    """The claims with the types that may replace these nodes; or why they may not.

    ``launched``: what replacements cost that exist already.
    """
    total = sum(one.price for one in going) - launched
    if total <= 0:
        return NoCheaperReplacement(total + launched)
    if not claims:
        return Cheaper((), 0)
    priced = []
    for claim in claims:
        one = _priced(claim, going, rules)
        if isinstance(one, Fact):
            return one
        priced.append(one)
    least = sum(one.least for one in priced)
    if least >= total:
        return NoCheaperReplacement(total + launched)
    wanted = _least_saving(priced, going, total, rules.fee)
    spare = total - least - wanted
    if spare < 0:
        return SavesTooLittle(total - least, wanted)
    single = len(going) == len(priced) == 1 and _all_spot(going)
    found, worst = [], 0
    for one in priced:
        types = _within(one, one.least + spare * one.least // least, single=single)
        if isinstance(types, Fact):
            return types
        worst += max(each.worst for each in types)
        found.append(_narrowed(one, types))
    return Cheaper(tuple(found), worst)


def _all_spot(going: Iterable[Going]) -> bool:
    return all(one.capacity_type == CAPACITY_SPOT for one in going)


def _least_saving(priced: Sequence[_Priced], going: Sequence[Going], total: int, fee: float) -> int:
    terms = {one.capacity_type for one in priced} | {one.capacity_type for one in going}
    if CAPACITY_SPOT in terms:
        return max(1, round(fee * len(priced)))
    return max(1, total // LEAST_PART)


def _priced(claim: PlannedClaim, going: Sequence[Going], rules: Rules) -> _Priced | Fact:
    allowed = claim.requirements.allowed(CAPACITY_TYPE)
    types = [
        kind
        for name in claim.instance_types
        if (kind := rules.types.get(claim.pool, {}).get(name)) is not None
    ]
    terms = sorted({one.capacity_type for kind in types for one in kind.offerings})
    found = []
    for term in filter(allowed.has, terms):
        listed = _of_term(claim, term, types, going, rules.dry)
        if listed:
            one = _Priced(claim, term, listed)
            if term == CAPACITY_SPOT and _all_spot(going):
                return one if rules.spot_to_spot else SpotToSpotDisabled()
            found.append(one)
    if not found:
        return NoCheaperReplacement(sum(one.price for one in going))
    return min(found, key=lambda each: (each.least, each.capacity_type))


def _of_term(
    claim: PlannedClaim,
    term: str,
    types: Sequence[InstanceType],
    going: Sequence[Going],
    dry: frozenset[OfferingKey],
) -> tuple[_Listed, ...]:
    zones = claim.requirements.allowed(ZONE)
    sold = {
        kind.name: [
            one
            for one in kind.offerings
            if one.available
            and one.capacity_type == term
            and zones.has(one.zone)
            and (kind.name, one.zone, term) not in dry
        ]
        for kind in types
    }
    below = _below(going, {name for name, offerings in sold.items() if offerings})
    found = []
    for kind in types:
        if offerings := sold[kind.name]:
            cheapest = min(offerings, key=lambda one: (one.price, one.zone))
            worst = max(one.price for one in offerings)
            if cheapest.price > 0 and worst < below:  # A price of nothing is not known.
                found.append(_Listed(worst, kind, cheapest))
    return tuple(sorted(found, key=lambda one: (one.cheapest.price, one.kind.name)))


def _below(going: Sequence[Going], types: set[str]) -> int:
    below = sum(one.price for one in going)
    if len(going) > 1:
        below = min([below, *(one.price for one in going if one.instance_type in types)])
    return below


def _within(one: _Priced, most: int, *, single: bool) -> tuple[_Listed, ...] | Fact:
    types = tuple(each for each in one.types if each.worst <= most)
    if single and one.capacity_type == CAPACITY_SPOT:
        if len(types) < SPOT_TYPES:
            return TooFewSpotTypes(len(types), SPOT_TYPES)
        count = SPOT_TYPES
        while count < len(types) and _falls_short(one.claim, types[:count]):
            count += 1
        types = types[:count]
    return MinValuesNotKept() if _falls_short(one.claim, types) else types


def _falls_short(claim: PlannedClaim, types: Iterable[_Listed]) -> bool:
    """Of ``minValues``."""
    requirements = [one.kind.requirements for one in types]
    for key, wanted in claim.requirements.items():
        if wanted.min_values is not None:
            values = {
                value
                for theirs in requirements
                for value in theirs.allowed(key).listed
                if wanted.has(value)
            }
            if len(values) < wanted.min_values:
                return True
    return False


def _narrowed(one: _Priced, types: Sequence[_Listed]) -> PlannedClaim:
    names, cheapest = tuple(each.kind.name for each in types), types[0]
    return msgspec.structs.replace(
        one.claim,
        requirements=one.claim.requirements.add(
            Requirement(INSTANCE_TYPE, frozenset(names)),
            Requirement(CAPACITY_TYPE, frozenset({one.capacity_type})),
        ),
        instance_types=names,
        price=cheapest.cheapest.price,
        instance_type=cheapest.kind.name,
        zone=cheapest.cheapest.zone,
        capacity_type=one.capacity_type,
    )
