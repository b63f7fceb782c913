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
    terms = {claim.capacity_type}
    if CAPACITY_RESERVED in terms:
        terms.add(CAPACITY_ON_DEMAND)
    for kind in types:
        if kind.name == claim.instance_type:
            found = any(
                (not claim.zone or one.zone == claim.zone)
                and (not claim.capacity_type or one.capacity_type in terms)
                for one in kind.offerings
            )
            return Offered.YES if found else Offered.OFFERING_GONE
    return Offered.TYPE_GONE
