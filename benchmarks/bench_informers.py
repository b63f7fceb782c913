"""Informers: what it costs to know a large cluster, on a real API server.

A real API server is filled with 5,000 nodes, their claims and 100,000 pods. Then ``tenure run``
is started as a process, three times, and looked at from outside: how long until everything is
listed, how much memory it holds, and how much of a core it takes while nothing happens and while
200 pods change in every second. Needs the test bed (``make bed``); filling takes minutes.

The limits (20 s, 1 GiB, a quarter of a core when idle) are the project's own promise.

    make bench ARGS=informers
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from benchmarks import fleet
from benchmarks.figures import Figure, Figures
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.kube.client.kubeconfig import load_access
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.clock.system import SystemClock
from tenure.schema.structure.crd import generate
from tenure.sim.apiserver.objects.customkinds import OWN_KINDS
from testbed.controlplane import ControlPlane, control_plane

NODES: Final = 5_000
PODS_PER_NODE: Final = 20
CHANGES_PER_SECOND: Final = 200
#: How often a replica is started; the middle one counts.
STARTS: Final = 3
#: Seconds of each look at the process.
LOOK: Final = 30.0
WRITERS: Final = 24
_MIB: Final = 2**20
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
_PROGRAM: Final = (sys.executable, "-c", "from tenure.cli.main import main; main()", "run")

T = TypeVar("T")


class _Identity(msgspec.Struct, frozen=True):
    uid: str = ""


class _Created(msgspec.Struct, frozen=True):
    metadata: _Identity = _Identity()


def measure(nodes: int = NODES) -> Figures:
    with control_plane(controllers=(), scheduler=False, kwok=False) as plane:
        asyncio.run(with_client(plane, lambda client: _fill(client, nodes)))
        with tempfile.TemporaryDirectory() as folder:
            return _measured(plane, Path(folder) / "log", nodes)


def _measured(plane: ControlPlane, log: Path, nodes: int) -> Figures:
    starts = [_start(plane, log) for _ in range(STARTS - 1)]
    with Replica(plane.kubeconfig, log) as replica:
        starts.append(replica.until_said("every kind is listed")["seconds"])
        synced = statistics.median(starts)
        replica.until_said("leading")
        _say(f"synced after {starts} s, {replica.memory / _MIB:.0f} MiB")
        replica.until_quiet()
        idle = replica.cores_during(lambda: time.sleep(LOOK))
        _say(f"idle: {idle:.3f} of a core")
        busy = replica.cores_during(lambda: asyncio.run(with_client(plane, _change_pods)))
        _say(f"at {CHANGES_PER_SECOND} changes per second: {busy:.3f} of a core")
        memory, peak = replica.memory, replica.memory_peak
    pods = nodes * PODS_PER_NODE
    return Figures(
        title=f"{nodes:,} nodes with claims and {pods:,} pods on a real API server",
        relative=(
            Figure(what="memory per object", value=memory / (2 * nodes + pods) / 1024, unit="KiB"),
            Figure(
                what="processor time per pod change",
                value=(busy - idle) / CHANGES_PER_SECOND * 1e3,
                unit="ms",
            ),
        ),
        absolute=(
            Figure(what="start to synced", value=synced, unit="s", limit=20),
            Figure(what="resident memory", value=memory / _MIB, unit="MiB", limit=1024),
            Figure(what="resident memory at its highest", value=peak / _MIB, unit="MiB"),
            Figure(what="of a core when idle", value=idle, limit=0.25),
            Figure(what=f"of a core at {CHANGES_PER_SECOND} pod changes/s", value=busy),
        ),
    )


def _start(plane: ControlPlane, log: Path) -> float:
    """A replica that starts and goes: the API server has just been filled, and is not at rest."""
    with Replica(plane.kubeconfig, log) as replica:
        seconds: float = replica.until_said("every kind is listed")["seconds"]
    log.unlink()
    return seconds


# -- the cluster -----------------------------------------------------------------------


async def with_client(plane: ControlPlane, work: Callable[[Client], Awaitable[T]]) -> T:
    access = load_access(plane.kubeconfig)
    async with HttpTransport(access, credentials_for(access, SystemClock())) as transport:
        return await work(Client(transport))


async def _fill(client: Client, nodes: int) -> None:
    began, pods = time.monotonic(), nodes * PODS_PER_NODE
    for crd in generate(OWN_KINDS):
        await client.create(_CRDS, crd)
    await until_served(client)
    for obj in fleet.setting():
        resource = {kind.kind: kind for kind in (KWOK_NODE_CLASSES, r.NODE_POOLS)}[obj["kind"]]
        await client.create(resource, obj)
    await client.create(
        r.NAMESPACES,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fleet.NAMESPACE}},
    )
    await side_by_side(range(nodes), lambda number: put_node(client, number))
    _say(f"{nodes:,} nodes and claims after {time.monotonic() - began:.0f} s")
    await side_by_side(
        range(pods),
        lambda number: client.create(r.PODS, fleet.bound_pod(number, nodes), fleet.NAMESPACE),
    )
    _say(f"{pods:,} pods after {time.monotonic() - began:.0f} s")


async def until_served(client: Client) -> None:
    while True:
        try:
            for kind in (r.NODE_CLAIMS, r.NODE_POOLS, r.MAINTENANCE_WINDOWS, KWOK_NODE_CLASSES):
                await client.list_page(kind)
        except Exception:  # noqa: BLE001  # not served yet
            await asyncio.sleep(0.1)
        else:
            return


async def put_node(client: Client, number: int) -> None:
    answer = await client.create(r.NODE_CLAIMS, fleet.claim(number))
    uid = msgspec.json.decode(answer, type=_Created).metadata.uid
    await client.create(r.NODES, fleet.node(number, uid))
    status = {"status": fleet.claim_status(number)}
    await client.patch(r.NODE_CLAIMS, fleet.claim_name(number), status, subresource="status")


async def side_by_side(numbers: Iterable[int], put: Callable[[int], Awaitable[Any]]) -> None:
    left = iter(numbers)

    async def writer() -> None:
        for number in left:
            await put(number)

    await asyncio.gather(*(writer() for _ in range(WRITERS)))


async def _change_pods(client: Client) -> None:
    """Pods start to run, at an even pace."""
    began = time.monotonic()
    total = int(LOOK * CHANGES_PER_SECOND)

    async def start(number: int) -> None:
        await asyncio.sleep(max(began + number / CHANGES_PER_SECOND - time.monotonic(), 0))
        name = fleet.pod_name(number)
        status = {"status": {"phase": "Running"}}
        await client.patch(r.PODS, name, status, namespace=fleet.NAMESPACE, subresource="status")

    await side_by_side(range(total), start)
    late = time.monotonic() - began - LOOK
    if late > LOOK / 10:
        _say(f"the API server was {late:.0f} s late: fewer than {CHANGES_PER_SECOND} per second")


# -- the process -----------------------------------------------------------------------


class Replica:
    """``tenure run``, looked at from outside."""

    def __init__(self, kubeconfig: Path, log: Path, *more: str) -> None:
        """``more``: flags."""
        self._log = log
        flags = (
            f"--kubeconfig={kubeconfig}", f"--cluster-name={fleet.CLUSTER}",
            "--metrics-port=0", "--health-probe-port=0", "--journal-port=0", "--log-format=json",
        )  # fmt: skip
        with log.open("wb") as output:
            command = [*_PROGRAM, *flags, *more]
            self._process = subprocess.Popen(command, stdout=output, stderr=output)  # noqa: S603  # our own program

    def __enter__(self) -> Replica:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def until_said(self, message: str) -> dict[str, Any]:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            for line in self._log.read_bytes().splitlines():
                if message.encode() in line and line.startswith(b"{"):
                    return dict(json.loads(line))
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.1)
        raise AssertionError(f"never said {message!r}:\n{self._log.read_text()[-3000:]}")

    def until_quiet(self) -> None:
        """What it does when it takes over is not idleness."""
        deadline = time.monotonic() + 300
        while self.cores_during(lambda: time.sleep(5)) > 0.5 and time.monotonic() < deadline:
            pass

    def cores_during(self, work: Callable[[], object]) -> float:
        cpu, began = self.cpu(), time.monotonic()
        work()
        return (self.cpu() - cpu) / (time.monotonic() - began)

    def cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> int:
        return self._status("VmRSS")

    @property
    def memory_peak(self) -> int:
        return self._status("VmHWM")

    def _status(self, field: str) -> int:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field} on this system")


def _say(text: str) -> None:
    print(f"  {text}", flush=True)
