"""What the kernel does with our writes while the network is down."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.folders import ROOT


def test_a_write_into_a_dead_network_does_not_come_through_when_it_is_back() -> None:
    """The leader of then may not lead by now. Unless told, the kernel says it again and again."""
    alone = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or _fails([*alone, "true"]):
        pytest.skip("no network namespace of our own can be had here")
    child = subprocess.run(  # noqa: S603  # our own words
        [*alone, sys.executable, "-m", "tests.kube.outage"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (child.stdout, child.returncode) == ("/patient\n", 0), child.stderr


def _fails(command: list[str]) -> bool:
    ended = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # our own words
    return ended.returncode != 0
