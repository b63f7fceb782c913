"""The page on the launch breaker shows what explain says."""

from __future__ import annotations

import pytest

from tenure.cli.main import run
from tests.test_leaving_pages import DOCS, blocks

PAGE = "launch-breaker.md"


def test_explain_says_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (command,) = blocks(PAGE, "console")
    words = command.split()[2:]
    words[words.index("--in") + 1] = str(DOCS.parent / words[words.index("--in") + 1])
    assert run(words) == 0
    (shown,) = blocks(PAGE, "text")
    assert shown in capsys.readouterr().out
