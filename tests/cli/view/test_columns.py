"""Long sentences on a terminal: wrapped beneath their column at 80 and at 200, never cut."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tenure.cli.main import run
from tenure.cli.view import columns
from tenure.cli.view.colour import coloured
from tenure.cli.view.columns import hanging, rows, terminal_width
from tenure.cli.view.progress import PATIENCE, Progress
from tests.folders import ROOT
from tests.scenarios.files import a_story, written

GOLDEN = Path(__file__).parent / "golden"
SCENARIO = "examples/scenarios/fifty-pods.yaml"
ASKED = {
    "simulate": ["simulate", SCENARIO, "--until", "3m"],
    "list": ["simulate", SCENARIO, "--list", "--at", "1m"],
    "explain": ["explain", "pool/general", "--in", SCENARIO, "--at", "1m"],
    "plan": ["plan", "--in", SCENARIO, "--at", "1m"],
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("command", ASKED)
def test_what_a_command_prints_at_a_width(
    command: str,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(columns, "terminal_width", lambda _=None: width)
    run(ASKED[command])
    out = capsys.readouterr().out
    # A name or a command is longer than what is left of the line only where it has no space.
    assert [line for line in out.splitlines() if len(line) > width and " " in line.strip()] == []
    golden = GOLDEN / f"{command}-{width}.txt"
    assert out == golden.read_text(encoding="utf-8"), f"look at it, then write it to {golden}"


def test_nothing_is_cut_or_wrapped_where_the_output_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["simulate", str(written(tmp_path, a_story()))])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) > 120
    assert "\x1b" not in out


def test_words_are_neither_lost_nor_divided() -> None:
    text = "the PDB default/web-frontend-with-a-long-name allows no disruption until 08:12:30Z"
    for width in (30, 40, 80):
        lines = list(hanging("lead  ", text, width))
        assert " ".join(" ".join(lines).split()) == f"lead {text}"


def test_the_last_column_hangs_beneath_itself() -> None:
    table = [("pool/a", "Ready", "one two three four five six seven"), ("node/b", "X", "eight")]
    assert list(rows(table, 46)) == [
        "pool/a  Ready  one two three four five six",
        "               seven",
        "node/b  X      eight",
    ]


def test_a_terminal_has_a_width_and_a_file_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal_width(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "123")
    assert terminal_width(Terminal()) == 123
    monkeypatch.delenv("COLUMNS")
    assert terminal_width(Terminal()) == 80


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("met", "green", Terminal()) == "\x1b[32mmet\x1b[0m"
    assert coloured("met", "green", io.StringIO()) == "met"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("met", "green", Terminal()) == "met"


def test_progress_is_shown_after_two_seconds_and_leaves_no_trace() -> None:
    times, stream = [0.0], Terminal()
    progress = Progress("playing a.yaml", timedelta(hours=2), stream=stream, clock=lambda: times[0])
    progress.show(timedelta(minutes=1))
    assert stream.getvalue() == ""
    times[0] = PATIENCE
    progress.show(timedelta(minutes=12))
    progress.show(timedelta(minutes=13))
    progress.clear()
    progress.clear()
    assert re.findall(r"[^\r]+", stream.getvalue()) == ["\x1b[Kplaying a.yaml: 12m of 2h", "\x1b[K"]


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(
        "playing", timedelta(hours=2), stream=stream, clock=iter([0.0, 9.0]).__next__
    )
    progress.show(timedelta(minutes=1))
    progress.clear()
    assert stream.getvalue() == ""
