"""The page on copies of clusters: its change is played in a copy, and the difference is the one shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.cli.main import run
from tests.sim.copied.clusters import KARPENTER
from tests.test_termination_pages import blocks

PAGE = "my-cluster.md"


def test_the_difference_is_the_one_that_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (change,) = blocks(PAGE, "yaml")
    file = tmp_path / "change.yaml"
    file.write_text(change)
    _, command, *_ = blocks(PAGE, "console")
    _, *arguments = command.removeprefix("$ ").split()
    names = {"cluster.jsonl": str(KARPENTER), "change.yaml": str(file)}
    assert run([names.get(word, word) for word in arguments]) == 0
    (shown,) = blocks(PAGE, "text")
    assert shown in capsys.readouterr().out
