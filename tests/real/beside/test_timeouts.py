"""Tenure beside Karpenter: a node that never becomes Ready is replaced after the readinessTTL of a policy.

Karpenter alone keeps it, and its pod waits (``test_alone``); so does the pool here that no policy selects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOL_POLICIES, NODE_POOLS, PODS
from testbed.karpenter import Karpenter
from tests.builders import SECOND, Manifest, a_node_class
from tests.real.beside.accompanied import Accompanied, a_policy, tell
from tests.real.beside.lives import LIVES, living
from tests.real.chronicle import is_leaving, version_of
from tests.real.terminations import at
from tests.real.users import is_true, running
from tests.real.voluntary import a_small_pool

NEVER_READY: Final = "testbed/never-ready"
#: Seconds.
TTL: Final = 20


def a_broken_pool(name: str) -> tuple[Manifest, Manifest]:
    """Its nodes register, and their network never comes up."""
    pool, deployment = a_small_pool(name)
    pool["spec"]["template"]["metadata"] = {"labels": {NEVER_READY: "true"}}
    return pool, deployment


async def mend(seen: Accompanied, *pools: str) -> None:
    """The nodes that come next will be Ready. (Karpenter disrupts no node that is not initialized.)"""
    patch = {"spec": {"template": {"metadata": {"labels": {NEVER_READY: None}}}}}
    for pool in pools:
        await seen.users.client.patch(NODE_POOLS, pool, patch)


@pytest.mark.parametrize("life", LIVES)
def test_a_node_that_never_becomes_ready_is_replaced_after_its_ttl(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        policy = a_policy("patient", "limited", readinessTTL=f"{TTL}s")
        pools = (*a_broken_pool("limited"), *a_broken_pool("unlimited"))
        async with living(seen, life) as lives:
            await seen.users.apply(a_node_class(), *pools)
            await seen.users.until(
                NODE_CLAIMS, lambda now: [*map(is_true("Registered"), now)] == [True] * 2, "two"
            )
            claim, kept = await seen.claim_in("limited"), await seen.claim_in("unlimited")
            lives.may_end()
            await mend(seen, "limited", "unlimited")
            # Not before: on a slow machine the first would be over when the second registers.
            await seen.users.apply(policy)

            leaves = await seen.chronicle.first(claim, is_leaving, "leaving")
            # The next one may take longer, on a slow machine or while another life of Karpenter begins.
            slower = {"spec": {"readinessTTL": "1h"}}
            await seen.users.client.patch(NODE_POOL_POLICIES, "patient", slower)
            new = await seen.ready(await seen.follower(claim))
            place = new["status"]["nodeName"]
            await seen.users.until(
                PODS, lambda now: [p["spec"]["nodeName"] for p in running(now)] == [place], "there"
            )
            await seen.untouched(kept)

        assert leaves < version_of(new)
        (last, *_) = seen.chronicle.seen(claim, is_leaving)
        node = seen.chronicle.node_of(claim)
        deleted = at(last["metadata"]["deletionTimestamp"])
        assert deleted >= at(node["metadata"]["creationTimestamp"]) + TTL * SECOND
        assert at(last["metadata"]["annotations"][TERMINATION_TIMESTAMP]) <= deleted
        seen.wrote_only(("patch", "nodeclaims"), ("delete", "nodeclaims"))

    tell(karpenter, tmp_path, f"never-ready-{LIVES.index(life)}", story)
