"""Where nothing can be written any more, a command says which file and why, and leaves nothing half-written."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest


def run_on_a_full_disk(folder: Path, *words: str) -> str:
    """As a process that may write no byte into any file; its exit code is 2."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tenure", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["new", "scenario"], "NAME: got 'scenario.yaml', expected a file that can be written."),
        (["new", "examples"], "FOLDER: got 'examples', expected a folder that can be written."),
        (["up"], "tenure up: no temporary file can be written for the server's certificate ("),
    ],
)
def test_one_line_names_the_file_and_the_cause(tmp_path: Path, words: list[str], said: str) -> None:
    (line,) = run_on_a_full_disk(tmp_path, *words).splitlines()
    assert line.startswith(said)
    assert "File too large" in line
    assert len(line) < 200


def test_a_scenario_that_cannot_be_written_is_not_there_for_the_next_try(tmp_path: Path) -> None:
    run_on_a_full_disk(tmp_path, "new", "scenario")
    assert list(tmp_path.iterdir()) == []
