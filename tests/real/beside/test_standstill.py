"""Tenure beside Karpenter stands still where it must: Karpenter does not run, or a right is missing.

A NodeClaim that is deleted while no Karpenter runs stays with its finalizer. A NodePoolPolicy that cannot be listed may have
a budget. Neither stops the rest: windows set their levers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tenure.model.api.names import REPLACES, TERMINATION_BY
from tenure.model.api.resource import NODE_POOLS
from testbed.karpenter import NAME, NAMESPACE, Karpenter
from testbed.kubectl import kubectl
from testbed.manifests import BESIDE_KARPENTER
from tests.builders import SECOND
from tests.real import unhealthy
from tests.real.beside.accompanied import (
    FLAGS,
    FUTURE,
    TENURE,
    Accompanied,
    a_block,
    a_policy,
    lever_free,
    tell,
)
from tests.real.beside.onlooker import annotated
from tests.real.beside.test_repair import (
    CONDITION,
    TOLERATION,
    a_fleet,
    by_force,
    repaired_by_force,
    until_said,
)
from tests.real.chronicle import is_leaving
from tests.real.narrow import Narrow
from tests.real.process import tenure_run
from tests.real.users import Json

OFFICE: Final = "MaintenanceWindow office"
#: Both graceful.
CAREFUL: Final = {"conditionType": CONDITION, "status": "True", "toleration": "3s"}
ENDED: Final = "2021-01-01T00:00:00Z"
#: Seconds, more than the story takes.
ROLLS: Final = 300
MORE: Final = (("patch", "nodeclaims"), ("delete", "nodeclaims"))


async def the_pool(seen: Accompanied, name: str) -> Json:
    found: Json = msgspec.json.decode(await seen.users.client.get(NODE_POOLS, name))
    return found


def test_while_karpenter_is_scaled_to_0_nothing_ends_and_windows_go_on(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            await seen.settle(by_force("web"), *a_fleet("web", 2), pods=2)
            claim, other = await seen.claims_in("web")
            async with scaled_to_nothing(karpenter):
                await until_said(
                    seen, await the_pool(seen, "web"), "KarpenterNotReady", "scaled to 0"
                )
                await unhealthy.say(seen.users, claim, CONDITION, "True")
                await seen.users.apply(a_block("office", "web", actions=["Drift"]))
                await seen.lever_set(other, OFFICE, FUTURE)
                await seen.until_past(await seen.now() + (TOLERATION + 4) * SECOND)
                await seen.untouched(claim, other)
                assert not [
                    one for one in await seen.claims_in("web") if TERMINATION_BY in annotated(one)
                ]
            await repaired_by_force(seen, claim)
            await seen.ready(await seen.follower(claim, other))
            await seen.untouched(other)
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, "scaled-to-0", story)


def test_while_karpenter_is_rolled_out_nothing_ends(karpenter: Karpenter, tmp_path: Path) -> None:
    """Pods of two templates run: which gates act is not known. Karpenter's process goes on."""

    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            await seen.settle(by_force("web"), *a_fleet("web", 2), pods=2)
            claim, other = await seen.claims_in("web")
            await asyncio.to_thread(roll_out, karpenter, seconds=ROLLS)
            await until_said(seen, await the_pool(seen, "web"), "KarpenterRollsOut", "rolled out")
            await unhealthy.say(seen.users, claim, CONDITION, "True")
            await seen.until_past(await seen.now() + (TOLERATION + 4) * SECOND)
            await seen.untouched(claim, other)
            await asyncio.to_thread(roll_out, karpenter, seconds=0)
            await repaired_by_force(seen, claim)
            await seen.untouched(other)
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, "rolled-out", story)


def roll_out(karpenter: Karpenter, *, seconds: int) -> None:
    """Another template: the pod of the one before stays for so long."""
    template = {"metadata": {"annotations": {"testbed/rolled-out": str(seconds)}}}
    where = ("deployment", NAME, f"--namespace={NAMESPACE}")
    patch = {"spec": {"minReadySeconds": seconds, "template": template}}
    kubectl(karpenter.plane, "patch", *where, "-p", json.dumps(patch))


