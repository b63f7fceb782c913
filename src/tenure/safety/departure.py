"""May a claim go, or get a deadline, now? The rules of each ground, in one table.

The deciders have asked all of this when they decided. This is the last look before there is no
way back, on the newest view, by arithmetic of its own: a fault of a decider must not cost a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Ground
from tenure.model.api import names
from tenure.model.api.meta import format_time, later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.safety.budgets import beyond_budgets
from tenure.safety.reasons import UNHEALTHY, is_repair, veto_of
from tenure.safety.times import asked_for, span_of
from tenure.safety.unhealthy import open_breaker, outage, unfounded
from tenure.safety.unreadable import unreadable_parts, unreadable_pods
from tenure.safety.velocity import unrecorded
from tenure.safety.voluntary import occupies, protected_pods, too_young, unfounded_choice
from tenure.safety.windows import closed_window, unlisted_windows
from tenure.schema.semantics.repair import block_problems

#: The TTL of a claim that does not say.
DEFAULT_TTL: Final = timedelta(minutes=15)
#: Reason of ``RebootIssued`` on a claim whose failed reboot has no consequences.
_SPARED: Final = "Spared"


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    snapshot: Snapshot
    settings: Settings
    now: datetime
    #: Why it is disrupted, as its mark says; empty: it is not.
    reason: str = ""
    #: Its command is only about to begin: nothing is lost yet.
    planned: bool = False
    #: UIDs of the claims that are to be replaced together.
    group: frozenset[str] = frozenset()

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self.snapshot.nodes_with_provider(self.claim.provider_id).values())

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def pool(self) -> NodePool | None:
        return self.snapshot.pools.get(self.claim.pool_name)

    @property
    def by_condition(self) -> bool:
        """Whether it is a repair for a condition. A marked one that is not initialized timed out."""
        return self.reason == "" or (is_repair(self.reason) and self.claim.initialized)


Rule = Callable[[Departure], str | None]


# -- the rules -------------------------------------------------------------------------


def unreadable(d: Departure) -> str | None:
    """Nothing unreadable is in the way: the pool, the claim, its Nodes and their pods."""
    why = unreadable_parts(d.claim, d.nodes, d.pool) or unreadable_pods(d.nodes, d.snapshot)
    return f"{why}, so nothing is taken away from it" if why else None


def marked(d: Departure) -> str | None:
    """It is marked with a reason and its replacements."""
    if d.reason and (d.planned or names.REPLACED_BY in d.claim.annotations):
        return None
    return "it is not marked with a disruption reason and its replacements"


def one_node(d: Departure) -> str | None:
    """It has exactly one Node, whose health and pods are known."""
    return None if d.node is not None else f"it has {len(d.nodes)} Nodes"


def vetoed(d: Departure) -> str | None:
    """Neither Node nor claim carry a veto: do-not-repair; of other reasons do-not-disrupt."""
    return _forbidden(d, veto_of(d.reason))


def protected(d: Departure) -> str | None:
    """Neither Node nor claim carry do-not-disrupt."""
    return _forbidden(d, names.DO_NOT_DISRUPT)


def _forbidden(d: Departure, veto: str) -> str | None:
    things: tuple[Node | NodeClaim, ...] = (d.claim, *d.nodes)
    for thing in things:
        if asked_for(thing, veto, d.now):
            return f'{veto}: "{thing.annotations[veto]}" on {thing.name} forbids it'
    return None


def switched_off(d: Departure) -> str | None:
    """Voluntary disruption is on; of a repair: that is, and the pool's repair block can be used."""
    if not is_repair(d.reason) and not d.settings.voluntary_disruption:
        return "voluntary disruption is switched off (--voluntary-disruption)"
    if not d.by_condition:
        return None
    if not d.settings.node_repair:
        return "node repair is switched off (--node-repair)"
    if d.pool is None and not d.settings.legacy_node_repair:
        return "it has no NodePool, and only Nodes of pools are repaired"
    block = d.pool.spec.repair if d.pool is not None else None
    for problem in block_problems(block) if block is not None else ():
        return f"the repair block of NodePool {d.claim.pool_name} cannot be used: {problem}"
    return None


def windows(d: Departure) -> str | None:
    """No active Block window, and an active one of the matching Allow windows."""
    if d.node is None or (is_repair(d.reason) and not d.by_condition):
        return None
    unlisted = unlisted_windows(d.snapshot) if d.reason else None
    return unlisted or closed_window(d.node, d.reason or UNHEALTHY, d.snapshot, d.now)


def unhealthy(d: Departure) -> str | None:
    """The Node has been unhealthy for the shortest toleration that any policy names."""
    if d.node is None or not d.by_condition:
        return None
    return unfounded(d.claim, d.node, d.snapshot, d.now)


