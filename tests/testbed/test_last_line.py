"""The last lines of a test run: what became of the real-cluster suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from tests import bed
from tests.folders import ROOT


def a_report(
    outcome: Literal["passed", "failed", "skipped"], *, real: bool = True
) -> pytest.TestReport:
    keywords: dict[str, Literal[1]] = {bed.REAL: 1} if real else {}
    return pytest.TestReport(
        "a test", ("", 0, ""), keywords, outcome, None, "call", sections=[], duration=0, start=0, stop=0
    )  # fmt: skip


def test_what_ran_is_counted_and_errors_are_failures() -> None:
    stats = {
        "passed": [a_report("passed"), a_report("passed"), a_report("passed", real=False)],
        "failed": [a_report("failed")],
        "error": [a_report("failed")],
    }
    assert bed.last_line(stats, ()) == "real-cluster suite: 2 passed, 2 failed, 0 skipped"


def test_nothing_is_said_where_the_suite_was_not_requested() -> None:
    assert bed.last_line({"passed": [a_report("passed", real=False)]}, ()) == ""


def test_without_the_binaries_one_of_the_last_lines_names_the_suite_and_the_verb(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("KUBEBUILDER_ASSETS", None)
    paths = ["tests/real", "tests/contract/test_lists.py"]
    run = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "contract suite: store " in run.stdout
    # One line for each suite that is left out; this machine may lack what others need, too.
    named = [line for line in run.stdout.splitlines()[-5:] if line.startswith(bed.TITLE)]
    assert len(named) == 1, run.stdout
    assert named[0].startswith("real-cluster suite: LEFT OUT, it lacks etcd, kube-apiserver")
    assert named[0].endswith("`make bed` gets it")
