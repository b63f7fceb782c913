"""``tenure new scenario``: a file that runs as it is, and never over another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.cli.main import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_runs_as_it_is_and_so_do_the_commands_that_it_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["new", "scenario"]) == 0
    assert capsys.readouterr().out == (
        "wrote scenario.yaml; play it: tenure simulate scenario.yaml\n"
    )
    lines = (folder / "scenario.yaml").read_text().splitlines()
    commands = [line[1:].split("   ")[1] for line in lines if line.startswith("#   tenure ")]
    assert len(commands) == 3
    for command in commands:
        assert run(command.split()[1:]) == 0, command
    captured = capsys.readouterr()
    assert not captured.err
    assert "2 of 2 expectations met" in captured.out


def test_what_is_commented_out_may_be_used(folder: Path) -> None:
    run(["new", "scenario", "more"])
    path = folder / "more.yaml"
    path.write_text(
        path.read_text()
        .replace("\n# -", "\n  -")
        .replace("\n#   drain", "\n    drain")
        .replace("\n#   zone", "\n    zone")
    )
    assert "\n    drain:" in path.read_text()
    assert run(["simulate", "more.yaml"]) == 0


def test_a_file_that_is_there_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.yaml").write_text("name: mine\n")
    assert run(["new", "scenario", "mine"]) == 2
    assert "got 'mine.yaml', expected a file that does not exist yet" in capsys.readouterr().err
    assert (folder / "mine.yaml").read_text() == "name: mine\n"


@pytest.mark.parametrize("name", ["a b", "1st", "nowhere/x"])
def test_a_name_that_cannot_be_used(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new", "scenario", name]) == 2
    assert capsys.readouterr().err.startswith("NAME: got ")
