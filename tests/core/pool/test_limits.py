"""Whether a claim that is about to be created is still within its pool's limits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Create
from tenure.core.pool.limits import used_since
from tenure.core.provision.decider import ProvisionDecider
from tenure.model.api.names import INSTANCE_TYPE, NODEPOOL, REPLACES
from tenure.model.api.nodeclaim import NodeClaim, Requirement
from tenure.model.snapshot.observations import Observations
from tests.core.build import a_claim, a_class, a_node, a_pending_pod, a_pool, a_type, evaluated
from tests.snapshots import snapshot_with

SIZES = {"small": 2, "medium": 4, "large": 8}
TYPES = {
    "KWOKNodeClass/default": tuple(
        a_type(name, cpu=str(cpu), price=cpu * 50_000) for name, cpu in SIZES.items()
    )
}


def coming(name: str, *types: str, replaces: str = "", pool: str = "general") -> NodeClaim:
    """A claim that is not launched yet."""
    listed = Requirement(key=INSTANCE_TYPE, operator="In", values=types or ("medium",))
    marks = {REPLACES: replaces} if replaces else {}
    wanted = {"requirements": (listed,)}
    return a_claim(name, stage=0, spec=wanted, annotations=marks, labels={NODEPOOL: pool})


def exceeded(claim: NodeClaim, *objects: Any, creating: tuple[NodeClaim, ...] = ()) -> str:
    known = Observations(instance_types=TYPES)
    return used_since(claim, snapshot_with(*objects, observations=known), creating)


def limited(**limits: str) -> tuple[Any, ...]:
    """With a node of 4 CPU."""
    return a_pool(limits=limits), a_claim(), a_node()


def test_what_is_replaced_counts_as_gone() -> None:
    new = coming("new", replaces="uid-a")
    assert exceeded(new, *limited(cpu="4")) == ""
    assert exceeded(new, *limited(cpu="3")) == "cpu"
    assert exceeded(coming("new"), *limited(cpu="4")) == "cpu"
    assert exceeded(new, *limited(nodes="1")) == ""
    assert exceeded(coming("new"), *limited(nodes="1")) == "nodes"


def test_it_counts_as_the_largest_that_it_may_become() -> None:
    new = coming("new", "small", "large", replaces="uid-a")
    assert exceeded(new, *limited(cpu="8")) == ""
    assert exceeded(new, *limited(cpu="7")) == "cpu"


def test_what_was_created_since_counts_once_whether_it_can_be_seen_yet_or_not() -> None:
    new, other = coming("new", replaces="uid-a"), coming("other")
    for known, creating in [((other,), ()), ((), (other,)), ((other,), (other,))]:
        assert exceeded(new, *limited(cpu="7"), *known, creating=creating) == "cpu"
        assert exceeded(new, *limited(cpu="8"), *known, creating=creating) == ""


def test_another_pool_has_its_own_limits_and_a_pool_without_has_none() -> None:
    new, other = coming("new", replaces="uid-a"), coming("other", pool="other")
    assert exceeded(new, *limited(cpu="4"), other, a_pool("other")) == ""
    assert exceeded(other, *limited(cpu="4"), a_pool("other")) == ""
    assert exceeded(coming("new", pool="gone"), *limited(cpu="4")) == ""


@pytest.mark.parametrize("cpu", range(4, 33, 3))
def test_what_packing_plans_within_the_limits_is_within_them(cpu: int) -> None:
    pods = [
        a_pending_pod(f"web-{index}", requests={"cpu": size, "memory": "1Gi"})
        for index, size in enumerate(("500m", "1500m", "3", "7") * 3)
    ]
    objects = (a_class(), *limited(cpu=str(cpu), nodes="6"), *pods)
    found = [one.action for one in evaluated(ProvisionDecider(), *objects, instance_types=TYPES)]
    creates = [msgspec.convert(one.body, NodeClaim) for one in found if isinstance(one, Create)]
    assert creates or cpu == 4
    for index, claim in enumerate(creates):
        assert exceeded(claim, *objects, creating=tuple(creates[:index])) == ""
