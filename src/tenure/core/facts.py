"""What a verdict is made of: facts, each a small typed value with a sentence of its own.

Deciders combine facts; no code parses a sentence. Each package has a module ``facts`` with its
own, so that all its messages are in one place; ``docs/messages.md`` shows each of them with example
values.

A sentence begins in lower case, has no full stop, and is complete by itself: what is the case; why,
with numbers and names of objects; until when, or what to do. Facts of one verdict are joined by
semicolons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import ClassVar, Final

import msgspec

from tenure.model.api.meta import format_time
from tenure.model.values.fact import Fact, sentence
from tenure.model.values.problem import Problem
from tenure.model.values.unreadable import UnreadableObject

__all__ = ["EXAMPLES", "Fact", "NodeClassNotServed", "Quoted", "RetriedAt", "sentence"]

#: How many objects a message names.
NAMED_MAX: Final = 3


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


class Joined(Fact, frozen=True):
    """Several facts where there can be one."""

    facts: tuple[Fact, ...]

    def gist(self) -> object:
        return tuple(one.gist() for one in self.facts)

    def __str__(self) -> str:
        return sentence(self.facts)


def joined(facts: tuple[Fact, ...]) -> Fact:
    return facts[0] if len(facts) == 1 else Joined(facts)


def parts(fact: Fact) -> tuple[Fact, ...]:
    """The opposite of ``joined``."""
    return fact.facts if isinstance(fact, Joined) else (fact,)


def some(names: Iterable[str]) -> str:
    """The first few, and how many more: a message names no hundred pods."""
    every = list(names)
    more = f" and {len(every) - NAMED_MAX} more" if len(every) > NAMED_MAX else ""
    return ", ".join(every[:NAMED_MAX]) + more


def claims_text(names: Iterable[str]) -> str:
    """Claims by name, for a sentence."""
    named = list(names)
    return f"NodeClaim{'' if len(named) == 1 else 's'} {', '.join(named)}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def told(facts: Iterable[Fact]) -> Iterator[Fact]:
    """The facts, and those that are part of them."""
    return (one for one in _parts(tuple(facts)) if isinstance(one, Fact))


def instants_of(facts: Iterable[Fact]) -> Iterator[datetime]:
    """Every instant that the facts carry."""
    return (one for one in _parts(tuple(facts)) if isinstance(one, datetime))


def _parts(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    if isinstance(value, tuple):
        for one in value:
            yield from _parts(one)


#: Two instants for examples.
AT: Final = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
THEN: Final = datetime(2026, 3, 2, 12, 15, tzinfo=UTC)


def unreadable(kind: str, name: str, field: str = "spec") -> UnreadableObject:
    """For examples, too."""
    return UnreadableObject(kind, name, field, expected="object", got="str")


class FieldIgnored(Fact, frozen=True):
    field: str
    how: str

    def __str__(self) -> str:
        return f"{self.field} does nothing: {self.how}"


class FieldDiffers(Fact, frozen=True):
    """A field that acts otherwise than in Karpenter."""

    field: str
    how: str

    def __str__(self) -> str:
        return f"{self.field} differs from Karpenter: {self.how}"


class FieldsAct(Fact, frozen=True):
    def __str__(self) -> str:
        return "every field that is set acts as in Karpenter"


EXAMPLES: Final[tuple[Fact, ...]] = (
    Quoted("Cannot evict pod as it would violate the pod's disruption budget"),
    RetriedAt(AT),
    NodeClassNotServed("EC2NodeClass", "karpenter.k8s.aws"),
    Joined((Quoted("The API server is busy"), RetriedAt(AT))),
    Problem("spec.weight", "0", "a number from 1 to 100"),
    UnreadableObject("Pod", "default/web-1", "spec.priority", expected="int", got="str"),
    UnreadableObject("Node", "node-1", error="Invalid RFC3339 encoded datetime"),
    UnreadableObject("NodePool", "general", error="KeyError: 'zone'", decoded=True),
    FieldIgnored("spec.replicas", "such a pool launches nothing"),
    FieldDiffers(
        "spec.template.spec.expireAfter",
        "an expired node waits for windows, budgets and its replacement; Karpenter deletes it at once",
    ),
    FieldsAct(),
)
