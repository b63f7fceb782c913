"""Nodes of several pools that are unhealthy together: outages, probes, and zones to avoid."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.decision import Create, Patch, Verdict
from tenure.core.health.facts import Domain, FirstProbe, Outage, ProbeUnderWay
from tenure.core.health.outage import domains_in, read_permit
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.provision.facts import ZoneAvoided
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    NOW,
    REGISTERED,
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pool,
    a_type,
    about,
    ago,
    ahead,
    body_of,
    evaluated,
    fact_of,
    types,
)
from tests.core.outage import REPAIR, a_dead_zone, a_member, members, pools
from tests.snapshots import snapshot_with

ZONE_C = Domain("zone", "zone-c")
OFF = Settings(repair_domain_breaker=False)
STATEMENTS = kwok_statements()


def verdicts(*objects: Any, now: datetime = NOW, **more: Any) -> list[Verdict]:
    return evaluated(RepairDecider(), *objects, now=now, repair_statements=STATEMENTS, **more)


def affected(*objects: Any) -> list[str]:
    """The domains that are in outage, or may be soon."""
    snapshot = snapshot_with(*objects, observations=Observations(repair_statements=STATEMENTS))
    return [str(affected_domain.domain) for affected_domain in domains_in(snapshot).affected]


def reasons(found: list[Verdict]) -> dict[str, Reason]:
    return {v.subject.name: v.reason for v in found if v.subject.kind == "NodeClaim"}


# -- who counts --------------------------------------------------------------------------


def test_a_zone_an_image_and_a_type_can_fail() -> None:
    zone = members(("red-1", "red-2", "blue-1"), unhealthy_since=ago(60))
    assert affected(*pools(), *zone) == ["zone=zone-c"]
    image = [
        item
        for i, name in enumerate(("red-1", "red-2", "blue-1"))
        for item in a_member(name, zone=f"zone-{i}", image="bad", unhealthy_since=ago(60))
    ]
    healthy = members(("red-5", "blue-5"), image="good", type_="m")
    assert affected(*pools(), *image, *healthy) == ["image=bad"]
    type_ = [
        item
        for i, name in enumerate(("red-1", "red-2", "blue-1"))
        for item in a_member(name, zone=f"zone-{i}", type_="m", unhealthy_since=ago(60))
    ]
    assert affected(*pools(), *type_) == ["instance-type=m"]


def test_half_of_a_zone_is_not_an_outage() -> None:
    unhealthy = members(("red-1", "red-2", "blue-1"), unhealthy_since=ago(60))
    assert affected(*pools(), *unhealthy, *members(("red-3", "blue-2"))) == ["zone=zone-c"]
    assert affected(*pools(), *unhealthy, *members(("red-3", "blue-2", "blue-3"))) == []


def test_nodes_of_others_in_the_zone_do_not_count() -> None:
    unhealthy = members(("red-1", "red-2", "blue-1"), unhealthy_since=ago(60))
    foreign = [
        a_node(f"foreign-{i}", claim=f"f{i}", registered=False, labels={names.ZONE: "zone-c"})
        for i in range(9)
    ]
    assert affected(*pools(), *unhealthy, *foreign) == ["zone=zone-c"]


def test_what_is_never_repaired_does_not_count() -> None:
    never = pools(policies=[{"conditionType": "Ready", "toleration": "Never"}])
    assert affected(*never, *a_dead_zone(ago(60))) == []


def test_the_recovered_count_and_those_that_have_just_booted_do_not() -> None:
    unhealthy = members(("red-1",), unhealthy_since=ago(3600))
    back = members(("red-2", "blue-1", "blue-2"), healthy_since=ago(60))
    assert affected(*pools(), *unhealthy, *back) == ["zone=zone-c"]
    fresh = members(("red-2", "blue-1", "blue-2"), healthy_since=ago(6001))
    assert affected(*pools(), *unhealthy, *fresh) == []


# -- repairs -----------------------------------------------------------------------------


def test_nothing_is_repaired_in_a_zone_in_outage_and_it_says_so() -> None:
    found = verdicts(*pools(), *a_dead_zone(ago(599)))
    assert reasons(found) == dict.fromkeys(
        ("red-1", "red-2", "blue-1", "blue-2"), Reason.REPAIR_BLOCKED
    )
    blocked = about(found, "NodeClaim/red-1")
    assert blocked.facts[-2:] == (
        Outage(domain=ZONE_C, unhealthy=4, recovered=0, total=4, pools=2, since=ago(599)),
        FirstProbe(ZONE_C, ahead(1)),
    )
    assert (blocked.action, blocked.recheck_at) == (None, ahead(1))
    for subject in ("Node/node-red-1", "NodePool/red", "NodePool/blue"):
        assert about(found, subject).reason is Reason.REPAIR_BLOCKED


def test_without_the_breaker_all_of_them_go_at_once() -> None:
    found = verdicts(*pools(), *a_dead_zone(ago(599)), settings=OFF)
    assert set(reasons(found).values()) == {Reason.REPAIRING}


def test_the_probe_is_written_on_the_pool_first() -> None:
    found = verdicts(*pools(), *a_dead_zone(ago(600)))
    assert set(reasons(found).values()) == {Reason.REPAIR_BLOCKED}
    probe = about(found, "NodePool/blue")
    assert probe.reason is Reason.REPAIR_PROBE
    assert isinstance(probe.action, Patch)
    assert probe.action.dated == names.REPAIR_PROBE
    noted = body_of(probe)["metadata"]["annotations"]
    assert noted == {names.REPAIR_PROBE: "zone=zone-c blue-1"}
    assert about(found, "NodePool/red").reason is Reason.REPAIR_BLOCKED, "one at a time"


TRIED = "zone=zone-c red-2 2026-03-02T11:59:00Z"


def test_then_it_is_repaired_with_a_mark_and_the_others_wait() -> None:
    found = verdicts(*pools(TRIED), *a_dead_zone(ago(700)))
    assert reasons(found) == {
        **dict.fromkeys(("red-1", "blue-1", "blue-2"), Reason.REPAIR_BLOCKED),
        "red-2": Reason.REPAIRING,
    }
    noted = body_of(about(found, "NodeClaim/red-2"))["metadata"]["annotations"]
    assert noted[names.REPAIR_PROBE] == "zone=zone-c 2026-03-02T11:59:00Z"
    assert names.TERMINATION_TIMESTAMP in noted, "in one write"
    waiting = about(found, "NodeClaim/blue-1")
    assert waiting.recheck_at == ahead(29 * 60)
    assert fact_of(waiting, ProbeUnderWay).next_at == ahead(29 * 60)


def test_the_next_probe_comes_once_the_first_is_gone_and_a_new_node_of_its_pool_is_up() -> None:
    zone = [item for item in a_dead_zone(ago(700)) if not item.name.endswith("red-2")]
    waiting = verdicts(*pools(TRIED), *zone)
    assert Reason.REPAIR_PROBE not in {v.reason for v in waiting}
    claim, node = a_member("red-9", zone="zone-a", creation_timestamp=ago(50))
    nearly = verdicts(*pools(TRIED), *zone, _not_initialized(claim), node)
    assert Reason.REPAIR_PROBE not in {v.reason for v in nearly}
    up = verdicts(*pools(TRIED), *zone, claim, node)
    assert about(up, "NodePool/blue").reason is Reason.REPAIR_PROBE


def test_the_others_wait_also_when_the_probe_was_the_last_of_its_pool_there() -> None:
    left = members(("blue-1", "blue-2", "green-1"), unhealthy_since=ago(3600))
    green = a_pool("green", repair=REPAIR)
    waiting = verdicts(*pools(TRIED), green, *left)
    assert Reason.REPAIR_PROBE not in {v.reason for v in waiting}
    assert about(waiting, "NodeClaim/blue-1").recheck_at == ahead(29 * 60)


def _not_initialized(claim: NodeClaim | Node) -> NodeClaim:
    return a_claim("red-9", stage=REGISTERED, labels=dict(claim.labels), creation_timestamp=ago(50))


@pytest.mark.parametrize("written", ["", "soon", "zone=zone-c red-2 yesterday", "a b c d"])
def test_what_is_no_probe_lets_no_node_of_the_pool_be_one(written: str) -> None:
    probe = read_permit("red", written)
    assert (probe.claim, probe.at) == ("", None)
    assert probe.open_at(NOW)


def test_a_stamp_that_was_written_before_the_outage_is_removed() -> None:
    stamp = {names.TERMINATION_TIMESTAMP: "2026-03-02T11:59:59Z"}
    found = verdicts(*pools(), *a_dead_zone(ago(500), annotations=stamp))
    verdict = about(found, "NodeClaim/red-1")
    assert verdict.reason is Reason.REPAIR_BLOCKED
    assert body_of(verdict)["metadata"]["annotations"] == {names.TERMINATION_TIMESTAMP: None}


def test_a_new_node_that_never_became_ready_there_is_not_terminated_either() -> None:
    late = a_member("red-9", unhealthy_since=ago(1000))
    claim = _not_initialized(late[0])
    node = a_node(
        "node-red-9",
        claim="red-9",
        labels=dict(late[1].labels),
        ready=False,
        creation_timestamp=ago(1000),
    )
    found = verdicts(*pools(), *a_dead_zone(ago(500)), claim, node)
    assert reasons(found)["red-9"] is Reason.REPAIR_BLOCKED
    off = verdicts(*pools(), *a_dead_zone(ago(500)), claim, node, settings=OFF)
    assert reasons(off)["red-9"] is Reason.READINESS_TIMEOUT


def test_a_vetoed_node_is_no_probe() -> None:
    vetoed = a_member("blue-1", unhealthy_since=ago(900), annotations={names.DO_NOT_REPAIR: "true"})
    others = members(("blue-2", "red-1", "red-2"), unhealthy_since=ago(800))
    found = verdicts(*pools(), *vetoed, *others)
    noted = body_of(about(found, "NodePool/blue"))["metadata"]["annotations"]
    assert noted == {names.REPAIR_PROBE: "zone=zone-c blue-2"}


# -- new claims --------------------------------------------------------------------------


def new_claims(*objects: Any, **more: Any) -> list[Verdict]:
    known: dict[str, Any] = {"instance_types": types(a_type()), "repair_statements": STATEMENTS}
    found = evaluated(ProvisionDecider(), a_class(), *objects, **known, **more)
    return [verdict for verdict in found if isinstance(verdict.action, Create)]


#: The zone that is the cheapest otherwise, by its name.
DEAD = [*pools(), *members(("red-1", "red-2", "blue-1"), zone="zone-a", unhealthy_since=ago(600))]
HELD = Outage(
    domain=Domain("zone", "zone-a"), unhealthy=3, recovered=0, total=3, pools=2, since=ago(600)
)


def zones_of(verdict: Verdict) -> dict[str, Any]:
    wanted = body_of(verdict)["spec"]["requirements"]
    found: dict[str, Any] = next(w for w in wanted if w["key"] == names.ZONE)
    return found


def test_a_new_claim_avoids_a_zone_in_outage_and_says_why() -> None:
    (claim,) = new_claims(*DEAD, a_pending_pod())
    assert claim.reason is Reason.NEEDED_FOR_PODS
    assert "small in zone-b" in claim.message
    assert claim.message.endswith(f"; avoiding zone-a: {HELD}")
    assert zones_of(claim) == {"key": names.ZONE, "operator": "NotIn", "values": ["zone-a"]}


def test_a_pod_that_must_be_there_gets_its_node_there_and_it_says_so() -> None:
    (claim,) = new_claims(*DEAD, a_pending_pod(spec={"node_selector": {names.ZONE: "zone-a"}}))
    assert claim.message.endswith(f"; only zone-a fits the pods, although {HELD}")
    assert zones_of(claim)["values"] == ["zone-a"]


def test_without_the_breaker_nothing_is_avoided() -> None:
    (claim,) = new_claims(*DEAD, a_pending_pod(), settings=OFF)
    assert "small in zone-a" in claim.message
    assert claim.message.endswith("/h")


# -- a probe that has left ---------------------------------------------------------------

GREEN = a_pool("green", repair=REPAIR)
#: Chosen a minute ago; the zone has been dead for much longer.
LEFT = "zone=zone-c red-1 2026-03-02T11:59:00Z"


def left_in_the_zone() -> list[Any]:
    """Two of three: the third was the probe."""
    return [*pools(LEFT), GREEN, *members(("blue-1", "green-1"), unhealthy_since=ago(3600))]


def a_newcomer(name: str = "red-9", *, zone: str = "zone-c", made: float = 50) -> list[Any]:
    """Made since; it has not been Ready."""
    labels = {names.NODEPOOL: name.split("-")[0], names.ZONE: zone}
    claim = a_claim(name, stage=REGISTERED, labels=labels, creation_timestamp=ago(made))
    node = a_node(
        f"node-{name}", claim=name, labels=labels, ready=False, creation_timestamp=ago(made)
    )
    return [claim, node]


HELD_BACK = dict.fromkeys(("blue-1", "green-1"), Reason.REPAIR_BLOCKED)


def unhealthy_ones(found: list[Verdict]) -> dict[str, Reason]:
    return {name: reason for name, reason in reasons(found).items() if name in HELD_BACK}


def test_the_departure_of_the_probe_releases_nothing() -> None:
    found = verdicts(*left_in_the_zone())
    assert unhealthy_ones(found) == HELD_BACK
    blocked = about(found, "NodeClaim/blue-1")
    outage = fact_of(blocked, Outage)
    assert (outage.unhealthy, outage.total, outage.pools) == (2, 2, 2)
    assert outage.left == ("red-1",)
    assert blocked.recheck_at == ahead(29 * 60), "half an hour after it was chosen"


def test_nor_does_a_replacement_that_boots_however_many_they_are() -> None:
    """Else three of four would be less than half once four of them have joined."""
    booting = [item for i in range(4) for item in a_newcomer(f"red-{i + 5}")]
    assert unhealthy_ones(verdicts(*left_in_the_zone(), *booting)) == HELD_BACK
    others = [item for i in range(4) for item in a_newcomer(f"blue-{i + 5}")]
    assert unhealthy_ones(verdicts(*left_in_the_zone(), *others)) != HELD_BACK, (
        "those are no replacement"
    )


def test_once_its_replacement_is_initialized_the_outage_ends() -> None:
    up = a_member("red-9", creation_timestamp=ago(50))
    assert unhealthy_ones(verdicts(*left_in_the_zone(), *up)) == dict.fromkeys(
        HELD_BACK, Reason.REPAIRING
    )


def test_without_a_replacement_the_outage_ends_half_an_hour_later() -> None:
    at = ahead(29 * 60)
    before = verdicts(*left_in_the_zone(), now=at - timedelta(seconds=1))
    assert unhealthy_ones(before) == HELD_BACK
    then = verdicts(*left_in_the_zone(), now=at)
    assert unhealthy_ones(then) == dict.fromkeys(HELD_BACK, Reason.REPAIRING)


def test_a_replacement_that_never_becomes_ready_is_one_more_unhealthy_node() -> None:
    then = verdicts(*left_in_the_zone(), *a_newcomer(), now=ahead(29 * 60))
    assert unhealthy_ones(then) == HELD_BACK, "three of three"
    outage = fact_of(about(then, "NodeClaim/blue-1"), Outage)
    assert (outage.unhealthy, outage.total) == (3, 3)


def test_where_enough_are_left_the_next_probe_comes_then() -> None:
    more = members(("blue-2", "green-2"), unhealthy_since=ago(3600))
    then = verdicts(*left_in_the_zone(), *more, now=ahead(29 * 60))
    assert set(unhealthy_ones(then).values()) == {Reason.REPAIR_BLOCKED}
    assert about(then, "NodePool/blue").reason is Reason.REPAIR_PROBE


def test_a_claim_of_the_same_name_that_was_made_since_is_not_the_probe() -> None:
    again = a_member("red-1", creation_timestamp=ago(50))
    released = verdicts(*left_in_the_zone(), *again)
    assert unhealthy_ones(released) == dict.fromkeys(HELD_BACK, Reason.REPAIRING)
    booting = verdicts(*left_in_the_zone(), *a_newcomer("red-1"))
    assert unhealthy_ones(booting) == HELD_BACK


def test_a_probe_whose_node_is_gone_before_its_claim_counts_without_a_gap() -> None:
    (claim, _) = a_member("red-1", deletion_timestamp=ago(30))
    assert unhealthy_ones(verdicts(*left_in_the_zone(), claim)) == HELD_BACK


def test_a_probe_that_recovers_and_stays_is_not_counted_as_if_it_had_left() -> None:
    healthy = a_member("red-1", healthy_since=ago(6500))
    assert unhealthy_ones(verdicts(*left_in_the_zone(), *healthy)) == dict.fromkeys(
        HELD_BACK, Reason.REPAIRING
    )


def test_a_domain_that_recovers_by_itself_is_not_in_outage_for_the_probe_alone() -> None:
    back = members(("blue-1", "green-1"), healthy_since=ago(601))
    assert affected(*pools(LEFT), GREEN, *back) == []
    one_back = [
        *a_member("blue-1", healthy_since=ago(30)),
        *a_member("green-1", unhealthy_since=ago(3600)),
    ]
    assert affected(*pools(LEFT), GREEN, *one_back) == ["zone=zone-c"], "it settles, as ever"


@pytest.mark.parametrize("written", ["zone=zone-c red-1 yesterday", "zone=zone-d red-1 LATELY", ""])
def test_a_mark_that_cannot_be_read_or_is_of_another_domain_counts_nothing(written: str) -> None:
    mark = written.replace("LATELY", "2026-03-02T11:59:00Z")
    unhealthy = members(("blue-1", "green-1"), unhealthy_since=ago(3600))
    assert affected(*pools(mark), GREEN, *unhealthy) == []


def test_new_claims_keep_out_of_the_zone_until_then() -> None:
    mark = LEFT.replace("zone-c", "zone-a")
    unhealthy = members(("blue-1", "green-1"), zone="zone-a", unhealthy_since=ago(3600))
    (claim,) = new_claims(*pools(mark), GREEN, *unhealthy, a_pending_pod())
    assert fact_of(claim, ZoneAvoided).zone == "zone-a"
    later = new_claims(*pools(mark), GREEN, *unhealthy, a_pending_pod(), now=ahead(29 * 60))
    assert later
    assert not any(isinstance(fact, ZoneAvoided) for one in later for fact in one.facts)
