"""When a claim expires: creation, ``expireAfter``, and the spread that follows from its UID."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.beside.replacing.surroundings import BesideKarpenter
from tenure.core.decision import Verdict
from tenure.core.disrupt.expiration import SPREAD_MAX, ExpirationDecider, expires_at, spread_of
from tenure.core.disrupt.facts.candidates import (
    ClaimExpires,
    DoesNotExpire,
    ExpiresByForce,
    StaticPool,
)
from tenure.core.policy.deciders import beside_karpenter
from tenure.core.reasons import Reason
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import CRDS, DEPLOYMENTS, NODE_POOLS
from tenure.model.snapshot.snapshot import EVERY_CLASS, Change
from tenure.model.snapshot.unreadable import stand_in
from tests.core.build import (
    SETTINGS,
    a_claim,
    a_class,
    a_node,
    a_pool,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
    said,
)
from tests.snapshots import snapshot_with

HOUR = timedelta(hours=1)
SAID = condition("Expired", at=ago(60))
ALWAYS = {"expirationPolicy": "Always"}


def a_claim_of(age: str | None, **fields: Any) -> Any:
    return a_claim(spec={"expire_after": age}, **fields)


def verdicts(*objects: Any, **fields: Any) -> list[Verdict]:
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool()]
    return evaluated(ExpirationDecider(), a_class(), *pools, *objects, **fields)


def verdict_on(*objects: Any, **fields: Any) -> Verdict:
    (found,) = verdicts(*objects, **fields)
    return found


# -- the arithmetic --------------------------------------------------------------------------


@given(uid=st.text(max_size=40), hours=st.integers(1, 10_000))
def test_the_spread_is_less_than_a_tenth_and_a_day(uid: str, hours: int) -> None:
    age = hours * HOUR
    assert timedelta() <= spread_of(uid, age) < min(age / 10, SPREAD_MAX)


def test_the_spread_follows_from_the_uid() -> None:
    """These are for ever: another value would let a fleet expire again after an update."""
    assert spread_of("uid-a", 720 * HOUR) == timedelta(seconds=65_374)
    assert spread_of("uid-b", 720 * HOUR) == timedelta(seconds=24_342)
    assert spread_of("uid-a", HOUR) == timedelta(seconds=272)


def test_claims_of_the_same_instant_expire_all_over_the_spread() -> None:
    spans = sorted(spread_of(f"uid-{index}", 240 * HOUR) / HOUR for index in range(100))
    assert spans[0] < 2
    assert spans[-1] > 22
    assert max(b - a for a, b in pairwise(spans)) < 2


@pytest.mark.parametrize("policy", ["WhenAllowed", "Always"])
@pytest.mark.parametrize("age", [None, "Never", "old", "-1h", "0s"])
def test_without_a_readable_age_it_never_expires(age: str | None, policy: str) -> None:
    assert expires_at(a_claim_of(age), policy) is None


def test_always_has_no_spread() -> None:
    claim = a_claim_of("2h")
    assert expires_at(claim, "Always") == claim.created_at + 2 * HOUR
    early = expires_at(claim, "WhenAllowed")
    assert early == claim.created_at + 2 * HOUR - spread_of("uid-a", 2 * HOUR)


# -- what the claim says ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["WhenAllowed", "Always"])
@pytest.mark.parametrize("age", ["old", "-1h", "0s"])
def test_of_an_invalid_age_it_says_so_and_takes_the_condition_off(age: str, policy: str) -> None:
    pool = a_pool(disruption={"expirationPolicy": policy})
    told = verdict_on(pool, a_claim_of(age, conditions=[SAID]), a_node())
    assert told.facts == (DoesNotExpire("a", age),)
    assert "Expired" not in said(told)


def test_before_its_time_it_says_when() -> None:
    told = verdict_on(a_pool(disruption=ALWAYS), a_claim_of("2h"), a_node())
    assert told.reason is Reason.NOT_EXPIRED
    assert told.facts == (ClaimExpires("a", ahead(3600), "2h", "Always"),)
    assert (told.action, told.recheck_at) == (None, ahead(3600))


@pytest.mark.parametrize(("seconds", "expired"), [(-1, False), (0, True), (1, True)])
def test_it_expires_at_the_second(seconds: int, expired: bool) -> None:
    told = verdict_on(a_pool(disruption=ALWAYS), a_claim_of("2h"), now=ahead(3600 + seconds))
    assert (told.reason is Reason.EXPIRED) is expired
    if expired:
        assert said(told)["Expired"] == ("True", "ExpireAfterElapsed")


@pytest.mark.parametrize(
    "objects",
    [
        (a_claim_of("Never", conditions=[SAID]),),
        (a_claim_of("720h", conditions=[SAID]),),
        (a_claim_of("10m", conditions=[SAID]), a_pool(replicas=1)),
        (a_claim_of("10m", conditions=[SAID]), a_pool("other")),
    ],
    ids=["Never", "not yet", "static", "without a pool"],
)
def test_a_condition_that_does_not_hold_is_taken_off(objects: Any) -> None:
    told = verdict_on(*objects)
    assert told.reason is Reason.NOT_EXPIRED
    assert "Expired" not in {one["type"] for one in body_of(told)["status"]["conditions"]}


def test_nothing_is_said_of_a_claim_that_never_expires() -> None:
    assert verdicts(a_claim_of("Never")) == []


def test_of_a_pool_with_replicas_it_is_said_that_nothing_is_disrupted_by_choice() -> None:
    told = verdict_on(a_claim_of("10m"), a_pool(replicas=1))
    assert (told.reason, told.action) == (Reason.NOT_EXPIRED, None)
    assert told.facts == (StaticPool("general"),)


def test_a_static_pool_that_cannot_be_read_any_more_is_a_change() -> None:
    """Both have no policy, and only of one something is said."""
    static, claim = a_pool(replicas=1), a_claim_of("10m")
    unreadable = stand_in(static, "spec: nonsense")
    change = Change(NODE_POOLS, "general", static, unreadable)
    snapshot = snapshot_with(unreadable, claim)
    assert list(ExpirationDecider().touched(change, snapshot)) == [claim.name]


@pytest.mark.parametrize(
    "pool", [a_pool(replicas=1), a_pool(), a_pool("other")], ids=["static", "its own", "another"]
)
def test_beside_karpenter_it_expires_by_force_whatever_its_pool_is(pool: NodePool) -> None:
    """Karpenter reads the claim alone: static pools and claims without a pool are no exception."""
    settings = msgspec.structs.replace(SETTINGS, beside_karpenter=True, karpenter_version="1.15")
    decider, claim = ExpirationDecider(BesideKarpenter(settings)), a_claim_of("720h")
    (told,) = evaluated(decider, a_class(), pool, claim)
    assert (told.reason, told.action) == (Reason.NOT_EXPIRED, None)
    assert told.facts == (ExpiresByForce(claim.name, claim.created_at + 720 * HOUR, "720h"),)


def test_beside_karpenter_every_decider_that_waits_for_its_deployment_waits_for_its_crds() -> None:
    """Both say whether Tenure only looks: a decider that misses one of them would never begin again."""
    settings = msgspec.structs.replace(SETTINGS, beside_karpenter=True)
    claim, node = a_claim_of("720h"), a_node("node-1", claim="general-1")
    snapshot = snapshot_with(a_class(), a_pool(), claim, node, ours=EVERY_CLASS)
    for decider in beside_karpenter(settings):
        told = [
            set(decider.touched(Change(resource, "karpenter", None, None), snapshot))
            for resource in (DEPLOYMENTS, CRDS)
        ]
        assert told[0] == told[1], decider
