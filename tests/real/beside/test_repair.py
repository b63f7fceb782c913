"""Tenure beside Karpenter: repair by force, what its two breakers hold, and what waits for Karpenter's own repair.

Karpenter alone keeps an unhealthy node, whatever a policy says; with its feature gate ``NodeRepair`` it replaces those
that Tenure's breakers hold (``test_alone``). The pools here that no policy selects show at the same time that nothing else
repairs their nodes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tenure.model.api.names import (
    NODEPOOL,
    TERMINATION_BECAUSE,
    TERMINATION_BY,
    TERMINATION_TIMESTAMP,
    ZONE,
)
from tenure.model.api.resource import EVENTS
from testbed.karpenter import DEFAULT_GATES, NAME, NAMESPACE, Karpenter
from testbed.kubectl import kubectl
from tests.builders import SECOND, Manifest, a_deployment, a_requirement
from tests.real import unhealthy
from tests.real.beside.accompanied import Accompanied, a_policy, tell
from tests.real.beside.lives import LIVES, living
from tests.real.beside.onlooker import annotated, uid_of
from tests.real.chronicle import is_leaving, says, version_of
from tests.real.scene import EIGHT_CORES, TWO_CORES
from tests.real.terminations import at
from tests.real.users import LOOK_EVERY, PATIENCE, Json, names
from tests.real.voluntary import a_small_pool

#: Karpenter's provider for KWOK knows it, but repairs nothing without its feature gate.
CONDITION: Final = "KWOKUnhealthy"
#: No Karpenter knows it.
UNKNOWN: Final = "example.com/Broken"
#: Seconds. Long enough that a slow machine sees all nodes of a breaker before the first falls due.
TOLERATION: Final = 6
MORE: Final = (("patch", "nodeclaims"), ("delete", "nodeclaims"))
ZONES: Final = ("test-zone-a", "test-zone-b")


def by_force(pool: str, *more: str, condition: str = CONDITION, **block: Any) -> Manifest:
    """A policy that repairs nodes of these pools by force."""
    rule = {"conditionType": condition, "status": "True", "toleration": f"{TOLERATION}s"}
    repair = {"terminationMode": "Forceful", "policies": [rule], **block}
    return a_policy("forceful", pool, *more, repair=repair)


def a_fleet(name: str, nodes: int) -> tuple[Manifest, Manifest]:
    """One pod fills a node."""
    pool, deployment = a_small_pool(name)
    deployment["spec"]["replicas"] = nodes
    return pool, deployment


def a_pool_in(zone: str, name: str, type_: str = TWO_CORES) -> tuple[Manifest, Manifest]:
    """With one node in that zone."""
    pool, _ = a_small_pool(name)
    pool["spec"]["template"]["spec"]["requirements"] = [
        a_requirement("node.kubernetes.io/instance-type", type_),
        a_requirement(ZONE, zone),
    ]
    return pool, a_deployment(name, cpu="1500m", nodeSelector={NODEPOOL: name})


@pytest.mark.parametrize("life", LIVES)
def test_a_policy_repairs_an_unhealthy_node_by_force(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    """Stamped, deleted at once, and only then Karpenter launches the next."""

    async def story(seen: Accompanied) -> None:
        async with living(seen, life) as lives:
            pools = (*a_fleet("web", 2), *a_fleet("left", 1))
            await seen.settle(by_force("web", maxUnhealthy="1"), *pools, pods=3)
            (claim, other), left = await seen.claims_in("web"), await seen.claim_in("left")
            lives.may_end()
            since = await unhealthy.say(seen.users, claim, CONDITION, "True")
            await unhealthy.say(seen.users, left, CONDITION, "True")
            leaves = await repaired_by_force(seen, claim)
            new = await seen.ready(await seen.follower(claim, other))
            await seen.all_run(3)
            await seen.seconds_pass(10)
            await seen.untouched(other, left)
        assert leaves < version_of(seen.ever("web")[2]), "no replacement came first"
        assert deleted_at(seen, claim) >= since + TOLERATION * SECOND
        assert new["metadata"]["name"] != claim["metadata"]["name"]
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, f"forceful-{LIVES.index(life)}", story)


def test_too_many_unhealthy_nodes_of_a_pool_stay_until_fewer_are(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """Two of six; the policy allows one. Karpenter's own breaker would allow two (``test_alone``)."""

    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            await seen.settle(by_force("web", maxUnhealthy="1"), *a_fleet("web", 6), pods=6)
            first, second, *others = await seen.claims_in("web")
            await are_unhealthy(seen, first, second)
            for claim in (first, second):
                await until_said(seen, claim, "NodeRepairBlocked", "maxUnhealthy")
            await seen.seconds_pass(TOLERATION + 4)
            await seen.untouched(first, second, *others)

            await unhealthy.say(seen.users, second, CONDITION, "False", "WellAgain")
            await repaired_by_force(seen, first)
            await seen.ready(await seen.follower(first, second, *others))
            await seen.untouched(second, *others)
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, "pool-breaker", story)


