"""How much of the contract was tested through each backend: told at the end of every run.

A suite that silently did not run looks like one that passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from tests import bed

BACKEND: Final = re.compile(r"on the (\w+) API server")
#: As a test's id has it → as people call it.
NAMES: Final = {"store": "store", "served": "served store", "real": "real API server"}
TITLE: Final = "contract suite:"
LEFT_OUT: Final = "left out (`make bed` gets it)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if line := tally(terminalreporter.stats, lacking=bed.missing()):
        terminalreporter.write_line(line)


def tally(stats: Mapping[str, Sequence[object]], lacking: Sequence[str] = ()) -> str:
    """Empty if nothing of the suite was run; ``lacking`` are the missing binaries of the bed."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, set[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in stats.get(outcome, []):
            if isinstance(report, pytest.TestReport) and (found := BACKEND.search(report.nodeid)):
                backend = found[1]
                counts.setdefault(backend, Counter())[
                    "failed" if outcome == "error" else outcome
                ] += 1
                if outcome == "skipped":
                    reasons.setdefault(backend, set()).add(_reason(report))
    if not counts:
        return ""
    parts = [f"{NAMES[d]} {_words(counts[d], reasons.get(d, set()))}" for d in NAMES if d in counts]
    if lacking and "real" not in counts:
        parts.append(f"{NAMES['real']} {LEFT_OUT}")
    return f"{TITLE} {', '.join(parts)}"


def _words(counts: Counter[str], reasons: set[str]) -> str:
    failed = f" and {counts['failed']} failed" if counts["failed"] else ""
    skipped = f" ({counts['skipped']} skipped: {'; '.join(sorted(reasons))})" if reasons else ""
    return f"{counts['passed']} passed{failed}{skipped}"


def _reason(report: pytest.TestReport) -> str:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")
