"""Tenure in charge that may not list NodePoolPolicies: one of them may have a budget, or say how to repair.

So no node goes by choice, and none is repaired but by a block of its NodePool; nodes are launched as ever. Each
NodePool says why, and which right is missing. All goes on once it is granted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.api.resource import NODE_POOLS
from testbed.controlplane import ControlPlane
from testbed.manifests import MANIFEST
from tests.builders import a_deployment
from tests.real import deadlines, unhealthy
from tests.real.chronicle import Chronicle, has_taint, is_leaving
from tests.real.cluster import patient
from tests.real.deadlines import Leaving, in_place
from tests.real.narrow import Narrow
from tests.real.scene import TWO_CORES
from tests.real.unhealthy import a_forceful_pool
from tests.real.users import Json
from tests.real.voluntary import a_small_pool, blocked, change_labels, replaced

#: As the condition of a NodePool says it.
GRANT = "Grant list and watch of nodepoolpolicies.tenure.dev"


async def disruption_of(leaving: Leaving, pool: str) -> Json:
    """The condition ``DisruptionValid``."""

    def said(pools: list[Json]) -> list[Json]:
        conditions = [
            one
            for found in pools
            if found["metadata"]["name"] == pool
            for one in found.get("status", {}).get("conditions", ())
        ]
        return [one for one in conditions if one["type"] == "DisruptionValid"]

    pools = await leaving.users.until(NODE_POOLS, lambda now: bool(said(now)), "judged")
    return said(pools)[0]


def test_without_the_right_to_list_policies_no_node_goes_by_choice_and_nodes_are_launched(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        chronicle = Chronicle(leaving.users)
        async with chronicle.written(), patient(cluster.kubeconfig) as client:
            leaving.tenure.until_said("nodepoolpolicies.tenure.dev: 403 Forbidden")
            own = a_forceful_pool("own", type_=TWO_CORES)
            await leaving.settle(
                *a_small_pool("drift"),
                *a_small_pool("bare"),
                own,
                a_deployment("own", cpu="1500m", **in_place("own")),
                pods=3,
            )
            drifted, bare = await leaving.claim_in("drift"), await leaving.claim_in("bare")
            repaired = await leaving.claim_in("own")
            said = await disruption_of(leaving, "drift")
            assert said["status"] == "False"
            assert GRANT in said["message"]

            await change_labels(leaving, "drift")
            await unhealthy.say(leaving.users, bare, "Ready", "False")
            await unhealthy.say(leaving.users, repaired, "Ready", "False")
            await blocked(leaving, drifted, "NodePoolPolicies")
            await chronicle.first(repaired, is_leaving, "leaving")
            await chronicle.caught_up()
            for claim in (drifted, bare):
                assert not chronicle.seen(claim, is_leaving)
                assert not chronicle.seen(chronicle.node_of(claim), has_taint(DISRUPTED_TAINT))

            await Narrow(cluster, client, MANIFEST).grant_all()
            await replaced(leaving, chronicle, drifted, "Drifted")

    async def granted() -> Path:
        async with patient(cluster.kubeconfig) as client:
            return await Narrow(cluster, client, MANIFEST).without("nodepoolpolicies")

    deadlines.tell(cluster, tmp_path, "unlisted", story, kubeconfig=asyncio.run(granted()))
