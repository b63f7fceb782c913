"""What a verdict is made of: facts, each a small typed value with a sentence of its own.

Deciders combine facts; no code parses a sentence. Each package has a module ``facts`` with its
own, so that all its messages are in one place; ``docs/messages.md`` shows each of them with example
values.

A sentence begins in lower case, has no full stop, and is complete by itself: what is the case; why,
with numbers and names of objects; until when, or what to do. Facts of one verdict are joined by
semicolons.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final

from tenure.model.api.meta import BEGINNING, format_time
from tenure.model.values.fact import Fact, sentence

__all__ = ["EXAMPLES", "Fact", "NodeClassNotServed", "Quoted", "RetriedAt", "as_fact", "sentence"]


class Quoted(Fact, frozen=True):
    """What another program answered, in its own words."""

    text: str

    def __str__(self) -> str:
        return self.text


class RetriedAt(Fact, frozen=True):
    at: datetime

    news: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"retrying at {format_time(self.at)}"


class NodeClassNotServed(Fact, frozen=True):
    """A pool or claim of another provider."""

    kind: str
    group: str

    def __str__(self) -> str:
        return f"node class {self.kind}.{self.group} is not served here"


def as_fact(said: Fact | str) -> Fact:
    return Quoted(said) if isinstance(said, str) else said


EXAMPLES: Final[tuple[Fact, ...]] = (
    Quoted("Cannot evict pod as it would violate the pod's disruption budget"),
    RetriedAt(BEGINNING),
    NodeClassNotServed("EC2NodeClass", "karpenter.k8s.aws"),
)
