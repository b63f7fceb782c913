"""Several full nodes become unhealthy at once: each is terminated only when its own pods have a replacement."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tenure.model.api.names import REPLACED_BY
from tenure.model.api.resource import NODE_CLAIMS, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class
from tests.real import unhealthy as nodehealth
from tests.real.chronicle import Chronicle
from tests.real.deadlines import Leaving
from tests.real.replacements import tell
from tests.real.unhealthy import a_graceful_pool
from tests.real.users import PATIENCE, names, running

NODES = 4


def test_full_nodes_become_unhealthy_at_once_and_none_is_terminated_without_a_replacement(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        policy = {"conditionType": "KWOKUnhealthy", "toleration": "2s"}
        pool: dict[str, Any] = a_graceful_pool(
            policy, node_class="slow", disruption={"budgets": [{"nodes": "100%"}]}
        )
        pool["spec"]["repair"]["maxUnhealthy"] = "100%"
        web = a_deployment("web", replicas=NODES, cpu="6")
        slow = a_node_class("slow", nodeRegistrationDelay="8s")
        await leaving.settle(slow, pool, web, pods=NODES)
        claims = await leaving.users.all(NODE_CLAIMS)
        assert len(claims) == NODES
        await asyncio.gather(
            *(nodehealth.say(leaving.users, c, "KWOKUnhealthy", "True") for c in claims)
        )
        old, without, fewest = {c["metadata"]["uid"] for c in claims}, set(), NODES
        async with asyncio.timeout(2 * PATIENCE):
            while True:
                now = await leaving.users.all(NODE_CLAIMS)
                for claim in now:
                    if claim["metadata"].get("annotations", {}).get(REPLACED_BY) == "":
                        without |= set(names([claim]))
                fewest = min(fewest, len(running(await leaving.users.all(PODS))))
                if not old & {c["metadata"]["uid"] for c in now}:
                    break
                await asyncio.sleep(0.3)
        assert not without, f"of {NODES} pods at times only {fewest} ran"

    tell(cluster, tmp_path, "many", story)
