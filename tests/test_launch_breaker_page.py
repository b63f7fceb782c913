"""The page on the launch breaker shows what explain says."""

from __future__ import annotations

import pytest

from tenure.cli.main import run
from tests.test_termination_pages import blocks, explained

PAGE = "launch-breaker.md"


def test_explain_says_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explained(PAGE)) == 0
    (shown,) = blocks(PAGE, "text")
    assert shown in capsys.readouterr().out
