"""What a story beside Karpenter has: Karpenter, users, and every version of what they wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any

from tenure.errors import AlreadyExists
from tenure.model.api.names import (
    DISRUPTED_TAINT,
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    NODEPOOL,
    UNREGISTERED_TAINT,
    ZONE,
)
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from testbed.karpenter import Karpenter
from tests.builders import Manifest, a_deployment, a_node_class
from tests.real.chronicle import Chronicle, has_taint, is_leaving, says, version_of
from tests.real.users import LOOK_EVERY, PATIENCE, Json, Users, is_true, running, users_at
from tests.real.voluntary import a_small_pool


class Onlooker:
    def __init__(self, karpenter: Karpenter, users: Users, chronicle: Chronicle) -> None:
        self.karpenter = karpenter
        self.users = users
        self.chronicle = chronicle
        self._clocks = 0

    # -- what users do -----------------------------------------------------------------

    async def settle(self, *manifests: Manifest, pods: int) -> None:
        """Until so many pods run, and every claim is Ready."""
        await self.users.apply(a_node_class(), *manifests)
        await self.all_run(pods)
        await self.users.until(NODE_CLAIMS, lambda now: all(map(is_true("Ready"), now)), "Ready")

    async def all_run(self, pods: int) -> None:
        await self.users.until(PODS, lambda now: len(running(now)) == len(now) == pods, "running")

    async def protect(self, claim: Json, value: str | None = "true") -> None:
        """The annotation on its Node; ``None`` takes it off."""
        patch = {"metadata": {"annotations": {DO_NOT_DISRUPT: value}}}
        await self.users.client.patch(NODES, claim["status"]["nodeName"], patch)

    async def change_pool(self, pool: str, **spec: Any) -> None:
        await self.users.client.patch(NODE_POOLS, pool, {"spec": spec})

    async def drift(self, pool: str) -> None:
        """Every claim that the pool has now."""
        await self.change_pool(pool, template={"metadata": {"labels": {"team": "b"}}})

    async def no_node_registers(self, node_class: str) -> None:
        """Of those that are launched from now on: Karpenter waits for them, and begins with other nodes meanwhile."""
        patch = {"spec": {"nodeRegistrationDelay": "1h"}}
        await self.users.client.patch(KWOK_NODE_CLASSES, node_class, patch)

    async def instances_register(self) -> None:
        """As in a cloud: what was launched registers, whatever becomes of Karpenter.

        Its provider for KWOK creates the Node itself a moment after it has launched it, and has forgotten it when it
        is killed in between. Karpenter would wait for that Node for 15 minutes, and disrupt nothing whose pods fit there.
        """
        there = {node["spec"].get("providerID") for node in await self.users.all(NODES)}
        for claim in await self.users.all(NODE_CLAIMS):
            launched = is_true("Launched")(claim) and not is_true("Registered")(claim)
            if launched and not is_leaving(claim) and claim["status"]["providerID"] not in there:
                with suppress(AlreadyExists):  # It was on its way.
                    await self.users.client.create(NODES, launched_node(claim))

    # -- what is there -----------------------------------------------------------------

    async def claim_in(self, pool: str) -> Json:
        """The only claim of that pool."""
        (found,) = [c for c in await self.users.all(NODE_CLAIMS) if pool_of(c) == pool]
        return found

    async def ready(self, claim: Json) -> Json:
        """The claim once it is Ready."""
        await self.chronicle.first(claim, is_true("Ready"), "Ready")
        return self.chronicle.of(claim)[-1]

    async def follower(self, *known: Json) -> Json:
        """The next claim of the pool of these; waits until there is one."""
        pool, uids = pool_of(known[0]), set(map(uid_of, known))

        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := [c for c in self.ever(pool) if uid_of(c) not in uids]):
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise AssertionError(f"NodePool {pool}: no further claim") from None
        return found[0]

    def ever(self, pool: str) -> list[Json]:
        """All claims that the pool has ever had, as they were at first, oldest first."""
        objects = [first for first, *_ in self.chronicle.versions.values()]
        claims = [each for each in objects if "nodeClassRef" in each["spec"]]
        return sorted((c for c in claims if pool_of(c) == pool), key=version_of)

    # -- what has become of a claim ----------------------------------------------------

    async def replaced(self, claim: Json, reason: str) -> Json:
        """By Karpenter for that reason, the replacement first; the replacement."""
        said = await self.chronicle.first(claim, says("DisruptionReason", "True", reason), reason)
        new = await self.follower(claim)
        initialized = await self.chronicle.first(new, is_true("Initialized"), "initialized")
        leaves = await self.chronicle.first(claim, is_leaving, "leaving")
        assert said < leaves
        assert initialized < leaves
        return await self.ready(new)

    async def removed(self, claim: Json, reason: str) -> None:
        said = await self.chronicle.first(claim, says("DisruptionReason", "True", reason), reason)
        assert said < await self.chronicle.first(claim, is_leaving, "leaving")

    async def untouched(self, *claims: Json) -> None:
        """Nothing has been done about them up to now."""
        await self.chronicle.caught_up()
        for claim in claims:
            assert not self.chronicle.seen(claim, is_leaving)
            assert not self.chronicle.seen(claim, says("DisruptionReason", "True"))
            if "nodeName" in self.chronicle.of(claim)[-1].get("status", {}):
                node = self.chronicle.node_of(self.chronicle.of(claim)[-1])
                assert not self.chronicle.seen(node, has_taint(DISRUPTED_TAINT))

    def disrupted(self, pool: str) -> list[Json]:
        """Its claims that were ever disrupted or on their way out."""
        return [claim for claim in self.ever(pool) if self.chronicle.seen(claim, is_disrupted)]

    async def until_disrupted(self, pool: str, number: int) -> None:
        """Until so many of its claims were."""
        try:
            async with asyncio.timeout(PATIENCE):
                while len(self.disrupted(pool)) < number:
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            raise AssertionError(f"NodePool {pool}: not {number} disrupted") from None

    async def most_at_once(self, pool: str) -> int:
        """Nodes of the pool that were disrupted or on their way out at the same time."""
        await self.chronicle.caught_up()
        there = set(map(uid_of, await self.users.all(NODES)))
        spans: list[tuple[int, float]] = []
        for claim in self.disrupted(pool):
            begun = self.chronicle.seen(claim, is_disrupted)[0]
            node = self.chronicle.node_of(self.chronicle.of(claim)[-1])
            gone = inf if uid_of(node) in there else version_of(self.chronicle.of(node)[-1])
            spans.append((version_of(begun), gone))
        return max(sum(a <= begin < z for a, z in spans) for begin, _ in spans)

    async def seconds_pass(self, seconds: int) -> None:
        """By Karpenter's own clock: until it has expired a claim that was created just now."""
        self._clocks += 1
        name = f"clock-{self._clocks}"
        pool, deployment = a_small_pool(name, template={"expireAfter": f"{seconds}s"})
        await self.users.apply(pool, deployment)
        claims = await self.users.until(
            NODE_CLAIMS, lambda now: name in map(pool_of, now), "with a clock"
        )
        clock, *_ = [claim for claim in claims if pool_of(claim) == name]
        await self.chronicle.first(clock, is_leaving, "expired")


