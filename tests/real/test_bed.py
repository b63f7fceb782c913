"""The test bed itself: it finds a port that is free, and leaves nothing behind when it is killed."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import controlplane
from testbed.controlplane import control_plane

#: Opens a control plane, says where it is, and waits for a blow.
HOLDER = """
from testbed.controlplane import control_plane
with control_plane() as plane:
    print(plane.kubeconfig.parent, plane.port, flush=True)
    input()
"""


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize("place", [0, 2], ids=["a port of etcd", "the port of the API server"])
def test_a_port_that_somebody_else_took_meanwhile_is_given_up_for_another(
    taken: int, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = controlplane._free_ports(3)
    first[place] = taken
    answers = iter([first])
    free_ports = controlplane._free_ports
    monkeypatch.setattr(controlplane, "_free_ports", lambda n: next(answers, None) or free_ports(n))
    with control_plane() as plane:
        assert plane.port not in first
        assert str(plane.port) in plane.kubeconfig.read_text()


def test_whoever_is_killed_with_kill_9_leaves_no_process_and_no_folder() -> None:
    with subprocess.Popen(  # noqa: S603  # our own words
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        folder, port = holder.stdout.readline().split()
        assert Path(folder).exists()
        holder.kill()
    deadline = time.monotonic() + 20
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(controlplane.LOOK_EVERY)
    assert not Path(folder).exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=5)
