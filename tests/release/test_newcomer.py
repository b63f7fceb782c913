"""From the wheel to an answer about a cluster of one's own, without a checkout, by the commands of the page alone."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from release import wheels
from release.dist import python_packages
from release.version import made_at
from tests import newcomer
from tests.folders import DATA, ROOT
from tests.release.computer import PATIENCE, Computer
from tests.release.index import fill, served
from tests.test_termination_pages import blocks

pytestmark = [
    pytest.mark.newcomer,
    pytest.mark.skipif(not newcomer.there(), reason=newcomer.LACKS),
]

PAGE: Final = "first-day.md"
COMMANDS_MAX: Final = 9
CLUSTER: Final = DATA / "karpenter-1.15-cluster.jsonl"


def commands() -> list[str]:
    return [
        line.removeprefix("$ ") for block in blocks(PAGE, "console") for line in block.splitlines()
    ]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_packages(tmp_path_factory.mktemp("built"), made_at())


@pytest.fixture(scope="module")
def index(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("index")
    fill(folder, chain([wheel], wheels.folder().iterdir()))
    with served(folder) as address:
        yield address


@pytest.fixture
def computer(tmp_path: Path, index: str) -> Computer:
    return Computer(tmp_path, index)


@contextmanager
def own_cluster(computer: Computer) -> Iterator[None]:
    """What the newcomer's kubeconfig leads to: the dump, served. Tenure leaves the nodes alone there."""
    place = computer.home / "elsewhere"
    place.mkdir()
    shutil.copy(CLUSTER, place / "dump.jsonl")
    (place / "settings.yaml").write_text("voluntaryDisruption: false\n")
    words = ("up", "--from", "dump.jsonl", "--speed", "0.1", "--config", "settings.yaml")
    with (place / "screen").open("w") as screen:
        up = subprocess.Popen(  # noqa: S603  # our own words
            [computer.local / "tenure", *words],
            cwd=place,
            env=computer.environment,
            stdout=screen,
            stderr=subprocess.STDOUT,
        )
    try:
        served_by(computer, up, place)
        yield
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(PATIENCE)


def served_by(computer: Computer, up: subprocess.Popen[bytes], place: Path) -> None:
    written = place / ".tenure" / "kubeconfig"
    wait = f"until [ -s {written} ]; do kill -0 {up.pid} && sleep 0.1; done"
    computer.run(
        f"timeout {PATIENCE} bash -ec '{wait}' && mkdir ~/.kube && cp {written} ~/.kube/config"
    )


def test_the_page_has_few_commands_and_begins_with_nothing() -> None:
    found = commands()
    assert 5 <= len(found) <= COMMANDS_MAX
    assert not [one for one in found if ".venv" in one or "make" in one]


def test_from_the_wheel_to_an_answer_about_an_own_cluster(computer: Computer) -> None:
    (change,) = blocks(PAGE, "yaml")
    (answer,) = blocks(PAGE, "text")
    demo, install, examples, lint, plan, snapshot, unchanged, changed = commands()

    assert "Leaks       none" in computer.run(demo).stdout
    computer.run(install)
    place = computer.run("readlink -f $(which tenure)").stdout
    assert place.startswith(str(computer.home))
    assert "into examples" in computer.run(examples).stdout
    assert computer.run(lint).stdout == "3 objects: 0 errors, 0 warnings, 0 info\n"
    (computer.work / "change.yaml").write_text(change)
    with own_cluster(computer):
        planned = computer.run(plan).stdout
        computer.run(snapshot)
    assert planned.startswith("Plan: nothing to do now")
    assert "PodDisruptionBudget default/db: minAvailable 3 of 3 pods can never allow" in planned
    assert "last-applied-configuration" in CLUSTER.read_text()
    assert "last-applied-configuration" not in (computer.work / "cluster.jsonl").read_text()
    left_alone = computer.run(unchanged).stdout
    assert "What became of the cluster in 24h\n  nodes        6 → 4\n" in left_alone
    assert computer.run(changed).stdout.endswith(answer)


def test_uvx_and_python_m_run_the_program_of_that_wheel(computer: Computer) -> None:
    said = computer.run("uvx tenure --version").stdout
    assert re.fullmatch(r"tenure \d+\.\d+\S*\n", said)
    assert (
        computer.run("uv run --quiet --no-project --with tenure python -m tenure --version").stdout
        == said
    )


def test_the_wheel_has_the_examples_of_the_checkout(computer: Computer) -> None:
    computer.run("uvx tenure new examples")
    written = {
        str(path.relative_to(computer.work)): path.read_bytes()
        for path in (computer.work / "examples").rglob("*")
        if path.is_file()
    }
    listed = subprocess.run(
        ["git", "ls-files", "examples"],  # noqa: S607  # the developer's own git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert written == {name: (ROOT / name).read_bytes() for name in listed}


def test_pipx_installs_the_wheel_itself_and_goes_on_from_there(
    computer: Computer, wheel: Path
) -> None:
    """What the page says for as long as no release is on PyPI; then the upgrade and the way back."""
    shutil.copy(wheel, computer.home)
    computer.run(f"pipx install ~/{wheel.name}")
    place = computer.run("readlink -f $(which tenure)").stdout
    assert place.startswith(str(computer.home))
    said = computer.run("tenure --version").stdout
    version = said.split()[-1]
    computer.run("pipx upgrade tenure")
    computer.run(f"pipx install --force tenure=={version}")
    assert computer.run("tenure --version").stdout == said
    computer.run("pipx uninstall tenure && ! which tenure")
