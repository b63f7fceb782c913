"""Reads the ``expect`` of a scenario: what must hold, and when.

================================  ======================================================
``at: 10m`` (or ``end``)          it holds at that instant, before what happens then
``by: 12m``                       at some instant until then; from ``after`` on, if given
``after: 5m``, ``within: 3m``     the same, counted from ``after``
``always: {…}``                   at every instant; from ``after`` and until ``until``
``never: {…}``                    at no instant
================================  ======================================================

With ``at``, ``by`` and ``within`` the check stands beside them, in the other two cases
below. A ``reason`` counts from ``after`` (else from the start) up to the instant.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from tenure.core.reasons import Reason
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.schema.labeladvice import KNOWN_VALUES
from tenure.sim.scenario.checks import (
    Bound,
    Check,
    ConditionCheck,
    CostCheck,
    CountCheck,
    ObjectsCheck,
    ReasonCheck,
    VerdictCheck,
)
from tenure.sim.scenario.context import span
from tenure.sim.scenario.read.fields import Fields, Reader
from tenure.sim.scenario.tallies import TALLIES
from tenure.sim.scenario.targets import FILTERS, Filter, read_filter, read_kind, read_reference
from tenure.sim.scenario.words import checks as words

_ONCE: Final = Bound(1, None)
_NONE: Final = timedelta(0)


class When(StrEnum):
    AT = "at"
    BY = "by"
    ALWAYS = "always"
    NEVER = "never"


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    when: When
    check: Any
    after: timedelta = _NONE
    #: ``at``: that instant. ``by``: the last one. None: the end of the run.
    until: timedelta | None = None
    name: str = ""
    place: str = ""

    def __str__(self) -> str:
        end = "the end" if self.until is None else span(self.until)
        since = f" after {span(self.after)}" if self.after else ""
        until = "" if self.until is None else f" until {end}"
        lead = {
            When.AT: f"at {end}",
            When.BY: f"by {end}{since}",
            When.ALWAYS: f"always{since}{until}",
            When.NEVER: f"never{since}{until}",
        }[self.when]
        title = f"{self.name} ({lead})" if self.name else lead
        return f"{title}: {self.check}"


class ExpectationReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, value: Any, at: str) -> Expectation | None:
        known = (*(word.name for word in words.TIMES), *CHECKS)
        fields = self._reader.fields(value, at, known)
        timing = fields.one_of(("at", "by", "within", "always", "never"), "time")
        if not timing:
            return None
        inner = fields
        if timing in ("always", "never"):
            inner = self._reader.fields(fields.raw(timing), fields.path(timing), tuple(CHECKS))
        word = inner.one_of(tuple(CHECKS), "thing to check")
        if not word:
            return None
        with self._reader.example(CHECKS[word].hint):
            check = _READERS[word](self, inner.raw(word), inner.path(word))
        after, until = self._span_of(fields, timing)
        when = When.BY if timing == "within" else When(timing)
        return Expectation(
            when=when,
            check=check,
            after=after,
            until=until,
            name=fields.text("name", ""),
            place=self._reader.document.place(at),
        )

    def _span_of(self, fields: Fields, timing: str) -> tuple[timedelta, timedelta | None]:
        after = fields.span("after", _NONE)
        if timing == "within":
            if "after" not in fields:
                hint = "For example after: 5m, within: 3m; or write by: 8m."
                self._reader.problem(fields.path("after"), None, "when the time begins", hint)
            return after, after + fields.span("within")
        if timing in ("always", "never"):
            return after, fields.span("until") if "until" in fields else None
        if "until" in fields:
            self._reader.problem(
                fields.path("until"), fields.raw("until"), "until only with always or never"
            )
        if fields.raw(timing) == "end":
            return after, None
        until = fields.span(timing)
        if until < after:
            expected = f"an instant after {span(after)}"
            self._reader.problem(fields.path(timing), fields.raw(timing), expected)
        return after, until

    # -- checks ------------------------------------------------------------------------

    def _count(self, what: str, value: Any, at: str) -> Check:
        _, states = TALLIES[what]
        about = tuple(_INSTANCE_FIELDS) if what == "instances" else FILTERS
        fields = self._reader.fields(value, at, (*states, *about))
        wanted = self._instance_filter(fields) if what == "instances" else read_filter(fields)
        bounds = tuple(
            (state, self._bound(fields.raw(state), fields.path(state)))
            for state in states
            if state in fields
        )
        if not bounds and not fields.was_meant(states):
            hint = f"For example {states[1]}: 3. Known: {', '.join(states)}."
            self._reader.problem(at, value, "a number to compare with", hint)
        return CountCheck(what, wanted, bounds)

    def _instance_filter(self, fields: Fields) -> Filter:
        terms = [
            f"{label}={fields.choice(name, known) if known else fields.text(name)}"
            for name, label in _INSTANCE_FIELDS.items()
            for known in [KNOWN_VALUES.get(label, ())]
            if name in fields
        ]
        return Filter(labels=",".join(terms))

    def _objects(self, value: Any, at: str) -> Check:
        fields = self._reader.fields(value, at, ("kind", "count", *FILTERS))
        resource = read_kind(fields)
        bound = self._bound(fields.raw("count", {"min": 1}), fields.path("count"))
        return ObjectsCheck(resource, read_filter(fields), bound)

    def _condition(self, value: Any, at: str) -> Check:
        more = ("type", "status", "reason")
        target = read_reference(self._reader, value, at, more)
        fields = _beside(self._reader, value, at)
        given = fields.raw("status", "True")
        # ``True`` without quotes is YAML's own true; here it can only mean the word.
        status = str(given) if isinstance(given, bool) else given
        statuses = ("True", "False", "Unknown")
        status = self._reader.choice(status, fields.path("status"), statuses)
        return ConditionCheck(target, fields.text("type"), status, fields.text("reason", ""))

    def _reason(self, value: Any, at: str) -> Check:
        """``reason: Draining``, or with ``of`` (a glob on the subject) and ``subjects``."""
        if isinstance(value, str):
            return ReasonCheck(self._known_reason(value, at), "*", _ONCE)
        fields = self._reader.fields(value, at, ("is", "of", "subjects"))
        reason = self._known_reason(fields.text("is"), fields.path("is"))
        bound = self._bound(fields.raw("subjects", {"min": 1}), fields.path("subjects"))
        return ReasonCheck(reason, fields.text("of", "*"), bound)

    def _verdict(self, value: Any, at: str) -> Check:
        target = read_reference(self._reader, value, at, ("reason",))
        fields = _beside(self._reader, value, at)
        return VerdictCheck(
            target, self._known_reason(fields.text("reason"), fields.path("reason"))
        )

    def _cost(self, value: Any, at: str) -> Check:
        fields = self._reader.fields(value, at, ("total", "hourly"))
        if value == {}:
            self._reader.problem(at, value, "total or hourly", "For example total: {max: 1.5}.")
        total, hourly = (
            self._bound(fields.raw(name), fields.path(name)) if name in fields else None
            for name in ("total", "hourly")
        )
        return CostCheck(total, hourly)

    def _known_reason(self, text: str, at: str) -> str:
        known = [reason.value for reason in Reason]
        return self._reader.choice(text, at, known) if text else ""

    def _bound(self, value: Any, at: str) -> Bound:
        if not isinstance(value, dict):
            number = self._amount(value, at)
            return Bound(number, number)
        fields = self._reader.fields(value, at, ("min", "max"))
        least, most = (
            self._amount(fields.raw(name), fields.path(name)) if name in fields else None
            for name in ("min", "max")
        )
        if least is None and most is None:
            self._reader.problem(at, value, "a number, min or max", "For example {min: 1}.")
            least = 0
        elif least is not None and most is not None and least > most:
            hint = f"For example {{min: {most:g}, max: {least:g}}}."
            self._reader.problem(at, value, "min up to max: this can never hold", hint)
        return Bound(least, most)

    def _amount(self, value: Any, at: str) -> float:
        """There is never less than nothing of what can be counted here."""
        number = self._reader.number(value, at)
        if number < 0:
            self._reader.problem(at, value, "0 or more: this can never hold", "For example 0.")
        return max(number, 0)


_INSTANCE_FIELDS: Final = {
    "instance-type": INSTANCE_TYPE,
    "zone": ZONE,
    "capacity-type": CAPACITY_TYPE,
}


def _beside(reader: Reader, value: Any, at: str) -> Fields:
    """What stands beside a reference, which has told of everything that is no field."""
    known = isinstance(value, dict)
    return Fields(reader, value if known else {}, at, unread=not known)


def _counting(what: str) -> Callable[[ExpectationReader, Any, str], Check]:
    return lambda reader, value, at: reader._count(what, value, at)


_READERS: Final[dict[str, Callable[[ExpectationReader, Any, str], Check]]] = {
    **{what: _counting(what) for what in TALLIES},
    "objects": ExpectationReader._objects,
    "condition": ExpectationReader._condition,
    "reason": ExpectationReader._reason,
    "verdict": ExpectationReader._verdict,
    "cost": ExpectationReader._cost,
}
CHECKS: Final = {word.name: word for word in words.CHECKS}
if _READERS.keys() != CHECKS.keys():
    raise ValueError(f"checks without a word or a reader: {_READERS.keys() ^ CHECKS.keys()}")
