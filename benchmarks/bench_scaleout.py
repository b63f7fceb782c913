"""A scale-out on a real control plane: how many nodes, at which price, and what it costs Tenure.

    python -m benchmarks.run scaleout          needs the test bed (make bed)

* 2,000 pods, four Deployments spread over four zones, arrive at 20 a second;
* 5,000 pods of 100m arrive within a minute.

``tenure run`` is a process with default settings. Processor time and the peak of its memory count from the
first pod to the last one that is bound. Then the Deployments are scaled to zero, and the nodes go by themselves.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.providers.kwok.catalogue import built_in_types
from testbed.controlplane import EVERY_CONTROLLER, ControlPlane, control_plane
from tests.builders import Manifest, a_deployment, a_node_class, a_pool, a_requirement
from tests.real.account import NAMESPACE, account, install_account
from tests.real.cluster import install_crds
from tests.real.footprint import Footprint
from tests.real.process import Process, tenure_run
from tests.real.test_run import total
from tests.real.users import Json, Users, users_at
from tests.scenarios.test_arrivals import a_spread_deployment

FLAGS: Final = (f"--leader-election-namespace={NAMESPACE}",)
#: Seconds; a busy machine takes long.
PATIENCE: Final = 1200.0
MIB: Final = 1024 * 1024


class Workload(msgspec.Struct, frozen=True):
    title: str
    namespace: str
    deployments: tuple[Manifest, ...]
    pods: int
    per_second: int
    nodes_max: int
    dollars_max: float | None = None
    #: Seconds, and MiB; Karpenter takes 10.9 s and 202 MiB for the first workload.
    cpu_max: float | None = None
    memory_max: float | None = None


class Measured(msgspec.Struct, frozen=True):
    """From the first pod to the last one that is bound."""

    nodes: int
    claims_made: float
    dollars: float
    cpu_seconds: float
    memory_before: int
    memory_peak: int
    seconds: float
    #: Until the last node was gone, after the Deployments were scaled to zero.
    away_after: float = 0.0


def workloads() -> tuple[Workload, ...]:
    spread = tuple(a_spread_deployment(number, 0) for number in (1, 2, 3, 4))
    small = (a_deployment("small", replicas=0, cpu="100m", memory="128Mi"),)
    return (
        Workload("2,000 zone-spread pods", "spread", spread, 2_000, 20, 55, 34.8, 6, 150),
        Workload("5,000 pods of 100m in a minute", "small", small, 5_000, 84, 55),
    )


def measure() -> Figures:
    measured: list[tuple[Workload, Measured]] = []
    with (
        control_plane(controllers=EVERY_CONTROLLER, scheduler=True, kwok=True) as plane,
        tempfile.TemporaryDirectory() as folder,
    ):
        install_crds(plane)
        install_account(plane)
        for work in workloads():
            with tenure_run(account(plane), Path(folder), *FLAGS, name=work.namespace) as tenure:
                tenure.until_leading()
                measured.append((work, asyncio.run(_run(plane, tenure, work))))
    return Figures(
        title="scale-out on a real control plane",
        relative=tuple(one for pair in measured for one in _counts(*pair)),
        absolute=tuple(one for pair in measured for one in _costs(*pair)),
    )


def _counts(work: Workload, measured: Measured) -> Iterator[Figure]:
    yield Figure(what=f"{work.title}: nodes", value=measured.nodes, limit=work.nodes_max)
    made = measured.claims_made
    yield Figure(what=f"{work.title}: claims made for them", value=made, limit=work.nodes_max)
    price = round(measured.dollars, 2)
    yield Figure(what=f"{work.title}: price", value=price, unit="$/h", limit=work.dollars_max)


def _costs(work: Workload, measured: Measured) -> Iterator[Figure]:
    for what, value, unit, limit in (
        ("processor time", measured.cpu_seconds, "s", work.cpu_max),
        ("peak of memory", measured.memory_peak / MIB, "MiB", work.memory_max),
        ("memory before", measured.memory_before / MIB, "MiB", None),
        ("first pod to last bound", measured.seconds, "s", None),
        ("scaled to zero to last node gone", measured.away_after, "s", None),
    ):
        yield Figure(what=f"{work.title}: {what}", value=value, unit=unit, limit=limit)


async def _run(plane: ControlPlane, tenure: Process, work: Workload) -> Measured:
    async with users_at(plane, work.namespace) as users:
        small = a_requirement("karpenter.kwok.sh/instance-cpu", "33", operator="Lt")
        pool = a_pool(
            work.namespace,
            requirements=[small, a_requirement(OS, "linux")],
            node_class=work.namespace,
        )
        await users.apply(a_node_class(work.namespace), pool, *work.deployments)
        footprint, began = Footprint(tenure.pid), time.monotonic()
        before = footprint.memory
        await _arrive(users, work)
        await _all_bound(users, work.pods)
        nodes = await users.all(NODES)
        measured = Measured(
            nodes=len(nodes),
            claims_made=total(tenure.get("/metrics")[1], "karpenter_nodeclaims_created_total"),
            dollars=dollars(nodes),
            cpu_seconds=footprint.cpu_seconds,
            memory_before=before,
            memory_peak=footprint.memory_peak,
            seconds=time.monotonic() - began,
        )
        print(f"  {work.title}: {measured}", flush=True)
        gone = await _scale_to_zero(users, work)
        return msgspec.structs.replace(measured, away_after=gone)


async def _arrive(users: Users, work: Workload) -> None:
    """As many pods each second; whoever falls behind makes up for it."""
    began, names = time.monotonic(), [each["metadata"]["name"] for each in work.deployments]
    each = 0
    while each < work.pods // len(names):
        due = int((time.monotonic() - began + 1) * work.per_second) // len(names)
        each = min(due, work.pods // len(names))
        for name in names:
            await users.scale(name, each)
        await asyncio.sleep(1)


async def _all_bound(users: Users, pods: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await _unbound(users) or len(await users.all(PODS)) < pods:
            await asyncio.sleep(1)


async def _unbound(users: Users) -> int:
    items, _ = await users.client.list_all(PODS, users.namespace, field_selector="spec.nodeName=")
    return len(items)


async def _scale_to_zero(users: Users, work: Workload) -> float:
    began = time.monotonic()
    for each in work.deployments:
        await users.scale(each["metadata"]["name"], 0)
    async with asyncio.timeout(PATIENCE):
        while await users.all(NODE_CLAIMS) or await users.all(NODES):
            await asyncio.sleep(1)
    return time.monotonic() - began


def dollars(nodes: Iterable[Json]) -> float:
    """An hour, of all of them."""
    prices = {
        (kind.name, one.zone, one.capacity_type): one.price
        for kind in built_in_types()
        for one in kind.offerings
    }
    labels = (node["metadata"]["labels"] for node in nodes)
    return sum(prices[of[INSTANCE_TYPE], of[ZONE], of[CAPACITY_TYPE]] for of in labels) / 1e6
