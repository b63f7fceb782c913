"""Annotations that no program of ours wrote: absurd, huge, or with our own marks. Nothing goes for them, and others are served."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from tenure.model.api import names
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODES
from testbed.karpenter import Karpenter
from tests.builders import Manifest
from tests.real.beside.accompanied import (
    FUTURE,
    TENURE,
    Accompanied,
    a_block,
    a_policy,
    marks,
    tell,
)
from tests.real.beside.onlooker import annotated, uid_of
from tests.real.chronicle import is_leaving
from tests.real.process import Process
from tests.real.unhealthy import node_of
from tests.real.users import Json
from tests.real.voluntary import a_small_pool

#: The API server takes 256 KiB for all annotations of an object.
HUGE: Final = "ü" * 100_000
LONG_AGO: Final = "0001-01-01T00:00:00Z"
AT_THE_END: Final = "9999-12-31T23:59:59Z"
OURS: Final = names.SET_BY_TENURE
#: Writes of Tenure for one object that is odd, in all the time that is watched.
FEW: Final = 12


def a_command(**more: str) -> dict[str, str]:
    """As if Tenure had begun to replace the claim."""
    return {
        names.REPLACED_BY: "no-such-claim",
        names.DISRUPTION_REASON: "Expired",
        names.DISRUPTED_BY: OURS,
        names.DISRUPTED_SINCE: LONG_AGO,
        names.EXPIRED_AT: LONG_AGO,
        **more,
    }


def a_deadline(at: str) -> dict[str, str]:
    return {
        names.TERMINATION_TIMESTAMP: at,
        names.TERMINATION_BY: OURS,
        names.TERMINATION_BECAUSE: "ReadinessTimeout",
        names.TERMINATION_AT: at,
    }


ON_CLAIMS: Final[dict[str, dict[str, str]]] = {
    "huge": {names.DO_NOT_DISRUPT: HUGE},
    "no-number": {names.DO_NOT_DISRUPT: "∞h", names.DO_NOT_REPAIR: "-1h"},
    "overflows": {names.DO_NOT_DISRUPT: "99999999999999999999h"},
    "since-the-end": {
        names.DO_NOT_DISRUPT: "1h",
        f"{names.DO_NOT_DISRUPT}-since": f"1h {AT_THE_END}",
    },
    "commanded": a_command(),
    "commanded-and-late": a_command(**a_deadline("2020-01-01T00:00:00Z")),
    "stamped": a_deadline("2020-01-01T00:00:00Z"),
    "stamped-at-the-end": a_deadline(AT_THE_END),
    "a-replacement": {names.CREATED_BY: OURS, names.REPLACES: "no-such-uid"},
    "its-own-replacement": {names.CREATED_BY: OURS},
    "lost": {names.NODE_LOST_AT: LONG_AGO, names.READY_ONCE_AT: HUGE},
    "expired": {names.EXPIRED_AT: LONG_AGO},
}
ON_NODES: Final[dict[str, dict[str, str]]] = {
    "forged": marks(HUGE, AT_THE_END),
    "forged-and-over": marks("🤖", LONG_AGO),
    "torn": {names.DO_NOT_DISRUPT_BECAUSE: HUGE, names.DO_NOT_DISRUPT_UNTIL: "∞"},
    "a-duration": {names.DO_NOT_DISRUPT: "1h", names.DO_NOT_DISRUPT_BY: OURS},
    "copied": {names.CREATED_BY: OURS, names.REPLACES: HUGE},
}


def a_careful_policy() -> Manifest:
    """All that could make a node go, and nothing that is due."""
    repair = {"terminationMode": "Forceful", "policies": []}
    times = {"readinessTTL": "1h", "initializationTTL": "1h", "expireAfter": "720h"}
    return a_policy("careful", "odd", **times, repair=repair, budgets=[{"nodes": "1"}])


def pools(nodes: int) -> tuple[Manifest, ...]:
    odd, deployment = a_small_pool("odd", template={"expireAfter": "Never"})
    deployment["spec"]["replicas"] = nodes
    return (odd, deployment, *a_small_pool("plain"))


async def in_time(seen: Accompanied, tenure: Process, plain: Json) -> None:
    """A window of another pool is kept and ends, so Tenure has come round to all of them."""
    await seen.users.apply(a_block("office", "plain", actions=["Drift"]))
    version = await seen.lever_set(plain, "MaintenanceWindow office", FUTURE)
    await seen.end_at("office", "2020-01-02T00:00:00Z")
    await seen.lever_removed(plain, after=version)
    assert tenure.running


async def nothing_goes(seen: Accompanied, claims: list[Json]) -> None:
    await seen.seconds_pass(10)
    await seen.chronicle.caught_up()
    for claim in claims:
        assert not seen.chronicle.seen(claim, is_leaving), annotated(claim)
    assert not seen.audit.entries(TENURE, verb="delete")
    assert not seen.audit.entries(TENURE, verb="create", resource="nodeclaims")


def is_bounded(seen: Accompanied, tenure: Process, odd: int) -> None:
    """Nothing is written again and again, no decider has failed, and no log or event is a megabyte."""
    written = [one for one in seen.audit.entries(TENURE) if one.verb in ("patch", "create")]
    assert len(written) <= FEW * (odd + 1), sorted({(w.verb, w.resource, w.name) for w in written})
    failed = [line for line in tenure.lines() if line.get("level") == "ERROR"]
    assert failed == []
    assert tenure.log_file.stat().st_size < 5_000_000
    assert max(map(len, tenure.log_file.read_bytes().splitlines())) < 20_000


@pytest.mark.parametrize("on", ["NodeClaims", "Nodes"])
def test_odd_annotations_and_forged_marks_make_no_node_go_and_hold_up_no_other(
    karpenter: Karpenter, tmp_path: Path, on: str
) -> None:
    cases = ON_CLAIMS if on == "NodeClaims" else ON_NODES

    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure") as tenure:
            await seen.settle(a_careful_policy(), *pools(len(cases)), pods=len(cases) + 1)
            claims, plain = await seen.claims_in("odd"), await seen.claim_in("plain")
            await seen.until_open(claims, 1)
            for claim, annotations in zip(claims, cases.values(), strict=True):
                await annotate(seen, claim, on, annotations)
            await in_time(seen, tenure, plain)
            await nothing_goes(seen, claims)
            await asyncio.to_thread(is_bounded, seen, tenure, len(claims))
            await no_event_is_long(seen)
            for claim in claims:  # And good again.
                await annotate(seen, claim, on, dict.fromkeys(all_of(cases)))
            await seen.until_open(claims, 1)
            await nothing_goes(seen, claims)

    tell(karpenter, tmp_path, f"hostile-{on.lower()}", story)


def all_of(cases: dict[str, dict[str, str]]) -> set[str]:
    return {key for annotations in cases.values() for key in annotations}


async def annotate(seen: Accompanied, claim: Json, on: str, annotations: dict[str, Any]) -> None:
    resource, name = NODE_CLAIMS, claim["metadata"]["name"]
    if on == "Nodes":
        resource, name = NODES, claim["status"]["nodeName"]
        assert uid_of(await node_of(seen.users, claim))
    await seen.users.client.patch(resource, name, {"metadata": {"annotations": annotations}})


async def no_event_is_long(seen: Accompanied) -> None:
    items, _ = await seen.users.client.list_all(EVENTS)
    assert max(map(len, items), default=0) < 10_000
