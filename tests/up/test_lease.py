"""``tenure up`` and ``tenure run`` never both act on one cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

from tenure.kube.client.client import Client
from tenure.kube.lease.elector import Elector
from tenure.kube.lease.status import LeaseRole, LeaseState
from tenure.model.settings import Settings
from tenure.runtime.clock.system import SystemClock
from tests.real.cluster import connected
from tests.up.running import BIN, PATIENCE, Up, running


def lease_of(up: Up) -> dict[str, str]:
    words = ("get", "lease", "karpenter-leader-election", "-n", "kube-system", "-o", "json")
    found = json.loads(up.kubectl(*words).stdout)
    return {key: str(value) for key, value in found["spec"].items()}


def test_run_refuses_the_cluster_in_one_line_and_writes_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        ended = subprocess.run(  # noqa: S603  # our own program
            [
                BIN / "tenure",
                "run",
                "--metrics-port=0",
                "--health-probe-port=0",
                "--journal-port=0",
                "--webhook-port=0",
            ],
            cwd=tmp_path,
            env={**up.environment, "KUBECONFIG": str(up.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert ended.returncode == 2, ended
        (line,) = ended.stderr.splitlines()
        assert "is served by tenure up, which already manages its nodes" in line
        assert "tenure plan" in line, "what to do instead"
        assert lease_of(up)["holderIdentity"].startswith("tenure-up_")


def test_it_holds_the_lease_and_renews_it_whatever_its_speed(tmp_path: Path) -> None:
    for speed in ("0.1", "1", "600"):
        folder = tmp_path / speed
        folder.mkdir()
        with running(folder, "--speed", speed) as up:
            renewals = {lease_of(up)["renewTime"]}
            up.until(lambda: len(renewals | {lease_of(up)["renewTime"]}) > 1, "renewal")  # noqa: B023
            lease = lease_of(up)
            assert lease["holderIdentity"].startswith("tenure-up_")
            assert lease["leaseTransitions"] == "1", "it was never lost"


def test_another_replica_waits_for_it_as_for_any_other(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        state = asyncio.run(_after_one_look(up))
    assert state.role is LeaseRole.WAITING
    assert state.holder.startswith("tenure-up_")


async def _after_one_look(up: Up) -> LeaseState:
    async with connected(up.kubeconfig) as transport:
        other = Elector(
            client=Client(transport),
            clock=SystemClock(),
            settings=Settings(),
            identity="another",
            say=lambda _: heard.set(),
        )
        heard = asyncio.Event()
        trying = asyncio.create_task(other.run(_never))
        await asyncio.wait_for(heard.wait(), PATIENCE)
        trying.cancel()
        return other.state


async def _never() -> None:
    raise AssertionError("it must not act")
