"""Whether the provider still offers what a claim was launched as."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from tenure.model.api.names import CAPACITY_ON_DEMAND, CAPACITY_RESERVED
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.offering import InstanceType


class Offered(StrEnum):
    YES = "yes"
    TYPE_GONE = "type gone"
    #: The type is there, and not in the claim's zone or not as its capacity type.
    OFFERING_GONE = "offering gone"
    #: The provider has not answered, or lists nothing at all.
    UNKNOWN = "unknown"


def offered(claim: NodeClaim, types: Sequence[InstanceType]) -> Offered:
    """What is sold out is offered all the same.

    A reserved instance may become an on-demand one without a new claim, so either offering will do.
    """
    if not types:
        return Offered.UNKNOWN
    name, zone, terms = claim.instance_type, claim.zone, {claim.capacity_type}
    kind = next((kind for kind in types if kind.name == name), None)
    if kind is None:
        return Offered.TYPE_GONE
    if CAPACITY_RESERVED in terms:
        terms.add(CAPACITY_ON_DEMAND)
    found = any(
        (not zone or one.zone == zone) and ("" in terms or one.capacity_type in terms)
        for one in kind.offerings
    )
    return Offered.YES if found else Offered.OFFERING_GONE
