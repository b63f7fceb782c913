"""How much of the contract was tested through each door: the last line of every run.

A suite that silently did not run looks like one that passed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pytest

DOOR: Final = re.compile(r"through the (\w+) door")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in tally(terminalreporter.stats):
        terminalreporter.write_line(line)


def tally(stats: dict[str, list[object]]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in stats.get(outcome, []):
            if isinstance(report, pytest.TestReport) and (door := DOOR.search(report.nodeid)):
                counts.setdefault(door[1], Counter())[outcome] += 1
    return [
        f"contract through the {door} door: "
        + ", ".join(f"{count} {outcome}" for outcome, count in counts[door].items())
        for door in sorted(counts)
    ]
