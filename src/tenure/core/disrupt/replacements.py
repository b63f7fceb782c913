"""Whether the replacements of a command come up, how often they failed, and how long a pool pauses.

A replacement fails when it is gone or terminating, or when it was Ready and is not initialized in
time; before it is Ready its own readiness TTL ends it. One that cannot be read fails once that may
have taken as long as it may take in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Patch
from tenure.core.disrupt.facts.commands import (
    ReplacementGone,
    ReplacementLate,
    ReplacementTerminating,
    ReplacementUnreadable,
)
from tenure.core.facts import Fact
from tenure.core.gates.gates import PAUSE_MAX
from tenure.core.health.readiness import initialized_until
from tenure.core.marks.command import Command, roll_back
from tenure.model.api.meta import later, read_instant
from tenure.model.api.names import REPLACEMENT_FAILED
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.unreadable import first_unreadable

#: After a failed replacement the pool pauses so long, twice as long after the next, and so on.
PAUSE_MIN: Final = timedelta(minutes=1)
#: A failure that is so long ago does not count as one in a row with the next.
FORGOTTEN_AFTER: Final = timedelta(hours=2)


def failure_of(command: Command, now: datetime) -> Fact | None:
    """What is wrong with a replacement; None where all may still come up."""
    for name, replacement in command.replacements:
        if replacement is None:
            return ReplacementGone(name)
        if replacement.deleting:
            return ReplacementTerminating(name)
        until = initialized_until(replacement)
        if until is not None and until <= now:
            if why := first_unreadable((replacement,)):
                return ReplacementUnreadable(why, until)
            return ReplacementLate(name, until)
    return None


def comes_up(replacement: NodeClaim, now: datetime) -> bool:
    """One that was Ready and is not initialized in time has failed once, and would again."""
    until = initialized_until(replacement)
    return until is None or until > now


def awaited(command: Command) -> tuple[tuple[str, datetime | None], ...]:
    """The replacements that are not initialized yet, and until when they may take."""
    return tuple(
        (name, initialized_until(replacement))
        for name, replacement in command.replacements
        if replacement is not None and not replacement.initialized
    )


def fail_instants(command: Command) -> Iterator[datetime]:
    """When a replacement takes too long."""
    for _, replacement in command.replacements:
        if replacement is not None and (until := initialized_until(replacement)) is not None:
            yield until


# -- after a failure -----------------------------------------------------------------------


class Failures(msgspec.Struct, frozen=True):
    """How often in a row a claim's replacement has failed, and when last."""

    times: int = 0
    at: datetime | None = None

    @property
    def forgotten_at(self) -> datetime | None:
        return None if self.at is None else later(self.at, FORGOTTEN_AFTER)


def failures_of(claim: NodeClaim) -> Failures:
    """An annotation that cannot be read says nothing."""
    times, _, at = claim.annotations.get(REPLACEMENT_FAILED, "").partition(" ")
    instant = read_instant(at)
    if instant is None or not times.isdecimal() or len(times) > 3:
        return Failures()
    return Failures(int(times), instant)


def roll_back_failed(claim: NodeClaim, now: datetime) -> Patch:
    """Takes the marks off the claim and notes the failure, in one write."""
    known = failures_of(claim)
    in_a_row = known.forgotten_at is not None and now < known.forgotten_at
    times = known.times + 1 if in_a_row else 1
    action = roll_back(claim, {REPLACEMENT_FAILED: str(times)})
    return msgspec.structs.replace(action, dated=REPLACEMENT_FAILED)


def pauses_of(claims: Mapping[str, NodeClaim]) -> Iterator[tuple[datetime, str]]:
    """Until when a pool of these claims replaces nothing, and after whose failed replacement."""
    for name, claim in sorted(claims.items()):
        failures = failures_of(claim)
        if failures.at is not None and not claim.deleting:
            pause = min(PAUSE_MIN * 2 ** min(max(failures.times - 1, 0), 10), PAUSE_MAX)
            yield later(failures.at, pause), name
