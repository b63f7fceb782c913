"""The processes of a test bed end with the process that started them, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed import keeper as keeper_module
from testbed.controlplane import ControlPlane

Keeper = subprocess.Popen[bytes]
#: Says that it lives, and holds the pipe open until it does not.
LIVES = "exec 3> {pipe}; echo alive >&3; exec sleep 600"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def keeper(folder: Path) -> Iterator[Keeper]:
    command = [sys.executable, str(Path(keeper_module.__file__)), str(folder)]
    with subprocess.Popen(  # noqa: S603  # our own words
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        yield process
        process.kill()


def order(keeper: Keeper, do: str, *command: str) -> None:
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.write(json.dumps({"do": do, "name": "it", "command": command}).encode() + b"\n")
    keeper.stdin.flush()
    assert keeper.stdout.readline()


def living(keeper: Keeper, pipe: Path) -> int:
    """Starts a program; comes back, when it lives, with a pipe that ends when it does."""
    os.mkfifo(pipe)
    order(keeper, "start", "/bin/sh", "-c", LIVES.format(pipe=pipe))
    reading = os.open(pipe, os.O_RDONLY)
    assert os.read(reading, 6) == b"alive\n"
    return reading


def ends(reading: int) -> bool:
    ended = os.read(reading, 1) == b""
    os.close(reading)
    return ended


def test_when_the_orders_end_the_processes_and_the_folder_are_gone(
    keeper: Keeper, folder: Path, tmp_path: Path
) -> None:
    reading = living(keeper, tmp_path / "pipe")
    assert keeper.stdin is not None
    keeper.stdin.close()  # As the kernel does for one who was killed.
    assert keeper.wait(240) == 0
    assert ends(reading)
    assert not folder.exists()


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_keeper_is_killed_so_are_the_processes(
    keeper: Keeper, tmp_path: Path, blow: signal.Signals
) -> None:
    reading = living(keeper, tmp_path / "pipe")
    keeper.send_signal(blow)
    assert ends(reading)


def test_an_order_that_is_answered_is_carried_out(
    keeper: Keeper, folder: Path, tmp_path: Path
) -> None:
    first = living(keeper, tmp_path / "first")
    second = living(keeper, tmp_path / "second")  # Under the same name: the first one goes.
    assert ends(first)
    order(keeper, "stop")
    assert ends(second)
    assert (folder / "it.ended").read_text() == "stopped"


def test_ctrl_c_is_not_for_the_keeper(keeper: Keeper, tmp_path: Path) -> None:
    reading = living(keeper, tmp_path / "pipe")
    keeper.send_signal(signal.SIGINT)
    order(keeper, "stop")  # It still obeys.
    assert ends(reading)


@pytest.mark.timeout(240)
def test_orders_of_several_threads_are_each_answered(keeper: Keeper, folder: Path) -> None:
    """One that reads an answer must not take that of another: it would wait for ever."""
    plane = ControlPlane(folder, keeper)

    def give_orders(name: str) -> int:
        for _ in range(200):
            plane.kill_program(name)
        return 200

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(give_orders, map(str, range(8)))) == 1600


def test_a_program_that_is_stopped_never_looks_as_if_it_had_ended_by_itself(
    keeper: Keeper, folder: Path
) -> None:
    plane, told = ControlPlane(folder, keeper), threading.Event()
    lies: list[str] = []

    def look() -> None:
        while not told.is_set():
            if plane.ended_by_itself("it"):
                lies.append("it")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(500):
            plane.kill_program("it")
    finally:
        told.set()
        looking.join()
    assert lies == []
