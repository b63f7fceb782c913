"""``tenure up`` as people start and end it."""

from __future__ import annotations

import shlex
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.folders import ROOT
from tests.up.running import BIN, PATIENCE, running


def refused(folder: Path, *flags: str) -> str:
    """Why it does not start."""
    ended = subprocess.run(  # noqa: S603  # our own program
        [BIN / "tenure", "up", *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    return ended.stderr


def test_it_names_the_kubeconfig_that_only_its_owner_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    with running(folder) as up:
        path = folder / ".tenure" / "kubeconfig"
        assert f"export KUBECONFIG={shlex.quote(str(path))}" in up.screen
        assert "kubectl patch nodepool default" in up.screen
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert up.kubectl("get", "--raw", "/readyz").stdout == "ok"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as up:
        watching = subprocess.Popen(  # noqa: S603  # our own words
            [sys.executable, "-c", _WATCH, str(up.kubeconfig)], stdout=subprocess.PIPE
        )
        assert watching.stdout is not None
        assert watching.stdout.readline() == b"watching\n"
        assert up.end(number) == 0
        assert up.screen.endswith("The cluster is gone; nothing of it was kept.\n")
        watching.communicate(timeout=PATIENCE)
    assert up.kubectl("get", "nodes").returncode != 0


#: A client that has a watch open and would keep it for ever.
_WATCH = """
import asyncio, sys
from pathlib import Path
from tenure.ports.transport import Request
from tests.real.cluster import connected

async def main():
    async with connected(Path(sys.argv[1])) as transport:
        stream = await transport.stream(
            Request(method="GET", path="/api/v1/pods", query={"watch": "true"})
        )
        print("watching", flush=True)
        async for _ in stream:
            pass

asyncio.run(main())
"""


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        why = refused(tmp_path, "--port", str(port))
    assert why == (
        f"tenure up: port {port} on 127.0.0.1 cannot be used (Address already in use); "
        "leave --port out for a free one. See tenure up --help.\n"
    )
    assert not (tmp_path / ".tenure").exists()


def test_a_second_one_in_the_same_folder_does_not_take_kubectl_away(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        before = up.kubeconfig.read_text()
        assert "belongs to a tenure up that is still running" in refused(tmp_path)
        assert up.kubeconfig.read_text() == before
        up.end(signal.SIGINT)
    with running(tmp_path) as next_one:
        assert next_one.kubeconfig.read_text() != before


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / ".tenure").write_text("not a folder")
    assert "the kubeconfig cannot be written: .tenure" in refused(tmp_path)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--speed", "0"), "--speed: got '0.0', expected a number from"),
        (("--port", "65536"), "--port: got '65536', expected a whole number from 0 to 65535"),
        (("--scenario", "nowhere.yaml"), "nowhere.yaml"),
        (("--feature-gates", "SpotToSpotConsolidation=maybe"), "SpotToSpotConsolidation=maybe"),
    ],
)
def test_bad_input_is_said(tmp_path: Path, flags: tuple[str, ...], why: str) -> None:
    assert why in refused(tmp_path, *flags)


def test_a_scenario_brings_its_objects(tmp_path: Path) -> None:
    scenario = ROOT / "examples" / "scenarios" / "fifty-pods.yaml"
    with running(tmp_path, "--scenario", str(scenario), "--speed", "60") as up:
        assert "kubectl patch nodepool default" not in up.screen, "it may have no such pool"
        assert up.kubectl("get", "nodepools", "-o", "name").stdout.split() == [
            "nodepool.karpenter.sh/general"
        ]
        up.until_shown("InService")


def test_settings_of_a_replica_count_and_a_gate_that_is_misspelled_is_said(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("voluntaryDisruption: false\n")
    gate = "SpotToSpotConsolidatoin=true"
    meant = "did you mean SpotToSpotConsolidation?"
    with running(tmp_path, "--config", str(settings), "--feature-gates", gate) as up:
        assert "voluntary disruption is off" in up.screen
        assert meant in up.screen
        ended = subprocess.run(  # noqa: S603  # our own program
            [BIN / "tenure", "plan", "--kubeconfig", str(up.kubeconfig), "--feature-gates", gate],
            cwd=tmp_path,
            env=up.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, meant in ended.stdout) == (0, True)


def test_a_client_without_a_token_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        config = yaml.safe_load(up.kubeconfig.read_text())
        config["users"][0]["user"]["token"] = "guessed"
        up.kubeconfig.write_text(yaml.safe_dump(config))
        ended = up.kubectl("get", "nodes")
        assert ended.returncode == 1
        assert "You must be logged in to the server" in ended.stderr
