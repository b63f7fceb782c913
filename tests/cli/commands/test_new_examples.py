"""``tenure new examples``: the files that ``--help`` names, for those who have no checkout."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from tenure.cli.main import COMMANDS, cli, run
from tests.folders import ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def every_help() -> str:
    """Of the program and of all of its commands, and of theirs."""

    def below(command: click.Command, ctx: click.Context) -> list[str]:
        found = [command.get_help(ctx)]
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                child = command.get_command(ctx, name)
                assert child is not None
                found += below(child, click.Context(child, parent=ctx, info_name=name))
        return found

    return "\n".join(below(cli, click.Context(cli, info_name="tenure")))


def test_it_writes_every_example_that_a_help_or_a_page_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["new", "examples"]) == 0
    assert capsys.readouterr().out == (
        f"wrote {_count(ROOT / 'examples')} files into examples; "
        "play one: tenure simulate examples/scenarios/fifty-pods.yaml\n"
    )
    help_ = every_help()
    assert all(f"Usage: tenure {name} " in help_ for name in COMMANDS)
    pages = [page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    named = set(re.findall(r"\bexamples/[a-z/-]+\.(?:yaml|py)", "\n".join([help_, *pages])))
    assert "examples/scenarios/fifty-pods.yaml" in named
    assert [name for name in sorted(named) if not (folder / name).is_file()] == []
    assert run(["lint", "examples/getting-started.yaml"]) == 0


def _count(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_a_folder_that_is_there_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "examples").mkdir()
    assert run(["new", "examples"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("FOLDER: got 'examples', expected a folder that does not exist yet.")
    assert list((folder / "examples").iterdir()) == []
    assert run(["new", "examples", "newer-examples"]) == 0
    assert (folder / "newer-examples" / "freeze.yaml").is_file()


def test_a_folder_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("")
    assert run(["new", "examples", "file/examples"]) == 2
    assert "expected a folder that can be written" in capsys.readouterr().err


def test_an_example_that_is_not_there_names_the_command_that_writes_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["simulate", "examples/scenarios/fifty-pods.yaml"]) == 2
    assert "tenure new examples writes the examples into this folder" in capsys.readouterr().err
