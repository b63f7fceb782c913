"""Pod-level resources, limits and priority, from the pods to the claims that are created for them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tenure.core.decision import Create, Verdict
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.reasons import Reason
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.nodeclaim import Requirement
from tenure.model.api.pod import Pod, ResourceRequirements
from tenure.model.values.quantity import UNIT, parse_quantity
from tenure.packing.facts import LimitReached, Refusal, TooLarge
from tests.core.build import (
    a_claim,
    a_class,
    a_pending_pod,
    a_pool,
    a_type,
    about,
    evaluated,
)

DECIDER = ProvisionDecider()
SIZES = {"small": 2, "medium": 4, "large": 8}
TYPES = {
    "KWOKNodeClass/default": tuple(
        a_type(name, cpu=str(cpu), price=cpu * 50_000) for name, cpu in SIZES.items()
    )
}


def verdicts(*objects: Any) -> list[Verdict]:
    return evaluated(DECIDER, a_class(), *objects, instance_types=TYPES)


def created(found: list[Verdict]) -> list[Create]:
    return [verdict.action for verdict in found if isinstance(verdict.action, Create)]


def most_cpus(create: Create) -> int:
    """Of the largest instance that the claim may become."""
    wanted = create.body["spec"]["requirements"]
    (listed,) = (one["values"] for one in wanted if one["key"] == INSTANCE_TYPE)
    return max(SIZES[name] for name in listed)


# -- pod-level resources ---------------------------------------------------------------------


def at_pod_level(name: str, cpu: str, *, containers: str = "500m") -> Pod:
    whole = ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"})
    return a_pending_pod(name, requests={"cpu": containers}, spec={"resources": whole})


def test_pod_level_requests_count_instead_of_those_of_the_containers() -> None:
    (create,) = created(verdicts(a_pool(), at_pod_level("web", "3")))
    requests = create.body["spec"]["resources"]["requests"]
    assert parse_quantity(requests["cpu"]) == 3 * UNIT
    assert "small" not in str(create.body["spec"]["requirements"])


def test_pod_level_requests_may_be_less_than_the_containers_ask_for_together() -> None:
    found = verdicts(a_pool(), at_pod_level("web", "2", containers="9"))
    assert len(created(found)) == 1


def test_pod_level_requests_that_no_type_holds_are_named() -> None:
    (refusal,) = about(verdicts(a_pool(), at_pod_level("web", "9")), "Pod/default/web").facts
    assert isinstance(refusal, Refusal)
    assert refusal.cause == TooLarge("cpu", "9", "8")


# -- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7, 8, 9, 15, 16])
@pytest.mark.parametrize("cpu", ["500m", "1", "1500m", "3"])
def test_a_batch_stays_within_the_limit_whatever_the_cloud_picks(limit: int, cpu: str) -> None:
    pods = [a_pending_pod(f"p{n}", requests={"cpu": cpu}) for n in range(12)]
    found = verdicts(a_pool(limits={"cpu": str(limit)}), *pods)
    assert sum(map(most_cpus, created(found))) <= limit
    nominated = [v for v in found if v.reason is Reason.NOMINATED]
    refused = [v for v in found if v.reason is Reason.FAILED_SCHEDULING]
    assert len(nominated) + len(refused) == len(pods), "every pod has a verdict"
    if sum(map(most_cpus, created(found))) + SIZES["small"] <= limit and cpu != "3":
        assert not refused, "no room is left that would do"


def test_what_is_in_flight_counts_against_the_limit_as_its_largest_instance() -> None:
    """An unanswered launch may become the largest type that its claim lists."""
    listed = Requirement(key=INSTANCE_TYPE, operator="In", values=("small", "medium"))
    claim = a_claim(stage=0, spec={"requirements": (listed,)})
    pods = [a_pending_pod(f"p{n}", requests={"cpu": "2"}) for n in range(6)]
    found = verdicts(a_pool(limits={"cpu": "10"}), claim, *pods)
    assert sum(map(most_cpus, created(found))) <= 6


def test_two_pools_that_share_nothing_have_limits_of_their_own() -> None:
    pods = [a_pending_pod(f"p{n}", requests={"cpu": "2"}) for n in range(8)]
    first, second = a_pool("first", limits={"cpu": "8"}), a_pool("second", limits={"cpu": "4"})
    found = verdicts(first, second, *pods)
    used: dict[str, int] = {}
    for create in created(found):
        pool = create.body["metadata"]["labels"]["karpenter.sh/nodepool"]
        used[pool] = used.get(pool, 0) + most_cpus(create)
    assert used == {"first": 8, "second": 4}


# -- priority --------------------------------------------------------------------------------


def of_priority(name: str, priority: int, cpu: str = "2", **fields: Any) -> Pod:
    return a_pending_pod(name, requests={"cpu": cpu}, spec={"priority": priority}, **fields)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_highest_priority_gets_what_a_limit_leaves(order: tuple[int, ...]) -> None:
    """However large, old or named they are."""
    waiting = [
        of_priority("low", -5, "6"),
        of_priority("middle", 0, "4"),
        of_priority("top", 9, "1"),
    ]
    found = verdicts(a_pool(limits={"cpu": "2"}), *(waiting[n] for n in order))
    assert about(found, "Pod/default/top").reason is Reason.NOMINATED
    for name in ("low", "middle"):
        verdict = about(found, f"Pod/default/{name}")
        assert verdict.reason is Reason.FAILED_SCHEDULING
        (refusal,) = (fact for fact in verdict.facts if isinstance(fact, Refusal))
        assert isinstance(refusal.cause, LimitReached)


def test_lower_priorities_get_what_the_others_leave() -> None:
    waiting = [of_priority(f"top-{n}", 9, "2") for n in range(2)]
    waiting += [of_priority(f"low-{n}", 0, "2") for n in range(4)]
    found = verdicts(a_pool(limits={"cpu": "8"}), *waiting)
    reasons = {v.subject.name: v.reason for v in found if v.subject.kind == "Pod"}
    assert all(reasons[f"top-{n}"] is Reason.NOMINATED for n in range(2))
    assert sum(reasons[f"low-{n}"] is Reason.NOMINATED for n in range(4)) == 2
