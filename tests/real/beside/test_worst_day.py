"""Sixty pods with PDBs on nodes that expire and become unhealthy, and either side fails again and again.

A replica of Tenure is killed, or sleeps past its Lease; Karpenter is killed; the API server goes and comes back. At no
time more is disrupted than PDBs and the budget of the policy allow, no lever is torn, and in the end nothing is
doubled or left over. ``TESTBED_FAULTS=40`` is a longer day, ``TESTBED_SEED`` another one.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from itertools import count
from math import inf
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tenure.errors import ApiError
from tenure.model.api.names import REPLACED_BY, REPLACES
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOL_POLICIES, NODES
from testbed.karpenter import Karpenter
from tests.builders import Manifest, a_deployment, a_pdb, a_stateful_set
from tests.real import unhealthy
from tests.real.beside.accompanied import (
    ALLOWED,
    TENURE,
    Accompanied,
    a_policy,
    marks_of,
    tell,
)
from tests.real.beside.onlooker import annotated, pool_of
from tests.real.beside.test_replacing import CONDITION, EAGER, MORE, a_pool_of
from tests.real.chronicle import is_leaving, version_of
from tests.real.deadlines import in_place
from tests.real.process import Process
from tests.real.scene import EIGHT_CORES
from tests.real.users import LOOK_EVERY, PATIENCE, Json, is_true, running
from tests.real.voluntary import a_small_pool

pytestmark = pytest.mark.process_story

FAULTS: Final = int(os.environ.get("TESTBED_FAULTS", "8"))
SEED: Final = int(os.environ.get("TESTBED_SEED", "1"))
#: Of each: its pods, and how many a PDB lets be away.
WORKLOADS: Final = {"web": (30, 3), "db": (10, 1), "batch": (20, 20)}
WORN: Final = 4
PODS: Final = sum(pods for pods, _ in WORKLOADS.values()) + WORN
#: Seconds.
EXPIRES: Final = 60
#: Versions of anything between two faults, at the most.
BETWEEN: Final = 60


def the_cluster() -> list[Manifest]:
    on = in_place("busy")
    busy, _ = a_small_pool("busy", template={"expireAfter": "Never"}, **EAGER)
    (type_,) = busy["spec"]["template"]["spec"]["requirements"][1:]
    type_["values"] = [EIGHT_CORES]
    rule = {"conditionType": CONDITION, "status": "True", "toleration": "3s"}
    repair = {"terminationMode": "Graceful", "maxUnhealthy": "100%", "policies": [rule]}
    young = {"expireAfter": f"{EXPIRES}s", "budgets": [{"nodes": "1"}]}
    return [
        busy,
        a_deployment("web", replicas=WORKLOADS["web"][0], **on),
        a_stateful_set("db", replicas=WORKLOADS["db"][0], policy="Parallel", **on),
        a_deployment("batch", replicas=WORKLOADS["batch"][0], **on),
        *(a_pdb(app, maxUnavailable=away) for app, (_, away) in WORKLOADS.items()),
        a_policy("young", "busy", **young),
        *a_pool_of(WORN, "worn", **EAGER),
        a_policy("careful", "worn", repair=repair),
    ]


class Day:
    """Two replicas, of which one leads, and what goes wrong."""

    def __init__(self, seen: Accompanied, stack: ExitStack) -> None:
        self.seen = seen
        self._stack = stack
        self._lives = count(1)
        self._replicas = [self._begin(), self._begin()]

    def _begin(self) -> Process:
        return self._stack.enter_context(self.seen.tenure(f"life-{next(self._lives)}"))

    async def tenure_is_killed(self) -> None:
        victim = await self._leader()
        victim.kill()
        self._replicas[self._replicas.index(victim)] = self._begin()

    async def tenure_sleeps_past_its_lease(self) -> None:
        victim = await self._leader()
        victim.pause()
        await self._leader(but=victim)
        victim.wake()

    async def karpenter_is_killed(self) -> None:
        await self.seen.restart_karpenter()

    async def the_api_server_goes_and_comes_back(self) -> None:
        plane = self.seen.karpenter.plane
        await asyncio.to_thread(plane.stop_api_server)
        await asyncio.to_thread(plane.start_api_server)
        async with asyncio.timeout(PATIENCE):
            while not await self._is_back():
                await asyncio.sleep(LOOK_EVERY)

    async def _is_back(self) -> bool:
        """It knows its rights and has filled its caches."""
        try:
            return bool(await self.seen.users.all(NODE_CLAIMS))
        except ApiError:
            return False

    async def a_node_becomes_unhealthy(self) -> None:
        well = [
            claim
            for claim in await self.seen.claims_in("worn")
            if is_true("Initialized")(claim) and not is_leaving(claim)
        ]
        if well:
            await unhealthy.say(self.seen.users, well[0], CONDITION, "True")

    async def _leader(self, but: Process | None = None) -> Process:
        """Until one leads."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for one in self._replicas:
                    if one is not but and leads(one):
                        return one
                await asyncio.sleep(LOOK_EVERY)

    @property
    def faults(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self.tenure_is_killed,
            self.tenure_sleeps_past_its_lease,
            self.karpenter_is_killed,
            self.the_api_server_goes_and_comes_back,
            self.a_node_becomes_unhealthy,
        ]


