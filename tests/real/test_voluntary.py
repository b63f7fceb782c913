"""Windows and budgets block drift, expiration and emptiness, and let them go when they open."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS
from testbed.controlplane import ControlPlane
from tests.builders import Manifest
from tests.real.chronicle import Chronicle, Holds, says
from tests.real.deadlines import Leaving
from tests.real.process import Process
from tests.real.replacements import tell
from tests.real.terminations import at
from tests.real.users import Json, names
from tests.real.voluntary import (
    a_small_pool,
    allow,
    blocked,
    change_labels,
    change_template,
    quiet,
    removed,
    replaced,
    untouched,
)

PAST: Final = "2020-01-01T00:00:00Z"
FUTURE: Final = "2099-01-01T00:00:00Z"
#: Of the pools of these names.
REASONS: Final = {"drift": "Drifted", "expire": "Expired", "empty": "Empty"}


def a_window(name: str, **spec: Any) -> Manifest:
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def closed_to(reason: str) -> Manifest:
    return {"nodes": "0", "reasons": [reason]}


#: A claim is older than that as soon as its node is there. Its replacement must not be, and is told
#: not to expire by a change of the template, which is a drift.
SHORT_LIVED: Final = {"expireAfter": "1s"}


async def candidates(leaving: Leaving) -> dict[str, Json]:
    """One of each kind; by pool."""
    found = {pool: await leaving.claim_in(pool) for pool in REASONS}
    await change_template(leaving, "expire", expireAfter="Never")
    await change_labels(leaving, "drift")
    await leaving.users.scale("empty", 0)
    return found


def test_windows_block_and_release_drift_expiration_and_emptiness(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        drift_closed = [closed_to("Drifted")]
        await leaving.settle(
            a_window("freeze", actions=["Drift", "EmptyConsolidation"]),
            a_window(
                "quiet-hours",
                type="Allow",
                actions=["Expiration"],
                dates=[{"from": PAST, "until": PAST.replace("01-01", "01-02")}],
            ),
            *a_small_pool("drift"),
            *a_small_pool("expire", template=SHORT_LIVED, budgets=drift_closed),
            *a_small_pool("empty", consolidateAfter="0s"),
            pods=3,
        )
        claims = await candidates(leaving)
        await blocked(leaving, claims["drift"], "MaintenanceWindow freeze blocks Drift of Node")
        await blocked(leaving, claims["empty"], "MaintenanceWindow freeze blocks", "Consolidation")
        await blocked(
            leaving, claims["expire"], "Expiration of Node", "by MaintenanceWindow quiet-hours only"
        )
        await untouched(leaving, chronicle, *claims.values())
        await quiet(leaving)

        change = await open_soon(leaving)
        await asyncio.gather(
            replaced(leaving, chronicle, claims["drift"], "Drifted"),
            replaced(leaving, chronicle, claims["expire"], "Expired"),
            removed(leaving, chronicle, claims["empty"], "Empty"),
        )
        for pool, claim in claims.items():
            (said, *_) = chronicle.seen(claim, says("DisruptionReason", "True", REASONS[pool]))
            assert instant_of(said) >= change
        await leaving.scene.all_run(2)
        await leaving.scene.in_order(claims=2, ever=5)

    tell(cluster, tmp_path, "windows", story)


async def open_soon(leaving: Leaving) -> datetime:
    """By the clock alone, a few seconds after the last edit: one window closes, the other opens."""
    change = (datetime.now(UTC) + timedelta(seconds=4)).replace(microsecond=0)
    text = f"{change:%Y-%m-%dT%H:%M:%SZ}"
    for window, date in (
        ("freeze", {"from": PAST, "until": text}),
        ("quiet-hours", {"from": text, "until": FUTURE}),
    ):
        await leaving.users.client.patch(MAINTENANCE_WINDOWS, window, {"spec": {"dates": [date]}})
    return change


def test_budgets_block_and_release_drift_expiration_and_emptiness(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        await leaving.settle(
            *a_small_pool("drift", budgets=[closed_to("Drifted")]),
            *a_small_pool(
                "expire",
                template=SHORT_LIVED,
                budgets=[closed_to("Expired"), closed_to("Drifted")],
            ),
            *a_small_pool("empty", consolidateAfter="0s", budgets=[closed_to("Empty")]),
            pods=3,
        )
        claims = await candidates(leaving)
        for pool, claim in claims.items():
            budget = f"budget 0 ({REASONS[pool]}) of NodePool {pool} allows 0 of 1 Node"
            await blocked(leaving, claim, budget)
        await untouched(leaving, chronicle, *claims.values())

        await allow(leaving, "drift", {"nodes": "1"})
        await allow(leaving, "expire", {"nodes": "1"}, closed_to("Drifted"))
        await allow(leaving, "empty", {"nodes": "1"})
        await asyncio.gather(
            replaced(leaving, chronicle, claims["drift"], "Drifted"),
            replaced(leaving, chronicle, claims["expire"], "Expired"),
            removed(leaving, chronicle, claims["empty"], "Empty"),
        )
        await leaving.scene.all_run(2)
        await leaving.scene.in_order(claims=2, ever=5)

    tell(cluster, tmp_path, "budgets", story)


def test_a_start_counts_for_the_next_process_too_where_a_budget_has_a_span(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        pool, web = a_small_pool("paced", budgets=[{"nodes": "1", "within": "1h"}])
        web["spec"]["replicas"] = 2
        await leaving.settle(pool, web, pods=2)
        old = await leaving.users.all(NODE_CLAIMS)
        await change_labels(leaving, "paced")
        (found,) = await leaving.users.until(
            NODE_POOLS, lambda pools: bool(starts_of(pools[0])), "a start that is recorded"
        )
        (start,) = starts_of(found)
        assert start["reason"] == "Drifted"
        (goes,) = [claim for claim in old if claim["metadata"]["uid"] == start["claim"]]
        (waits,) = [claim for claim in old if claim != goes]
        await blocked(leaving, waits, "allows 1 start in any 1h for 2 Nodes")
        await started_and_replaced(leaving, chronicle, found, goes)

        await asyncio.to_thread(leaving.tenure.stop)
        with leaving.scene.tenure("second") as second:
            said = await asyncio.to_thread(blocked_by_log, second, waits)
            assert "1 was started" in said["because"]
            assert not chronicle.seen(waits, says("DisruptionReason", "True"))
            await allow(leaving, "paced", {"nodes": "2", "within": "1h"})
            await started_and_replaced(leaving, chronicle, found, waits)
            await leaving.scene.all_run(2)
            await leaving.scene.in_order(claims=2, ever=4)

    tell(cluster, tmp_path, "paced", story)


async def started_and_replaced(
    leaving: Leaving, chronicle: Chronicle, pool: Json, claim: Json
) -> None:
    await replaced(leaving, chronicle, claim, "Drifted")
    recorded = await chronicle.first(pool, has_start(claim["metadata"]["uid"]), "recorded")
    assert recorded < await chronicle.first(claim, says("DisruptionReason", "True"), "so")


def blocked_by_log(tenure: Process, claim: Json) -> Json:
    """Until the log says so: an event of the process before it would not tell."""
    subject = f"NodeClaim/{names([claim])[0]}"
    return tenure.until_said("verdict", subject=subject, reason="DisruptionBlocked")


def starts_of(pool: Json) -> list[Json]:
    return list(pool.get("status", {}).get("disruptionStarts", []))


def has_start(claim: str) -> Holds:
    return lambda pool: any(start["claim"] == claim for start in starts_of(pool))


def instant_of(claim: Json) -> datetime:
    """Since when it says why it is disrupted."""
    (found,) = [c for c in claim["status"]["conditions"] if c["type"] == "DisruptionReason"]
    return at(found["lastTransitionTime"])
