"""Which conditions of a Node mean unhealthy, for how long each is tolerated, and what then.

For each condition of the Node:

1. watched?     by the provider (type and status), or by an entry of the pool's ``repair``
                block: its own status, else what the provider watches, else what
                Kubernetes defines (``Ready`` not True, pressures and a missing network True). An entry with a
                reason watches that reason only; one that cannot be used takes no part at all;
2. toleration   the pool's entry for it (most specific, then first) → the pool's default → the
                provider's statement. ``Never``, on either level of the pool, switches it off.
                Where entries ask for certain reasons, another reason falls to the provider's
                statement, not to the pool's default;
3. the rest     action and drain bound of the entry, else of the provider's statement: those
                whose reason matches, else the fallback; else Replace, without a bound.

Repair is due that long after its last transition, the Node's creation or its last reboot,
whichever is the latest. A transition in the future counts as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec
import re2

from tenure.core.health.facts import Policy, PoolDefault, PoolPolicy, ProviderPolicy
from tenure.errors import SpecError
from tenure.model.api.meta import BEGINNING, Condition, later
from tenure.model.api.node import Node
from tenure.model.api.nodepool import Repair, RepairPolicy
from tenure.model.cloud.repairs import RepairAction, RepairStatement
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import NEVER, parse_duration
from tenure.schema.semantics.repair import policy_problems

#: The statuses of Kubernetes' own conditions that mean unhealthy.
KNOWN: Final = {
    "Ready": ("False", "Unknown"),
    "MemoryPressure": ("True",),
    "DiskPressure": ("True",),
    "PIDPressure": ("True",),
    "NetworkUnavailable": ("True",),
}

FORCEFUL, GRACEFUL = "Forceful", "Graceful"


class UnhealthyCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One unhealthy condition under one policy."""

    condition: Condition
    since: datetime
    #: None: never repaired.
    due_at: datetime | None
    #: Which policy sets the toleration.
    policy: Policy
    action: RepairAction
    mode: str
    bound: timedelta | None = None
    priority: int = 0

    @property
    def counts(self) -> bool:
        """Whether the breaker counts it."""
        return self.due_at is not None and self.action is not RepairAction.NONE