def a_pool_of_two_zones(name: str, node_class: str = "default") -> list[Manifest]:
    """A pool with a node in each. Karpenter's budget lets both go, and no pod can wait for the replacement of the other."""
    pool, _ = a_small_pool(name, node_class=node_class, budgets=[{"nodes": "100%"}])
    deployments = (
        a_deployment(f"{name}-{zone}", cpu="1500m", nodeSelector={NODEPOOL: name, ZONE: zone})
        for zone in ("test-zone-a", "test-zone-b")
    )
    return [pool, *deployments]


def launched_node(claim: Json) -> Manifest:
    """As Karpenter's provider for KWOK creates it."""
    metadata, status = claim["metadata"], claim["status"]
    about = {key: metadata[key] for key in ("labels", "annotations")}
    return {
        "metadata": {"name": status["providerID"].removeprefix("kwok://"), **about},
        "spec": {
            "providerID": status["providerID"],
            "taints": [{"key": UNREGISTERED_TAINT, "effect": "NoExecute"}],
        },
        "status": {key: status[key] for key in ("capacity", "allocatable")},
    }


def pool_of(claim: Json) -> str:
    return str(claim["metadata"]["labels"][NODEPOOL])


def annotated(thing: Json) -> Json:
    found: Json = thing["metadata"].get("annotations", {})
    return found


def is_disrupted(claim: Json) -> bool:
    """By Karpenter, by Tenure, or because it is deleted."""
    by_karpenter = says("DisruptionReason", "True")(claim)
    return by_karpenter or DISRUPTION_REASON in annotated(claim) or is_leaving(claim)


def uid_of(thing: Json) -> str:
    return str(thing["metadata"]["uid"])


def tell(
    karpenter: Karpenter, namespace: str, story: Callable[[Onlooker], Awaitable[None]]
) -> None:
    async def told() -> None:
        async with onlooking(karpenter, namespace) as seen:
            await story(seen)

    asyncio.run(told())


@asynccontextmanager
async def onlooking(karpenter: Karpenter, namespace: str) -> AsyncIterator[Onlooker]:
    async with users_at(karpenter.plane, namespace) as users:
        chronicle = Chronicle(users)
        async with chronicle.written():
            onlooker = Onlooker(karpenter, users, chronicle)
            kept = asyncio.create_task(_kept_running(onlooker))
            try:
                yield onlooker
            finally:
                kept.cancel()
                await asyncio.gather(kept, return_exceptions=True)


async def _kept_running(seen: Onlooker) -> None:
    """It ends by itself on a machine that is too busy to renew the Lease within ten seconds."""
    while True:
        if seen.karpenter.ended_by_itself:
            await seen.instances_register()
        await asyncio.to_thread(seen.karpenter.keep_running)
        await asyncio.sleep(LOOK_EVERY)
