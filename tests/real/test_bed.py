"""The test bed itself: it finds free ports, keeps nodes alive, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tenure.model.api.resource import LEASES, NODES
from testbed import controlplane
from testbed.controlplane import ControlPlane, control_plane
from tests.folders import ROOT
from tests.real import unhealthy as nodehealth
from tests.real.cluster import PATIENCE, patient
from tests.real.users import Users, is_true, users_at

#: Seconds; a control plane needs four.
#: Opens a control plane, lets Tenure loose on it, says where all that is, and waits for a blow.
HOLDER = """
import time
from pathlib import Path
from testbed.controlplane import control_plane
from tests.real.process import tenure_run

def test_that_never_ends(tmp_path):
    with control_plane() as plane, tenure_run(plane.kubeconfig, tmp_path) as tenure:
        told = f"{plane.kubeconfig.parent} {plane.port} {tenure.pid}\\n"
        Path("told.part").write_text(told)
        Path("told.part").rename("told")
        time.sleep(600)
"""


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize("place", [0, 2], ids=["a port of etcd", "the port of the API server"])
def test_a_port_that_is_taken_meanwhile_is_replaced_by_another(
    taken: int, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = controlplane.free_ports(3)
    first[place] = taken
    answers = iter([first])
    given = controlplane.free_ports
    monkeypatch.setattr(controlplane, "free_ports", lambda n: next(answers, None) or given(n))
    with control_plane() as plane:
        assert plane.port not in first
        assert str(plane.port) in plane.kubeconfig.read_text()


def test_pytest_that_is_killed_with_kill_9_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "test_holder.py").write_text(HOLDER)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "--config-file=/dev/null"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(  # noqa: S603  # our own words
        [*command, "-p", "no:cacheprovider", "test_holder.py"], cwd=tmp_path, env=environment
    ) as holder:
        until((tmp_path / "told").exists, "a control plane")
        folder, port, pid = (tmp_path / "told").read_text().split()
        assert Path(folder).exists()
        assert lives(pid)
        holder.kill()
    until(lambda: not Path(folder).exists(), "end of the control plane")
    until(lambda: not lives(pid), "end of Tenure")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=5)


def test_kwok_renews_the_lease_of_a_node_so_that_a_long_story_is_no_outage(
    cluster: ControlPlane,
) -> None:
    """Without one, the controllers would take the node for lost one day."""
    labels = {"kwok.x-k8s.io/node": "fake"}

    async def story() -> None:
        async with patient(cluster.kubeconfig) as client:
            await client.create(NODES, {"metadata": {"name": "kept", "labels": labels}})
            which = "metadata.name=kept"
            async with asyncio.timeout(PATIENCE):
                while not (await client.list_all(LEASES, field_selector=which))[0]:
                    await asyncio.sleep(controlplane.LOOK_EVERY)

    asyncio.run(story())


def test_what_is_written_into_the_conditions_of_a_node_outlives_its_heartbeat(
    cluster: ControlPlane,
) -> None:
    """So that a test can make a node unhealthy, and it stays so."""
    labels = {"kwok.x-k8s.io/node": "fake"}
    claim = {"status": {"nodeName": "unhealthy"}}

    async def story() -> None:
        async with users_at(cluster, "conditions") as users, asyncio.timeout(PATIENCE):
            await users.client.create(NODES, {"metadata": {"name": "unhealthy", "labels": labels}})
            await users.until(NODES, lambda nodes: all(map(is_true("Ready"), nodes)), "ready")
            await nodehealth.say(users, claim, "KWOKUnhealthy", "True")
            await nodehealth.say(users, claim, "Ready", "False")
            await beat(users, after=await beat(users, after=""))
            node = await nodehealth.node_of(users, claim)
            conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
            assert conditions == {"KWOKUnhealthy": "True", "Ready": "False"}

    async def beat(users: Users, *, after: str) -> str:
        """Until its Lease is renewed; when that was."""
        while True:
            found, _ = await users.client.list_all(LEASES, field_selector="metadata.name=unhealthy")
            for lease in map(msgspec.json.decode, found):
                if (renewed := lease["spec"]["renewTime"]) > after:
                    return str(renewed)
            await asyncio.sleep(controlplane.LOOK_EVERY)

    asyncio.run(story())


def lives(pid: str) -> bool:
    """Also where no init process reaps children, as in a container."""
    try:
        state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE:.0f} s"
        time.sleep(controlplane.LOOK_EVERY)
