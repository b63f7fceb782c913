"""Reserved capacity: used first, counted over claims in flight, and fallen back from."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.model.cloud.offering import InstanceType
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pool, a_requirement
from tests.packing.test_reserved import RESERVED, reserved

TYPE = "m7i.large"


def a_reserving_pool() -> dict[str, Any]:
    pool = a_pool()
    pool["spec"]["template"]["spec"]["requirements"] = [
        a_requirement(CAPACITY_TYPE, "on-demand", RESERVED),
        a_requirement(INSTANCE_TYPE, TYPE),
    ]
    return pool


def with_reserved(types: tuple[InstanceType, ...], instances: int) -> tuple[InstanceType, ...]:
    return tuple(
        reserved(kind, instances, "zone-a") if kind.name == TYPE else kind for kind in types
    )


def emptied(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    """Nothing is left of the reservation."""
    return tuple(
        msgspec.structs.replace(
            kind,
            offerings=tuple(
                msgspec.structs.replace(one, instances=0) if one.instances else one
                for one in kind.offerings
            ),
        )
        for kind in types
    )


def story(instances: int) -> Story:
    told = Story(a_node_class())
    told.cloud.sell(with_reserved(told.cloud.types, instances))
    told.apply(a_reserving_pool())
    told.run(1 * MINUTE)
    return told


def terms(told: Story) -> Counter[str]:
    """Of the claims that are launched."""
    labels = (claim["metadata"]["labels"] for claim in told.all(NODE_CLAIMS))
    return Counter(each.get(CAPACITY_TYPE, "") for each in labels)


def test_reserved_instances_are_used_first_and_no_more_often_than_there_are() -> None:
    with story(2) as told:
        told.apply(a_deployment("web", replicas=3, cpu="1500m"))
        told.run(5 * MINUTE)
        assert terms(told) == {RESERVED: 2, "on-demand": 1}
        assert all(pod["spec"].get("nodeName") for pod in told.all(PODS))
        assert told.controller.observations.current().dry_offerings == {}, "nothing was refused"


def test_claims_in_flight_count_before_the_cloud_has_answered() -> None:
    """The second batch comes while the first claim is on its way: it gets the one that is left."""
    with story(2) as told:
        told.apply(a_deployment("first", replicas=1, cpu="1500m"))
        told.run(3 * SECOND)
        told.apply(a_deployment("second", replicas=2, cpu="1500m"))
        told.run(5 * MINUTE)
        assert terms(told) == {RESERVED: 2, "on-demand": 1}
        assert told.controller.observations.current().dry_offerings == {}


def test_a_reservation_that_is_gone_at_the_launch_is_fallen_back_from() -> None:
    """Another cluster took it, and Tenure has not listed the offerings since."""
    with story(1) as told:
        told.cloud.sell(emptied(told.cloud.types))
        told.apply(a_deployment("web", replicas=1, cpu="1500m"))
        told.run(3 * MINUTE)
        assert terms(told) == {"on-demand": 1}
        assert told.the(PODS)["spec"]["nodeName"]


def test_a_reserved_instance_that_ends_is_free_for_the_next_claim() -> None:
    with story(1) as told:
        told.apply(a_deployment("first", replicas=1, cpu="1500m"))
        told.run(3 * MINUTE)
        assert terms(told) == {RESERVED: 1}
        told.delete_claim()
        told.run(10 * MINUTE)
        told.apply(a_deployment("second", replicas=1, cpu="1500m"))
        told.run(5 * MINUTE)
        assert terms(told)[RESERVED] == 1
        assert len(told.all(NODE_CLAIMS)) == 2
