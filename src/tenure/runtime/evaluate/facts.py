"""The facts about deciders that fail. Each is a fault of Tenure, and worth a report."""

from __future__ import annotations

from typing import Final

from tenure.core.decision import Concern
from tenure.core.facts import Fact
from tenure.model.values.duration import Duration
from tenure.runtime.evaluate.failures import FAILURE_PAUSE

_RETRIED: Final = f"retrying within {Duration.of(FAILURE_PAUSE)}"


class EvaluationFails(Fact, frozen=True):
    concern: Concern
    key: str
    #: With file and line.
    error: str

    def __str__(self) -> str:
        return f"evaluating {self.concern}/{self.key} fails: {self.error}; {_RETRIED}"


class KeysUnknown(Fact, frozen=True):
    """Only the keys that are known already are evaluated."""

    concern: Concern
    error: str

    def __str__(self) -> str:
        return f"cannot list the keys of {self.concern}: {self.error}; {_RETRIED}"


EXAMPLES: Final[tuple[Fact, ...]] = (
    EvaluationFails(Concern.DRAIN, "node-1", "KeyError: 'zone' (drain.py:12)"),
    KeysUnknown(Concern.DRAIN, "ZeroDivisionError (drain.py:12)"),
)
