"""Reserved capacity is used first, and never by more claims than it has instances."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.names import CAPACITY_TYPE
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import NoOffering, Why
from tenure.packing.pack import pack
from tenure.packing.refusals.facts import TypesNotOffered
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_pod, a_pool, a_type, pods

RESERVED = "reserved"


def reserved(kind: InstanceType, instances: int, zone: str = "a", price: int = 0) -> InstanceType:
    """The type with so many reserved instances in one zone, which cost nothing more."""
    more = Offering(zone=zone, capacity_type=RESERVED, price=price, instances=instances)
    terms = kind.requirements[CAPACITY_TYPE]
    wider = {**dict(kind.requirements.items())}
    wider[CAPACITY_TYPE] = Requirement.of(CAPACITY_TYPE, "In", [*terms.listed, RESERVED])
    return msgspec.structs.replace(
        kind,
        requirements=type(kind.requirements)(wider),
        offerings=(*kind.offerings, more),
    )


ONLY_RESERVED = [Requirement.of(CAPACITY_TYPE, "In", [RESERVED])]


def planned(packing: Packing) -> Counter[tuple[str, str]]:
    return Counter((claim.instance_type, claim.capacity_type) for claim in packing.claims)


def packed(*waiting: Any, pools: Any = (), **more: Any) -> Packing:
    return pack(Problem(pods=waiting, templates=tuple(pools), **more))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_so_many_claims_are_planned_for_a_reservation_and_the_others_fall_back(count: int) -> None:
    pool = a_pool(types=(reserved(a_type("m-04", 4), count),))
    packing = packed(*pods(3, cpu="4"), pools=[pool])
    found = planned(packing)
    assert found[("m-04", RESERVED)] == min(count, 3)
    assert found[("m-04", "on-demand")] == 3 - min(count, 3)
    assert not packing.unplaced


def test_only_claims_that_hold_a_reservation_may_become_reserved() -> None:
    """They may fall back: the cloud takes the next cheapest if the reservation is gone."""
    pool = a_pool(types=(reserved(a_type("m-04", 4), 1),))
    for claim in packed(*pods(3, cpu="4"), pools=[pool]).claims:
        terms = claim.requirements[CAPACITY_TYPE].listed
        assert "on-demand" in terms
        assert (RESERVED in terms) == (claim.capacity_type == RESERVED)


def test_reserved_capacity_is_preferred_where_it_is_dearer_to_waste() -> None:
    """The large reserved node takes all pods, although a small one would hold them for little."""
    pool = a_pool(types=(*FAMILY[:-1], reserved(FAMILY[-1], 1)))
    (claim,) = packed(*pods(3, cpu="1"), pools=[pool]).claims
    assert (claim.instance_type, claim.capacity_type, claim.price) == ("m-32", RESERVED, 0)


def test_pools_share_the_reservations_of_their_cloud() -> None:
    types = (reserved(a_type("m-04", 4), 2),)
    red = a_pool("red", types, labels={"team": "red"})
    blue = a_pool("blue", types, labels={"team": "blue"})
    waiting = (
        *pods(2, "r", cpu="4", nodeSelector={"team": "red"}),
        *pods(2, "b", cpu="4", nodeSelector={"team": "blue"}),
    )
    packing = packed(*waiting, pools=[red, blue])
    assert planned(packing) == {("m-04", RESERVED): 2, ("m-04", "on-demand"): 2}


def test_a_pool_with_reserved_capacity_alone_says_when_it_is_used_up() -> None:
    types = (reserved(a_type("m-04", 4), 2),)
    packing = packed(*pods(3, cpu="4"), pools=[a_pool(types=types, requirements=ONLY_RESERVED)])
    assert planned(packing) == {("m-04", RESERVED): 2}
    (unplaced,) = packing.unplaced.values()
    assert unplaced.why is Why.NO_OFFERING
    (refusal,) = unplaced.refusals
    assert isinstance(refusal.cause, NoOffering)
    assert refusal.counts == (TypesNotOffered(1),)


def test_the_price_of_other_nodes_does_not_follow_that_of_a_reservation() -> None:
    """A few free instances do not make cpus free: the rest of the plan is as good as without."""
    waiting = pods(200, cpu="1", memory="2Gi")
    plain = packed(*waiting, pools=[a_pool()])
    some = packed(
        *waiting, pools=[a_pool(types=(*FAMILY[:2], reserved(FAMILY[2], 1), *FAMILY[3:]))]
    )
    assert planned(some)[("m-08", RESERVED)] == 1
    assert some.price <= plain.price
    assert len(some.claims) <= len(plain.claims) + 1


def test_a_limit_counts_reserved_nodes_too() -> None:
    pool = a_pool(types=(reserved(a_type("m-04", 4), 3),), limits={"cpu": "8"})
    packing = packed(*pods(3, cpu="4"), pools=[pool])
    assert planned(packing) == {("m-04", RESERVED): 2}
    assert len(packing.unplaced) == 1


@given(
    counts=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    sizes=st.lists(st.sampled_from(["500m", "1", "3", "6"]), min_size=1, max_size=25),
    limit=st.none() | st.integers(0, 60),
)
def test_no_reservation_is_overdrawn(
    counts: list[int], sizes: list[str], limit: int | None
) -> None:
    """Whatever is merged, grown and filled up."""
    types = tuple(
        reserved(kind, count, zone)
        for kind, count, zone in zip(FAMILY[1:4], counts, "abc", strict=True)
    )
    limits = None if limit is None else {"cpu": str(limit)}
    waiting = [a_pod(f"p-{n}", cpu=size) for n, size in enumerate(sizes)]
    pools = [a_pool("one", types, limits=limits), a_pool("two", types, weight=1, limits=limits)]
    packing = packed(*waiting, pools=pools)
    found = planned(packing)
    for kind, count in zip(types, counts, strict=True):
        assert found[(kind.name, RESERVED)] <= count
    holders = [c for c in packing.claims if RESERVED in c.requirements[CAPACITY_TYPE].listed]
    assert all(claim.capacity_type == RESERVED for claim in holders)
