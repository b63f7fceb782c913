"""Tenure is gone, and its levers stay: nodes are blocked, never forced; the marks say why; one line removes them."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

from tenure.model.api.resource import NODES
from testbed.karpenter import Karpenter
from tests.builders import DAY, SECOND
from tests.real import programs
from tests.real.beside.accompanied import (
    TENURE,
    Accompanied,
    a_block,
    a_lever,
    lever_free,
    marks,
    tell,
)
from tests.real.unhealthy import node_of
from tests.real.users import LOOK_EVERY, Json, is_true, names
from tests.real.voluntary import a_small_pool

PAGE: Final = Path(__file__).parents[3] / "docs" / "beside-karpenter.md"
OFFICE: Final = "MaintenanceWindow office"


def the_line() -> str:
    """The one that the page gives for levers, in a cluster without Tenure."""
    (line,) = [line for line in PAGE.read_text().splitlines() if "kubectl annotate @" in line]
    return line


async def drifted_with_levers_left(seen: Accompanied) -> tuple[list[Json], Json]:
    """Tenure is killed before its window ends. Later both pools have drifted, and one has rolled.

    The claims of the pool that has not, and the new claim of the pool that has.
    """
    held, deployment = a_small_pool("held", budgets=[{"nodes": "100%"}])
    deployment["spec"]["replicas"] = 2
    office = a_block("office", "held", actions=["Drift"])
    with seen.tenure("first") as tenure:
        await seen.settle(office, held, deployment, *a_small_pool("free"), pods=3)
        free, claims = await seen.claim_in("free"), await seen.claims_in("held")
        ends = await ends_with_marks(seen, claims)
        tenure.kill()
    until = f"{ends:%Y-%m-%dT%H:%M:%SZ}"
    await seen.until_past(ends)
    await seen.drift("held")
    await seen.drift("free")
    for claim in claims:
        await seen.chronicle.first(claim, is_true("Drifted"), "drifted")
    new = await seen.replaced(free, "Drifted")
    await seen.untouched(*claims)
    for claim in claims:
        assert a_lever(OFFICE, until)(await node_of(seen.users, claim))
    return claims, new


async def ends_with_marks(seen: Accompanied, claims: list[Json]) -> datetime:
    """The window ends soon, and the marks say so well before; a slow machine gets more time for that."""
    for seconds in (12, 48, 192):
        ends = await seen.end_soon("office", seconds)
        tells = a_lever(OFFICE, f"{ends:%Y-%m-%dT%H:%M:%SZ}")
        while await seen.now() < ends - seconds / 2 * SECOND:
            if all([tells(await node_of(seen.users, claim)) for claim in claims]):
                return ends
            await asyncio.sleep(LOOK_EVERY)
    raise AssertionError(f"{names(claims)}: no marks that say when the window ends")


def test_levers_of_a_tenure_that_is_gone_block_until_the_line_of_the_page_removes_them(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        claims, new = await drifted_with_levers_left(seen)
        await seen.protect(new)

        kubeconfig = karpenter.plane.kubeconfig
        said = await asyncio.to_thread(programs.said, kubeconfig, "bash", "-c", the_line())
        assert said.count("annotated") == len(claims)
        for claim in claims:
            await seen.removed(claim, "Drifted")
        await seen.all_run(3)
        (kept,) = [n for n in await seen.users.all(NODES) if not lever_free(n)]
        assert names([kept]) == [new["status"]["nodeName"]], "a user's protection stays"

    tell(karpenter, tmp_path, "gone", story)


def test_release_waits_for_the_replica_and_leaves_no_trace(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        await seen.settle(*a_small_pool("web"), pods=1)
        claim = await seen.claim_in("web")
        before = marks_and_finalizers(await node_of(seen.users, claim))
        await seen.users.apply(a_block("office", "web", actions=["Drift"]))
        with seen.tenure("killed") as tenure:
            version = await seen.lever_set(claim, OFFICE)
            refused = await release(karpenter)
            assert refused.returncode == 1
            assert "nothing is released: a replica runs" in refused.stderr
            tenure.kill()
        await seen.renew_lease()
        done = await release(karpenter)
        assert (done.returncode, done.stderr) == (0, "")
        version = await seen.lever_removed(claim, after=version)
        assert marks_and_finalizers(await node_of(seen.users, claim)) == before

        with seen.tenure("stopped", "--release") as tenure:
            version = await seen.lever_set(claim, OFFICE, after=version)
            assert await asyncio.to_thread(tenure.stop) == 0
        await seen.lever_removed(claim, after=version)
        assert marks_and_finalizers(await node_of(seen.users, claim)) == before

    tell(karpenter, tmp_path, "released", story)


def test_a_lever_past_its_end_is_counted_while_tenure_only_looks(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """As Tenure left it a day ago, before Karpenter was raised to a release that Tenure does not know."""

    async def story(seen: Accompanied) -> None:
        await seen.settle(*a_small_pool("web"), pods=1)
        claim = await seen.claim_in("web")
        day_ago = await seen.now() - DAY
        left = marks(OFFICE, f"{day_ago:%Y-%m-%dT%H:%M:%SZ}")
        await seen.users.client.patch(
            NODES, claim["status"]["nodeName"], {"metadata": {"annotations": left}}
        )
        with seen.tenure("looks", "--karpenter-version=1.99") as tenure:
            said = await asyncio.to_thread(tenure.until_said, "verdict", reason="OnlyLooks")
            assert "1.99" in said["because"]
            _, page = await asyncio.to_thread(tenure.get, "/metrics")
            assert "tenure_levers_past_end 1.0" in page.splitlines()
        await seen.untouched(claim)
        assert not lever_free(await node_of(seen.users, claim))
        assert not seen.audit.entries(TENURE, verb="patch", resource="nodes")

    tell(karpenter, tmp_path, "past-its-end", story)


async def release(karpenter: Karpenter) -> CompletedProcess[str]:
    program = Path(sys.executable).with_name("tenure")
    return await asyncio.to_thread(programs.run, karpenter.plane.kubeconfig, program, "release")


def marks_and_finalizers(node: Json) -> tuple[Json, list[str]]:
    metadata = node["metadata"]
    return metadata["annotations"], metadata["finalizers"]
