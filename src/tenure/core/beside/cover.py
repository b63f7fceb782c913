"""What must stop Karpenter's voluntary disruption, or its repair, of a Node now, why, and until when.

Three causes: maintenance windows that name what the lever stops; a protection on the NodeClaim, which
Karpenter does not read there; and a replacement under way (``core.beside.replacing``). The annotation on the
Node stops all of them, so a Node is covered as soon as one of them is forbidden.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.beside.kinds import DISRUPTION, REPAIR, LeverKind
from tenure.core.beside.replacing.stand import Replacing
from tenure.core.facts import Fact
from tenure.core.gates.gates import veto_on
from tenure.core.protect.protection import Protection
from tenure.core.windows.facts import (
    InvalidWindowBlocks,
    OutsideAllowWindows,
    WindowBlocks,
    WindowsUnlisted,
    blocking_windows,
)
from tenure.core.windows.windows import (
    Closed,
    Windows,
    closed_by,
    windows_change_at,
    windows_concerning,
)
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim

#: Causes that follow each other so many times are not followed further: a month of days.
_STEPS_MAX: Final = 32

#: Facts about windows, each with the actions that it is about.
_NAMING: Final = (WindowBlocks, InvalidWindowBlocks, OutsideAllowWindows)

#: Causes, for metrics.
WINDOW, PROTECTION, BUDGET, REPLACEMENT = "window", "protection", "budget", "replacement"


class Causes(msgspec.Struct, frozen=True, kw_only=True):
    """What a cover of one Node depends on."""

    kind: LeverKind = DISRUPTION
    node: Node
    #: None: it is gone, and nothing covers the Node.
    claim: NodeClaim | None
    windows: Windows = ()
    #: Of its NodeClaim.
    protection: Protection | None = None
    #: It is replaced, or replaces another; its end is not known.
    replacing: Replacing | None = None


class Cover(msgspec.Struct, frozen=True, kw_only=True):
    because: str
    facts: tuple[Fact, ...]
    #: ``FOR_EVER`` where the end is not known.
    until: datetime
    #: What the lever stops although no cause names it.
    beyond: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    @property
    def untold(self) -> tuple[Fact, ...]:
        """The facts, without those of which ``because`` and ``until`` say all."""
        return tuple(one for one in self.facts if not self._tells(one))

    def _tells(self, fact: Fact) -> bool:
        return isinstance(fact, WindowBlocks) and fact.exact and fact.until == self.until


def cover_of(causes: Causes, now: datetime) -> Cover | None:
    """None: Karpenter may disrupt, or repair, the Node."""
    closed = dict(_closed(causes, now))
    protection = causes.protection if _protects(causes.protection, now) else None
    replacing = causes.replacing
    if not closed and protection is None and replacing is None:
        return None
    facts = dict.fromkeys(_merged(fact for one in closed.values() for fact in one.facts))
    names = {name: None for fact in facts for name in _named(fact)}
    if protection is not None and causes.claim is not None:
        facts[_said(causes.kind, causes.claim, protection)] = None
        names[f"NodeClaim {causes.claim.name}"] = None
    if replacing is not None:
        facts[replacing.fact] = None
        names[replacing.because] = None
    kinds = ((WINDOW, closed), (PROTECTION, protection), (REPLACEMENT, replacing))
    only_windows = protection is None and replacing is None
    return Cover(
        because=", ".join(names),
        facts=tuple(facts),
        until=_ends_at(causes, now),
        beyond=tuple(_beyond(causes.kind, closed)) if only_windows else (),
        causes=tuple(kind for kind, found in kinds if found),
    )


def changes_at(causes: Causes, now: datetime) -> datetime | None:
    """When the answer may differ, if nothing changes in the cluster."""
    concerned = windows_concerning(causes.windows, causes.node, causes.kind.actions)
    ends_at = causes.protection.ends_at if causes.protection is not None else None
    instants = (windows_change_at(concerned, now), ends_at)
    return min((at for at in instants if at is not None and at > now), default=None)


def _closed(causes: Causes, now: datetime) -> Iterator[tuple[str, Closed]]:
    """Each by itself: an Allow window for one of them does not allow another."""
    for stopped, actions in causes.kind.stopped:
        found = closed_by(causes.windows, causes.node, actions, now)
        if found is not None:
            yield stopped, found


def _merged(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Each once, in order: what a window forbids by several names is one fact."""
    named: dict[Fact, set[str]] = {}
    for fact in facts:
        if isinstance(fact, _NAMING):
            alike = msgspec.structs.replace(fact, actions=())
            named.setdefault(alike, set()).update(fact.actions)
        else:
            named.setdefault(fact, set())
    for fact, actions in named.items():
        merged = isinstance(fact, _NAMING)
        yield msgspec.structs.replace(fact, actions=tuple(sorted(actions))) if merged else fact


def _beyond(kind: LeverKind, closed: Container[str]) -> Iterator[str]:
    return (one for one, _ in kind.stopped if one not in closed)


def _said(kind: LeverKind, claim: NodeClaim, protection: Protection) -> Fact:
    return veto_on(claim, protection) if kind == REPAIR else protection


def _protects(protection: Protection | None, now: datetime) -> bool:
    return protection is not None and now < protection.until


def _ends_at(causes: Causes, now: datetime) -> datetime:
    """When no cause is left: each may begin before another ends."""
    if causes.replacing is not None:
        return FOR_EVER
    at = now
    for _ in range(_STEPS_MAX):
        ends = [one.opens_at or FOR_EVER for _, one in _closed(causes, at)]
        if causes.protection is not None and _protects(causes.protection, at):
            ends.append(causes.protection.until)
        if not ends:
            return at
        at = max(ends)
        if at == FOR_EVER:
            return at
    return FOR_EVER


def _named(fact: Fact) -> tuple[str, ...]:
    if isinstance(fact, WindowsUnlisted):
        return ("MaintenanceWindows cannot be listed",)
    return tuple(f"MaintenanceWindow {name}" for name in blocking_windows(fact))
