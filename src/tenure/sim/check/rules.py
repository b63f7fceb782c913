"""What the checkers hold, in one table, and what was broken of it.

The docs print the table, and the fuzzer counts by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.sim.virtual.environment import Environment

#: What must never happen, by the name that a violation has.
RULES: Final[Mapping[str, str]] = {
    "foreign write": "a write to an object that is not ours",
    "beyond levers": "beside Karpenter, a write that is neither a lever nor the status of a window or policy, nor the end of a claim with a deadline of ours",
    "pod written": "a write to a pod that is neither an eviction nor a deletion, nor its nomination",
    "early eviction": "a pod taken from a Node that neither leaves nor reboots, or takes new pods",
    "protected eviction": "a pod evicted before its protection ends",
    "early force": "a pod deleted before its Node's deadline requires it, or with no grace",
    "unfounded deletion": "a claim deleted although nothing asks for it, or not yet",
    "before its replacements": "a claim deleted before its replacements are Initialized",
    "before its group": "a claim deleted before all claims that are replaced together are marked",
    "idle replacement": "an empty replacement for an hour, for a claim that never was to be replaced",
    "open Node": "a claim deleted for its replacement while its Node takes new pods",
    "beyond budgets": "a claim replaced, rebooted or deleted beyond the budgets of its NodePool",
    "too many starts": "a command or reboot begun that is one too many in the span of a budget",
    "inside a window": "a claim replaced, rebooted or deleted in a Block window, or outside all Allow ones",
    "past a veto": "a claim replaced, rebooted or deleted in spite of do-not-repair or do-not-disrupt",
    "past protected pods": "a claim replaced by choice while its pods are protected, without a deadline",
    "past a switch": "a claim replaced or deleted for a reason that is switched off",
    "past a breaker": "a claim deleted while too many Nodes of its pool are unhealthy",
    "early Node deletion": "a Node deleted while its claim stays",
    "deadline put off": "the deadline of a claim that is being deleted, set later or taken off",
    "unfounded deadline": "a deadline in the past for a claim that nothing asks to go",
    "early release": "our finalizer taken off while the instance is there",
    "doubled instance": "two instances for one claim",
    "uncalled reboot": "an instance rebooted that its claim does not ask for",
    "live termination": "an instance terminated whose claim stays",
    "pods lost": "an instance terminated while pods run there, before the deadline",
    "leaked instance": "an instance without a claim for longer than garbage collection may take",
}


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that was broken, and when."""

    at: datetime
    rule: str
    message: str


class Violations:
    def __init__(self, environment: Environment, report: Callable[[Violation], object]) -> None:
        self._environment, self._report = environment, report
        self.found: list[Violation] = []
        #: How often each rule was asked.
        self.asked: Counter[str] = Counter()

    def check(self, rule: str, sentence: str) -> None:
        """Count the rule as asked; a sentence says how it is broken."""
        assert rule in RULES, f"{rule} is not in the table"
        self.asked[rule] += 1
        if sentence:
            violation = Violation(at=self._environment.now(), rule=rule, message=sentence)
            self.found.append(violation)
            self._report(violation)
