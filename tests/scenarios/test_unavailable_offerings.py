"""One claim that cannot be launched keeps no other from getting its node."""

from __future__ import annotations

from typing import Any

from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_CLAIMS
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment
from tests.runtime.worlds import Tapped

TOO_LARGE: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {"name": "too-large"},
    "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [],
        "resources": {"requests": {"cpu": "1000"}},
    },
}


def test_a_claim_that_no_instance_type_can_hold_marks_nothing_as_sold_out() -> None:
    with Tapped(*a_cluster()) as story:
        story.run(5 * SECOND)
        story.apply(TOO_LARGE)
        story.run(5 * SECOND)
        assert Reason.INSUFFICIENT_CAPACITY in story.reasons("NodeClaim/too-large")
        (said,) = {
            entry.message
            for entry in story.history.entries
            if entry.reason == Reason.INSUFFICIENT_CAPACITY and entry.ended is None
        }
        assert "it requests 1k cpu, the largest instance type of KWOKNodeClass/default has" in said
        assert not story.controller.observations.node_classes.dry_offerings
        story.apply(a_deployment(replicas=3))
        story.run(90 * SECOND)
        assert story.running("web") == 3, "within the three minutes for which offerings are dry"


def test_a_claim_for_one_zone_marks_nothing_of_the_others_as_sold_out() -> None:
    one_zone = {
        "key": "topology.kubernetes.io/zone",
        "operator": "In",
        "values": ["zone-a"],
    }
    claim = {
        **TOO_LARGE,
        "metadata": {"name": "zone-a"},
        "spec": {
            **TOO_LARGE["spec"],
            "requirements": [one_zone],
            "resources": {"requests": {"cpu": "1"}},
        },
    }
    with Tapped(*a_cluster()) as story:
        story.run(5 * SECOND)
        story.infrastructure.faults.set(cloud_dry=(("*", "zone-a", "*"),))
        story.apply(claim)
        story.run(5 * SECOND)
        assert {
            zone for _, zone, _ in story.controller.observations.node_classes.dry_offerings
        } == {"zone-a"}
        story.apply(a_deployment(replicas=1))
        story.run(MINUTE)
        assert story.running("web") == 1
        assert not [c for c in story.all(NODE_CLAIMS) if c["metadata"]["name"] == "zone-a"]
