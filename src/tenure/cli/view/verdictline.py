"""The end of a simulation in words: expectations, promises, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tenure.sim.scenario.context import clock, span
from tenure.sim.scenario.findings import ExpectationState, Finding
from tenure.sim.scenario.run import Result

_WORDS = {
    ExpectationState.MET: "met",
    ExpectationState.FAILED: "FAILED",
    ExpectationState.UNREACHED: "not reached",
}


def result_lines(result: Result, elapsed: timedelta) -> Iterator[str]:
    yield ""
    yield "What was expected"
    if not result.findings:
        yield "  nothing: add expect: to the scenario"
    for finding in result.findings:
        yield from _finding(finding)
    if result.violations:
        yield ""
        yield "Promises that were broken"
        for violation in result.violations:
            yield f"  {clock(violation.at)}  {violation.rule}: {violation.message}"
    yield ""
    yield from _summary(result, elapsed)


def _finding(finding: Finding) -> Iterator[str]:
    yield f"  {_WORDS[finding.held]:<12} {finding.expected}"
    if finding.held is ExpectationState.FAILED:
        yield f"  {'':<12} found {finding.found}  ({finding.place.rstrip(': ')})"


def _summary(result: Result, elapsed: timedelta) -> Iterator[str]:
    summary = result.summary
    failed = sum(finding.held is ExpectationState.FAILED for finding in result.findings)
    met = sum(finding.held is ExpectationState.MET for finding in result.findings)
    yield (
        f"{span(elapsed)} of cluster time, seed {result.seed}: "
        f"{_many(summary.instances_launched, 'instance')} launched, {summary.instances_ended} terminated; "
        f"{_many(summary.nodes, 'node')}, {_many(summary.pods_running, 'pod')} running, "
        f"{summary.pods_pending} pending; ${summary.cost:.4f} spent, ${summary.hourly:.4f}/h now"
    )
    yield (
        f"{met} of {len(result.findings)} expectations met, {failed} failed; "
        f"{_many(len(result.violations), 'promise')} broken"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
