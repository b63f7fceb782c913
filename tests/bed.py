"""Which tests need a real control plane, whether they can run here, and what became of them.

A suite that silently did not run looks like one that passed. So the last line of every run
tells of the real-cluster suite; ``.ci/run`` reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from testbed import clients
from testbed.binaries import Missing, found

#: On every test that needs the real control plane: ``-m real``, ``-m "not real"``.
REAL: Final = "real"
#: On those that start, stop, pause and kill whole processes: ``make soak`` repeats them.
PROCESS_STORY: Final = "process_story"
MARKERS: Final = {
    REAL: "needs the real control plane of the test bed (make bed)",
    PROCESS_STORY: "a story of processes that die, pause and come back (make soak repeats it)",
}
TITLE: Final = "real-cluster suite:"
#: Seconds for one test that needs it. A story has several waits, each with a bound of its own that
#: tells more than this one; this one is for a hang that no bound catches.
TIMEOUT: Final = 900


def missing() -> tuple[str, ...]:
    """The binaries that are nowhere; without them the suite is left out."""
    try:
        found()
    except Missing as missed:
        return (*missed.names, *clients.missing())
    return clients.missing()


def give_time(item: pytest.Item) -> None:
    """More of it to what needs the real control plane, unless the test says how much."""
    if item.get_closest_marker(REAL) and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(TIMEOUT))


def tell(reporter: pytest.TerminalReporter) -> None:
    if line := last_line(reporter.stats, missing()):
        reporter.write_line(line)


def last_line(stats: Mapping[str, Sequence[object]], lacking: Sequence[str]) -> str:
    """Empty if the suite could have run and was not requested."""
    if lacking:
        return f"{TITLE} LEFT OUT, it lacks {', '.join(lacking)}: `make bed` gets it"
    return outcomes(TITLE, REAL, stats)


def outcomes(title: str, mark: str, stats: Mapping[str, Sequence[object]]) -> str:
    """What became of the tests with that mark. Empty if there was none."""
    counts = Counter(
        "failed" if outcome == "error" else outcome
        for outcome in ("passed", "failed", "error", "skipped")
        for report in stats.get(outcome, [])
        if isinstance(report, pytest.TestReport) and mark in report.keywords
    )
    if not counts:
        return ""
    return (
        f"{title} {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
    )
