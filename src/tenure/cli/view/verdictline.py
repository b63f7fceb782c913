"""The end of a simulation in words: expectations, promises, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from tenure.cli.view.colour import coloured
from tenure.cli.view.columns import hanging
from tenure.sim.scenario.context import clock, span
from tenure.sim.scenario.findings import ExpectationState, Finding
from tenure.sim.scenario.run import Result, Summary

#: With what its colour stands for.
_WORDS: Final = {
    ExpectationState.MET: ("met", "good"),
    ExpectationState.FAILED: ("FAILED", "bad"),
    ExpectationState.UNREACHED: ("not reached", "waits"),
    ExpectationState.GONE: ("not done", "waits"),
}
_WIDTH: Final = 12


def result_lines(result: Result, elapsed: timedelta, width: int | None = None) -> Iterator[str]:
    """``width``: of the terminal; None where the output is none."""
    yield ""
    word, meaning = _verdict(result)
    first, *rest = hanging("", f"{word}: {_counts(result)}", width)
    yield first.replace(word, coloured(word, meaning), 1)
    yield from rest
    for line in _summary(result, elapsed):
        yield from hanging("", line, width)
    if result.findings:
        yield ""
        yield coloured("What was expected", "title")
    for finding in result.findings:
        yield from _finding(finding, width)
    if result.violations:
        yield ""
        yield coloured("Promises that were broken", "bad")
        for violation in result.violations:
            lead = f"  {clock(violation.at)}  "
            yield from hanging(lead, f"{violation.rule}: {violation.message}", width)


def _finding(finding: Finding, width: int | None) -> Iterator[str]:
    word, colour = _WORDS[finding.held]
    lead = f"  {word:<{_WIDTH}} "
    first, *rest = hanging(lead, finding.expected, width)
    yield first.replace(word, coloured(word, colour), 1)
    yield from rest
    if finding.held in (ExpectationState.FAILED, ExpectationState.GONE):
        found = f"found {finding.found}  ({finding.place.rstrip(': ')})"
        yield from hanging(" " * len(lead), found, width)


def _verdict(result: Result) -> tuple[str, str]:
    if not result.fine:
        return "FAILED", "bad"
    return ("Passed", "good") if result.findings else ("Played", "title")


def _counts(result: Result) -> str:
    expected = [finding.held for finding in result.findings if not finding.step]
    failed = expected.count(ExpectationState.FAILED)
    met = expected.count(ExpectationState.MET)
    unreached = expected.count(ExpectationState.UNREACHED)
    steps = [finding.held for finding in result.findings if finding.step]
    impossible = steps.count(ExpectationState.FAILED)
    held = f"{met} of {_many(len(expected), 'expectation')} met, {failed} failed"
    return "; ".join(
        (
            # What makes the run fail comes first.
            *([f"{_many(impossible, 'step')} could not be done"] if impossible else []),
            (held if expected else "nothing was expected")
            + (f", {unreached} not reached" if unreached else ""),
            *([f"{_many(gone, 'step')} not done"] if (gone := len(steps) - impossible) else []),
            f"{_many(len(result.violations), 'promise')} broken",
        )
    )


def _summary(result: Result, elapsed: timedelta) -> Iterator[str]:
    summary = result.summary
    yield (
        f"{span(elapsed)} of cluster time, seed {result.seed}: "
        f"{_many(summary.instances_launched, 'instance')} launched, {summary.instances_ended} terminated; "
        f"{_many(summary.nodes, 'node')}, {_many(summary.pods_running, 'pod')} running, "
        f"{summary.pods_pending} pending; {_price(summary)}"
    )


def _price(summary: Summary) -> str:
    """Sums of what is known; what is unknown is told, and is no part of them."""
    unknown = summary.instances_of_unknown_price
    sums = []
    if summary.cost is not None:
        sums.append(f"{'at least ' * bool(unknown.ever)}${summary.cost:.4f} spent")
    if summary.hourly is not None:
        sums.append(f"{'at least ' * bool(unknown.now)}${summary.hourly:.4f}/h now")
    return "; ".join(filter(None, (", ".join(sums), str(unknown))))


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
