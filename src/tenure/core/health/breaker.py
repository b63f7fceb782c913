"""The breaker of a pool: no repair while too many of its nodes are unhealthy.

Many unhealthy nodes at once are rarely many unhealthy nodes: it is the network, or us. Sick are nodes that
have registered, are no longer booting, and have a condition that is watched for the pool,
tolerated or not. Those that are leaving count, so no more than the limit are ever replaced at
once. Recovery is never delayed.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: A number with more of them is above any number of nodes, and int() refuses thousands.
_DIGITS: Final = 9


class Breaker(msgspec.Struct, frozen=True):
    unhealthy: int
    total: int
    #: A number of nodes, or a percentage of them, rounded up.
    limit: str | int

    @property
    def allowed(self) -> int:
        """How many may be unhealthy; a limit that cannot be read lets nothing be repaired."""
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

    def __str__(self) -> str:
        nodes = "1 node is" if self.unhealthy == 1 else f"{self.unhealthy} nodes are"
        return (
            f"{nodes} unhealthy of {self.total}, and nothing is repaired above {self.allowed} "
            f"(maxUnhealthy {self.limit})"
        )
