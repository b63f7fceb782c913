"""The clock of a cluster whose time runs faster than ours: whose instants are shown."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.up.running import BIN, PATIENCE, Up, running


def looked_at(up: Up, *words: str) -> str:
    ended = subprocess.run(  # noqa: S603  # our own program
        [BIN / "tenure", *words, "--kubeconfig", str(up.kubeconfig)],
        cwd=up.folder,
        env=up.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return ended.stdout


def test_a_look_goes_by_the_clusters_clock_and_says_so(tmp_path: Path) -> None:
    with running(tmp_path, "--speed", "3600") as up:
        assert "by the cluster's clock" in up.screen
        up.kubectl("create", "deployment", "web", "--image=web")
        up.until_shown("InService")
        out = looked_at(up, "plan")
        (at,) = re.findall(r"^  at +(\S+Z)", out, re.M)
        assert datetime.fromisoformat(at) > datetime.now(UTC) + timedelta(minutes=10)
        assert "  clock     the cluster's, which tenure up runs " in out
        assert " ahead of this host's" in out
        pool = looked_at(up, "explain", "pool/default")
        assert "  clock     the cluster's, which tenure up runs " in pool


def test_in_real_time_there_is_one_clock(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        assert "by the cluster's clock" not in up.screen
        assert "  clock " not in looked_at(up, "plan")
