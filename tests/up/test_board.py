"""``tenure board`` and ``kubectl tenure`` against a running ``tenure up``: over HTTP, live, and by kubectl itself."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tenure.cli.board.live import LiveCluster
from tenure.cli.board.webpage import LookPage
from tenure.cli.cluster.listing import CannotRead
from tenure.cli.cluster.options import ChosenCluster, chosen_cluster
from tenure.dashboard.board.app import Board
from tenure.dashboard.fleet.values import Frame
from tenure.dashboard.web.files import File
from tests.dashboard.board.frames import screen_text
from tests.up.running import BIN, PATIENCE, Up, running

pytestmark = pytest.mark.xdist_group("up-board")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(tmp_path_factory.mktemp("board"), "--speed", "10") as one:
        one.until_shown("Ctrl-C ends it")
        one.kubectl("create", "deployment", "web", "--image=web", "--replicas=5")
        one.until(lambda: "InService" in one.screen, "node in service")
        yield one


def given(kubeconfig: Path, **more: object) -> dict[str, object]:
    """The options of a cluster, as click gives them."""
    from tenure.cli.commands.board import board

    names = [param.name for param in board.params if param.name]
    return {**dict.fromkeys(names), "kubeconfig": str(kubeconfig), **more}


def chosen(kubeconfig: Path) -> ChosenCluster:
    return chosen_cluster(given(kubeconfig))


def live(kubeconfig: Path) -> LiveCluster:
    return LiveCluster(chosen(kubeconfig))


async def until(pilot: Pilot[int], condition: Callable[[], bool], board: Board) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, screen_text(board)
        assert board.error is None, board.error
        await pilot.pause(0.05)


def test_the_board_follows_a_cluster_live_and_answers(up: Up) -> None:
    async def look() -> None:
        board = Board(live(up.kubeconfig))
        async with board.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: "in service" in screen_text(board), board)
            # The node is in service a moment before its pods are bound.
            await until(pilot, lambda: "5 pods running" in screen_text(board), board)
            said = screen_text(board)
            assert "Tenure  tenure-up  " in said, "the name of the context"
            assert "acts: tenure up, which serves this cluster" in said
            assert "InService" in said
            await pilot.press("down", "e")
            await until(pilot, lambda: "verdict" in screen_text(board), board)
            assert "InService: Node node-default-" in screen_text(board)
            await pilot.press("escape", "p")
            await until(pilot, lambda: "default/web-" in screen_text(board), board)
            await pilot.press("escape")
            up.kubectl("scale", "deployment", "web", "--replicas=7")
            await until(pilot, lambda: "7 pods running" in screen_text(board), board)

    asyncio.run(look())


def test_it_takes_no_lease(up: Up) -> None:
    """That it writes nothing else is shown with a user who may only read: tests/real/test_board.py."""
    holders = "-o=jsonpath={range .items[*]}{.metadata.name} {.spec.holderIdentity}{end}"
    before = up.kubectl("get", "leases", "-n", "kube-system", holders).stdout
    found = tenure(up, "board", "--once")
    assert found.returncode == 0
    assert found.stdout.startswith("Cluster tenure-up at "), "the name of the context"
    assert up.kubectl("get", "leases", "-n", "kube-system", holders).stdout == before


def tenure(up: Up, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own words
        [BIN / "tenure", *words],
        cwd=up.folder,
        env={**up.environment, "KUBECONFIG": str(up.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_terminal_one_frame_is_printed(up: Up) -> None:
    answer = tenure(up, "board")
    assert answer.returncode == 0, answer.stderr
    assert "NodePool default  1 node" in answer.stdout
    assert "InService: " in answer.stdout
    assert "\x1b" not in answer.stdout


def test_a_frame_as_json_has_the_values_of_the_page(up: Up) -> None:
    answer = tenure(up, "board", "-o", "json")
    frame = json.loads(answer.stdout)
    (node,) = frame["nodes"]
    assert (node["reason"], node["tone"], node["pool"]) == ("InService", "serving", "default")
    assert frame["totals"]["price"] > 0


def test_a_lost_cluster_is_a_banner_and_no_cluster_is_an_error(tmp_path: Path) -> None:
    async def look() -> None:
        with running(tmp_path) as one:
            one.until_shown("Ctrl-C ends it")
            board = Board(live(one.kubeconfig))
            async with board.run_test(size=(100, 24)) as pilot:
                await until(pilot, lambda: "NodePool default" in screen_text(board), board)
                one.kill()
                await until(pilot, lambda: "lost for" in screen_text(board), board)
                assert "NodePool default" in screen_text(board)
            none = Board(live(one.kubeconfig))
            async with none.run_test() as pilot:
                deadline = time.monotonic() + PATIENCE
                while none.error is None and time.monotonic() < deadline:
                    await pilot.pause(0.05)
            assert isinstance(none.error, CannotRead)
            assert "cannot be reached" in str(none.error)

    asyncio.run(look())


def test_the_page_of_a_cluster_is_served_while_it_is_looked_at(up: Up) -> None:
    """The same values as on the board; on this machine alone."""
    addresses: list[str] = []
    page = LookPage({"/": File(b"<p>", "text/html", '"1"')}, 0, addresses.append)
    source = LiveCluster(chosen_cluster(given(up.kubeconfig)), page)
    looking = threading.Thread(target=source.run, args=(Deaf(),), daemon=True)
    looking.start()
    up.until(lambda: bool(addresses), "address of the page")
    try:
        frame = fetched(f"{addresses[0]}/api/fleet")
        assert [node["reason"] for node in frame["nodes"]] == ["InService"]
        why = fetched(f"{addresses[0]}/api/why?subject={frame['nodes'][0]['key']}")
        assert why["reason"] == "InService"
    finally:
        source.stop()
        looking.join(PATIENCE)
    assert not looking.is_alive()


def test_the_page_of_a_look_says_that_the_cluster_is_lost(tmp_path: Path) -> None:
    addresses: list[str] = []
    with running(tmp_path) as one:
        one.until_shown("Ctrl-C ends it")
        page = LookPage({"/": File(b"<p>", "text/html", '"1"')}, 0, addresses.append)
        source = LiveCluster(chosen_cluster(given(one.kubeconfig)), page)
        looking = threading.Thread(target=source.run, args=(Deaf(),), daemon=True)
        looking.start()
        one.until(lambda: bool(addresses), "address of the page")
        try:
            assert fetched(f"{addresses[0]}/api/fleet")["lost"] is None
            one.kill()
            deadline, lost = time.monotonic() + PATIENCE, None
            while (
                lost is None and time.monotonic() < deadline
            ):  # An answer is a second old at the most.
                lost = fetched(f"{addresses[0]}/api/fleet")["lost"]
        finally:
            source.stop()
            looking.join(PATIENCE)
    assert lost is not None
    assert lost["since"]
    assert lost["why"]


def fetched(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310  # on this machine
        return json.load(answer)


class Deaf:
    """Listens to nothing."""

    def show(self, frame: Frame) -> None:
        return

    def connection(self, problem: str) -> None:
        return

    def failed(self, error: Exception) -> None:
        raise error


# -- kubectl ---------------------------------------------------------------------------


def kubectl(up: Up, *words: str) -> subprocess.CompletedProcess[str]:
    """As a user types it, with the kubeconfig of the environment."""
    return subprocess.run(  # noqa: S603  # our own words
        [BIN / "kubectl", *words],
        cwd=up.folder,
        env={**up.environment, "KUBECONFIG": str(up.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )


def claim_of(up: Up) -> str:
    return up.kubectl("get", "nodeclaims", "-o", "name").stdout.split()[0].partition("/")[2]


def test_kubectl_tenure_why_explains(up: Up) -> None:
    answer = kubectl(up, "tenure", "why", f"claim/{claim_of(up)}")
    assert answer.returncode == 0, answer.stderr
    assert "verdict   InService: " in answer.stdout


@pytest.mark.parametrize("command", ["board", "plan", "forecast"])
def test_kubectl_tenure_has_the_other_looks(up: Up, command: str) -> None:
    answer = kubectl(up, "tenure", command)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


def test_usage_says_kubectl_tenure(up: Up) -> None:
    answer = kubectl(up, "tenure", "why", "--help")
    assert "Usage: kubectl tenure why" in answer.stdout
    assert "  kubectl tenure explain pod/web-1 -n team-a" in answer.stdout
    wrong = kubectl(up, "tenure", "wy")
    assert wrong.returncode == 2
    assert "kubectl tenure: got 'wy'" in wrong.stderr


def test_flags_of_kubectl_may_stand_before_the_command(up: Up) -> None:
    pod = up.kubectl("get", "pods", "-o", "name").stdout.split()[0]
    flags = (f"--kubeconfig={up.kubeconfig}", "-n", "default")
    answer = subprocess.run(  # noqa: S603  # our own words
        [BIN / "kubectl-tenure", *flags, "why", pod],
        env={**up.environment, "KUBECONFIG": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


def test_kubectl_completes_names_from_the_cluster(up: Up) -> None:
    claim = claim_of(up)
    answer = kubectl(up, "__complete", "tenure", "why", "claim/")
    assert f"claim/{claim}" in answer.stdout.splitlines()
    nodes = kubectl(up, "__complete", "tenure", "why", "node/")
    assert f"node/node-{claim}" in nodes.stdout.splitlines()
    pools = kubectl(up, "__complete", "tenure", "why", "pool/")
    assert "pool/default" in pools.stdout.splitlines()
    pods = kubectl(up, "__complete", "tenure", "why", "pod/")
    assert sum(line.startswith("pod/web-") for line in pods.stdout.splitlines()) >= 5


def test_bash_completes_the_same_for_tenure(up: Up) -> None:
    words = "tenure explain pool/"
    answer = subprocess.run(  # noqa: S603  # our own program
        [BIN / "tenure"],
        env={
            **up.environment,
            "KUBECONFIG": str(up.kubeconfig),
            "_TENURE_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "plain,pool/default" in answer.stdout


def test_completion_is_quiet_where_there_is_no_cluster(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
    )
    answer = subprocess.run(  # noqa: S603  # our own program
        [BIN / "kubectl_complete-tenure", "why", "node/"],
        env={**os.environ, "KUBECONFIG": str(nowhere)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.stdout, answer.stderr, answer.returncode) == (":4\n", "", 0)
