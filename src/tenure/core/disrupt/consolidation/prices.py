"""The price rules over claims as they would be created, and over replacements that exist already.

They are those of the search (``packing/consolidate/rules``), asked again right before something is
written or terminates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tenure.core.facts import Fact
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.cloud.offering import InstanceType, Offering, OfferingKey
from tenure.model.matching.requirement import Requirement
from tenure.model.matching.requirements import Requirements
from tenure.packing.consolidate.question import Candidate
from tenure.packing.consolidate.rules import Listed, Priced, PriceRules, Replacement, short_of
from tenure.packing.result import PlannedClaim

#: By name.
Types = Mapping[str, InstanceType]


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What the pools sell, and the rules."""

    #: By pool.
    types: Mapping[str, Types]
    rules: PriceRules
    #: Offerings that were sold out lately.
    dry: frozenset[OfferingKey] = frozenset()

    def sold(self, kind: InstanceType, wanted: Requirements) -> list[Offering]:
        """The offerings of a type that can be had now, in the zones and capacity types that are wanted."""
        zones, terms = wanted.allowed(ZONE), wanted.allowed(CAPACITY_TYPE)
        return [
            one
            for one in kind.offerings
            if one.available
            and one.instances != 0
            and zones.has(one.zone)
            and terms.has(one.capacity_type)
            and (kind.name, one.zone, one.capacity_type) not in self.dry
        ]


class Cheaper(msgspec.Struct, frozen=True):
    """Claims as they may be created."""

    claims: tuple[PlannedClaim, ...]
    #: What they cost at the most.
    worst: int


def cheaper(
    claims: Sequence[PlannedClaim],
    going: Sequence[Candidate],
    offered: Offered,
    *,
    came: Sequence[int] = (),
) -> Cheaper | Fact:
    """The claims with the types that may replace these nodes; or why they may not.

    ``came``: what replacements cost at the most that exist already.
    """
    asked = [_replacement(one, offered) for one in claims]
    found = offered.rules.accepted(asked, going, came=came)
    if isinstance(found, Fact):
        return found
    pairs = zip(claims, found.claims, strict=True)
    return Cheaper(tuple(_narrowed(*pair) for pair in pairs), found.worst)


def _replacement(claim: PlannedClaim, offered: Offered) -> Replacement:
    by_term = tuple(_priced(claim, offered))
    return Replacement(by_term, may_be_spot=claim.may_be_spot)


def _priced(claim: PlannedClaim, offered: Offered) -> Iterator[Priced]:
    """By each capacity type of which something can be had."""
    known = offered.types.get(claim.pool, {})
    types = {name: known[name] for name in claim.instance_types if name in known}
    sold = {name: offered.sold(kind, claim.requirements) for name, kind in types.items()}
    reserved = _reserved(claim, types)
    for term in sorted({one.capacity_type for found in sold.values() for one in found}):
        names = {reserved} if reserved and term == claim.capacity_type else types.keys()
        by_name = {name: [one for one in sold[name] if one.capacity_type == term] for name in names}
        found = [_listed(name, offerings) for name, offerings in by_name.items() if offerings]
        if found := [one for one in found if one.price > 0]:
            wanted = claim.requirements.add(Requirement(CAPACITY_TYPE, frozenset({term})))
            yield Priced(term, sorted(found), short_of(wanted, types))


def _listed(name: str, offerings: Sequence[Offering]) -> Listed:
    cheapest = min(offerings, key=lambda one: (one.price, one.zone))
    return Listed(cheapest.price, name, cheapest.zone, max(one.price for one in offerings))


def _reserved(claim: PlannedClaim, types: Types) -> str:
    """The type whose reservation the claim has; empty: it has none."""
    kind = types.get(claim.instance_type)
    place = claim.zone, claim.capacity_type
    counted = kind is not None and any(
        one.instances is not None and (one.zone, one.capacity_type) == place
        for one in kind.offerings
    )
    return claim.instance_type if counted else ""


def _narrowed(claim: PlannedClaim, accepted: Priced) -> PlannedClaim:
    names, cheapest = tuple(one.name for one in accepted.types), accepted.types[0]
    return msgspec.structs.replace(
        claim,
        requirements=claim.requirements.add(
            Requirement(INSTANCE_TYPE, frozenset(names)),
            Requirement(CAPACITY_TYPE, frozenset({accepted.capacity_type})),
        ),
        instance_types=names,
        price=cheapest.price,
        instance_type=cheapest.name,
        zone=cheapest.zone,
        capacity_type=accepted.capacity_type,
    )
