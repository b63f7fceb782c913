"""Pools and claims in the tables as policies make them, and the changes that follow."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.drift.pooltemplate import TEMPLATE
from tenure.core.pool.status import PoolDecider
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.snapshot.governed import as_written, refusal_of, ruling_of
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.model.snapshot.unreadable import stand_in
from tests.core.build import a_claim, a_policy, a_pool, body_of, evaluated
from tests.properties.drawn.pools import policies, pools
from tests.snapshots import RESOURCE_OF, governed_tables, snapshot_with

SLOW = a_policy("slow", readinessTTL="40m", expireAfter="24h", maxPodProtection="1h")


def never_expiring(name: str = "general", **fields: Any) -> NodePool:
    return a_pool(name, template={"expireAfter": "Never", "readinessTTL": "15m"}, **fields)


def claim_of(**spec: Any) -> NodeClaim:
    claim = a_claim("a")
    wanted = {"expire_after": "Never", "readiness_ttl": "15m", **spec}
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, **wanted))


def filled(*items: Any) -> Tables:
    tables = governed_tables()
    for item in items:
        tables.put(RESOURCE_OF[type(item)], item)
    return tables


def test_pools_and_claims_are_seen_with_the_policy_whatever_comes_first() -> None:
    for items in ((SLOW, never_expiring(), claim_of()), (claim_of(), never_expiring(), SLOW)):
        snapshot = Snapshot(filled(*items))
        pool, claim = snapshot.pools["general"], snapshot.claims["a"]
        assert pool.spec.disruption.max_pod_protection == "1h"
        assert pool.spec.template.spec.readiness_ttl == "40m"
        assert (claim.spec.readiness_ttl, claim.spec.expire_after) == ("40m", "24h")
        assert snapshot.claims_of_pool("general")["a"] is claim
        assert pool.metadata == never_expiring().metadata, "patches depend on the object itself"
        assert (as_written(pool), as_written(claim)) == (never_expiring(), claim_of())


def test_without_a_policy_the_object_is_the_same() -> None:
    pool, claim = a_pool(), claim_of()
    other = a_policy(nodePools={"names": ["other"]}, readinessTTL="1m")
    snapshot = Snapshot(filled(other, pool, claim))
    assert snapshot.pools["general"] is pool
    assert snapshot.claims["a"] is claim


def test_a_value_of_the_claim_itself_wins() -> None:
    own = claim_of(readiness_ttl="20m", initialization_ttl="Never", expire_after="720h")
    policy = a_policy(readinessTTL="40m", initializationTTL="1m", expireAfter="24h")
    assert Snapshot(filled(policy, never_expiring(), own)).claims["a"] is own


def test_a_change_of_a_policy_changes_the_pools_and_claims_it_is_for() -> None:
    tables = filled(SLOW, never_expiring(), claim_of(), a_pool("other", labels={"x": "y"}))
    tables.take_followers()
    tables.put(NODE_POOL_POLICIES, a_policy("slow", readinessTTL="50m"))
    changed = {(one.resource, one.key): one for one in tables.take_followers()}
    assert set(changed) == {
        (NODE_POOLS, "general"),
        (NODE_CLAIMS, "a"),
        (NODE_POOLS, "other"),
    }
    claim = changed[NODE_CLAIMS, "a"]
    assert isinstance(claim.old, NodeClaim)
    assert isinstance(claim.new, NodeClaim)
    assert (claim.old.spec.readiness_ttl, claim.new.spec.readiness_ttl) == ("40m", "50m")
    assert (claim.old.spec.expire_after, claim.new.spec.expire_after) == ("24h", "Never")


def test_a_change_of_its_status_changes_nothing_else() -> None:
    tables = filled(SLOW, never_expiring(), claim_of())
    tables.take_followers()
    written = msgspec.structs.replace(SLOW, status=type(SLOW.status)(node_pools=1))
    tables.put(NODE_POOL_POLICIES, written)
    assert tables.take_followers() == []


def test_a_deleted_policy_leaves_what_is_written() -> None:
    pool, claim = never_expiring(), claim_of()
    tables = filled(SLOW, pool, claim)
    tables.remove(NODE_POOL_POLICIES, "slow")
    assert Snapshot(tables).pools["general"] is pool
    assert Snapshot(tables).claims["a"] is claim


def test_a_pool_that_goes_or_changes_its_labels_moves_its_claims() -> None:
    policy = a_policy(nodePools={"matchLabels": {"boot": "slow"}}, readinessTTL="40m")
    tables = filled(policy, never_expiring(labels={"boot": "slow"}), claim_of())
    assert Snapshot(tables).claims["a"].spec.readiness_ttl == "40m"
    tables.put(NODE_POOLS, never_expiring())
    assert Snapshot(tables).claims["a"].spec.readiness_ttl == "15m"
    tables.put(NODE_POOLS, never_expiring(labels={"boot": "slow"}))
    tables.remove(NODE_POOLS, "general")
    assert Snapshot(tables).claims["a"].spec.readiness_ttl == "15m"


def test_a_pool_that_was_set_aside_comes_back_with_its_policy() -> None:
    tables = filled(SLOW, never_expiring(), claim_of())
    snapshot = Snapshot(tables)
    before = snapshot.pools["general"]
    change = snapshot.set_aside(NODE_POOLS, "general", "a decider failed on it")
    assert snapshot.claims["a"].spec.readiness_ttl == "40m", "its claims keep their times"
    snapshot.put_back(change)
    assert snapshot.pools["general"] == before


def test_a_policy_that_was_set_aside_closes_its_pools() -> None:
    tables = filled(SLOW, never_expiring())
    snapshot = Snapshot(tables)
    change = snapshot.set_aside(NODE_POOL_POLICIES, "slow", "a decider failed on it")
    (follower,) = snapshot.take_followers()
    assert follower.new is snapshot.pools["general"]
    ruling = ruling_of(snapshot.pools["general"])
    assert ruling is not None
    assert ruling.refusal is not None
    assert ruling.refusal.budgets
    snapshot.put_back(change)
    assert snapshot.pools["general"].spec.disruption.max_pod_protection == "1h"


def test_an_unreadable_pool_stays_a_stand_in() -> None:
    pool = stand_in(never_expiring(), "weight is no number")
    tables = governed_tables()
    tables.put(NODE_POOL_POLICIES, SLOW)
    tables.put(NODE_POOLS, pool)
    assert Snapshot(tables).pools["general"] is pool


def test_a_copy_has_the_same_pools_and_claims() -> None:
    tables = filled(never_expiring(), claim_of(), SLOW)
    twin = tables.copy()
    assert twin.objects == tables.objects
    assert twin.take_followers() == []


def test_a_policy_makes_no_node_drift() -> None:
    """Neither the hash of the pool nor that of a claim, nor what a claim is made from."""
    plain, ruled = snapshot_with(never_expiring()), snapshot_with(never_expiring(), SLOW)
    hashes = [one.derived.of(TEMPLATE, one.pools["general"]) for one in (plain, ruled)]
    assert hashes[0] == hashes[1]
    written = [
        evaluated(PoolDecider(), *items)[0]
        for items in ([never_expiring()], [never_expiring(), SLOW])
    ]
    assert body_of(written[0]) == body_of(written[1])


@given(pool=pools("general"), drawn=st.lists(policies("usual") | policies("special"), max_size=2))
def test_what_the_pool_says_itself_always_stays(
    pool: NodePool, drawn: list[NodePoolPolicy]
) -> None:
    tables = governed_tables()
    tables.put(NODE_POOLS, pool)
    for policy in drawn:
        tables.put(NODE_POOL_POLICIES, policy)
    seen = Snapshot(tables).pools["general"]
    own, found = pool.spec, seen.spec
    assert as_written(seen) is pool
    assert found.limits == own.limits
    assert found.template.metadata == own.template.metadata
    if own.repair is not None:
        assert found.repair == own.repair
    if own.disruption.max_pod_protection is not None:
        assert found.disruption.max_pod_protection == own.disruption.max_pod_protection
    if own.template.spec.expire_after != "Never":
        assert found.template.spec.expire_after == own.template.spec.expire_after
    if own.template.spec.readiness_ttl == "8m":
        assert found.template.spec.readiness_ttl == "8m"
    if own.disruption.budgets != NodePool().spec.disruption.budgets:
        assert set(map(str, own.disruption.budgets)) <= set(map(str, found.disruption.budgets))
    if not drawn:
        assert seen is pool


@given(
    pool=pools("general"),
    drawn=st.lists(policies("usual") | policies("special"), max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_changes_does_not_matter(
    pool: NodePool, drawn: list[NodePoolPolicy], order: Any
) -> None:
    latest = {policy.name: policy for policy in drawn}
    shuffled: list[Any] = [pool, claim_of(), *latest.values()]
    order.shuffle(shuffled)
    one, other = filled(pool, claim_of(), *drawn), filled(*shuffled)
    assert one.objects.get(NODE_POOLS) == other.objects.get(NODE_POOLS)
    assert one.objects.get(NODE_CLAIMS) == other.objects.get(NODE_CLAIMS)


# -- policies that must not be listed ---------------------------------------------------

FORBIDDEN = "403 Forbidden"


def test_policies_that_must_not_be_listed_close_every_pool_until_they_can_be() -> None:
    """There may be one with budgets: what cannot be read protects."""
    pool, claim = a_pool(disruption={"budgets": [{"nodes": "3"}]}), claim_of()
    tables = filled(pool, claim)
    assert tables.list_failed(NODE_POOL_POLICIES, FORBIDDEN)
    (change,) = tables.take_followers()
    assert (change.resource, change.key) == (NODE_POOLS, "general")
    seen = Snapshot(tables).pools["general"]
    assert [budget.nodes for budget in seen.spec.disruption.budgets] == ["3", "0"]
    refusal = refusal_of(seen)
    assert refusal is not None
    assert (refusal.budgets, refusal.repair, refusal.got) == (True, True, FORBIDDEN)
    assert tables.list_failed(NODE_POOL_POLICIES, "")
    assert Snapshot(tables).pools["general"] is pool


def test_the_policies_that_were_listed_before_go_on() -> None:
    pool = never_expiring(repair={"maxUnhealthy": "30%"})
    tables = filled(SLOW, pool, claim_of())
    tables.list_failed(NODE_POOL_POLICIES, FORBIDDEN)
    snapshot = Snapshot(tables)
    seen, refusal = snapshot.pools["general"], refusal_of(snapshot.pools["general"])
    assert refusal is not None
    assert not refusal.repair, "the NodePool says itself how its nodes are repaired"
    assert seen.spec.repair == pool.spec.repair
    assert (snapshot.claims["a"].spec.readiness_ttl, refusal.budgets) == ("40m", True)
    assert Snapshot(tables.copy()).pools["general"] == seen
