"""Which nodes may come to be disrupted with care, and what that would depend on.

So far those that are sick, or Ready and not initialized in time, where that is not dealt with by
force. They stay in the view as long as nothing changes in the cluster, due or not: from when on
each is a candidate is a matter of time, and so of ``disruption``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.claim.ownership import is_replaced, room_of
from tenure.core.disrupt.command import standing_in
from tenure.core.disrupt.fleet import PoolFleet, fleet_of
from tenure.core.disrupt.orchestrate import failures_of
from tenure.core.repair.decider import health_of
from tenure.core.repair.health import HealthView, Member, examine
from tenure.core.repair.readiness import Stage, initialization_ttl
from tenure.core.repair.rules import FORCEFUL, Illness, Rules
from tenure.core.terminate.drain import drain_until
from tenure.core.terminate.pods import DrainView
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.repairs import RepairAction
from tenure.model.snapshot.snapshot import Snapshot

#: After a failed replacement the pool pauses so long, twice as long after the next, and so on.
PAUSE_MIN: Final = timedelta(minutes=1)
PAUSE_MAX: Final = timedelta(minutes=30)


class Contender(msgspec.Struct, frozen=True):
    """A node that may become a candidate, and what its disruption would depend on."""

    drain: DrainView
    #: Claims that were launched in its stead, and the names by which their rooms are known.
    replacements: tuple[tuple[NodeClaim, str], ...] = ()


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that has contenders."""

    pool: NodePool
    health: HealthView
    fleet: PoolFleet
    #: By claim name.
    contenders: Mapping[str, Contender]
    #: Until when nothing is replaced, and because of which claim.
    pauses: tuple[tuple[datetime, str], ...] = ()


def contests_in(snapshot: Snapshot) -> Iterator[Contest]:
    # By its claim: a Node may have lost the label of its pool.
    unwell = map(snapshot.claim_of, snapshot.unwell_nodes().values())
    pools = {claim.pool_name for claim in unwell if claim is not None}
    bounded = (c for c in snapshot.new_claims().values() if initialization_ttl(c) is not None)
    pools |= {claim.pool_name for claim in bounded}  # Ready, and all the same not at work in time.
    for name in sorted(pools & snapshot.pools.keys()):
        health = health_of(name, snapshot)
        if health is None:
            continue
        members = [member for member in health.members if _is_contender(member, health.rules)]
        if members:
            yield Contest(
                pool=snapshot.pools[name],
                health=health,
                fleet=fleet_of(name, snapshot),
                contenders={member.claim.name: _contender(member, snapshot) for member in members},
                pauses=tuple(_pauses(snapshot.claims_of_pool(name))),
            )


def _contender(member: Member, snapshot: Snapshot) -> Contender:
    return contender_of(member.claim, member.nodes[0], snapshot)


def contender_of(claim: NodeClaim, node: Node, snapshot: Snapshot) -> Contender:
    came = snapshot.once(standing_in).get(claim.uid, ())
    replacements = tuple((one, room_of(one, snapshot)) for one in came)
    return Contender(drain_until(node, None, snapshot), replacements)


def _is_contender(member: Member, rules: Rules) -> bool:
    """Whether it may become a candidate, if it is not one already, as long as nothing changes."""
    claim, node = member.claim, member.node
    if node is None or not claim.registered or claim.deleting or is_replaced(claim):
        return False
    health = examine(claim, node, rules)
    with_care = rules.repair is None or rules.repair.termination_mode != FORCEFUL
    late = health.boot is not None and health.boot.stage is Stage.INITIALIZATION and with_care
    return late or any(map(_needs_care, health.ill))


def _needs_care(illness: Illness) -> bool:
    by_force = illness.mode == FORCEFUL and illness.action is not RepairAction.REBOOT
    return illness.counts and not by_force


def _pauses(claims: Mapping[str, NodeClaim]) -> Iterator[tuple[datetime, str]]:
    for name, claim in sorted(claims.items()):
        failures = failures_of(claim)
        if failures.at is not None and not claim.deleting:
            pause = min(PAUSE_MIN * 2 ** min(max(failures.times - 1, 0), 10), PAUSE_MAX)
            yield later(failures.at, pause), name
