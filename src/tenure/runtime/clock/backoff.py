"""Pauses that grow, per target, and a bucket that paces calls over all targets."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import msgspec

from tenure.ports.clock import Clock


class _Failure(msgspec.Struct, frozen=True):
    count: int
    #: On the monotonic clock, as everything here.
    retry_at: float
    #: Which try failed, e.g. the version it was based on: another one may go at once.
    attempt: str


class BackOff:
    """One failing target waits longer each time; the others do not wait at all."""

    def __init__(self, shortest: timedelta, longest: timedelta, random: Random) -> None:
        self._shortest = shortest
        self._longest = longest
        self._random = random
        self._failures: dict[str, _Failure] = {}

    def failed(
        self,
        target: str,
        now: float,
        attempt: str = "",
        *,
        at_least: timedelta | None = None,
    ) -> timedelta:
        """Note a failure; return after how long to try again, no sooner than we were asked to."""
        old = self._failures.get(target)
        count = old.count + 1 if old else 1
        pause = min(self._shortest * (1 << min(count - 1, 20)), self._longest)
        # Jitter of a quarter, so that targets that failed together do not retry together.
        pause *= 0.75 + self._random.random() / 4
        if at_least is not None:
            pause = max(pause, at_least)
        self._failures[target] = _Failure(count, now + pause.total_seconds(), attempt)
        return pause

    def succeeded(self, target: str) -> None:
        self._failures.pop(target, None)

    def wait_until(self, target: str, now: float, attempt: str = "") -> float | None:
        """When the target may be tried again; None when it may now."""
        failure = self._failures.get(target)
        if failure is None or failure.retry_at <= now:
            return None
        if attempt and failure.attempt and attempt != failure.attempt:
            return None
        return failure.retry_at

    def forget_before(self, instant: float) -> None:
        """Targets that have not failed for long are forgotten, so that this stays small."""
        for target in [t for t, f in self._failures.items() if f.retry_at < instant]:
            del self._failures[target]

    def __len__(self) -> int:
        return len(self._failures)


class Bucket:
    """So many calls per second on average, so many at once."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._gap = 1 / rate
        self._allowance = self._gap * (burst - 1)
        self._clock = clock
        self._next_at: float | None = None

    async def take(self) -> None:
        """Wait for a turn. Callers are served in the order in which they came."""
        now = self._clock.monotonic()
        slot = max(self._next_at, now) if self._next_at is not None else now
        self._next_at = slot + self._gap
        wait = slot - self._allowance - now
        if wait > 0:
            await asyncio.sleep(wait)
