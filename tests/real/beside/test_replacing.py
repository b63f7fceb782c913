"""Tenure beside Karpenter: unhealthy and expired nodes are replaced first, then leave.

Tenure creates the claim of the replacement; Karpenter launches it, drains and terminates the node that leaves.
Karpenter alone keeps an unhealthy node, and expires by force (``test_alone``). The pools here that no policy
selects show at the same time that nothing else replaces their nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tenure.model.api.names import DO_NOT_DISRUPT, REPLACES
from tenure.model.api.resource import NODE_POOL_POLICIES, PODS
from testbed.karpenter import Karpenter
from tests.builders import SECOND, Manifest
from tests.real import unhealthy
from tests.real.beside.accompanied import (
    Accompanied,
    a_block,
    a_policy,
    tell,
)
from tests.real.beside.lives import LIVES, WHOLE, living
from tests.real.beside.onlooker import annotated, is_disrupted, pool_of, uid_of
from tests.real.beside.removals import removed_before
from tests.real.chronicle import is_leaving, says, version_of
from tests.real.terminations import at
from tests.real.users import Json, is_true, running
from tests.real.voluntary import a_small_pool

#: Karpenter's provider for KWOK knows it, but repairs nothing without its feature gate.
CONDITION: Final = "KWOKUnhealthy"
#: Empty nodes would be removed at once: a replacement must not be.
EAGER: Final = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}
#: Seconds.
EXPIRES: Final = 30
MORE: Final = (("create", "nodeclaims"), ("patch", "nodeclaims"), ("delete", "nodeclaims"))


def a_pool_of(nodes: int, name: str, **disruption: Any) -> tuple[Manifest, Manifest]:
    """One pod fills a node. It does not expire by itself."""
    pool, deployment = a_small_pool(name, template={"expireAfter": "Never"}, **disruption)
    deployment["spec"]["replicas"] = nodes
    return pool, deployment


def a_careful_policy(pool: str) -> Manifest:
    rule = {"conditionType": CONDITION, "status": "True", "toleration": "3s"}
    repair = {"terminationMode": "Graceful", "policies": [rule]}
    return a_policy("careful", pool, repair=repair)


@pytest.mark.parametrize("life", LIVES)
def test_an_unhealthy_node_is_replaced_first_and_then_leaves(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        async with living(seen, life) as lives:
            pools = (*a_pool_of(2, "web", **EAGER), *a_pool_of(1, "left"))
            await seen.settle(a_careful_policy("web"), *pools, pods=3)
            (claim, other), left = await seen.claims_in("web"), await seen.claim_in("left")
            lives.may_end()
            since = await unhealthy.say(seen.users, claim, CONDITION, "True")
            await unhealthy.say(seen.users, left, CONDITION, "True")

            new = await replaced_by_tenure(seen, claim)
            await seen.all_run(3)
            await until_pods_have_come(seen, new)
            await seen.untouched(other, left)
        assert at(new["metadata"]["creationTimestamp"]) >= since + 3 * SECOND
        assert len(await seen.claims_in("web")) == 2
        assert len(seen.ever("web")) == 3, "Karpenter launched no further node"
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, f"unhealthy-{LIVES.index(life)}", story)


def test_an_unhealthy_node_is_replaced_first_although_karpenter_is_killed_meanwhile(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """When the claim of the replacement is there, when it is launched, and when the old one leaves."""

    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            await seen.settle(a_careful_policy("web"), *a_pool_of(1, "web", **EAGER), pods=1)
            claim = await seen.claim_in("web")
            await unhealthy.say(seen.users, claim, CONDITION, "True")
            new = await seen.follower(claim)
            await seen.restart_karpenter()
            await seen.chronicle.first(new, is_true("Launched"), "launched")
            await seen.restart_karpenter()
            await seen.chronicle.first(claim, is_leaving, "leaving")
            await seen.restart_karpenter()
            await replaced_by_tenure(seen, claim)
            await seen.all_run(1)
            await until_pods_have_come(seen, seen.chronicle.of(new)[-1])
        assert len(seen.ever("web")) == 2, "Karpenter launched no further node"

    tell(karpenter, tmp_path, "unhealthy-karpenter-killed", story)


@pytest.mark.parametrize("life", LIVES)
def test_soft_expiration_rolls_within_a_window_and_a_budget(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        policy = a_policy("young", "web", expireAfter=f"{EXPIRES}s", budgets=[{"nodes": "1"}])
        office = a_block("office", "web", actions=["Expiration"])
        nodes = (
            2 if life == WHOLE else 1
        )  # A restart takes seconds, and new nodes expire meanwhile.
        async with living(seen, life) as lives:
            pools = (*a_pool_of(nodes, "web", **EAGER), *a_pool_of(1, "left"))
            await seen.settle(office, policy, *pools, pods=nodes + 1)
            claims, left = await seen.claims_in("web"), await seen.claim_in("left")
            born = max(at(claim["metadata"]["creationTimestamp"]) for claim in claims)
            await seen.until_past(born + (EXPIRES + 5) * SECOND)
            await seen.untouched(*claims)
            assert len(seen.ever("web")) == nodes, "held by the window"

            lives.may_end()
            ends = await seen.end_soon("office", 3)
            for claim in claims:
                new = await replaced_by_tenure(seen, claim)
                assert at(new["metadata"]["creationTimestamp"]) >= ends
            await seen.users.client.patch(
                NODE_POOL_POLICIES, "young", {"spec": {"expireAfter": "Never"}}
            )
            await seen.all_run(nodes + 1)
            await seen.untouched(left)
        assert await seen.most_at_once("web") == 1
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, f"expired-{LIVES.index(life)}", story)


async def replaced_by_tenure(seen: Accompanied, claim: Json) -> Json:
    """The replacement first, by a claim that says so; the replacement."""
    said = await seen.chronicle.first(claim, is_disrupted, "disrupted")
    leaves = await seen.chronicle.first(claim, is_leaving, "leaving")
    (new,) = [one for one in seen.ever(pool_of(claim)) if replaces(one, claim)]
    assert said < leaves
    assert await seen.chronicle.first(new, is_true("Initialized"), "initialized") < leaves
    assert not seen.chronicle.seen(claim, says("DisruptionReason", "True"))
    assert await removed_before(seen, claim, leaves) == []
    return seen.chronicle.of(new)[-1]


async def until_pods_have_come(seen: Accompanied, new: Json) -> None:
    """It was protected from Karpenter until then, and is not any more."""
    place = new["status"]["nodeName"]
    await seen.users.until(
        PODS, lambda now: place in [p["spec"].get("nodeName") for p in running(now)], "there"
    )
    node = seen.chronicle.node_of(new)
    protected = seen.chronicle.seen(node, lambda it: DO_NOT_DISRUPT in annotated(it))
    assert protected
    await seen.lever_removed(new, after=version_of(protected[0]))


def replaces(new: Json, claim: Json) -> bool:
    return bool(annotated(new).get(REPLACES) == uid_of(claim))
