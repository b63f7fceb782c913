"""Pods that arrive one after the other get about the nodes that they would get together.

Four Deployments, spread over four zones, on the instance types of Karpenter's KWOK provider below
33 cpus. kube-controller-manager creates some 20 pods per second; instances take 20 to 40 seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.model.api.names import NOMINATED_PODS, OS, ZONE
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.cloud.instance import Instance
from tenure.model.settings import Settings
from tenure.providers.kwok.catalogue import built_in_types
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pool, a_requirement

TYPES = built_in_types()
#: Of one plan for all 2,000 pods, as Karpenter's.
NODES_TOGETHER, DOLLARS_TOGETHER = 48, 34.31


def a_spread_deployment(number: int, replicas: int) -> dict[str, Any]:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": f"d{number}"}},
    }
    return a_deployment(
        f"d{number}",
        replicas=replicas,
        cpu=f"{250 * number}m",
        memory=f"{400 * number}Mi",
        topologySpreadConstraints=[spread],
    )


class Arrival(Story):
    """Pods arriving; notes pods that got a claim although their node was on its way."""

    def __init__(self, pods: int, per_second: float | None, **settings: Any) -> None:
        boots = CloudTimings(boot_for=20 * SECOND, boot_spread=20 * SECOND)
        small = a_requirement("karpenter.kwok.sh/instance-cpu", "33", operator="Lt")
        # Without consolidation, which would mend what provisioning has planned badly.
        pool = a_pool(
            requirements=[small, a_requirement(OS, "linux")],
            disruption={"consolidationPolicy": "WhenEmpty"},
        )
        super().__init__(
            a_node_class(),
            pool,
            *(a_spread_deployment(number, pods // 4) for number in (1, 2, 3, 4)),
            options=WorldOptions(
                seed=1,
                settings=Settings(**settings),
                pods_per_second=per_second,
                infrastructure=InfrastructureOptions(types=TYPES, cloud=boots),
            ),
        )
        self.pods = pods
        self.decisions: set[datetime] = set()
        self.claimed_twice: list[str] = []
        self._claim_of: dict[str, str] = {}
        self.store.subscribe(NODE_CLAIMS, self._on_claim)

    def _on_claim(self, _type: str, new: Obj, old: Obj | None) -> None:
        if old is not None:
            return
        name: str = new["metadata"]["name"]
        for uid in new["metadata"]["annotations"][NOMINATED_PODS].split(","):
            earlier = self._claim_of.get(uid)
            if earlier is not None and self._is_coming(earlier):
                self.claimed_twice.append(f"{uid}: {earlier}, {name}")
            self._claim_of[uid] = name

    def _is_coming(self, name: str) -> bool:
        """As long as the scheduler has bound no pod to its node, and it is not initialized."""
        claim = self.store.find(NODE_CLAIMS, "", name)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return False
        status = claim.get("status", {})
        node = status.get("nodeName")
        if node and any(pod["spec"].get("nodeName") == node for pod in self.all(PODS)):
            return False
        conditions = status.get("conditions", ())
        return not any(c["type"] == "Initialized" and c["status"] == "True" for c in conditions)

    def until_all_run(self) -> None:
        self.run_while(lambda: self.running() < self.pods, at_most=10 * MINUTE, step=10 * SECOND)
        self.run(MINUTE)

    @property
    def creating_turns(self) -> int:
        return len(set(self.when("NeededForPods")))

    @property
    def dollars(self) -> float:
        return price_of(self.cloud.instances())


def price_of(instances: Iterable[Instance]) -> float:
    """Of all of them together, in dollars per hour."""
    prices = {
        (kind.name, o.zone, o.capacity_type): o.price for kind in TYPES for o in kind.offerings
    }
    return sum(prices[i.instance_type, i.zone, i.capacity_type] for i in instances) / 1e6


@pytest.mark.parametrize(
    ("per_second", "share"),
    [(13, 1.1), (20, 1.05), (21, 1.1), (200, 1.0), (None, 1.25)],
    ids=[
        "13, from an API server that is slow",
        "20 a second",
        "21, a little more than four nodes each ten seconds",
        "200",
        "at once",
    ],
)
def test_two_thousand_pods_get_about_the_nodes_of_one_plan(
    per_second: float | None, share: float
) -> None:
    """Fewer while they still arrive: the next ones use what larger nodes have left."""
    with Arrival(2000, per_second) as story:
        story.until_all_run()
        assert story.running() == 2000
        assert not story.claimed_twice
        assert story.count("nodes") <= share * NODES_TOGETHER
        assert story.dollars <= 1.04 * DOLLARS_TOGETHER
        arrival = 2000 / per_second if per_second else 0
        assert story.creating_turns <= arrival / 10 + 2 + LEFT_OVER


@pytest.mark.parametrize("per_second", [7, 9])
def test_pods_that_arrive_slowly_share_nodes_with_those_of_the_next_batch(per_second: int) -> None:
    """Else each batch buys its own node of 16 cpus in each zone: 19 and 17 nodes where 8 do."""
    with Arrival(400, per_second) as story:
        story.until_all_run()
        assert not story.claimed_twice
        assert story.count("nodes") <= 10
        assert story.dollars <= 1.03 * 6.95


#: Rounds for pods whose room the scheduler gave to others when their node came.
LEFT_OVER = 3


def test_a_restart_in_the_middle_claims_for_no_pod_twice() -> None:
    with Arrival(400, 20) as story:
        for _ in range(5):
            story.run(7 * SECOND)
            story.crash()
        story.until_all_run()
        assert story.running() == 400
        assert not story.claimed_twice


def test_creations_that_wait_for_others_belong_to_the_same_decision() -> None:
    with Arrival(400, None, actions_max=2) as story:
        story.run(15 * SECOND)
        assert story.creating_turns == 1
        assert story.count("claims") > 4


def test_a_single_pod_does_not_wait_for_the_longest_batch() -> None:
    with Arrival(0, None) as story:
        story.run(MINUTE)
        story.apply(a_deployment("one", replicas=1))
        story.run(timedelta(seconds=3))
        assert story.count("claims") == 1
        assert story.all(NODES) == []
