"""What ought to become of each spec (``expected.yaml``), and how a run differs from it.

A rule names a suite and the beginning of spec names; of several the longest counts. So a group has
one rule, and a spec that differs from its group has its own. A spec without a rule is an error: it
came with another version of Karpenter, and has to be thought about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import yaml

from testbed.conformance.report import Outcome, Spec, State

FILE: Final = Path(__file__).with_name("expected.yaml")


class Expected(StrEnum):
    PASSES = "passes"
    #: A fault of ours, or a difference that we mean; ``why`` says which.
    FAILS = "fails"
    #: What it tries is not built: run with ``--all`` alone.
    NOT_BUILT = "not built"
    #: It can never run here: not run at all.
    CANNOT_RUN = "cannot run"


@dataclass(frozen=True)
class Rule:
    suite: str
    specs: str
    expected: Expected
    #: For what passes, a remark, if any.
    why: str
    #: It fails when it has not passed by then: far above what it needs, far below its own 15 minutes.
    limit: timedelta
    #: How long a launched node takes to register. Some specs look every two seconds for a state in
    #: between, which a controller that is faster than that goes through unseen.
    registration_delay: timedelta


class Unknown(Exception):
    """Specs without a rule."""


class Rules:
    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = sorted(rules, key=lambda rule: len(rule.specs), reverse=True)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def of(self, spec: Spec) -> Rule:
        for rule in self._rules:
            if rule.suite == spec.suite and spec.name.startswith(rule.specs):
                return rule
        raise Unknown(f"{FILE.name} has no rule for {spec.suite}: {spec.name}")

    def unused(self, specs: Iterable[Spec]) -> list[Rule]:
        """Rules that no spec follows: misspelt, or of an older Karpenter."""
        used = {id(self.of(spec)) for spec in specs}
        return [rule for rule in self._rules if id(rule) not in used]


def load(text: str | None = None) -> Rules:
    document = yaml.safe_load(FILE.read_text(encoding="utf-8") if text is None else text)
    default = _seconds(document["limit"])
    return Rules(
        _rule(suite, entry, default)
        for suite, entries in document["suites"].items()
        for entry in entries
    )


def _rule(suite: str, entry: Mapping[str, Any], default: timedelta) -> Rule:
    expected = Expected(entry["expected"])
    why = " ".join(str(entry.get("why", "")).split())
    assert why or expected == Expected.PASSES, f"{entry['specs']}: why, if it does not pass"
    limit = _seconds(entry["limit"]) if "limit" in entry else default
    delay = _seconds(entry.get("registrationDelay", "0s"))
    return Rule(suite, entry["specs"], expected, why, limit, delay)


def _seconds(text: str) -> timedelta:
    units = {"s": 1, "m": 60}
    return timedelta(seconds=int(text[:-1]) * units[text[-1]])


def surprise(rule: Rule, outcome: Outcome) -> str:
    """How the outcome differs from what is expected; empty if it does not."""
    passed = outcome.state == State.PASSED
    if rule.expected == Expected.PASSES and not passed:
        return f"was expected to pass, {outcome.state}: {outcome.complaint}"
    if rule.expected != Expected.PASSES and passed:
        return f"passes, and {FILE.name} says: {rule.expected} ({rule.why})"
    return ""
