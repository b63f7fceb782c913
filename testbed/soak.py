"""``make soak``: the stories of processes, again and again, each time on a new control plane.

A story that passes nine times of ten is a broken story, or a broken program. Every story gets a
figure; what a failing one said is shown at once.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

STORIES: Final = ("-m", "process_story", "tests/real")
#: How much of a failing run is shown.
LAST_LINES: Final = 60

#: Story → for each run its seconds, or None where it failed.
Figures = dict[str, list[float | None]]


def soak(times: int, arguments: Sequence[str]) -> Figures:
    figures: Figures = {}
    for number in range(1, times + 1):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            run = subprocess.run(  # noqa: S603  # our own words
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    f"--junitxml={report}",
                    *STORIES,
                    *arguments,
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            results = read(report.read_text()) if report.exists() else {}
        for story, seconds in results.items():
            figures.setdefault(story, []).append(seconds)
        good = sum(seconds is not None for seconds in results.values())
        print(f"soak: run {number} of {times}: {good} of {len(results)} stories passed", flush=True)
        if run.returncode:
            print("\n".join(run.stdout.splitlines()[-LAST_LINES:]), run.stderr, flush=True)
    return figures


def read(report: str) -> dict[str, float | None]:
    """Seconds by story from JUnit's XML, which our own pytest has just written."""
    cases = ElementTree.fromstring(report).iter("testcase")  # noqa: S314
    return {
        _words(case.attrib["name"]): None
        if any(child.tag in ("failure", "error", "skipped") for child in case)
        else float(case.attrib["time"])
        for case in cases
    }


def _words(name: str) -> str:
    return re.sub(r"_+", " ", name.removeprefix("test_")).strip()


def lines(figures: Mapping[str, Sequence[float | None]], times: int) -> list[str]:
    told = []
    for story, runs in sorted(figures.items()):
        good = sorted(seconds for seconds in runs if seconds is not None)
        took = f"{statistics.median(good):.1f} s, at most {good[-1]:.1f} s" if good else "never"
        told.append(f"soak: {len(good)} of {times} passed ({took}): {story}")
    return told


def main(arguments: Sequence[str]) -> int:
    if not arguments or not arguments[0].isdigit() or int(arguments[0]) < 1:
        print("soak: how many times? For example: make soak N=10", file=sys.stderr)
        return 2
    times = int(arguments[0])
    figures = soak(times, arguments[1:])
    print("\n".join(lines(figures, times)))
    passed = [sum(seconds is not None for seconds in runs) for runs in figures.values()]
    if not passed:
        print("soak: no story ran", file=sys.stderr)
    return 0 if passed and min(passed) == times else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
