"""A test that hangs fails, shows where, and the others still run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import bed

HANGS = """
import threading


def test_that_hangs():
    a_lock_that_is_never_released = threading.Event()
    a_lock_that_is_never_released.wait()


def test_that_does_not():
    pass
"""


def test_a_test_that_hangs_fails_with_its_stack_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(HANGS)
    ended = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=1", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout
    assert "a_lock_that_is_never_released.wait()" in ended.stdout
    assert "Timeout (>1.0s)" in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout


def test_every_test_has_a_limit_and_real_stories_have_a_longer_one(
    request: pytest.FixtureRequest,
) -> None:
    assert 0 < float(request.config.getini("timeout")) < bed.TIMEOUT
