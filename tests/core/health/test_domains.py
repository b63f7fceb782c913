"""Many unhealthy nodes of one zone, image or type: when it is an outage, and which is the probe."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.health.domains import (
    AffectedDomain,
    Domains,
    DomainState,
    PoolHealth,
    Probe,
    UnhealthyNode,
)
from tenure.core.health.facts import Domain, FirstProbe, Outage, ProbeUnderWay
from tenure.core.health.poolcount import PoolCount
from tenure.model.settings import Settings
from tests.core.build import NOW, SETTINGS, ago, ahead

ZONE_C = Domain("zone", "zone-c")
TYPE_M = Domain("instance-type", "m")

MINUTE = 60


def unhealthy_node(
    claim: str, *, since: float = 60, due: float | None = None, **more: Any
) -> UnhealthyNode:
    """``since`` and ``due`` in seconds ago; its pool is the first letter of its name."""
    due_at = ago(due) if due is not None else None
    return UnhealthyNode(claim=claim, pool=claim[0], since=ago(since), repaired_at=due_at, **more)


def recovered(claim: str, at: float) -> UnhealthyNode:
    return UnhealthyNode(claim=claim, pool=claim[0], since=ago(at), recovered_at=ago(at))


def affected_domain(
    *unhealthy_nodes: UnhealthyNode, total: int = 4, domain: Domain = ZONE_C
) -> AffectedDomain:
    return AffectedDomain(domain, total, unhealthy_nodes)


def look(*affected: AffectedDomain, now: datetime = NOW, **more: Any) -> DomainState:
    settings = more.pop("settings", SETTINGS)
    return Domains(affected=affected, **more).at(settings, now)


# -- when it is held ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unhealthy", "total", "held"),
    [
        ("a1 a2 b1", 5, True),
        ("a1 a2 b1", 6, False),
        ("a1 b1", 2, False),
        ("a1 a2 a3", 3, False),
        ("a1 a2 a3 b1", 7, True),
        ("a1 a2 b1 c1", 4, True),
    ],
    ids=[
        "three of five",
        "half is not more than half",
        "two are too few",
        "one pool is its own breaker's",
        "four of seven",
        "all of them",
    ],
)
def test_a_domain_is_in_outage_when(unhealthy: str, total: int, held: bool) -> None:
    outage = affected_domain(*map(unhealthy_node, unhealthy.split()), total=total).outage_at(NOW)
    assert (outage is not None) is held


def test_an_outage_counts_from_when_enough_nodes_were_unhealthy() -> None:
    unhealthy = [
        unhealthy_node("a1", since=900),
        unhealthy_node("a2", since=800),
        unhealthy_node("b1", since=700),
    ]
    outage = affected_domain(*unhealthy, unhealthy_node("b2", since=10)).outage_at(NOW)
    assert outage is not None
    assert outage.since == ago(700), "the third, and the first of a second pool"
    late = affected_domain(
        *unhealthy[:2], unhealthy_node("a3", since=600), unhealthy_node("b1", since=300)
    ).outage_at(NOW)
    assert late is not None
    assert late.since == ago(300), "before that they were all of one pool"


def test_a_booting_node_counts_from_the_end_of_its_ttl() -> None:
    booting = unhealthy_node("b1", since=-MINUTE, booting=True)
    zone = affected_domain(unhealthy_node("a1"), unhealthy_node("a2"), booting, total=4)
    assert zone.outage_at(NOW) is None
    assert look(zone).changes_at == ahead(MINUTE)
    outage = zone.outage_at(ahead(MINUTE))
    assert outage is not None
    assert outage.since == ahead(MINUTE)


def test_a_claim_without_a_pool_counts_but_is_no_second_pool() -> None:
    alone = UnhealthyNode(claim="x", pool="", since=ago(60))
    assert (
        affected_domain(unhealthy_node("a1"), unhealthy_node("a2"), alone, total=3).outage_at(NOW)
        is None
    )
    assert (
        affected_domain(unhealthy_node("a1"), unhealthy_node("b1"), alone, total=3).outage_at(NOW)
        is not None
    )


def test_it_names_the_domain_and_the_numbers() -> None:
    zone = affected_domain(
        *(unhealthy_node(name, since=120) for name in ("a1", "a2", "b1")), total=5
    )
    outage = Outage(domain=ZONE_C, unhealthy=3, recovered=0, total=5, pools=2, since=ago(120))
    assert look(zone).outage_of([ZONE_C]) == (outage, FirstProbe(ZONE_C, ahead(8 * MINUTE)))
    assert look(zone).outage_of([TYPE_M]) == ()


def test_it_can_be_switched_off() -> None:
    zone = affected_domain(unhealthy_node("a1"), unhealthy_node("a2"), unhealthy_node("b1"))
    off = look(zone, settings=Settings(repair_domain_breaker=False))
    assert (off.outage_of([ZONE_C]), off.outages, off.changes_at) == ((), (), None)


# -- those that have just recovered ------------------------------------------------------


def test_those_that_come_back_last_are_not_repaired_when_half_of_the_others_have() -> None:
    back = [recovered("a2", 30), recovered("b1", 20), recovered("b2", 10)]
    zone = affected_domain(unhealthy_node("a1", since=3600, due=3000), *back)
    settles = Outage(
        domain=ZONE_C, unhealthy=1, recovered=3, total=4, pools=1, since=None, until=ahead(580)
    )
    assert look(zone).outage_of([ZONE_C]) == (settles,)
    assert look(zone).next_probe("a") is None, "there is no probe while it settles"
    assert look(zone, now=ahead(579)).outage_of([ZONE_C])
    assert look(zone, now=ahead(580)).outage_of([ZONE_C]) == (), (
        "two of four are not more than half"
    )


def test_it_says_when_it_settles_and_that_is_true() -> None:
    back = [recovered(f"{'ab'[i % 2]}{i}", 10 * i) for i in range(1, 8)]
    zone = affected_domain(
        unhealthy_node("a0", since=900), unhealthy_node("b0", since=900), *back, total=9
    )
    outage = zone.outage_at(NOW)
    assert outage is not None
    assert outage.until is not None
    assert zone.outage_at(outage.until - timedelta(seconds=1)) is not None
    assert zone.outage_at(outage.until) is None


# -- probes ------------------------------------------------------------------------------


def dead_zone(since: float = 600, **more: Any) -> AffectedDomain:
    """Four nodes of two pools, all unhealthy and due."""
    names = ("a1", "a2", "b1", "b2")
    return affected_domain(
        *(unhealthy_node(name, since=since, due=since - 60, **more) for name in names)
    )


def test_the_first_probe_is_ten_minutes_after_the_outage_began() -> None:
    assert look(dead_zone(since=599)).next_probe("a") is None
    assert look(dead_zone(since=599)).changes_at == ahead(1)
    probe = look(dead_zone(since=600)).next_probe("a")
    assert probe is not None
    assert (probe.claim, probe.domains) == ("a1", ("zone=zone-c",))
    assert look(dead_zone(since=600)).next_probe("b") is None, "one at a time"


def test_the_one_that_is_unhealthy_for_longest_is_the_probe_if_it_is_due() -> None:
    longest = unhealthy_node("b9", since=7200)
    others = [unhealthy_node(name, since=900, due=60) for name in ("a1", "a2")]
    tried = look(
        affected_domain(longest, unhealthy_node("b1", since=1000, due=0), *others)
    ).next_probe("b")
    assert tried is not None
    assert tried.claim == "b1", "b9 is never repaired"


def test_the_pools_have_their_turn() -> None:
    tried = look(
        affected_domain(
            *dead_zone(since=3600).unhealthy_nodes, unhealthy_node("b3", since=1200, due=60)
        )
    )
    assert tried.next_probe("a") is None
    first = tried.next_probe("b")
    assert first is not None
    assert first.claim == "b1"


def probe(claim: str = "a1", *, minutes_ago: float = 5, **more: Any) -> Probe:
    at = ago(minutes_ago * MINUTE)
    return Probe(pool=claim[0], claim=claim, domains=("zone=zone-c",), at=at, **more)


def test_the_probe_is_not_blocked_and_the_others_wait() -> None:
    now = look(dead_zone(since=3600), probes=(probe("a1"),))
    assert (now.probe("a1"), now.probe("b1")) == (probe("a1"), None)
    known = ProbeUnderWay("a1", ago(5 * MINUTE), ahead(25 * MINUTE))
    assert now.outage_of([ZONE_C])[-1] == known
    assert (now.next_probe("a"), now.next_probe("b")) == (None, None)
    assert now.changes_at == ahead(25 * MINUTE)


@pytest.mark.parametrize(
    "last", [probe("a1", answered=True), probe("a1", minutes_ago=30)], ids=["up", "half an hour"]
)
def test_the_next_probe_comes_once_the_replacement_is(last: Probe) -> None:
    now = look(dead_zone(since=3600), probes=(last,))
    tried = now.next_probe("a")
    assert tried is not None
    assert tried.claim == "a2", "who was tried and is still there comes last"


def test_a_probe_does_not_get_around_its_pools_breaker() -> None:
    zone = dead_zone(since=3600)
    of_a, five = tuple(p for p in zone.unhealthy_nodes if p.pool == "a"), PoolCount(5)
    tried = look(
        zone, pool_health={"a": PoolHealth(of_a, five, "20%"), "b": PoolHealth((), five, "20%")}
    )
    assert tried.next_probe("a") is None
    assert tried.next_probe("b") is not None


def test_what_is_written_there_and_cannot_be_read_lets_no_node_of_that_pool_be_a_probe() -> None:
    tried = look(dead_zone(since=3600), probes=(Probe(pool="a"),))
    assert tried.next_probe("a") is None
    assert tried.next_probe("b") is not None


def test_a_node_in_two_outages_is_the_probe_of_both() -> None:
    unhealthy = [unhealthy_node(name, since=3600, due=60) for name in ("a1", "a2", "b1", "b2")]
    both = look(affected_domain(*unhealthy), affected_domain(*unhealthy[1:], domain=TYPE_M))
    first = both.next_probe("a")
    assert first is not None
    assert (first.claim, first.domains) == ("a1", ("zone=zone-c",)), "of that type it is not"
    assert both.next_probe("b") is None, "its zone is tried already"
    alone = look(
        affected_domain(*unhealthy[1:]), affected_domain(*unhealthy[1:], domain=TYPE_M)
    ).next_probe("b")
    assert alone is not None
    assert alone.domains == ("zone=zone-c", "instance-type=m")


def test_without_node_repair_only_those_that_never_came_up_are_probes() -> None:
    zone = dead_zone(since=3600)
    off = look(zone, settings=Settings(node_repair=False))
    assert off.next_probe("a") is None
    given_up = dead_zone(since=3600, timed_out_at=ago(60))
    assert look(given_up, settings=Settings(node_repair=False)).next_probe("a") is not None
