"""A ``tenure up`` whose nodes have drifted, and whose nights are half a day away."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.folders import ROOT
from tests.up.running import Up

#: 16 nodes of two pools; a window of five minutes lets few of those that have drifted go each night.
SCENARIO: Final = ROOT / "examples" / "scenarios" / "forecast.yaml"
NIGHTS: Final = 'cron: "0 2 * * *"'
SPEED: Final = "60"
DRIFTS: Final = '{"spec":{"template":{"metadata":{"labels":{"release":"two"}}}}}'
#: Milliseconds: the nodes are launched while we look, and the machine may be busy.
PATIENCE: Final = 90_000


@contextmanager
def drifting(folder: Path) -> Iterator[tuple[Up, str]]:
    """It, and the address of its page."""
    up = Up(folder, "--scenario", str(_with_a_window_that_is_far(folder)), "--speed", SPEED)
    try:
        up.until_shown("The same in a browser: ")
        found = re.search(r"in a browser: (\S+)", up.screen)
        assert found is not None
        up.until(lambda: "general" in up.kubectl("get", "nodepools").stdout, "NodePool")
        patched = up.kubectl("patch", "nodepool", "general", "--type=merge", "-p", DRIFTS)
        assert patched.returncode == 0, patched.stderr
        yield up, f"{found[1]}/"
    finally:
        up.end(signal.SIGINT)


def _with_a_window_that_is_far(folder: Path) -> Path:
    """The cluster begins at the machine's time."""
    hour = (datetime.now(UTC).hour + 12) % 24
    text = SCENARIO.read_text(encoding="utf-8")
    assert text.count(NIGHTS) == 1
    scenario = folder / "scenario.yaml"
    scenario.write_text(text.replace(NIGHTS, f'cron: "0 {hour} * * *"'), encoding="utf-8")
    return scenario
