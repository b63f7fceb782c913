"""A window opens over a thousand Nodes: at the default rate of requests all of them are covered soon."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tenure.kube.client.ratelimit import RateLimit
from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.model.api.meta import format_time
from tenure.model.settings import Settings
from tenure.runtime.controller import Controller
from tenure.sim.world import DEFAULT_EPOCH, World, WorldOptions
from tests.scenarios.test_beside_karpenter import MINUTE, freeze

NODES = 1000
#: Karpenter could disrupt every tenth next.
EVERY = 10
SETTINGS = Settings(beside_karpenter=True, karpenter_version="1.15")


class Paced(World):
    """With the rate limit that ``tenure run`` has."""

    def _new_controller(self) -> Controller:
        made = super()._new_controller()
        limit = RateLimit(SETTINGS.client_qps, SETTINGS.client_burst)
        return Controller(
            transport=self.transport,
            cloud=self.cloud_api,
            clock=self.host_clock,
            journal=self.history,
            settings=made.settings,
            random=self.environment.random_for("paced"),
            rate_limit=limit,
        )


def put_nodes(world: World, count: int = NODES) -> None:
    """With claims of a provider that is not served here."""
    for number in range(count):
        name, id_ = f"node-{number:04}", f"elsewhere://{number}"
        condition = {"type": "Drifted", "status": "True", "reason": "Drifted", "message": ""}
        drifted = [{**condition, "lastTransitionTime": format_time(DEFAULT_EPOCH)}]
        claim: dict[str, Any] = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": f"claim-{number:04}", "labels": {names.NODEPOOL: "general"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"},
                "requirements": [],
            },
        }
        status = {
            "providerID": id_,
            "nodeName": name,
            "conditions": drifted if number % EVERY == 0 else [],
        }
        world.apply(claim)
        world.store.patch(
            r.NODE_CLAIMS, "", f"claim-{number:04}", {"status": status}, subresource="status"
        )
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        world.apply({**node, "spec": {"providerID": id_}})


def test_a_thousand_nodes_are_covered_within_thirty_seconds_those_first_that_go_next() -> None:
    with Paced(WorldOptions(settings=SETTINGS)) as world:
        put_nodes(world)
        world.apply(freeze(2 * MINUTE, 60 * MINUTE))
        world.run_until(DEFAULT_EPOCH + 2 * MINUTE)
        done = world.run_while(
            lambda: len(covered(world)) < NODES,
            at_most=timedelta(seconds=30),
            step=timedelta(milliseconds=500),
        )
        assert done, f"{len(covered(world))} of {NODES} after {world.now - DEFAULT_EPOCH}"
        assert set(covered(world)[: NODES // EVERY]) == {
            f"node-{number:04}" for number in range(0, NODES, EVERY)
        }


def covered(world: World) -> list[str]:
    """In the order in which they were written."""
    nodes = sorted(
        world.store.list(r.NODES), key=lambda one: int(one["metadata"]["resourceVersion"])
    )
    return [
        node["metadata"]["name"]
        for node in nodes
        if names.DO_NOT_DISRUPT_BY in (node["metadata"].get("annotations") or {})
    ]
