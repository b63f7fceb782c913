"""What a newcomer reads first: golden files of the demo, ``up``, ``new``, the notes of ``snapshot`` and the log.

``TENURE_WRITE_GOLDEN=1`` writes them anew; look at the difference before it is committed.
"""

from __future__ import annotations

import io
import os
from datetime import datetime, timedelta
from pathlib import Path

import click
import pytest

from tenure.cli.commands.up import Where, _welcome
from tenure.cli.main import run
from tenure.cli.view import progress
from tenure.core.decision import Verdict
from tenure.ports.outcome import Outcome
from tenure.runtime.telemetry.journal import LoggedJournal
from tenure.runtime.telemetry.linelimit import LineLimit
from tenure.runtime.telemetry.logs import Sparing, make_log
from tenure.sim.copied.copy import read_copy
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World
from tests.cli.commands.test_snapshot import FORBIDDEN, MISSING, snapshot_of
from tests.cli.view.test_widths import check
from tests.cli.view.test_widths import width as width
from tests.folders import ROOT
from tests.sim.copied.clusters import KARPENTER

GOLDEN = Path(__file__).parent / "golden"
WHERE = Where(
    server="https://127.0.0.1:46141",
    page="http://127.0.0.1:46143/",
    kubeconfig=Path("/home/ada/.tenure/kubeconfig"),
)


def same(name: str, printed: str) -> None:
    """Whatever the width: commands to copy are whole lines."""
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("TENURE_WRITE_GOLDEN"):
        golden.write_text(printed, encoding="utf-8")
    assert printed == golden.read_text(encoding="utf-8"), f"look at it, then write it to {golden}"


def test_the_demo(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    check("demo", out, width)


@pytest.mark.parametrize(
    ("name", "speed", "rolls", "copy"),
    [("up", 1.0, True, False), ("up-fast", 10.0, False, False), ("up-copy", 60.0, False, True)],
)
def test_how_up_begins(
    name: str, speed: float, rolls: bool, copy: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    _welcome(WHERE, speed, rolls=rolls, copy=copy)
    same(name, capsys.readouterr().out)


def test_what_new_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ([], ["scenario"], ["scenario"], ["examples", "scenario.yaml"], ["example"]):
        click.echo(" ".join(("$", "tenure", "new", *words)))
        run(["new", *words])
        out, err = capsys.readouterr()
        with (tmp_path / "said").open("a") as said:
            said.write(out + err)
    same("new", (tmp_path / "said").read_text())


def test_the_notes_of_a_snapshot() -> None:
    answers = {"/poddisruptionbudgets": FORBIDDEN, "/nodepoolpolicies": MISSING}
    same("snapshot", "".join(f"note: {one}\n" for one in snapshot_of(answers)[-1]["missing"]))


@pytest.mark.parametrize("text", [False, True], ids=["json", "text"])
def test_the_log_of_an_hour(text: bool) -> None:
    """Of a replica that takes a cluster of Karpenter over: two nodes go."""
    copy, stream = read_copy(KARPENTER), io.BytesIO()
    with World(options_for(copy)) as world:
        load(copy, world)
        clock = world.environment.clock
        log = make_log(stream, clock, level="info", text=text)
        journal = LoggedJournal(log, Sparing(clock), LineLimit(clock), 100)
        _told_to(world, journal)
        world.run(timedelta(hours=1))
    same(f"log-{'text' if text else 'json'}", stream.getvalue().decode())


def test_what_may_take_long_says_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal, after two seconds: reading is not all that takes time with 5,000 nodes."""
    named: list[str] = []

    class Noted(progress.Wait):
        def __init__(self, what: str) -> None:
            super().__init__(what)
            named.append(what)

        def now(self, what: str) -> None:
            named.append(what)

    monkeypatch.setattr(progress, "Wait", Noted)
    scene = ("--in", str(ROOT / "examples/scenarios/fifty-pods.yaml"), "--at", "1m")
    for words in (["plan"], ["forecast"], ["explain", "pool/general"]):
        assert run([*words, *scene]) == 0
    assert run(["simulate", "--from", str(KARPENTER), "--for", "1m"]) == 0
    assert named == [
        *("planning", "looking ahead", "explaining NodePool/general"),
        *("copying the cluster", "filling the embedded cluster"),
    ]
    assert "\nPlayed: nothing was expected; 0 promises broken\n" in capsys.readouterr().out


def _told_to(world: World, journal: LoggedJournal) -> None:
    """As well as to the history."""
    decided, acted = world.history.decided, world.history.acted

    def both_decided(now: datetime, verdict: Verdict) -> None:
        decided(now, verdict)
        journal.decided(now, verdict)

    def both_acted(now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        acted(now, verdict, outcome)
        journal.acted(now, verdict, outcome)

    world.history.decided, world.history.acted = both_decided, both_acted  # type: ignore[method-assign]
