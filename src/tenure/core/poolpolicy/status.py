"""Decide the status of a NodePoolPolicy: whether it is valid, and to how many NodePools it applies.

In order: a field that cannot be used; a NodePool that another policy selects in the same way; else it is
valid. What it says is put into the NodePools elsewhere (``govern``); here that is only shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.conditions import Wanted, merge, status_patch
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact, sentence
from tenure.core.poolpolicy.facts import MoreTies, PoliciesTied, PolicyApplies, PolicyUnusable
from tenure.core.poolpolicy.selecting import most_specific, selects
from tenure.core.reasons import Reason
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.problem import problems_from
from tenure.schema.semantics.policy import pool_policy_problems, unusable_problems

#: So many ties a message names.
_TIES_NAMED: Final = 3


class Reach(msgspec.Struct, frozen=True):
    """What a policy selects, beside the others."""

    #: How many NodePools it selects, and of how many it is the most specific.
    selected: int = 0
    applies: int = 0
    #: NodePools that others select in the same way, and those others.
    ties: tuple[tuple[str, tuple[str, ...]], ...] = ()


class PoolPolicyView(msgspec.Struct, frozen=True):
    policy: NodePoolPolicy
    reach: Reach
    any_pool: bool
    #: Condition types in the provider's repair statements.
    watched: frozenset[str] = frozenset()


class PoolPolicyDecider:
    concern = Concern.POOL_POLICY

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.pool_policies

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_POOL_POLICIES:
            yield change.key
            yield from snapshot.pool_policies
        elif change.resource == NODE_POOLS and _changes_labels(change):
            yield from snapshot.pool_policies

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> PoolPolicyView | None:
        policy = snapshot.pool_policies.get(key)
        if policy is None or is_unreadable(policy):
            return None
        watched = (one.condition_type for one in snapshot.observations.repair_statements)
        reach = snapshot.once(reaches)[key]
        return PoolPolicyView(policy, reach, bool(snapshot.pools), frozenset(watched))

    def decide(self, view: PoolPolicyView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        policy, reach = view.policy, view.reach
        refused = any(unusable_problems(policy))
        pools = 0 if refused else reach.applies
        if problems := problems_from(pool_policy_problems(policy, view.watched)):
            unusable = PolicyUnusable(problems, refused)
            patch = _patch(policy, pools, Wanted("Valid", "False", "Invalid", str(unusable)))
            return (_verdict(policy, Reason.POOL_POLICY_INVALID, (unusable,), patch),)
        if reach.ties:
            facts = _ties(reach)
            patch = _patch(policy, pools, Wanted("Valid", "False", "Tied", sentence(facts)))
            return (_verdict(policy, Reason.POOL_POLICY_TIED, facts, patch),)
        misses = view.any_pool and not reach.selected
        fact = PolicyApplies(pools, misses, reach.selected - reach.applies)
        patch = _patch(policy, pools, Wanted("Valid", "True", "Valid", str(fact)))
        reason = Reason.POOL_POLICY_STATUS_CHANGED if patch else Reason.POOL_POLICY_CURRENT
        return (_verdict(policy, reason, (fact,), patch),)


def reaches(snapshot: Snapshot) -> Mapping[str, Reach]:
    """Of every policy, worked out together: each NodePool is looked at once."""
    policies = snapshot.pool_policies
    selected, applies = dict.fromkeys(policies, 0), dict.fromkeys(policies, 0)
    ties: dict[str, list[tuple[str, tuple[str, ...]]]] = {name: [] for name in policies}
    for pool_name, pool in sorted(snapshot.pools.items()):
        found = [policy.name for policy in most_specific(pool, policies.values())]
        for name, policy in policies.items():
            selected[name] += selects(policy, pool)
        for name in found:
            others = tuple(other for other in found if other != name)
            applies[name] += not others
            ties[name] += [(pool_name, others)] if others else []
    return {name: Reach(selected[name], applies[name], tuple(ties[name])) for name in policies}


def _ties(reach: Reach) -> tuple[Fact, ...]:
    named = tuple(PoliciesTied(pool, others) for pool, others in reach.ties[:_TIES_NAMED])
    more = len(reach.ties) - len(named)
    return (*named, MoreTies(more)) if more else named


def _changes_labels(change: Change) -> bool:
    return change.old is None or change.new is None or change.old.labels != change.new.labels


def _patch(policy: NodePoolPolicy, pools: int, valid: Wanted) -> Patch | None:
    conditions = merge(policy.status.conditions, (valid,), policy.metadata.generation)
    if conditions == policy.status.conditions and policy.status.node_pools == pools:
        return None
    return status_patch(
        NODE_POOL_POLICIES,
        policy.name,
        uid=policy.uid,
        resource_version=policy.metadata.resource_version,
        status={"nodePools": pools},
        conditions=conditions,
    )


def _verdict(
    policy: NodePoolPolicy, reason: Reason, facts: tuple[Fact, ...], action: Patch | None
) -> Verdict:
    return Verdict(
        concern=Concern.POOL_POLICY,
        subject=Subject.of(NODE_POOL_POLICIES.kind, policy),
        reason=reason,
        facts=facts,
        action=action,
    )