def chosen(d: Departure) -> str | None:
    """Of a voluntary reason: it holds now, and no protected pod is there."""
    if d.node is None or is_repair(d.reason):
        return None
    found = unfounded_choice(d.claim, d.node, d.reason, d.snapshot, d.now)
    return found or protected_pods(d.claim, d.node, d.reason, d.snapshot, d.settings, d.now)


def expired(d: Departure) -> str | None:
    """It is as old as it may become, and its pool has the policy Always."""
    pool = d.pool
    if pool is None or pool.spec.replicas is not None:
        return "its NodePool is gone, or has spec.replicas: no node of it expires"
    if pool.spec.disruption.expiration_policy != "Always":
        return f"expirationPolicy of NodePool {pool.name} is not Always"
    return too_young(d.claim, d.now, spread=False)


def interrupted(d: Departure) -> str | None:
    """The cloud has announced that it takes the instance back: now, or as the claim says."""
    said = names.INTERRUPTION in d.claim.annotations
    if said or d.claim.uid in d.snapshot.observations.interruptions:
        return None
    return "the cloud has not announced that it takes its instance back"


def left_over(d: Departure) -> str | None:
    """It was launched for a claim that stays and does not name it, and no pod is there or to come."""
    uids = d.claim.annotations.get(names.REPLACES, "").split(",")
    replaced = [one for uid in uids for one in d.snapshot.claims_with_uid(uid).values()]
    if not replaced:
        return "it is no replacement of a claim that is there"
    for one in replaced:
        if one.deleting or d.claim.name in one.annotations.get(names.REPLACED_BY, "").split(","):
            return f"it replaces NodeClaim {one.name}"
    pods = [pod for node in d.nodes for pod in d.snapshot.pods_on(node.name).values()]
    named = d.claim.annotations.get(names.NOMINATED_PODS, "").split(",")
    pods += [pod for pod in d.snapshot.unschedulable_pods().values() if pod.uid in named]
    used = next(filter(occupies, pods), None)
    return f"pod {used.key} uses it" if used is not None else None


def breakers(d: Departure) -> str | None:
    """Neither the pool's breaker (maxUnhealthy) nor that of a failure domain is open."""
    if not is_repair(d.reason) or d.node is None:
        return None
    held = outage(d.claim, d.node, d.settings, d.snapshot)
    return held or open_breaker(d.pool, d.snapshot)


def budgets(d: Departure) -> str | None:
    """It stays within the budgets of its NodePool."""
    if d.node is None:
        return None
    group = d.group if d.planned else frozenset()
    return beyond_budgets(
        d.claim, d.node, d.reason, d.snapshot, d.now, planned=d.planned, group=group
    )


def recorded(d: Departure) -> str | None:
    """Where a budget of its NodePool counts starts, its own is recorded."""
    return unrecorded(d.claim, d.pool, d.now)


def replacements(d: Departure) -> str | None:
    """Every replacement exists, stands in for it, stays, and is Initialized."""
    for name in filter(None, d.claim.annotations.get(names.REPLACED_BY, "").split(",")):
        found = d.snapshot.claims.get(name)
        uids = found.annotations.get(names.REPLACES, "").split(",") if found is not None else ()
        if found is None or d.claim.uid not in uids:
            return f"its replacement NodeClaim {name} does not exist"
        if found.deleting or not found.initialized:
            return f"its replacement NodeClaim {name} is not Initialized"
    return None


def together(d: Departure) -> str | None:
    """Every claim that is replaced together with it has a command, terminates or is gone."""
    for name in filter(None, d.claim.annotations.get(names.REPLACED_BY, "").split(",")):
        new = d.snapshot.claims.get(name)
        uids = new.annotations.get(names.REPLACES, "").split(",") if new is not None else ()
        for other in (one for uid in uids for one in d.snapshot.claims_with_uid(uid).values()):
            goes = other.deleting or names.INTERRUPTION in other.annotations
            if not goes and names.REPLACED_BY not in other.annotations:
                return f"NodeClaim {other.name} is replaced together with it, and is not marked yet"
    return None


def closed(d: Departure) -> str | None:
    """Its Node is closed for new pods."""
    if d.node is None or d.node.has_taint(names.DISRUPTED_TAINT, "NoSchedule"):
        return None
    return f"Node {d.node.name} is not closed for new pods yet"


def timed_out(d: Departure) -> str | None:
    """It is not Initialized, and older than the shortest of its TTLs."""
    if d.claim.initialized:
        return "it is Initialized: it cannot time out"
    spans = [span_of(d.claim.spec.readiness_ttl) or DEFAULT_TTL]
    spans += [span] if (span := span_of(d.claim.spec.initialization_ttl)) is not None else []
    due = later(d.claim.created_at, min(spans))
    return f"it times out at {format_time(due)} at the earliest" if d.now < due else None


