"""The facts about NodePoolPolicies."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact, counted, some
from tenure.model.values.problem import Problem, Problems, in_one_line


class PolicyApplies(Fact, frozen=True):
    pools: int
    #: There are NodePools, and it selects none of them.
    misses: bool = False
    #: How many it selects for which another policy is more specific.
    yields: int = 0

    def __str__(self) -> str:
        if self.misses:
            return "spec.nodePools selects no NodePool, so the policy does nothing"
        applies = f"the policy applies to {counted(self.pools, 'NodePool')}"
        if not self.yields:
            return applies
        return f"{applies}; for {self.yields} more that it selects, another policy is more specific"


class PolicyUnusable(Fact, frozen=True):
    problems: Problems
    #: Else only entries of its repair block are ignored.
    refused: bool

    def __str__(self) -> str:
        what = "the policy is refused" if self.refused else "these repair policies are ignored"
        return f"{what}: {in_one_line(self.problems)}"


class PoliciesTied(Fact, frozen=True):
    pool: str
    #: The other policies that select it in the same way.
    others: tuple[str, ...]

    def __str__(self) -> str:
        are = "NodePoolPolicy" if len(self.others) == 1 else "NodePoolPolicies"
        verb = "selects" if len(self.others) == 1 else "select"
        return (
            f"{are} {some(self.others)} {verb} NodePool {self.pool} in the same way, so none of them "
            "applies there"
        )


class MoreTies(Fact, frozen=True):
    pools: int

    def __str__(self) -> str:
        return f"the same of {counted(self.pools, 'more NodePool')}"


EXAMPLES: Final[tuple[Fact, ...]] = (
    PolicyApplies(3),
    PolicyApplies(1, yields=2),
    PolicyApplies(0, misses=True),
    PolicyUnusable((Problem("spec.readinessTTL", "'soon'", "a duration"),), refused=True),
    PolicyUnusable(
        (Problem("spec.repair.policies[0].toleration", "'soon'", "a duration"),), refused=False
    ),
    PoliciesTied("general", ("slow-boot",)),
    PoliciesTied("general", ("slow-boot", "team-a")),
    MoreTies(4),
)
