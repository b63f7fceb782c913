"""Long sentences on a terminal: wrapped beneath their column at 80 and at 200, never cut."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tenure.cli.main import run
from tenure.cli.output.folded import folded
from tenure.cli.view.colour import coloured, text_in_colour
from tenure.cli.view.columns import hanging, rows, table, terminal_width
from tenure.cli.view.progress import PATIENCE, Progress, Wait
from tests.scenarios.files import a_story, written


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    shown = "\x1b[36mmet\x1b[0m"
    assert coloured("met", "good", Terminal()) == shown
    assert coloured("met", "good", io.StringIO()) == "met"
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("met", "good", Terminal()) == "met"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coloured("met", "good", io.StringIO()) == shown
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("met", "good", Terminal()) == "met"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("Plan: nothing to do now", {"Plan": "title"}),
        ("  verdict   NodeUnhealthy: Ready=Unknown", {"NodeUnhealthy": "waits"}),
        ("  verdict   InService: all is well", {"InService": "good"}),
        ("  advice    Nothing to do.", {"advice": "aside"}),
        ("  blocked   by PDB default/web", {"blocked": "waits"}),
        ("a.yaml:3: error Invalid: Pod/a: no", {"error": "bad"}),
        ("a.yaml:3: warning NoSchedule: Pod/a: no", {"warning": "waits"}),
        ("08:00:01  general-1  Launched: launched", {"Launched": "good"}),
        ("no word of ours: InService", {}),
    ],
)
def test_colour_repeats_what_a_word_says(
    line: str, meant: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    painted = text_in_colour(line)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == line
    codes = {"title": "1", "waits": "33", "good": "36", "aside": "2", "bad": "1;31"}
    found = dict(reversed(one) for one in re.findall(r"\x1b\[([0-9;]+)m(\w+)", painted))
    assert found == {word: codes[meaning] for word, meaning in meant.items()}


def test_a_table_that_does_not_fit_gives_way_and_then_becomes_blocks() -> None:
    heads = ("POD", "BLOCKED BY")
    cells = [("default/web-1", "PDB default/web allows no disruption"), ("default/b", "-")]
    assert list(table(heads, cells, None)) == [
        "  POD            BLOCKED BY",
        "  default/web-1  PDB default/web allows no disruption",
        "  default/b      -",
    ]
    assert list(table(heads, cells, 40)) == [
        "  POD            BLOCKED BY",
        "  default/web-1  PDB default/web allows",
        "                 no disruption",
        "  default/b      -",
    ]
    assert list(table(heads, cells, 30)) == [
        "  default/web-1",
        "    blocked by",
        "        PDB default/web allows",
        "        no disruption",
        "  default/b",
        "    blocked by  -",
    ]


def test_a_wait_is_told_after_two_seconds_and_leaves_no_trace() -> None:
    times, stream = [0.0], Terminal()
    wait = Wait("reading https://one", stream=stream, clock=lambda: times[0])
    wait.show()
    assert stream.getvalue() == ""
    times[0] = PATIENCE + 1
    wait.show()
    wait.now("reading https://one, 3 objects")
    times[0] += 60
    wait.show()
    wait.end()
    wait.show()
    assert re.findall(r"[^\r]+", stream.getvalue()) == [
        "\x1b[Kreading https://one: 3s",
        "\x1b[Kreading https://one, 3 objects: 1m3s",
        "\x1b[K",
    ]


def test_a_wait_that_was_short_prints_nothing() -> None:
    stream = Terminal()
    wait = Wait("reading", stream=stream, clock=lambda: 0.0)
    wait.end()
    assert stream.getvalue() == ""


def test_a_place_that_is_like_many_others_is_counted() -> None:
    notes = [f"deploy/{n}.yaml:1: no Kubernetes object" for n in range(7)]
    assert list(folded([*notes, "a.yaml:3: odd", "plain"])) == [
        "deploy/0.yaml:1, deploy/1.yaml:1, deploy/2.yaml:1 and 4 more: no Kubernetes object",
        "a.yaml:3: odd",
        "plain",
    ]
    assert list(folded(notes, verbose=True)) == notes


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
