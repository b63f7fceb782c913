"""What is told of verdicts, actions and clocks: journal, events, metrics, log.

Nothing here decides. One report that fails is a fault of ours, and stops neither the loop nor the
other reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.reasons import Reason
from tenure.errors import EvaluationError, TenureError, shown
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_POOLS
from tenure.model.values.duration import Duration
from tenure.ports.journal import Journal
from tenure.ports.outcome import OK, Outcome
from tenure.runtime.clock.facts import ClockSkewed
from tenure.runtime.evaluate.blame import described
from tenure.runtime.telemetry.events import EventRecorder
from tenure.runtime.telemetry.metrics import Metrics

#: Seconds that one key may take to evaluate before it is counted, and named in the log.
EVALUATION_MAX: Final = 0.5


class Reporter:
    def __init__(
        self,
        *,
        journal: Journal,
        metrics: Metrics,
        events: EventRecorder,
        report: Callable[[TenureError], None],
        warn: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._metrics = metrics
        self._events = events
        self._report = report
        self.warn = warn
        #: What has an event because our clock holds an action on it.
        self._blocked_by_clock: set[Subject] = set()

    def safely(self, work: Callable[[], None]) -> None:
        """For one object: a failure is reported, and the others go on."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a fault of ours
            self.failed(error)

    def failed(self, error: Exception) -> None:
        """Work beside the loop."""
        self._report(EvaluationError(described(error)))

    def decided(self, now: datetime, verdict: Verdict) -> None:
        if verdict.reason in (Reason.JUDGEMENT_FAILED, Reason.EVALUATION_FAILED):
            self._report(EvaluationError(verdict.message))
        self._journal.decided(now, verdict)
        self._metrics.decided(verdict)
        self._events.decided(verdict)

    def ended(self, verdict: Verdict) -> None:
        self._events.ended(verdict)

    def acted(
        self, now: datetime, verdict: Verdict, outcome: Outcome, claim: NodeClaim | None, pods: int
    ) -> None:
        """``pods``: reschedulable ones on the claim's node."""
        self._metrics.acted(verdict, outcome, claim, pods)
        self._journal.acted(now, verdict, outcome)
        if outcome == OK:
            self._events.acted(verdict, claim)

    def evaluated(self, concern: Concern, key: str, took: float) -> None:
        """One key took so many seconds."""
        self._metrics.evaluation.labels(concern.value).observe(took)
        if took > EVALUATION_MAX:
            self._metrics.over_budget.labels(concern.value).inc()
            self.warn(
                f"evaluating {concern} of {shown(key) or 'the cluster'} took {took:.1f} s, "
                f"more than {EVALUATION_MAX:g} s: everything else waited"
            )

    def clock_stepped(self, step: timedelta) -> None:
        direction = "ahead" if step > timedelta(0) else "back"
        rounded = timedelta(seconds=round(abs(step).total_seconds()))
        self._metrics.clock_steps.labels(direction).inc()
        self.warn(
            f"the wall clock was set {direction} by {Duration.of(rounded)}: "
            "everything is evaluated anew"
        )

    def clock_skewed(self, skew: str, pools: Iterable[NodePool]) -> None:
        """An event on each pool: what waits for the clock is decided as ever, so no verdict says
        so. ``skew`` is empty when the clocks agree again."""
        for pool in pools:
            verdict = _skewed(Subject.of(NODE_POOLS.kind, pool), skew)
            (self._events.decided if skew else self._events.ended)(verdict)
        if not skew:
            for subject in self._blocked_by_clock:
                self._events.ended(_skewed(subject, ""))
            self._blocked_by_clock.clear()

    def blocked_by_clock(self, subject: Subject, off: str) -> None:
        """An event on what an action was due on. The recorder repeats and rewrites it sparingly."""
        self._blocked_by_clock.add(subject)
        self._events.decided(_skewed(subject, off))


def _skewed(subject: Subject, off: str) -> Verdict:
    return Verdict(
        concern=Concern.OBJECT,
        subject=subject,
        reason=Reason.CLOCK_SKEWED,
        facts=(ClockSkewed(off),),
    )
