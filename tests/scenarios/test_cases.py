"""Stories that went wrong once: each file says what has to hold instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.sim.scenario.findings import ExpectationState
from tests.scenarios.test_shipped import play

FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_it_holds_and_breaks_no_promise(file: Path) -> None:
    result = play(file)
    assert result.findings, "a story without an expectation shows nothing"
    assert [
        f"{f.expected}: {f.found}" for f in result.findings if f.held is not ExpectationState.MET
    ] == []
    assert result.violations == ()
