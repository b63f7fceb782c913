"""Files that would take the memory or the process end every command in one line and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.cli.main import run
from tests.parse.test_yamltext import BOMB

#: A pod, and then lists inside each other: it ended the process that read it.
DEEP = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: " + "[" * 200_000
COMMANDS = {
    "lint": (["lint", "FILE"], 2),
    "convert": (["convert", "FILE"], 2),
    "simulate": (["simulate", "FILE"], 2),
    "a scenario to look into": (["plan", "--in", "FILE", "--at", "1m"], 2),
    "a scenario to forecast": (["forecast", "--in", "FILE"], 2),
    "settings": (["run", "--config", "FILE"], 2),
    "a kubeconfig": (["run", "--kubeconfig", "FILE"], 2),
}


@pytest.mark.parametrize(("words", "code"), COMMANDS.values(), ids=COMMANDS.keys())
def test_a_file_without_an_end_is_read_up_to_the_limit(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], code: int
) -> None:
    path = tmp_path / "endless.yaml"
    path.symlink_to("/dev/zero")
    assert run([word.replace("FILE", str(path)) for word in words]) == code
    printed = capfd.readouterr()
    assert "expected at most" in printed.out + printed.err


@pytest.mark.parametrize(("words", "code"), COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(DEEP, ":4: got '101 levels of nesting', expected at most 100", id="deep"),
        pytest.param(BOMB, "values', expected at most", id="a bomb"),
    ],
)
def test_one_line_says_file_line_and_limit(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    text: str,
    sentence: str,
) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_text(text)
    assert run([word.replace("FILE", str(path)) for word in words]) == code
    printed = capfd.readouterr()
    shown = printed.out + printed.err
    assert f"{path}:" in shown
    assert sentence in shown
    assert len(shown) < 1000
