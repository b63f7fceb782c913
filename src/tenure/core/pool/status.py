"""Decide the status of a pool: counts, conditions, hash.

One verdict per pool. The hash annotations come first, because new claims copy them; then the
status, written only when it differs; once that is settled, what is to be told of single fields
(``fields``). ``Ready`` depends on the template's validity and the node class's readiness. An invalid ``disruption`` or ``repair`` block has its own condition and a Warning
event, and does not stop provisioning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from tenure.core.conditions import Wanted, merge, root, status_patch
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact, NodeClassNotServed, sentence
from tenure.core.fieldsact import fields_told
from tenure.core.health.health import unusable
from tenure.core.launchbreaker.facts import BreakerClosed
from tenure.core.launchbreaker.ledger import ledger_of
from tenure.core.launchbreaker.poolrecord import open_breaker, open_owners
from tenure.core.marks.facts import ConsolidationUndone
from tenure.core.marks.ownership import is_our_pool
from tenure.core.marks.starts import departures_in, kept, kept_until, written
from tenure.core.marks.templatehash import HASH_VERSION, template_hash
from tenure.core.marks.undone import paused_until
from tenure.core.pool.backoff import BackOff, back_off_of
from tenure.core.pool.facts import (
    DisruptionUnusable,
    LaunchesNothing,
    LimitsUsedUp,
    NodesComeUp,
    NodesOfNoUseRecorded,
    PoolSize,
    RepairUnusable,
    TemplateHashMissing,
    TooFewForMinValues,
)
from tenure.core.pool.lookup import node_class_key, node_class_of, node_class_problem, usage_of
from tenure.core.pool.offers import offers_nothing
from tenure.core.pool.registrations import (
    Registrations,
    generations_of,
    registration_health,
    registrations_of,
)
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowsUnlisted
from tenure.core.writes import patch, subject_of
from tenure.errors import SpecError
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, Condition, format_time
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import DisruptionsAllowed, DisruptionStart, NodePool
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS
from tenure.model.api.resource import NODES as NODE_OBJECTS
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import as_written, refusal_of
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.duration import NEVER
from tenure.model.values.problem import problems_from
from tenure.model.values.quantity import UNIT, format_resources, readable_amounts
from tenure.packing.demand.problem import NODES
from tenure.schema.problems import PoolProblems, Problems, in_words, problems_of_pool

#: Always listed, so that ``kubectl get nodepool`` shows a zero rather than nothing.
_BASE: Final = {"cpu": 0, "memory": 0, "pods": 0, "ephemeral-storage": 0, NODES: 0}

#: Whether launches for some owner back off; not part of Ready, because other owners get nodes.
LAUNCH_BREAKER_OPEN: Final = "LaunchBreakerOpen"
#: Whether all launches of the pool back off; not part of Ready either: one node at a time is tried.
LAUNCHES_BACK_OFF: Final = "LaunchesBackOff"

#: The pool's Ready is True when both of these are.
DEPENDENTS: Final = ("ValidationSucceeded", "NodeClassReady")


#: A reason, how many more nodes (None: no limit), and when that may change.
Allowed = tuple[str, int | None, datetime | None]


def only_counts(change: Change) -> bool:
    """Nodes change by the hundred, and the pool only counts them."""
    return change.resource in (NODE_CLAIMS, NODE_OBJECTS)


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    pool: NodePool
    ours: bool
    node_class: ApiObject | None
    usage: Mapping[str, int]
    registrations: Registrations
    back_off: BackOff
    #: Why none of the instance types may be launched; None: one may, or they are not known.
    nothing: Fact | None = None
    #: Until when no node of it is consolidated, because that was undone; None: nodes are, or never are.
    paused_until: datetime | None = None
    #: Its nodes as budgets count them (``Budgets``).
    fleet: Any = None
    #: Departures that no budget blocks, as the pool records them.
    departures: tuple[DisruptionStart, ...] = ()
    #: Why the API server does not list maintenance windows; empty if it does.
    windows_unlisted: str = ""
    #: Condition types in the provider's repair statements.
    watched: frozenset[str] = frozenset()


class Budgets(Protocol):
    """What the budgets of a pool allow. The gates know it, and this room does not know them."""

    def fleet(self, pool: str, snapshot: Snapshot) -> Any: ...

    def allowed(self, pool: NodePool, fleet: Any, now: datetime) -> Sequence[Allowed]: ...


class PoolDecider:
    concern = Concern.POOL

    def __init__(self, budgets: Budgets | None = None) -> None:
        self._budgets = budgets

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.pools

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_POOLS:
            yield change.key
        elif change.resource == NODE_CLAIMS:
            for version in change.versions():
                assert isinstance(version, NodeClaim)
                yield version.pool_name
        elif change.resource == MAINTENANCE_WINDOWS and not change.key:
            yield from snapshot.pools
        elif change.resource == NODE_OBJECTS:
            for node in change.versions():
                assert isinstance(node, Node)
                for claim in snapshot.claims_with_provider(node.spec.provider_id).values():
                    yield claim.pool_name
        elif (change.resource.group, change.resource.kind) in snapshot.ours:
            yield from snapshot.pools

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_POOLS.kind:
            yield subject.name
        elif subject.kind == "NodeClass":
            for name, pool in snapshot.pools.items():
                if node_class_key(pool.node_class_ref) == subject.name:
                    yield name

    def view(self, snapshot: Snapshot, key: str) -> PoolView | None:
        pool = snapshot.pools.get(key)
        if pool is None or is_unreadable(pool):
            return None
        node_class = node_class_of(pool, snapshot)
        return PoolView(
            pool=pool,
            ours=is_our_pool(pool, snapshot),
            node_class=node_class,
            usage=usage_of(key, snapshot),
            registrations=registrations_of(
                snapshot.claims_of_pool(key).values(),
                snapshot.observations.arrivals.get(pool.uid, ()),
                generations_of(pool, node_class),
            ),
            back_off=back_off_of(pool, snapshot.claims_of_pool(key).values(), node_class),
            nothing=offers_nothing(pool, snapshot),
            paused_until=_paused_until(pool, snapshot),
            fleet=self._budgets.fleet(key, snapshot) if self._budgets is not None else None,
            departures=departures_in(pool, snapshot),
            windows_unlisted=snapshot.unlisted(MAINTENANCE_WINDOWS),
            watched=frozenset(
                one.condition_type for one in snapshot.observations.repair_statements
            ),
        )

    def decide(self, view: PoolView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        budgets = self._budgets
        allowed = budgets.allowed(view.pool, view.fleet, now) if budgets is not None else ()
        seen = msgspec.structs.replace(view, back_off=view.back_off.at(now))
        if settings.min_values_policy != "Strict" and isinstance(view.nothing, TooFewForMinValues):
            seen = msgspec.structs.replace(seen, nothing=None)
        verdict = _decide(seen, allowed, now)
        if not view.ours:
            return (verdict,)
        instants = (
            view.back_off.of_use_at,
            view.paused_until,
            kept_until(view.pool, view.departures, now),
            *(changes_at for _, _, changes_at in allowed),
        )
        ahead = min((at for at in instants if at is not None and at > now), default=None)
        return (msgspec.structs.replace(verdict, recheck_at=ahead),)


def _decide(view: PoolView, allowed: Sequence[Allowed], now: datetime) -> Verdict:
    pool = view.pool
    if not view.ours:
        ref = pool.node_class_ref
        unserved = NodeClassNotServed(ref.kind, ref.group)
        return _verdict(pool, Reason.NODE_CLASS_NOT_SERVED, unserved)
    stamp = _hash_patch(pool)
    if stamp is not None:
        return _verdict(pool, Reason.POOL_STATUS_CHANGED, TemplateHashMissing(), action=stamp)
    if (record := _record_patch(view)) is not None:
        recorded = NodesOfNoUseRecorded(len(view.back_off.record.claims))
        return _verdict(pool, Reason.POOL_STATUS_CHANGED, recorded, action=record)
    found = _problems(pool, view.watched)
    conditions = merge(pool.status.conditions, _wanted(view, found), pool.metadata.generation)
    ready = root(conditions, DEPENDENTS)
    conditions = merge(conditions, (ready,), pool.metadata.generation)
    status = _status_patch(view, conditions, allowed, now)
    settled = status is None and not any((found.template, found.disruption, found.repair))
    if settled and (told := fields_told(pool)) is not None:
        reason, facts, wanted = told
        conditions = merge(conditions, (wanted,), pool.metadata.generation)
        status = _status_patch(view, conditions, allowed, now)
        return _verdict(pool, reason, *facts, action=status)
    if ready.status != "True":
        facts = (LaunchesNothing(ready.message), *_bad_blocks(pool, found))
        return _verdict(pool, Reason.POOL_NOT_READY, *facts, action=status)
    if view.nothing is not None:
        facts = (view.nothing, *_bad_blocks(pool, found))
        return _verdict(pool, Reason.NO_COMPATIBLE_INSTANCE_TYPES, *facts, action=status)
    if bad := tuple(_bad_blocks(pool, found)):
        reason = Reason.DISRUPTION_INVALID if found.disruption else Reason.REPAIR_INVALID
        return _verdict(pool, reason, *bad, action=status)
    if view.windows_unlisted:
        unlisted = WindowsUnlisted(view.windows_unlisted)
        return _verdict(pool, Reason.WINDOWS_UNLISTED, unlisted, action=status)
    if view.back_off.is_open:
        of_no_use = view.back_off.fact(pool, timeless=True)
        return _verdict(pool, Reason.LAUNCHES_BACK_OFF, of_no_use, action=status)
    if full := tuple(_used_up(view)):
        facts = (_size(view), LimitsUsedUp(full))
        return _verdict(pool, Reason.LIMIT_REACHED, *facts, action=status)
    if view.paused_until is not None and now < view.paused_until:
        undone = ConsolidationUndone(pool.name, view.paused_until)
        return _verdict(pool, Reason.CONSOLIDATION_PAUSED, _size(view), undone, action=status)
    reason = Reason.POOL_STATUS_CHANGED if status else Reason.POOL_CURRENT
    return _verdict(pool, reason, _size(view), action=status)


def _problems(pool: NodePool, watched: Collection[str]) -> PoolProblems:
    """Of the pool itself, and of policies that were to set these blocks and are refused."""
    found, refusal = problems_of_pool(pool, watched), refusal_of(pool)
    if refusal is None:
        return found
    wrong = (refusal.error,)
    return msgspec.structs.replace(
        found,
        disruption=(*found.disruption, *(wrong if refusal.budgets else ())),
        repair=(*found.repair, *(wrong if refusal.repair else ())),
    )


def _paused_until(pool: NodePool, snapshot: Snapshot) -> datetime | None:
    block = pool.spec.disruption
    if block.consolidation_policy == "WhenEmpty" or block.consolidate_after == NEVER:
        return None
    return paused_until(snapshot.claims_of_pool(pool.name).values())


def _used_up(view: PoolView) -> Iterator[str]:
    """The limits that leave nothing for one more node, whatever its instance type."""
    limits = readable_amounts(view.pool.spec.limits)
    for name, most in sorted(limits.items()):
        if name in _BASE and view.usage.get(name, 0) >= most:
            yield f"spec.limits.{name}"


def _bad_blocks(pool: NodePool, found: PoolProblems) -> Iterator[Fact]:
    """What the pool does not do because of an invalid block, and why."""
    if found.disruption:
        refusal = refusal_of(pool)
        closed = any(one.at.startswith("spec.disruption.budgets") for one in found.disruption)
        closed = closed or (refusal is not None and refusal.budgets)
        yield DisruptionUnusable(problems_from(found.disruption), closed)
    if found.repair:
        yield RepairUnusable(problems_from(found.repair), bool(unusable(pool)))


def _size(view: PoolView) -> PoolSize:
    """The number of nodes, and the usage of each limited resource."""
    used = format_resources({**_BASE, **view.usage})
    limits = sorted(view.pool.spec.limits.items())
    return PoolSize(
        _nodes(view), tuple((name, used.get(name, "0"), str(most)) for name, most in limits)
    )


def _nodes(view: PoolView) -> int:
    return view.usage.get(NODES, 0) // UNIT


def _verdict(pool: NodePool, reason: Reason, *facts: Fact, action: Patch | None = None) -> Verdict:
    return Verdict(
        concern=Concern.POOL,
        subject=subject_of(pool),
        reason=reason,
        facts=facts,
        action=action,
    )


def _hash_patch(pool: NodePool) -> Patch | None:
    try:
        wanted = {
            names.NODEPOOL_HASH: template_hash(as_written(pool).spec.template),
            names.NODEPOOL_HASH_VERSION: HASH_VERSION,
        }
    except SpecError:
        return None  # An unreadable duration: the condition says so.
    if all(pool.annotations.get(key) == value for key, value in wanted.items()):
        return None
    return patch(pool, {"annotations": wanted})


def _wanted(view: PoolView, found: PoolProblems) -> tuple[Wanted, ...]:
    pool = view.pool
    problem = node_class_problem(pool.node_class_ref, view.node_class)
    generations = generations_of(pool, view.node_class)
    health = registration_health(pool, view.registrations, generations)
    return (
        _validity("ValidationSucceeded", "NodePoolValidationFailed", found.template),
        Wanted("NodeClassReady", "False", *problem)
        if problem
        else Wanted("NodeClassReady", "True", "NodeClassReady"),
        *((health,) if health is not None else ()),
        *_launch_breaker(pool),
        *_back_off(view),
        _validity("DisruptionValid", "DisruptionInvalid", found.disruption),
        _validity("RepairValid", "RepairInvalid", found.repair),
    )


def _launch_breaker(pool: NodePool) -> tuple[Wanted, ...]:
    """From the pool's ledger; a pool whose breakers were never open has no such condition."""
    ledger = ledger_of(pool)
    owners = open_owners(ledger)
    if owners:
        said = sentence(open_breaker(owner, ledger[owner]) for owner in owners)
        return (Wanted(LAUNCH_BREAKER_OPEN, "True", "PodsPendingAgain", said),)
    if pool.condition(LAUNCH_BREAKER_OPEN) is None:
        return ()
    closed = str(BreakerClosed(()))
    return (Wanted(LAUNCH_BREAKER_OPEN, "False", Reason.LAUNCH_BREAKER_CLOSED, closed),)