def lost(d: Departure) -> str | None:
    """Its Node has been gone for its readinessTTL."""
    condition = d.claim.condition("NodeLost")
    said = condition is not None and condition.status == "True"
    noted = d.claim.annotations.get(names.NODE_LOST_AT)
    if d.nodes or (not said and noted is None):
        return "its Node is not lost"
    since = condition.last_transition_time if said and condition else read_instant(noted or "")
    if since is None or d.now < later(since, span_of(d.claim.spec.readiness_ttl) or DEFAULT_TTL):
        return "its Node is not lost for long enough"
    return None


def reboot_failed(d: Departure) -> str | None:
    """It says that its reboot has failed."""
    issued, rebooting = d.claim.condition("RebootIssued"), d.claim.condition("Rebooting")
    said = [c.status if c is not None else "" for c in (issued, rebooting)]
    if said == ["False", "False"] and issued is not None and issued.reason != _SPARED:
        return None
    return "its reboot has not failed"


def node_deleted(d: Departure) -> str | None:
    """A Node of it is being deleted."""
    return None if any(node.deleting for node in d.nodes) else "none of its Nodes is being deleted"


def never_launched(d: Departure) -> str | None:
    """It has no instance."""
    return "it has an instance" if d.claim.launched or d.claim.provider_id else None


def instance_gone(d: Departure) -> str | None:
    """The cloud did not list its instance, and no Node of it is Ready."""
    if d.claim.uid not in d.snapshot.observations.vanished:
        return "the cloud still lists its instance"
    return next((f"Node {node.name} is Ready" for node in d.nodes if node.ready), None)


#: What must hold before a claim is deleted, or stamped with a deadline, on each ground.
RULES: Final[Mapping[Ground, tuple[Rule, ...]]] = {
    Ground.REPLACED: (
        marked,
        one_node,
        unreadable,
        replacements,
        together,
        closed,
        switched_off,
        vetoed,
        windows,
        unhealthy,
        chosen,
        breakers,
        budgets,
    ),
    Ground.EXPIRED: (one_node, unreadable, switched_off, windows, expired),
    # The instance goes anyway: nothing else is asked.
    Ground.INTERRUPTED: (interrupted,),
    Ground.LEFT_OVER: (unreadable, protected, left_over),
    Ground.REPAIR: (one_node, unreadable, switched_off, vetoed, windows, unhealthy, breakers),
    Ground.REPAIR_FORCED: (
        one_node,
        unreadable,
        switched_off,
        vetoed,
        windows,
        unhealthy,
        breakers,
    ),
    Ground.REBOOT_FAILED: (reboot_failed, switched_off, vetoed),
    Ground.TIME_OUT: (unreadable, timed_out, vetoed),
    Ground.NODE_LOST: (unreadable, lost, vetoed),
    Ground.NODE_DELETED: (node_deleted,),
    Ground.LAUNCH_FAILED: (never_launched,),
    Ground.INSTANCE_GONE: (instance_gone,),
}

#: What must hold when a command begins: the mark is written, and replacements are awaited.
PLANNED: Final[tuple[Rule, ...]] = (
    marked,
    one_node,
    unreadable,
    switched_off,
    vetoed,
    windows,
    unhealthy,
    chosen,
    breakers,
    budgets,
)

#: And when that mark is written, not only its replacements are created.
BEGINS: Final[tuple[Rule, ...]] = (*PLANNED, recorded)

#: What must hold when a forceful reboot begins, and when any other does.
FORCED_REBOOT: Final[tuple[Rule, ...]] = (
    one_node,
    switched_off,
    vetoed,
    windows,
    unhealthy,
    breakers,
)
REBOOT: Final[tuple[Rule, ...]] = (*FORCED_REBOOT, budgets, recorded)
#: What must hold when its drain is over: from then on it cannot be called off.
DRAINED_REBOOT: Final[tuple[Rule, ...]] = (vetoed,)


def forbidden(departure: Departure, rules: tuple[Rule, ...]) -> str | None:
    """The first rule that the departure would break, in a sentence; None when it breaks none."""
    for rule in rules:
        if why := rule(departure):
            return f"NodeClaim {departure.claim.name} must not be deleted: {why}"
    return None


def forbidden_reboot(departure: Departure, *, forced: bool) -> str | None:
    """Whether a reboot may begin; a forced one drains nothing. Once it has begun: whether its drain
    may be called over."""
    repair = msgspec.structs.replace(departure, reason=UNHEALTHY, planned=True)
    if departure.claim.rebooting:
        return forbidden(repair, DRAINED_REBOOT)
    return forbidden(repair, FORCED_REBOOT if forced else REBOOT)


def forbidden_on(ground: Ground | None, departure: Departure) -> str | None:
    """Whether a claim may be deleted, or get a deadline, on this ground."""
    if ground is None:
        return f"NodeClaim {departure.claim.name} must not be deleted: nothing says why"
    if ground is Ground.REBOOT_FAILED and departure.claim.deleting:
        return forbidden(departure, (reboot_failed,))  # Its drain has the bound of the reboot's.
    return forbidden(departure, RULES[ground])
