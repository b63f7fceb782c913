"""How many reserved instances the claims that there are leave."""

from __future__ import annotations

from typing import Any

from tenure.core.provision.reserved import without_used
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.nodeclaim import NodeClaim, Requirement
from tests.core.build import INITIALIZED, LAUNCHED, a_claim, a_type, ago
from tests.packing.test_reserved import RESERVED, reserved
from tests.snapshots import snapshot_with

TYPES = (reserved(a_type("small"), 3, "zone-a"), a_type("other"))
HOME = {INSTANCE_TYPE: "small", ZONE: "zone-a", CAPACITY_TYPE: RESERVED}


def left(*claims: NodeClaim) -> int | None:
    types = without_used(TYPES, snapshot_with(*claims))
    (count,) = (one.instances for one in types[0].offerings if one.capacity_type == RESERVED)
    return count


def on_its_way(name: str, **values: tuple[str, ...]) -> NodeClaim:
    allowed = {
        INSTANCE_TYPE: values.get("types", ("small", "other")),
        CAPACITY_TYPE: values.get("terms", (RESERVED, "on-demand")),
    }
    listed = tuple(Requirement(key=k, operator="In", values=v) for k, v in allowed.items())
    return a_claim(name, stage=0, spec={"requirements": listed})


def test_a_launched_claim_counts_for_what_it_got() -> None:
    assert left(a_claim("a", stage=LAUNCHED, labels=HOME)) == 2
    assert left(a_claim("a", stage=INITIALIZED, labels=HOME)) == 2
    fell_back = {**HOME, CAPACITY_TYPE: "on-demand"}
    assert left(a_claim("a", stage=LAUNCHED, labels=fell_back)) == 3


def test_a_claim_on_its_way_counts_for_what_it_may_get() -> None:
    assert left(on_its_way("a"), on_its_way("b")) == 1
    assert left(on_its_way("a", types=("other",))) == 3
    assert left(on_its_way("a", terms=("on-demand",))) == 3


def test_a_claim_that_is_terminated_counts_until_it_is_gone() -> None:
    leaving: dict[str, Any] = {"deletion_timestamp": ago(10), "finalizers": ("x",)}
    assert left(a_claim("a", stage=LAUNCHED, labels=HOME, **leaving)) == 2


def test_there_are_never_fewer_than_none() -> None:
    assert left(*(a_claim(f"c{n}", stage=LAUNCHED, labels=HOME) for n in range(5))) == 0


def test_types_stay_the_same_object_for_as_long_as_nothing_is_used() -> None:
    """What packing found out about them is kept by identity."""
    plain = (a_type("other"),)
    assert without_used(plain, snapshot_with()) is plain
    first, again = (without_used(TYPES, snapshot_with(on_its_way("a"))) for _ in range(2))
    assert first is again
