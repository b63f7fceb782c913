"""What came of each expectation, and since when that is known."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from tenure.sim.scenario.context import ScenarioContext, clock
from tenure.sim.scenario.expectations import Expectation, When


class ExpectationState(StrEnum):
    MET = "held"
    FAILED = "failed"
    #: The run ended before it could be said.
    UNREACHED = "unreached"
    #: A step about an object that had gone by then: the run goes on, and is no failure for it.
    GONE = "gone"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an expectation, or of a step that could not be done."""

    held: ExpectationState
    expected: str
    found: str
    at: datetime
    place: str
    #: Whether it is about a step and not about an expectation.
    step: bool = False


class Watched:
    """An expectation and what is known about it so far."""

    def __init__(self, expectation: Expectation) -> None:
        self._expectation = expectation
        self._finding: Finding | None = None
        self._looked = False
        self._seen: object = None

    @property
    def begins(self) -> timedelta:
        return self._expectation.after

    @property
    def instant(self) -> timedelta | None:
        """When it must be looked at whatever happens."""
        return self._expectation.until

    def spans(self, elapsed: timedelta) -> bool:
        one = self._expectation
        if one.when is When.AT or self._finding is not None:
            return False
        return one.after <= elapsed and (one.until is None or elapsed <= one.until)

    def look_again(self, context: ScenarioContext) -> None:
        """Look, unless the answer must be the same as the last time."""
        seen = self._expectation.check.depends_on(context)
        if seen != self._seen:
            self._seen = seen
            self.look(context)

    def look(self, context: ScenarioContext) -> None:
        if self._finding is not None:
            return
        one = self._expectation
        self._looked = True
        right, found = one.check.look(context, context.instant(one.after))
        due = one.until is not None and context.now >= context.instant(one.until)
        match one.when:
            case When.AT:
                self._settle(
                    ExpectationState.MET if right else ExpectationState.FAILED, found, context
                )
            case When.BY if right or due:
                self._settle(
                    ExpectationState.MET if right else ExpectationState.FAILED, found, context
                )
            case When.ALWAYS if not right:
                self._settle(ExpectationState.FAILED, found, context)
            case When.NEVER if right:
                self._settle(ExpectationState.FAILED, found, context)

    def conclude(self, context: ScenarioContext) -> Finding:
        """At the end of the run."""
        one = self._expectation
        if self._finding is None and one.until is None and one.when in (When.AT, When.BY):
            right, found = one.check.look(context, context.instant(one.after))
            self._settle(ExpectationState.MET if right else ExpectationState.FAILED, found, context)
        elif self._finding is None and one.when in (When.ALWAYS, When.NEVER) and self._looked:
            _, found = one.check.look(context, context.instant(one.after))
            self._settle(ExpectationState.MET, f"at the end {found}", context)
        elif self._finding is None:
            self._settle(ExpectationState.UNREACHED, "the run ended before", context)
        assert self._finding is not None
        return self._finding

    def _settle(self, held: ExpectationState, found: str, context: ScenarioContext) -> None:
        one, at = self._expectation, context.now
        # Of a later day the clock alone says little.
        day = "" if at.date() == context.instant(timedelta()).date() else f"{at:%Y-%m-%d} "
        self._finding = Finding(
            held=held,
            expected=str(one),
            found=f"{found}, at {day}{clock(at)}",
            at=at,
            place=one.place,
        )
