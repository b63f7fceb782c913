"""What holds a repair back that is due, in this order:

1. off        repair is switched off, or its rules cannot be used; a time-out is not held by that;
2. veto       ``karpenter.sh/do-not-repair`` on the Node or the claim;
3. domain     too many with its zone, image or type are sick (``domains``), unless it is the one
              that is tried;
4. breaker    too many of its pool are.

The two breakers ask nobody who never registered: such a claim has no node to count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.health.breaker import Breaker
from tenure.core.health.domains import Permit
from tenure.core.health.health import Health, HealthView, Member, limit_of
from tenure.core.health.outage import domains_of
from tenure.core.protect.protection import Protection, protection_on
from tenure.core.reasons import Reason
from tenure.model.api.meta import format_time
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings

SWITCHED_OFF: Final = "node repair is switched off (--node-repair or feature gate NodeRepair)"


class Held(msgspec.Struct, frozen=True, kw_only=True):
    reason: Reason
    why: str
    #: When it may end although nothing happens.
    until: datetime | None = None
    #: It is not the pool's own breaker, but that of a domain.
    domain: bool = False


def switched_off(pool: NodePool | None, broken: str, settings: Settings) -> str:
    """Why no sick condition is repaired; empty where they are. ``broken``: see ``unusable``."""
    if not settings.node_repair:
        return SWITCHED_OFF
    if pool is None and not settings.legacy_node_repair:
        return "it has no pool, and only nodes of pools are repaired"
    if broken:
        return f"the pool's repair block cannot be used: {broken}"
    return ""


def veto_on(claim: NodeClaim, node: Node | None, now: datetime) -> Protection | None:
    """A person's word that neither is to be repaired, where it holds now."""
    for thing in (node, claim):
        veto = protection_on(thing, DO_NOT_REPAIR) if thing is not None else None
        if veto is not None and now < veto.until:
            return veto
    return None


class Holds:
    """Everything that may hold the members of one pool, at one instant."""

    def __init__(
        self,
        view: HealthView,
        found: Sequence[tuple[Member, Health]],
        settings: Settings,
        now: datetime,
    ) -> None:
        self._now = now
        self._breaker = _breaker(view, found, now)
        self._domains = view.domains.at(settings, now)
        #: When another node stops booting and counts, or a domain looks different.
        self.changes_at = min(
            [
                *(at for _, health in found for at in _counts_from(health, now)),
                *(one.since for one in view.others if one.booting and one.since > now),
                *([self._domains.changes_at] if self._domains.changes_at is not None else []),
            ],
            default=None,
        )

    def on(self, member: Member, *, counted: bool) -> Held | None:
        """``counted``: whether the breakers are asked, too."""
        veto = veto_on(member.claim, member.node, self._now)
        if veto is not None:
            why = vetoed(veto)
            return Held(reason=Reason.REPAIR_VETOED, why=why, until=veto.ends_at)
        if not counted:
            return None
        outage = self._outage(member) if self.probe(member) is None else ""
        if not outage and not self._breaker.tripped:
            return None
        return Held(
            reason=Reason.REPAIR_BLOCKED,
            why=outage or str(self._breaker),
            until=self.changes_at,
            domain=bool(outage),
        )

    def probe(self, member: Member) -> Permit | None:
        """What lets it be repaired although a domain holds it."""
        permit = self._domains.permit(member.claim.name)
        return permit if permit is not None and self._outage(member) else None

    def next_probe(self, pool: str) -> Permit | None:
        """Who of the pool is to be tried next."""
        return self._domains.to_permit(pool)

    def _outage(self, member: Member) -> str:
        if member.node is None:
            return ""
        return self._domains.holding(domains_of(member.claim, member.node))


def _counts_from(health: Health, now: datetime) -> Iterator[datetime]:
    """When a node that boots begins to count, if nothing changes."""
    if health.boot is not None and health.booting_at(now):
        yield from (at for at in (health.boot.due_at, *health.due()) if at > now)


def _breaker(view: HealthView, found: Sequence[tuple[Member, Health]], now: datetime) -> Breaker:
    sick = sum(
        member.claim.registered and member.node is not None and health.sick_at(now)
        for member, health in found
    )
    sick += sum(other.sick_at(now) for other in view.others)
    return view.count.breaker(sick, limit_of(view.pool))


def vetoed(veto: Protection) -> str:
    end = f" until {format_time(veto.until)}" if veto.ends_at is not None else ""
    return f'{DO_NOT_REPAIR}: "{veto.value}" vetoes it{end}'