def leads(process: Process) -> bool:
    """By its own last word on that."""
    words = [line["message"] for line in process.lines()]
    told = [word for word in words if word.startswith(("leading: the Lease", "stopped: "))]
    return bool(told) and told[-1].startswith("leading")


def heard(seen: Accompanied) -> int:
    return sum(map(len, seen.chronicle.versions.values()))


async def some_time(seen: Accompanied, versions: int) -> None:
    """Until so much has happened: faults come at any moment of a command."""
    until = heard(seen) + versions
    async with asyncio.timeout(PATIENCE):
        while heard(seen) < until:
            seen.chronicle.goes_on()
            await asyncio.sleep(LOOK_EVERY)


async def all_is_over(seen: Accompanied) -> None:
    def is_whole(claims: list[Json]) -> bool:
        marked = any({REPLACED_BY, REPLACES} & annotated(one).keys() for one in claims)
        return not marked and all(is_true("Initialized")(one) for one in claims)

    await seen.users.until(NODE_CLAIMS, is_whole, "without marks")
    await seen.users.until(NODES, lambda now: not any(map(marks_of, now)), "without levers")
    await seen.all_run(PODS)


def commanded(seen: Accompanied, claim: Json) -> Iterator[tuple[int, float]]:
    """From when until when a command of Tenure's had it: rolled back, or its Node gone."""
    begun: int | None = None
    for version in (known := seen.chronicle.of(claim)):
        marked = REPLACED_BY in annotated(version)
        if marked and begun is None:
            begun = version_of(version)
        elif not marked and begun is not None:
            yield begun, version_of(version)
            begun = None
    if begun is not None:
        last = seen.chronicle.of(seen.chronicle.node_of(known[-1]))[-1]
        yield begun, version_of(last) if is_leaving(last) else inf


def fewest(seen: Accompanied, app: str) -> int:
    """Pods of it that ran at a time, from the moment on at which all did."""
    pods = [v for v in seen.chronicle.versions.values() if _is_of(v[-1], app)]
    changes = sorted((pod for versions in pods for pod in versions), key=version_of)
    there, least, whole = set[str](), WORKLOADS[app][0], False
    for pod in changes:
        uid = pod["metadata"]["uid"]
        there = there | {uid} if running([pod]) else there - {uid}
        whole = whole or len(there) == WORKLOADS[app][0]
        least = min(least, len(there)) if whole else least
    return least


def _is_of(thing: Json, app: str) -> bool:
    return bool(thing["metadata"].get("labels", {}).get("app") == app)


def test_whatever_fails_pdbs_and_budgets_are_kept_and_nothing_is_left_over(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        random, told = Random(SEED), Counter[str]()
        with ExitStack() as stack:
            await seen.settle(*the_cluster(), pods=PODS)
            day = Day(seen, stack)
            for _ in range(FAULTS):
                await some_time(seen, random.randint(1, BETWEEN))
                fault = random.choice(day.faults)
                told[fault.__name__] += 1
                await fault()
            never = {"spec": {"expireAfter": "Never", "budgets": None}}
            await seen.users.client.patch(NODE_POOL_POLICIES, "young", never)
            await all_is_over(seen)
            await seen.chronicle.caught_up()

        claims, nodes = await seen.users.all(NODE_CLAIMS), await seen.users.all(NODES)
        owned = sorted(n["spec"]["providerID"] for n in nodes if n["spec"].get("providerID"))
        assert owned == sorted(one["status"]["providerID"] for one in claims), "leaked, or doubled"
        for app, (pods, away) in WORKLOADS.items():
            assert fewest(seen, app) >= pods - away, app
        busy = seen.ever("busy")
        spans = [span for one in busy for span in commanded(seen, one)]
        assert max(sum(a <= begun < z for a, z in spans) for begun, _ in spans) == 1
        known = (seen.chronicle.of(one)[-1] for one in busy)
        await seen.levers_whole(*(c for c in known if c.get("status", {}).get("nodeName")))
        replaced = len(seen.disrupted("busy"))
        assert len(busy) <= len([c for c in claims if pool_of(c) == "busy"]) + 2 * replaced
        print(f"\nworst day: {dict(told)}, {replaced} of {len(busy)} busy nodes left")  # noqa: T201
        asked = {(each.verb, each.resource) for each in seen.audit.entries(TENURE)}
        assert asked <= ALLOWED | {*MORE, ("patch", "nodepools")}

    tell(karpenter, tmp_path, "worst-day", story)
