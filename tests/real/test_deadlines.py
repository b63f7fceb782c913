"""What holds a drain, a budget or a protection, holds it until the deadline is near, and no longer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.resource import NODES, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb
from tests.real.audit import Order
from tests.real.deadlines import Leaving, a_marked_pod, a_place, tell
from tests.real.users import names

SECOND: Final = timedelta(seconds=1)
#: Values that mean nothing, each with the name of its pod.
WRONG: Final = {
    "spaced": "4 hours",
    "zero": "0",
    "negative": "-1h",
    "empty": "",
    "shouted": "TRUE",
    "never": "Never",
}


def test_a_budget_holds_its_pods_until_the_deadline_is_as_near_as_their_grace(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        web = a_deployment(replicas=2, terminationGracePeriodSeconds=20)
        twice = a_deployment("twice", terminationGracePeriodSeconds=20)
        second = a_pdb("twice", maxUnavailable=1)
        second["metadata"]["name"] = "again"
        budgets = (a_pdb(minAvailable=2), a_pdb("twice", maxUnavailable=1), second)
        await leaving.settle(a_place("bounded", "60s"), web, twice, *budgets, pods=3)
        pods = await leaving.users.all(PODS)
        claim, deadline = await leaving.leave("bounded")
        node = claim["status"]["nodeName"]
        holders = ["PDB held/web can never allow", "2 PDBs cover the pod (held/again, held/twice)"]
        named = [f"held/{name}" for name in names(pods)]
        await leaving.event("FailedDraining", node, *named, *holders)
        await leaving.event("TerminationGracePeriodExpiring", node, f"{deadline:%H:%M:%S}")

        for life in [await leaving.seen.gone(pod) for pod in pods]:
            assert life.told >= deadline - 20 * SECOND, "the budget held it until then"
            assert life.stops_by[-1] <= deadline
            assert {order.seconds for order in forced(leaving, life.name)} <= set(range(1, 21))
            await leaving.event("Disrupted", life.name, node, "the pod's grace period is 20s")
        assert refused(leaving, "web-") == {429}
        assert refused(leaving, "twice-") == {500}, "two budgets: the API never evicts such a pod"
        await leaving.scene.until_gone(claim)
        assert node not in names(await leaving.users.all(NODES))
        await leaving.scene.all_run(3)

    tell(cluster, tmp_path, "held", story)


def refused(leaving: Leaving, prefix: str) -> set[int]:
    """What the API server said to the evictions of these pods."""
    return {
        order.code
        for order in leaving.audit.orders()
        if order.verb == "evict" and order.name.startswith(prefix)
    }


def forced(leaving: Leaving, name: str) -> list[Order]:
    return [order for order in leaving.audit.orders(name) if order.verb == "delete"]


def test_a_protection_holds_until_its_end_and_one_without_end_until_the_deadline_is_near(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        values = {"lasting": "true", **WRONG, "brief": "30s"}
        *pods, brief_one = [
            a_marked_pod(
                name, {DO_NOT_DISRUPT: value}, cpu="100m", terminationGracePeriodSeconds=20
            )
            for name, value in values.items()
        ]
        await leaving.settle(a_place("bounded", "75s"), *pods, pods=len(pods))
        # Its time runs from its creation: not before there is a node for it.
        await leaving.users.apply(brief_one)
        await leaving.scene.all_run(len(values))
        there = {names([pod])[0]: pod for pod in await leaving.users.all(PODS)}
        claim, deadline = await leaving.leave("bounded")
        await leaving.event("DoNotDisruptUntil", "brief", '"30s" protects from disruption until ')

        brief = await leaving.seen.gone(there["brief"])
        assert brief.told >= brief.created_at + 30 * SECOND
        assert [order.verb for order in leaving.audit.orders("brief")] == ["evict"]
        await leaving.event("DoNotDisruptGracePeriodElapsed", "brief")
        for name in values.keys() - {"brief"}:
            life = await leaving.seen.gone(there[name])
            assert life.told >= deadline - 20 * SECOND, name
            assert life.stops_by[-1] <= deadline
            assert [order.verb for order in leaving.audit.orders(name)] == ["delete"]
        await leaving.scene.until_gone(claim)
        for name, value in WRONG.items():
            (event,) = await leaving.events("InvalidDoNotDisruptAnnotation", name)
            assert event["type"] == "Warning"
            assert event["count"] <= 2, "rewritten once, with the deadline that forces the pod"
            assert f'{DO_NOT_DISRUPT}: "{value}" is neither' in event["message"]
        for name in ("brief", "lasting"):
            assert await leaving.events("InvalidDoNotDisruptAnnotation", name) == []

    tell(cluster, tmp_path, "protected", story)