@asynccontextmanager
async def scaled_to_nothing(karpenter: Karpenter) -> AsyncIterator[None]:
    await asyncio.to_thread(karpenter.kill)
    where = ("deployment", NAME, f"--namespace={NAMESPACE}")
    await asyncio.to_thread(kubectl, karpenter.plane, "scale", *where, "--replicas=0")
    try:
        yield
    finally:
        await asyncio.to_thread(karpenter.restart)


def test_an_unhealthy_node_of_a_pool_with_replicas_is_followed_by_karpenters_own(
    karpenter_with_repair: Karpenter, tmp_path: Path
) -> None:
    """With a replacement of Tenure's there would be one node too many, and Karpenter would delete one."""
    karpenter = karpenter_with_repair
    if karpenter.release < (1, 8):
        pytest.skip("that release does not know spec.replicas")

    async def story(seen: Accompanied) -> None:
        repair = {"terminationMode": "Graceful", "maxUnhealthy": "1", "policies": [CAREFUL]}
        with seen.tenure("tenure"):
            await asyncio.to_thread(karpenter.restart, gates="StaticCapacity=true")
            pool, deployment = a_fleet("web", 2)
            pool["spec"]["replicas"] = 2
            await seen.settle(a_policy("careful", "web", repair=repair), pool, deployment, pods=2)
            claim, other = await seen.claims_in("web")
            await unhealthy.say(seen.users, claim, CONDITION, "True")
            await seen.chronicle.first(claim, is_leaving, "leaving")
            await seen.ready(await seen.follower(claim, other))
            await seen.all_run(2)
            await seen.seconds_pass(10)
            await seen.untouched(other)
        assert len(seen.ever("web")) == 3, "one for the one that left"
        assert not [one for one in seen.ever("web") if REPLACES in annotated(one)]
        assert not seen.audit.entries(TENURE, verb="create", resource="nodeclaims")
        seen.wrote_only(*MORE)

    tell(karpenter, tmp_path, "replicas", story)


def test_without_the_right_to_list_policies_levers_stay_and_windows_go_on_until_it_is_granted(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        narrow = Narrow(karpenter.plane, seen.users.client, BESIDE_KARPENTER)
        kubeconfig = await narrow.without("nodepoolpolicies")
        await seen.settle(
            by_force("web"),
            *a_fleet("web", 1),
            *a_fleet("free", 1),
            a_block("office", "free", actions=["Drift"]),
            pods=2,
        )
        claim, free = await seen.claim_in("web"), await seen.claim_in("free")
        with tenure_run(kubeconfig, tmp_path, *FLAGS, name="narrow") as tenure:
            said = await asyncio.to_thread(
                tenure.until_said, "nodepoolpolicies.tenure.dev: 403 Forbidden"
            )
            assert (
                'cannot list resource "nodepoolpolicies" in API group "tenure.dev"'
                in said["message"]
            )
            assert "the role that comes with Tenure" in said["advice"]
            await until_said(
                seen,
                await the_pool(seen, "web"),
                "PoliciesUnlisted",
                "the ClusterRole of the chart",
            )
            version = await seen.lever_set(free, OFFICE, FUTURE)
            await unhealthy.say(seen.users, claim, CONDITION, "True")
            await seen.end_at("office", ENDED)
            await seen.until_past(await seen.now() + (TOLERATION + 4) * SECOND)
            await seen.untouched(claim, free)
            assert not lever_free(await unhealthy.node_of(seen.users, free)), (
                "a budget may ask for it"
            )

            await narrow.grant_all()
            await repaired_by_force(seen, claim)
            await seen.lever_removed(free, after=version)

    tell(karpenter, tmp_path, "narrow", story)
