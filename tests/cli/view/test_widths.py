"""What each command prints on terminals of 60, 80 and 200 columns: golden files to look at, one for each.

``TENURE_WRITE_GOLDEN=1`` writes them anew; look at the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenure.cli.commands import demo, release
from tenure.cli.main import run
from tenure.cli.output import said
from tenure.cli.replica.released import Outcome
from tenure.cli.view import columns
from tenure.runtime.release import Release
from tests.folders import ROOT

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (60, 80, 200)
PODS = "examples/scenarios/fifty-pods.yaml"
DRIFT = "examples/scenarios/nightly-drift.yaml"
ASKED = {
    "simulate": ["simulate", PODS, "--until", "3m"],
    "list": ["simulate", PODS, "--list", "--at", "1m"],
    "explain": ["explain", "pool/general", "--in", PODS, "--at", "1m"],
    "explain-node": ["explain", "node/node-general-6fhwt", "--in", DRIFT, "--at", "12h30m"],
    "explain-nothing": ["explain", "node/none", "--in", PODS, "--at", "1m"],
    "plan": ["plan", "--in", PODS, "--at", "1m"],
    "plan-blocked": ["plan", "--in", DRIFT, "--at", "12h30m"],
    "forecast": ["forecast", "--in", "examples/scenarios/forecast.yaml", "--days", "7"],
    "lint": ["lint", "examples/provisioners.yaml", "examples/freeze.yaml"],
    "lint-templates": ["lint", "charts/tenure/templates"],
    "convert": ["convert", "examples/provisioners.yaml"],
    "typo": ["simulate", PODS, "--untill", "3m"],
}


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of the terminal, as every command asks for it."""
    found: int = request.param
    for module in (columns, said, demo):
        monkeypatch.setattr(module, "terminal_width", lambda _=None: found)
    monkeypatch.chdir(ROOT)
    return found


def check(name: str, printed: str, width: int) -> None:
    # A name or a command is longer than what is left of the line only where it has no space.
    wide = [line for line in printed.splitlines() if len(line) > width and " " in line.strip()]
    assert wide == []
    golden = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("TENURE_WRITE_GOLDEN"):
        golden.write_text(printed, encoding="utf-8")
    assert printed == golden.read_text(encoding="utf-8"), f"look at it, then write it to {golden}"


@pytest.mark.parametrize("command", ASKED)
def test_what_a_command_prints_at_a_width(
    command: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run(ASKED[command])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    check(command, err + out, width)


def test_a_fleet_that_is_released_is_one_line(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    levers = "karpenter.sh/do-not-disrupt, tenure.dev/lever"
    taken = [Release(kind="Node", name=f"node-{n}", said=levers) for n in range(40)]
    taken.append(Release(kind="NodePool", name="general", said="tenure.dev/probe"))
    forbidden = "forbidden: User ada cannot patch resource nodes at the cluster scope"
    taken.append(Release(kind="Node", name="node-41", said="", problem=forbidden))
    assert release._tell(Outcome(taken=tuple(taken)), dry_run=True, verbose=False) == 1
    out, err = capsys.readouterr()
    check("release", out + err, width)


def test_each_object_is_named_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    taken = tuple(Release(kind="Node", name=f"node-{n}", said="a lever") for n in range(40))
    release._tell(Outcome(taken=taken), dry_run=False, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "40 taken back, 0 failed"
    assert lines[1:] == [f"taken back from Node node-{n}: a lever" for n in range(40)]
