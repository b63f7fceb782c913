"""The documents tell the truth: links lead somewhere, commands run, generated files are current."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.dom import minidom

import pytest

from docs.generate import stale
from tenure.cli.main import COMMANDS, run
from tenure.core.reasons import Reason
from tenure.sim.scenario.load import load_scenario
from tests.folders import ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
BIN = Path(sys.executable).parent

#: Too slow for a test, or what runs the tests: their verb has to exist, that is all.
SLOW = ("make demo", "make test", "make bench", "make fuzz")
#: What does not end by itself or needs a cluster, and who tries it.
ELSEWHERE = {
    ".venv/bin/tenure up": "tests/up",
    ".venv/bin/tenure plan --kubeconfig '~/.kube/config'": "tests/real/test_explain.py",
    ".venv/bin/tenure run --kubeconfig '~/.kube/config'": "tests/real/test_run.py",
    "tenure snapshot --kubeconfig '~/.kube/config' '>' cluster.jsonl": "tests/real/test_copies.py",
    "tenure simulate --from cluster.jsonl change.yaml --for 6h": "tests/test_my_cluster_page.py",
    "tenure up --from cluster.jsonl --speed 60": "tests/up/test_copy.py",
    "uvx tenure demo": "tests/release/test_newcomer.py",
    "pipx install tenure": "tests/release/test_newcomer.py",
    "tenure new examples": "tests/release/test_newcomer.py",
    "tenure lint examples/getting-started.yaml": "tests/release/test_newcomer.py",
    "tenure plan --kubeconfig '~/.kube/config'": "tests/release/test_newcomer.py",
    "tenure simulate --from cluster.jsonl --for 1d": "tests/release/test_newcomer.py",
}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands() -> list[str]:
    """Every line after a ``$`` in a console block, without its comment."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S):
            lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
            found += [shlex.join(shlex.split(line, comments=True)) for line in lines]
    return sorted(set(found))


@pytest.mark.parametrize("command", [c for c in commands() if c not in (*SLOW, *ELSEWHERE)])
def test_every_command_in_the_documents_runs(command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program.startswith(".venv/bin/"), f"say how to test {command!r}"
    ended = subprocess.run(  # noqa: S603  # our own documents
        [BIN / Path(program).name, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


def test_what_is_tried_elsewhere_is_tried() -> None:
    assert set(ELSEWHERE) <= set(commands()), "named in no document any more"
    assert all((ROOT / place).exists() for place in ELSEWHERE.values())


def test_the_two_commands_of_the_readme_are_there() -> None:
    assert {"make demo", "make test"} <= set(commands())


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_verb_that_is_named_exists(page: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = page.read_text()
    assert not set(re.findall(r"`make ([a-z-]+)`", text)) - verbs
    assert not set(re.findall(r"`tenure ([a-z]+)\b", text)) - set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    local = [link for link in links if "://" not in link]
    assert not [link for link in local if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_file_that_is_named_exists(page: Path) -> None:
    layers = r"`((?:cli|sim|runtime|kube|ports|core|packing|schema|model)/[a-z/]*\.py)`"
    assert not [
        name
        for name in re.findall(layers, page.read_text())
        if not (ROOT / "src" / "tenure" / name).exists()
    ]


def test_the_readme_fits_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 45


def test_generated_files_are_current() -> None:
    assert stale() == [], "run `make generate` and commit"


def test_every_reason_is_explained_to_operators() -> None:
    text = (ROOT / "docs" / "reasons.md").read_text()
    assert [reason for reason in Reason if f"| `{reason}` |" not in text] == []


def test_the_example_on_the_page_of_scenarios_is_met(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text()
    story, *parts = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "example.yaml").write_text(story)
    assert run(["simulate", str(tmp_path / "example.yaml")]) == 0
    for part in parts:
        without_end = re.sub(r"^until: .*$", "", story, flags=re.M)
        events = re.sub(r"^events:\n(  .*\n)+", "", without_end, flags=re.M)
        (tmp_path / "part.yaml").write_text(f"{events}\n{part}")
        assert load_scenario(tmp_path / "part.yaml").notes == ()


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    records = [path.name for path in folder.glob("[0-9]*.md")]
    assert records
    assert [name for name in records if f"({name})" not in index] == []


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    picture = (ROOT / "docs" / "demo.svg").read_text()
    assert "draining" in picture
    assert "<script" not in picture
    fetched = re.findall(r"(?:src|href)\s*[:=]\s*[\"']?(?:url\()?[\"']?https?://", picture)
    assert not fetched


def test_the_picture_is_a_film_that_can_be_stopped_and_told() -> None:
    file = ROOT / "docs" / "demo.svg"
    assert file.stat().st_size < 500_000
    picture = file.read_text()
    frames = re.findall(r'<g class="frame (f\d+)( still)?">', picture)
    assert len(frames) >= 20
    assert len([name for name, still in frames if still]) == 1
    assert all(f".{name} {{ animation: " in picture for name, _ in frames)
    assert "(prefers-reduced-motion: reduce) { .still { visibility: visible } }" in picture
    assert re.search(r"<title>.+</title>\n<desc>.+</desc>", picture)
    minidom.parseString(picture)  # noqa: S318  # our own file
