"""The levers that Karpenter honours: an annotation, a claim made by hand, a stamp and a deletion.

Facts of Karpenter, without Tenure: what ``tenure run --beside-karpenter`` relies on. Each node that stays has another
beside it that goes for the reason in question. (Karpenter's event ``DisruptionBlocked`` would say why, but it says only one
thing about a Node in two minutes, whatever changes meanwhile.)
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    NODEPOOL,
    NODEPOOL_HASH,
    TERMINATION_TIMESTAMP,
)
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, PODS
from testbed.karpenter import Karpenter
from tests.builders import Manifest, a_deployment, a_pool, a_requirement
from tests.real.beside import handmade
from tests.real.beside.handmade import a_sibling, annotate, ready_sibling
from tests.real.beside.onlooker import Onlooker, pool_of, tell
from tests.real.chronicle import is_leaving, says
from tests.real.deadlines import in_place
from tests.real.scene import EIGHT_CORES, TWO_CORES
from tests.real.terminations import at
from tests.real.users import Json, is_true, names, running
from tests.real.voluntary import a_small_pool

PROTECTED: Final = {DO_NOT_DISRUPT: "true"}
#: Seconds for which Karpenter looks at an empty node before it deletes it, but for the rounding of instants.
VALIDATION: Final = 14


def test_an_annotated_node_of_a_drifted_pool_stays_until_the_annotation_is_gone(
    karpenter: Karpenter,
) -> None:
    async def story(seen: Onlooker) -> None:
        pool, deployment = a_small_pool("web", budgets=[{"nodes": "100%"}])
        deployment["spec"]["replicas"] = 3
        await seen.settle(pool, deployment, pods=3)
        kept, *others = await seen.users.all(NODE_CLAIMS)
        await seen.protect(kept)
        await seen.drift("web")
        await seen.chronicle.first(kept, is_true("Drifted"), "drifted")
        for other in others:
            await seen.removed(other, "Drifted")
        await seen.untouched(kept)

        await seen.protect(kept, None)
        await seen.removed(kept, "Drifted")

    tell(karpenter, "annotated-drift", story)


def a_roomy_pool(name: str) -> list[Manifest]:
    """With a pod for a large node and one for a small node, so that it is underused without the first."""
    either = a_requirement(INSTANCE_TYPE, TWO_CORES, EIGHT_CORES)
    return [
        a_pool(name, requirements=[either], disruption={"consolidateAfter": "0s"}),
        a_deployment(f"{name}-large", cpu="5", **in_place(name)),
        a_deployment(f"{name}-small", cpu="1", **in_place(name)),
    ]


def test_the_annotation_on_a_node_stops_emptiness_and_consolidation(karpenter: Karpenter) -> None:
    """Of two pools of each, the Node of the first is annotated."""

    async def story(seen: Onlooker) -> None:
        empty = [m for n in "ab" for m in a_small_pool(f"empty-{n}", consolidateAfter="0s")]
        roomy = [manifest for n in "ab" for manifest in a_roomy_pool(f"roomy-{n}")]
        await seen.settle(*empty, *roomy, pods=6)
        claims = {pool_of(claim): claim for claim in await seen.users.all(NODE_CLAIMS)}
        for kept in ("empty-a", "roomy-a"):
            await seen.protect(claims[kept])
        for left in ("empty-a", "empty-b", "roomy-a-large", "roomy-b-large"):
            await seen.users.scale(left, 0)

        await seen.removed(claims["empty-b"], "Empty")
        await seen.replaced(claims["roomy-b"], "Underutilized")
        for kept in ("empty-a", "roomy-a"):
            await seen.untouched(claims[kept])

    tell(karpenter, "annotated-consolidation", story)


def test_a_claim_made_by_hand_is_launched_belongs_to_the_pool_and_is_not_drifted(
    karpenter: Karpenter,
) -> None:
    async def story(seen: Onlooker) -> None:
        await seen.settle(*a_small_pool("web", consolidateAfter="0s"), pods=1)
        claim = await seen.claim_in("web")
        await seen.protect(claim)  # Otherwise its pod would be moved to the empty node.
        wrong = a_sibling(claim, **PROTECTED, **{NODEPOOL_HASH: "1"})
        right = await ready_sibling(seen, claim, **PROTECTED)
        other = await handmade.create(seen, wrong)
        # Karpenter looks for drift and for this at the same time.
        await seen.chronicle.first(right, is_true("Consolidatable"), "looked at")
        await seen.chronicle.first(other, says("Drifted", "True", "NodePoolDrifted"), "drifted")
        assert not seen.chronicle.seen(right, is_true("Drifted"))

        node = seen.chronicle.node_of(right)
        assert node["metadata"]["labels"][NODEPOOL] == "web"
        type_ = right["metadata"]["labels"][INSTANCE_TYPE]
        assert type_ == claim["metadata"]["labels"][INSTANCE_TYPE]
        # Release 1.6 has no status.nodes yet.
        await seen.users.until(
            NODE_POOLS, lambda now: now[0]["status"]["resources"]["nodes"] == "3", "counted"
        )
        assert len(await seen.users.all(NODE_CLAIMS)) == 3

    tell(karpenter, "by-hand", story)


def test_a_stamped_claim_goes_at_once_and_its_pod_runs_on_the_replacement_made_by_hand(
    karpenter: Karpenter,
) -> None:
    """Each pod forbids its eviction: the claim without a stamp waits for it."""

    async def story(seen: Onlooker) -> None:
        pools = {name: a_small_pool(name) for name in ("stamped", "unstamped")}
        for _, deployment in pools.values():
            deployment["spec"]["template"]["metadata"]["annotations"] = PROTECTED
        await seen.settle(*(m for pool in pools.values() for m in pool), pods=2)
        claims = {pool: await seen.claim_in(pool) for pool in pools}
        new = await ready_sibling(seen, claims["stamped"], **PROTECTED)

        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        await annotate(seen, claims["stamped"], {TERMINATION_TIMESTAMP: now})
        await seen.users.delete(NODE_CLAIMS, *claims.values())
        gone = names([claims["stamped"]])[0]
        await seen.users.until(NODE_CLAIMS, lambda all_: gone not in names(all_), "without it")
        place = new["status"]["nodeName"]
        await seen.users.until(
            PODS, lambda pods: place in [p["spec"].get("nodeName") for p in running(pods)], "there"
        )
        assert names([claims["unstamped"]])[0] in names(await seen.users.all(NODE_CLAIMS))
        claims_now = [c for c in await seen.users.all(NODE_CLAIMS) if pool_of(c) == "stamped"]
        assert names(claims_now) == names([new])

    tell(karpenter, "stamped", story)


def test_an_empty_node_made_by_hand_is_removed_unless_the_node_itself_has_the_annotation(
    karpenter: Karpenter,
) -> None:
    """On the claim it counts until the Node has registered, and is copied to the Node then; not later."""

    async def story(seen: Onlooker) -> None:
        pool = a_small_pool(
            "web",
            consolidateAfter="0s",
            consolidationPolicy="WhenEmpty",
            budgets=[{"nodes": "100%"}],
        )
        await seen.settle(*pool, pods=1)
        claim = await seen.claim_in("web")
        plain, late, early = await asyncio.gather(
            ready_sibling(seen, claim),
            annotated_once_ready(seen, claim),
            ready_sibling(seen, claim, **PROTECTED),
        )
        assert DO_NOT_DISRUPT not in seen.chronicle.node_of(plain)["metadata"]["annotations"]
        assert PROTECTED.items() <= seen.chronicle.node_of(early)["metadata"]["annotations"].items()

        for unprotected in (plain, late):
            await seen.removed(unprotected, "Empty")
            assert emptied_after(seen, unprotected) >= VALIDATION
        await seen.untouched(early)

        await seen.protect(early, None)  # It stays on the claim.
        # By its code, Karpenter looks for empty nodes again after a change of the pool, not of an annotation.
        await seen.change_pool("web", weight=2)
        await seen.removed(early, "Empty")
        last = seen.chronicle.of(early)[-1]
        assert PROTECTED.items() <= last["metadata"]["annotations"].items()

    tell(karpenter, "empty-replacement", story)


async def annotated_once_ready(seen: Onlooker, claim: Json) -> Json:
    """At once: it is empty, and stays for seconds only."""
    late = await ready_sibling(seen, claim)
    await annotate(seen, late, PROTECTED)
    return late


def test_an_annotated_node_takes_the_pods_of_a_node_that_consolidation_removes(
    karpenter: Karpenter,
) -> None:
    """So an empty replacement that is annotated moves pods of its pool that were not meant for it."""

    async def story(seen: Onlooker) -> None:
        await seen.settle(*a_small_pool("web", consolidateAfter="0s"), pods=1)
        claim = await seen.claim_in("web")
        new = await ready_sibling(seen, claim, **PROTECTED)
        await seen.removed(claim, "Underutilized")
        place = new["status"]["nodeName"]
        await seen.users.until(
            PODS,
            lambda pods: [p["spec"].get("nodeName") for p in running(pods)] == [place],
            "there",
        )
        await seen.untouched(new)

    tell(karpenter, "attracts", story)


def emptied_after(seen: Onlooker, claim: Json) -> float:
    """Seconds from its initialization to its deletion, by Karpenter's and the API server's clocks."""
    (last, *_) = seen.chronicle.seen(claim, is_leaving)
    (initialized,) = [c for c in last["status"]["conditions"] if c["type"] == "Initialized"]
    deleted = at(last["metadata"]["deletionTimestamp"])
    seconds = (deleted - at(initialized["lastTransitionTime"])).total_seconds()
    print(f"{names([claim])[0]}: deleted {seconds:.0f} s after it was initialized")  # noqa: T201
    return seconds