def _back_off(view: PoolView) -> tuple[Wanted, ...]:
    """A pool that never backed off has no such condition."""
    pool, back_off = view.pool, view.back_off
    if back_off.is_open:
        said = str(back_off.fact(pool, timeless=True))
        return (Wanted(LAUNCHES_BACK_OFF, "True", "NodesOfNoUse", said),)
    if pool.condition(LAUNCHES_BACK_OFF) is None:
        return ()
    return (Wanted(LAUNCHES_BACK_OFF, "False", "NodesComeUp", str(NodesComeUp())),)


def _record_patch(view: PoolView) -> Patch | None:
    wanted = view.back_off.annotation
    if view.pool.annotations.get(names.LAUNCH_TIMEOUTS) == wanted:
        return None
    return patch(view.pool, {"annotations": {names.LAUNCH_TIMEOUTS: wanted}})


def _validity(type_: str, reason: str, problems: Problems) -> Wanted:
    if problems:
        return Wanted(type_, "False", reason, in_words(problems))
    return Wanted(type_, "True", type_)


def _written(allowed: Allowed) -> DisruptionsAllowed:
    reason, nodes, changes_at = allowed
    next_change = format_time(changes_at) if changes_at is not None else None
    return DisruptionsAllowed(reason=reason, nodes=nodes, next_change=next_change)


