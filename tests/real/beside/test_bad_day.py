"""Bad days beside Karpenter: a leader that sleeps past its Lease, a clock that is wrong, policies and kinds that come and go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import yaml

from tenure.model.api.resource import NODE_POOL_POLICIES
from tenure.schema.structure.crd import CUSTOM_KINDS, dump
from testbed.karpenter import Karpenter
from testbed.kubectl import apply, kubectl
from tests.builders import HOUR, Manifest
from tests.real.beside.accompanied import Accompanied, a_block, a_lever, a_policy, lever_free, tell
from tests.real.beside.test_pacing import a_pool_of
from tests.real.process import Process
from tests.real.test_clock import SetClock
from tests.real.unhealthy import node_of
from tests.real.users import Json, is_true
from tests.real.voluntary import a_small_pool

OFFICE: Final = "MaintenanceWindow office"
POLICIES: Final = "nodepoolpolicies.tenure.dev"
ROLE: Final = ("clusterrole", "tenure")


def which_leads(*replicas: Process) -> Process:
    def leaders() -> list[Process]:
        return [one for one in replicas if one.said("leading: the Lease")]

    replicas[0].until(lambda: bool(leaders()), "leader")
    return leaders()[0]


def test_a_leader_that_sleeps_past_its_lease_changes_no_lever_when_it_wakes(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        office = a_block("office", "web", actions=["Drift"])
        with seen.tenure("a") as a, seen.tenure("b") as b:
            await seen.settle(office, *a_small_pool("web"), pods=1)
            claim = await seen.claim_in("web")
            version = await seen.lever_set(claim, OFFICE)
            first = await asyncio.to_thread(which_leads, a, b)
            second = b if first is a else a
            first.pause()
            await asyncio.to_thread(second.until_leading)
            await seen.end_at("office", "2020-01-02T00:00:00Z")
            version = await seen.lever_removed(claim, after=version)
            first.wake()  # What it knows has a window that goes on.
            await seen.seconds_pass(10)
            await seen.chronicle.caught_up()
            node = seen.chronicle.node_of(claim)
            assert not seen.chronicle.seen(node, lambda it: not lever_free(it), after=version)
            assert await asyncio.to_thread(second.stop) == 0

    tell(karpenter, tmp_path, "asleep", story)


@pytest.mark.parametrize(("offset", "direction"), [("-1h", "back"), ("+1h", "ahead")])
def test_a_clock_that_is_an_hour_off_opens_no_window_and_replaces_no_node(
    karpenter: Karpenter, tmp_path: Path, offset: str, direction: str
) -> None:
    """The window ends in half an hour, and nodes expire in half an hour; Karpenter has drift to act on."""

    async def story(seen: Accompanied) -> None:
        clock = SetClock(tmp_path)
        office = a_block("office", "web", actions=["Drift"])
        young = a_policy("young", "old", expireAfter="30m")
        old = a_small_pool("old", template={"expireAfter": "Never"})
        pools = (*a_small_pool("web"), *old, *a_small_pool("free"))
        with seen.tenure("tenure", **clock.environment) as tenure:
            await seen.settle(office, young, *pools, pods=3)
            claim, kept, free = [await seen.claim_in(p) for p in ("web", "old", "free")]
            ends = await seen.now() + HOUR / 2
            until = f"{ends:%Y-%m-%dT%H:%M:%SZ}"
            await seen.end_at("office", until)
            await seen.lever_set(claim, OFFICE, until)
            clock.set(offset)
            await asyncio.to_thread(tenure.until_said, f"the wall clock was set {direction}")
            await seen.drift("web")
            await seen.drift("free")
            await seen.chronicle.first(claim, is_true("Drifted"), "drifted")
            await seen.replaced(free, "Drifted")
            await seen.seconds_pass(10)
            await seen.untouched(claim, kept)
            assert a_lever(OFFICE, until)(await node_of(seen.users, claim))
            assert len(seen.ever("old")) == 1

    tell(karpenter, tmp_path, f"clock-{direction}", story)


def test_a_policy_that_is_good_then_contradicted_then_good_opens_closes_and_opens(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            claims = await a_limited_pool(seen)
            other = a_policy("other", "web", budgets=[{"nodes": "100%"}])
            for _ in range(2):
                await seen.users.apply(other)
                await seen.until_open(claims, 0)
                (policy,) = [
                    p
                    for p in await seen.users.all(NODE_POOL_POLICIES)
                    if p["metadata"]["name"] == "other"
                ]
                await seen.users.delete(NODE_POOL_POLICIES, policy)
                await seen.until_open(claims, 1)
            await seen.untouched(*claims)

    tell(karpenter, tmp_path, "contradicted", story)


async def a_limited_pool(seen: Accompanied) -> list[Json]:
    """Of three nodes, one is open."""
    policy = a_policy("slow", "web", budgets=[{"nodes": "1"}])
    await seen.settle(policy, *a_pool_of(3, "web", "default"), pods=3)
    claims = await seen.claims_in("web")
    await seen.until_open(claims, 1)
    return claims


def test_without_the_right_to_list_policies_their_levers_stay(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """A new life knows no policy then, and what a budget has closed must not open."""

    async def story(seen: Accompanied) -> None:
        with seen.tenure("first") as first:
            claims = await a_limited_pool(seen)
            assert await asyncio.to_thread(first.stop) == 0
        async with right_removed(karpenter):
            closed = [c for c in claims if not lever_free(await node_of(seen.users, c))]
            assert len(closed) == 2
            with seen.tenure("second"):
                for claim in closed:
                    await seen.lever_set(claim, "NodePoolPolicies cannot be listed", "unknown")
                await seen.drift("web")
                await seen.until_disrupted("web", 1)
                await seen.seconds_pass(10)
                await seen.untouched(*closed)
        with seen.tenure("third"):
            for claim in claims:
                await seen.removed(claim, "Drifted")
        assert await seen.most_at_once("web") == 1

    tell(karpenter, tmp_path, "no-right", story)


def test_without_the_kind_of_policies_windows_are_kept_and_with_it_so_are_budgets(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """Who removes the kind removes every policy: nothing limits the pool any more."""

    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            claims = await a_limited_pool(seen)
            async with kind_removed(karpenter):
                await seen.until_open(claims, 3)
                await seen.users.apply(a_block("office", "web", actions=["Drift"]))
                await seen.until_open(claims, 0)
                await seen.end_at("office", "2020-01-02T00:00:00Z")
                await seen.until_open(claims, 3)
            await seen.users.apply(a_policy("slow", "web", budgets=[{"nodes": "1"}]))
            await seen.until_open(claims, 1)
            await seen.untouched(*claims)

    tell(karpenter, tmp_path, "no-kind", story)


@asynccontextmanager
async def right_removed(karpenter: Karpenter) -> AsyncIterator[None]:
    """Of its ClusterRole, what is about policies."""
    text = await asyncio.to_thread(kubectl, karpenter.plane, "get", *ROLE, "-o", "json")
    role: Json = json.loads(text)
    kept = [rule for rule in role["rules"] if "nodepoolpolicies" not in rule["resources"]]
    assert len(kept) < len(role["rules"])
    await asyncio.to_thread(set_rules, karpenter, kept)
    try:
        yield
    finally:
        await asyncio.to_thread(set_rules, karpenter, role["rules"])


def set_rules(karpenter: Karpenter, rules: list[Json]) -> None:
    patch = json.dumps({"rules": rules})
    kubectl(karpenter.plane, "patch", *ROLE, "--type=merge", "-p", patch)


@asynccontextmanager
async def kind_removed(karpenter: Karpenter) -> AsyncIterator[None]:
    await asyncio.to_thread(kubectl, karpenter.plane, "delete", "crd", POLICIES)
    try:
        yield
    finally:
        crds: list[Manifest] = list(yaml.safe_load_all(dump(CUSTOM_KINDS)))
        ours = [crd for crd in crds if crd["metadata"]["name"] == POLICIES]
        await asyncio.to_thread(apply, karpenter.plane, ours)
        await asyncio.to_thread(served, karpenter)


def served(karpenter: Karpenter) -> None:
    kubectl(
        karpenter.plane, "wait", "--for=condition=Established", f"crd/{POLICIES}", "--timeout=120s"
    )
