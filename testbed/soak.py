"""``make soak``: the stories of processes, again and again, each time on a new control plane.

A story that passes nine times of ten is a broken story, or a broken program. Every story gets a
figure, and so do all of them together: a round in which one fails has failed. What a failing one
said is shown at once.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

STORIES: Final = ("-m", "process_story", "tests/real")
#: How much of a failing run is shown.
LAST_LINES: Final = 60

#: For each round its seconds, or None where it failed.
Runs = list[float | None]
#: The same by story.
Figures = dict[str, Runs]


def soak(times: int, arguments: Sequence[str]) -> tuple[Runs, Figures]:
    """How it went, all of it and story by story."""
    rounds: Runs = []
    figures: Figures = {}
    for number in range(1, times + 1):
        began = time.monotonic()
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
        took = time.monotonic() - began
        rounds.append(took if good == len(results) and not run.returncode else None)
        told = f"{good} of {len(results)} stories passed in {took:.0f} s"
        print(f"soak: round {number} of {times}: {told}", flush=True)
        if run.returncode:
            print("\n".join(run.stdout.splitlines()[-LAST_LINES:]), run.stderr, flush=True)
    return rounds, figures


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


def lines(rounds: Runs, figures: Mapping[str, Runs], times: int) -> list[str]:
    """Story by story, and all together last."""
    told = [f"soak: {_figure(runs, times, '')}: {name}" for name, runs in sorted(figures.items())]
    return [*told, f"soak: {_figure(rounds, times, 'rounds ')}"]


def _figure(runs: Runs, times: int, of_what: str) -> str:
    good = sorted(seconds for seconds in runs if seconds is not None)
    took = f"{statistics.median(good):.1f} s, at most {good[-1]:.1f} s" if good else "never"
    return f"{len(good)} of {times} {of_what}passed ({took})"


def main(arguments: Sequence[str]) -> int:
    if not arguments or not arguments[0].isdigit() or int(arguments[0]) < 1:
        print("soak: how many times? For example: make soak N=10", file=sys.stderr)
        return 2
    times = int(arguments[0])
    rounds, figures = soak(times, arguments[1:])
    print("\n".join(lines(rounds, figures, times)))
    if not figures:
        print("soak: no story ran", file=sys.stderr)
    return 0 if figures and None not in rounds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