class Rules(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The repair rules for the nodes of one pool."""

    repair: Repair | None = None
    statements: tuple[RepairStatement, ...] = ()
    #: What pools without a block do.
    default_mode: str = GRACEFUL
    #: Karpenter is in charge: the default ``readinessTTL`` terminates nothing.
    beside: bool = False

    @cached_property
    def entries(self) -> tuple[RepairPolicy, ...]:
        """The pool's own policies, without those that cannot be used."""
        if self.repair is None:
            return ()
        mode = self.repair.termination_mode
        watched = frozenset(one.condition_type for one in self.statements)
        return tuple(e for e in self.repair.policies if _is_usable(e, mode, watched))

    def entries_for(self, condition: Condition) -> list[RepairPolicy]:
        """Those for its type and status, whatever its reason."""
        return [
            entry
            for entry in self.entries
            if entry.condition_type == condition.type and entry.status in (None, condition.status)
        ]

    @cached_property
    def watched(self) -> frozenset[tuple[str, str]]:
        """Types and statuses that may mean unhealthy; most nodes have none of them.

        Whether one does may depend on its reason, too: ``unhealthy_conditions`` says it.
        """
        stated = {(one.condition_type, one.status) for one in self.statements}
        found = set(stated)
        for entry in self.entries:
            type_ = entry.condition_type
            watched = {status for of, status in stated if of == type_}
            statuses = {entry.status} if entry.status else watched or set(KNOWN.get(type_, ()))
            found |= {(type_, status) for status in statuses}
        return frozenset(found)


def rules_of(pool: str, snapshot: Snapshot) -> Rules:
    """Which conditions mean unhealthy in that pool, and how its nodes are repaired."""
    found = snapshot.pools.get(pool)
    repair = found.spec.repair if found is not None else None
    statements = snapshot.observations.repair_statements
    return Rules(repair=repair, statements=statements, beside=snapshot.beside_karpenter)


def unhealthy_conditions(
    node: Node, rules: Rules, *, rebooted_at: datetime | None = None
) -> tuple[UnhealthyCondition, ...]:
    """In the order of the Node's conditions."""
    found: list[UnhealthyCondition] = []
    for condition in node.status.conditions:
        if (condition.type, condition.status) in rules.watched:
            since = max(
                condition.last_transition_time or BEGINNING,
                node.created_at,
                rebooted_at or BEGINNING,
            )
            found += _evaluated(condition, since, rules)
    return tuple(found)


def _evaluated(condition: Condition, since: datetime, rules: Rules) -> Iterator[UnhealthyCondition]:
    entry = _entry(condition, rules)
    statements: Sequence[RepairStatement | None] = list(_statements(condition, rules.statements))
    if entry is None and not statements:
        return  # Watched for other reasons only.
    for statement in statements or [None]:
        yield unhealthy_by(condition, since, rules, entry, statement)


def unhealthy_by(
    condition: Condition,
    since: datetime,
    rules: Rules,
    entry: RepairPolicy | None,
    statement: RepairStatement | None,
) -> UnhealthyCondition:
    """The result for a condition that this entry of the pool and this statement match."""
    limited = any(other.reason is not None for other in rules.entries_for(condition))
    toleration, policy = _toleration(entry, _default(rules.repair, limited=limited), statement)
    return UnhealthyCondition(
        condition=condition,
        since=since,
        due_at=later(since, toleration) if toleration is not None else None,
        policy=policy,
        action=_action(entry, statement),
        mode=_mode(entry, rules),
        bound=_bound(entry, statement),
        priority=statement.priority if statement is not None else 0,
    )


@lru_cache(4096)
def _is_usable(entry: RepairPolicy, mode: str, watched: frozenset[str]) -> bool:
    return next(policy_problems(entry, mode, watched), None) is None


def _entry(condition: Condition, rules: Rules) -> RepairPolicy | None:
    """The most specific entry of the pool, then the first."""
    fitting = [
        entry
        for entry in rules.entries_for(condition)
        if entry.reason is None or _matches(entry.reason, condition.reason)
    ]
    specificity = {id(e): 2 * (e.reason is not None) + (e.status is not None) for e in fitting}
    return max(fitting, key=lambda entry: specificity[id(entry)], default=None)


def _statements(
    condition: Condition, statements: Sequence[RepairStatement]
) -> Iterator[RepairStatement]:
    """Those of the pair whose reason matches; else the fallback, whatever pair it was made for."""
    of_pair = [
        s for s in statements if (s.condition_type, s.status) == (condition.type, condition.status)
    ]
    if not of_pair:
        return
    specific = [s for s in of_pair if s.reason and _matches(s.reason, condition.reason)]
    yield from specific or [s for s in statements if not s.reason][:1]


def _default(repair: Repair | None, *, limited: bool) -> str | None:
    """The pool's default for a condition that no entry matches.

    ``limited``: entries name other reasons of it, so the pool has said what it wants repaired, and
    the default does not apply. ``Never`` applies all the same, because it repairs less.
    """
    default = repair.default_toleration_duration if repair is not None else None
    return None if limited and default != NEVER else default


def _toleration(
    entry: RepairPolicy | None,
    default: str | None,
    statement: RepairStatement | None,
) -> tuple[timedelta | None, Policy]:
    if entry is not None:
        status, reason = entry.status or "", entry.reason or ""
        policy = PoolPolicy(entry.condition_type, entry.toleration, status, reason)
        return _span(entry.toleration), policy
    if default is not None:
        return _span(default), PoolDefault(default)
    assert statement is not None, "a condition without entry is watched by the provider"
    return statement.toleration, ProviderPolicy(statement.toleration)


def _action(entry: RepairPolicy | None, statement: RepairStatement | None) -> RepairAction:
    if entry is not None and entry.action:
        return RepairAction(entry.action)
    return statement.action if statement is not None else RepairAction.REPLACE


def _mode(entry: RepairPolicy | None, rules: Rules) -> str:
    if rules.repair is None:
        return rules.default_mode
    return (entry.termination_mode if entry is not None else None) or rules.repair.termination_mode


def _bound(entry: RepairPolicy | None, statement: RepairStatement | None) -> timedelta | None:
    if entry is not None and entry.termination_grace_period is not None:
        return _span(entry.termination_grace_period)
    return statement.grace_period if statement is not None else None


def _span(value: str) -> timedelta | None:
    """None for ``Never``, and for an invalid value: then nothing is repaired."""
    if value == NEVER:
        return None
    try:
        return parse_duration(value).timedelta
    except (SpecError, OverflowError):
        return None


@lru_cache(1024)
def _matches(expression: str, reason: str) -> bool:
    """An invalid expression, which the schema should reject, matches nothing."""
    compiled = _compiled(expression)
    return compiled is not None and compiled.search(reason) is not None


@lru_cache(256)
def _compiled(expression: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error:
        return None
