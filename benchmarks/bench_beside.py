"""Beside Karpenter on a real API server: a window opens over 1,000 nodes, then a policy limits them.

No Karpenter runs: Nodes and claims are written by hand, and its release is named by a flag. The audit log of
the API server says how many requests Tenure makes and when the last of them was answered; processor time and
memory are read from outside. Needs the test bed (``make bed``).

The limit (30 s at the default rate of requests) is the project's own promise.

    make bench ARGS=beside
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import fleet
from benchmarks.bench_informers import Replica, put_node, side_by_side, until_served, with_client
from benchmarks.figures import Figure, Figures
from tenure.kube.client.client import Client
from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.model.api.meta import read_instant
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.schema.structure.crd import generate
from tenure.sim.apiserver.objects.customkinds import OWN_KINDS
from testbed.controlplane import ADMINISTRATORS, ControlPlane, control_plane

NODES: Final = 1_000
#: Of them the policy leaves so many open.
OPEN: Final = 100
#: Seconds.
ANNOTATED_WITHIN: Final = 30.0
IDLE: Final = 60.0
#: So long without a write, and no more come.
RESTS: Final = 15.0
_MIB: Final = 2**20
_ACCOUNT: Final = "system:serviceaccount:tenure:bench"
_FLAGS: Final = (
    "--beside-karpenter",
    "--karpenter-version=1.15",
    "--leader-election-namespace=default",
)
WINDOW: Final = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "freeze"},
    "spec": {"actions": ["Drift", "Consolidation"]},
}
POLICY: Final = {
    "apiVersion": "tenure.dev/v1alpha1",
    "kind": "NodePoolPolicy",
    "metadata": {"name": "slow"},
    "spec": {"budgets": [{"nodes": str(OPEN)}]},
}


class Step(msgspec.Struct, frozen=True):
    """What it took until all Nodes were written that had to be."""

    writes: int
    requests: int
    seconds: float
    processor: float


def measure(nodes: int = NODES) -> Figures:
    with (
        control_plane(controllers=(), scheduler=False, kwok=False) as plane,
        tempfile.TemporaryDirectory() as folder,
    ):
        asyncio.run(with_client(plane, lambda client: _fill(client, nodes)))
        kubeconfig = plane.kubeconfig_for(_ACCOUNT, ADMINISTRATORS, "system:serviceaccounts")
        with Replica(kubeconfig, Path(folder) / "log", *_FLAGS) as replica:
            replica.until_said("leading")
            replica.until_quiet()
            return _measured(plane, replica, nodes)


def _measured(plane: ControlPlane, replica: Replica, nodes: int) -> Figures:
    steps = _Steps(plane, replica)
    opens = steps.during(nodes, lambda client: client.create(r.MAINTENANCE_WINDOWS, WINDOW))
    assert asyncio.run(with_client(plane, _covered)) == nodes
    idle = replica.cores_during(lambda: time.sleep(IDLE)) * 60
    memory = replica.memory
    closes = steps.during(nodes, _close)
    limits = steps.during(nodes - OPEN, lambda client: client.create(r.NODE_POOL_POLICIES, POLICY))
    limited = asyncio.run(with_client(plane, _covered))
    assert limited == nodes - OPEN, f"{limited} of {nodes} are covered"
    held = replica.cores_during(lambda: time.sleep(IDLE)) * 60
    return Figures(
        title=f"Beside Karpenter, {nodes:,} nodes on a real API server",
        relative=(
            Figure(what="writes per node, a window opens", value=opens.writes / nodes, limit=1),
            Figure(what="requests per node, a window opens", value=opens.requests / nodes),
            Figure(what="writes per node, a window closes", value=closes.writes / nodes, limit=1),
            Figure(
                what="writes per covered node, a policy limits the pool",
                value=limits.writes / (nodes - OPEN),
                limit=1,
            ),
        ),
        absolute=(
            *_seconds("a window opens", opens, ANNOTATED_WITHIN),
            *_seconds("a window closes", closes),
            *_seconds("a policy limits the pool", limits),
            Figure(what="processor time per minute, at rest under a window", value=idle, unit="s"),
            Figure(what="processor time per minute, at rest under a policy", value=held, unit="s"),
            Figure(what="resident memory", value=memory / _MIB, unit="MiB"),
        ),
    )


def _seconds(when: str, step: Step, limit: float | None = None) -> tuple[Figure, Figure]:
    return (
        Figure(what=f"{when}: to the last node", value=step.seconds, unit="s", limit=limit),
        Figure(what=f"{when}: processor time", value=step.processor, unit="s"),
    )


class _Steps:
    def __init__(self, plane: ControlPlane, replica: Replica) -> None:
        self._plane, self._replica = plane, replica
        self._log = plane.audit_log

    def during(self, writes: int, deed: Callable[[Client], Awaitable[Any]]) -> Step:
        """Until Tenure has written so many Nodes; then until it is at rest."""
        begin, cpu = self._log.stat().st_size, self._replica.cpu()
        asyncio.run(with_client(self._plane, deed))
        began, seen, since = datetime.now(UTC), 0, time.monotonic()
        while seen < writes and time.monotonic() < since + RESTS:
            time.sleep(0.5)
            if (
                now := len(self._writes(begin))
            ) > seen:  # An answer may be lost, and the write done.
                seen, since = now, time.monotonic()
        self._replica.until_quiet()
        found = self._writes(begin)
        processor = self._replica.cpu() - cpu
        last = max((read_instant(one["stageTimestamp"]) or began for one in found), default=began)
        seconds = (last - began).total_seconds()
        print(f"  {len(found):,} writes within {seconds:.1f} s", flush=True)
        return Step(len(found), len(self._requests(begin)), seconds, processor)

    def _writes(self, begin: int) -> list[Any]:
        return [
            one
            for one in self._requests(begin)
            if one["verb"] == "patch"
            and one["objectRef"]["resource"] == "nodes"
            and one["responseStatus"]["code"] == 200
        ]

    def _requests(self, begin: int) -> list[Any]:
        """Since then, without the Lease; a watch that goes on is none."""
        with self._log.open("rb") as log:
            log.seek(begin)
            lines = [line for line in log.read().splitlines() if line.endswith(b"}")]
        found = (json.loads(line) for line in lines)
        return [
            one
            for one in found
            if one["user"]["username"] == _ACCOUNT
            and one["stage"] == "ResponseComplete"
            and one["verb"] != "watch"
            and one.get("objectRef", {}).get("resource") not in (None, "leases")
        ]


async def _fill(client: Client, nodes: int) -> None:
    for crd in generate(OWN_KINDS):
        await client.create(r.CRDS, crd)
    await until_served(client)
    for obj in fleet.setting():
        resource = {kind.kind: kind for kind in (KWOK_NODE_CLASSES, r.NODE_POOLS)}[obj["kind"]]
        await client.create(resource, obj)
    await side_by_side(range(nodes), lambda number: put_node(client, number))
    print(f"  {nodes:,} nodes and claims are there", flush=True)


async def _close(client: Client) -> None:
    window = msgspec.json.decode(await client.get(r.MAINTENANCE_WINDOWS, "freeze"))
    await client.delete(r.MAINTENANCE_WINDOWS, "freeze", uid=window["metadata"]["uid"])


async def _covered(client: Client) -> int:
    raw, _ = await client.list_all(r.NODES)
    found = (msgspec.json.decode(bytes(item)) for item in raw)
    annotated = (one["metadata"].get("annotations") or {} for one in found)
    return sum(names.DO_NOT_DISRUPT in one for one in annotated)