def test_nodes_of_a_failure_domain_stay_while_others_are_repaired(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """Three pools have all of their nodes in one zone, and all are unhealthy. No pool's own breaker is open."""

    async def story(seen: Accompanied) -> None:
        down = ("one", "two", "three")
        pools = [manifest for name in down for manifest in a_pool_in(ZONES[0], name)]
        elsewhere = a_pool_in(ZONES[1], "elsewhere", EIGHT_CORES)
        policy = by_force(*down, "elsewhere", maxUnhealthy="100%")
        with seen.tenure("tenure"):
            await seen.settle(policy, *pools, *elsewhere, pods=4)
            claims = [await seen.claim_in(name) for name in down]
            single = await seen.claim_in("elsewhere")
            await are_unhealthy(seen, *claims)
            for claim in claims:
                await until_said(seen, claim, "NodeRepairBlocked", ZONES[0])
            await unhealthy.say(seen.users, single, CONDITION, "True")
            await repaired_by_force(seen, single)
            await seen.seconds_pass(TOLERATION + 4)
            await seen.untouched(*claims)
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, "domain-breaker", story)


@pytest.mark.parametrize("gate", ["on", "unknown"])
def test_while_karpenter_repairs_or_may_repair_tenure_waits_and_says_so(
    karpenter_with_repair: Karpenter, tmp_path: Path, gate: str
) -> None:
    """No Karpenter knows the condition, so nothing happens to the node until the gate is known to be off."""
    karpenter = karpenter_with_repair

    async def story(seen: Accompanied) -> None:
        policy = by_force("web", condition=UNKNOWN)
        with seen.tenure("tenure"):
            async with switched_on(karpenter) if gate == "on" else hidden_gates(karpenter):
                await seen.settle(policy, *a_fleet("web", 2), pods=2)
                claim, other = await seen.claims_in("web")
                await unhealthy.say(seen.users, claim, UNKNOWN, "True")
                await until_said(seen, claim, "NodeRepairLeftToKarpenter", "NodeRepair")
                await seen.seconds_pass(TOLERATION + 4)
                await seen.untouched(claim, other)
            await repaired_by_force(seen, claim)
            await seen.ready(await seen.follower(claim, other))
            await seen.untouched(other)
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, f"gate-{gate}", story)


@asynccontextmanager
async def switched_on(karpenter: Karpenter) -> AsyncIterator[None]:
    await asyncio.to_thread(karpenter.restart, gates="NodeRepair=true")
    try:
        yield
    finally:
        await asyncio.to_thread(karpenter.restart)


@asynccontextmanager
async def hidden_gates(karpenter: Karpenter) -> AsyncIterator[None]:
    """They come from a ConfigMap: Karpenter's Deployment does not say which are on."""
    source = {"configMapKeyRef": {"name": "gates", "key": "gates", "optional": True}}
    await asyncio.to_thread(set_gates, karpenter, value=None, valueFrom=source)
    try:
        yield
    finally:
        await asyncio.to_thread(set_gates, karpenter, value=DEFAULT_GATES, valueFrom=None)


def set_gates(karpenter: Karpenter, **said: Any) -> None:
    container = {"name": "controller", "env": [{"name": "FEATURE_GATES", **said}]}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    where = ("deployment", NAME, f"--namespace={NAMESPACE}")
    kubectl(karpenter.plane, "patch", *where, "--type=strategic", "-p", json.dumps(patch))


async def are_unhealthy(seen: Accompanied, *claims: Json) -> None:
    """All at once."""
    await asyncio.gather(*(unhealthy.say(seen.users, one, CONDITION, "True") for one in claims))


async def repaired_by_force(seen: Accompanied, claim: Json) -> int:
    """By Tenure, with its stamp; at which version it was deleted."""
    leaves = await seen.chronicle.first(claim, is_leaving, "leaving")
    (last, *_) = seen.chronicle.seen(claim, is_leaving)
    there = annotated(last)
    assert (there[TERMINATION_BY], there[TERMINATION_BECAUSE]) == ("tenure", "NodeRepair")
    assert at(there[TERMINATION_TIMESTAMP]) <= deleted_at(seen, claim)
    assert not seen.chronicle.seen(claim, says("DisruptionReason", "True")), "not by Karpenter"
    return leaves


def deleted_at(seen: Accompanied, claim: Json) -> Any:
    (last, *_) = seen.chronicle.seen(claim, is_leaving)
    return at(last["metadata"]["deletionTimestamp"])


async def until_said(seen: Accompanied, claim: Json, reason: str, word: str) -> None:
    """Until an event of the claim has that reason, and its message that word."""
    events: Sequence[Json] = ()
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                items, _ = await seen.users.client.list_all(EVENTS)
                found = (msgspec.json.decode(item) for item in items)
                events = [one for one in found if one["involvedObject"].get("uid") == uid_of(claim)]
                if any(one["reason"] == reason and word in one["message"] for one in events):
                    return
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError:
        said = [(one["reason"], one["message"]) for one in events]
        raise AssertionError(f"{names([claim])[0]}: no {reason} with {word}: {said}") from None