def _status_patch(
    view: PoolView, conditions: tuple[Condition, ...], allowed: Sequence[Allowed], now: datetime
) -> Patch | None:
    pool = view.pool
    starts = kept(pool, view.departures, now)
    # One without an instant gets that of the write.
    changed = starts != pool.status.disruption_starts or not all(one.at for one in starts)
    status: dict[str, Any] = written(starts) if changed else {}
    told = tuple(map(_written, allowed))
    if told and pool.status.disruptions_allowed != told:
        status["disruptionsAllowed"] = msgspec.to_builtins(told)
    resources = format_resources({**_BASE, **view.usage})
    if dict(pool.status.resources) != resources:
        gone = {key: None for key in pool.status.resources if key not in resources}
        status["resources"] = {**resources, **gone}
    if pool.status.nodes != _nodes(view):
        status["nodes"] = _nodes(view)
    generation = view.node_class.metadata.generation if view.node_class else None
    if generation is not None and pool.status.node_class_observed_generation != generation:
        status["nodeClassObservedGeneration"] = generation
    if not status and conditions == pool.status.conditions:
        return None
    return status_patch(
        NODE_POOLS,
        pool.name,
        uid=pool.uid,
        resource_version=pool.metadata.resource_version,
        status=status,
        conditions=conditions,
    )
