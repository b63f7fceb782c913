"""The circuit breaker of a pool: no repair while too many of its nodes are unhealthy.

Many unhealthy nodes at once rarely have many causes: it is the network, or us. A node counts
that has registered, is no longer booting, and has a condition that is watched for the pool,
tolerated or not. Terminating nodes count, so no more than the limit are ever replaced at once.
Recovery is never delayed.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: A number with more digits is above any number of nodes, and int() refuses thousands of digits.
_DIGITS: Final = 9


class Breaker(msgspec.Struct, frozen=True):
    unhealthy: int
    total: int
    #: A number of nodes, or a percentage of them, rounded up.
    limit: str | int

    @property
    def allowed(self) -> int:
        """How many may be unhealthy; with an invalid limit nothing is repaired."""
        text = str(self.limit)
        number = text.removesuffix("%")
        if not number.isdecimal():
            return 0
        if len(number) > _DIGITS:
            return self.total
        return int(text) if number == text else -(-int(number) * self.total // 100)

    @property
    def tripped(self) -> bool:
        return self.unhealthy > self.allowed
