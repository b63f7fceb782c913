"""What can be asked of a cluster at an instant, each answer with a sentence.

A check says what it expects (``str``) and what it found (``look``: whether it holds,
and the numbers). It never changes anything, and looks at the true state, not at what
Tenure believes, except ``verdict`` and ``reason``, which are about what Tenure says.
"""

from __future__ import annotations

from datetime import datetime
from fnmatch import fnmatchcase
from typing import Protocol

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.sim.cloud.billing import Owed
from tenure.sim.scenario.context import ScenarioContext
from tenure.sim.scenario.tallies import TALLIES, condition_of
from tenure.sim.scenario.targets import Filter, Target, select


class Check(Protocol):
    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        """Whether it holds now, and what was found. ``since``: where its time begins."""
        ...

    def depends_on(self, context: ScenarioContext) -> object:
        """While this stays the same, so does the answer."""
        ...


class Bound(msgspec.Struct, frozen=True):
    """``3``, or ``{min: 1, max: 5}``."""

    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        if self.least == self.most:
            return f"exactly {self.least:g}"
        if self.most is None:
            return f"at least {self.least:g}"
        if self.least is None:
            return f"at most {self.most:g}"
        return f"between {self.least:g} and {self.most:g}"

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )


class CountCheck(msgspec.Struct, frozen=True):
    """So many pods, nodes, claims or instances are in these states."""

    what: str
    filter: Filter
    bounds: tuple[tuple[str, Bound], ...]

    def __str__(self) -> str:
        wanted = " and ".join(f"{bound} {_named(state)}" for state, bound in self.bounds)
        return f"{self.what} {self.filter}".strip() + f": {wanted}"

    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        tally, states = TALLIES[self.what]
        found = tally(context, self.filter)
        numbers = ", ".join(f"{found[state]} {_named(state)}" for state in states)
        return all(bound.holds(found[state]) for state, bound in self.bounds), numbers

    def depends_on(self, context: ScenarioContext) -> object:
        kinds = [{"pods": r.PODS, "nodes": r.NODES}.get(self.what, r.NODE_CLAIMS)]
        if self.what == "pods" and self.filter.pool:
            kinds.append(r.NODES)
        elif self.filter.app:
            kinds.append(r.PODS)
        return (context.cloud_version, *(context.changes[kind] for kind in kinds))


def _named(state: str) -> str:
    return "in all" if state == "count" else state


class ObjectsCheck(msgspec.Struct, frozen=True):
    """So many objects of any kind."""

    resource: Resource
    filter: Filter
    bound: Bound

    def __str__(self) -> str:
        return f"{self.resource.plural} {self.filter}".strip() + f": {self.bound}"

    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        found = select(context.store, self.resource, self.filter)
        named = [obj["metadata"]["name"] for obj in found[:5]]
        return self.bound.holds(len(found)), f"{len(found)} ({', '.join(named)})".replace(" ()", "")

    def depends_on(self, context: ScenarioContext) -> object:
        return context.version


class ConditionCheck(msgspec.Struct, frozen=True):
    """An object's status says so."""

    target: Target
    type: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        because = f" because {self.reason}" if self.reason else ""
        return f"{self.target}: {self.type}={self.status}{because}"

    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        obj = self.target.find(context.store)
        if obj is None:
            return False, "no such object"
        condition = condition_of(obj, self.type)
        if condition is None:
            return False, f"{obj['metadata']['name']} has no condition {self.type}"
        right = condition["status"] == self.status
        right = right and self.reason in ("", condition.get("reason"))
        found = f"{self.type}={condition['status']} because {condition.get('reason', '')}"
        return right, f"{obj['metadata']['name']} says {found}"

    def depends_on(self, context: ScenarioContext) -> object:
        return context.version


class ReasonCheck(msgspec.Struct, frozen=True):
    """Tenure has given this reason, in the time that the expectation is about."""

    reason: str
    subject: str
    subjects: Bound

    def __str__(self) -> str:
        of = "any object" if self.subject == "*" else self.subject
        many = "" if self.subjects == Bound(1, None) else f", {self.subjects} of these"
        return f"reason {self.reason} of {of}{many}"

    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        found = {
            entry.subject: entry.at
            for entry in context.said.get(self.reason, ())
            if entry.at >= since and fnmatchcase(entry.subject, self.subject)
        }
        last = max(found, key=lambda subject: (found[subject], subject), default="")
        named = f"{len(found)}, last {last}" if last else "none"
        return self.subjects.holds(len(found)), f"said of {named}"

    def depends_on(self, context: ScenarioContext) -> object:
        return len(context.said.get(self.reason, ()))


class VerdictCheck(msgspec.Struct, frozen=True):
    """A verdict that is in force now gives this reason."""

    target: Target
    reason: str

    def __str__(self) -> str:
        return f"{self.target}: verdict {self.reason}"

    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        obj = self.target.find(context.store)
        if obj is None:
            return False, "no such object"
        metadata = obj["metadata"]
        verdicts = context.world.controller.evaluator.about(
            obj["kind"], metadata["name"], metadata.get("namespace", "")
        )
        said = ", ".join(f"{verdict.reason} ({verdict.message})" for verdict in verdicts)
        right = any(verdict.reason == self.reason for verdict in verdicts)
        return right, f"{metadata['name']}: {said or 'no verdict'}"

    def depends_on(self, context: ScenarioContext) -> object:
        return context.version


def _is_kept(bound: Bound | None, owed: Owed) -> bool:
    """What may cost more than is known keeps no upper bound."""
    if bound is None:
        return True
    return bound.holds(owed.known / MICRO_DOLLARS) and not (
        owed.unpriced and bound.most is not None
    )


def _dollars(owed: Owed) -> str:
    return owed.said(f"{owed.known / MICRO_DOLLARS:.4f}")


class CostCheck(msgspec.Struct, frozen=True):
    """What the instances have cost so far, or cost per hour now, in dollars."""

    total: Bound | None
    hourly: Bound | None

    def __str__(self) -> str:
        parts = (("total", self.total), ("hourly", self.hourly))
        wanted = " and ".join(f"{name} {bound}" for name, bound in parts if bound is not None)
        return f"cost in dollars: {wanted}"

    def look(self, context: ScenarioContext, since: datetime) -> tuple[bool, str]:
        bill = context.world.cloud.bill
        total, hourly = bill.owed(context.world.now), bill.owed_hourly()
        right = _is_kept(self.total, total) and _is_kept(self.hourly, hourly)
        found = f"total {_dollars(total)}, hourly {_dollars(hourly)}"
        return right, "; ".join(filter(None, (found, str(bill.unpriced))))

    def depends_on(self, context: ScenarioContext) -> object:
        return context.version
