"""Beside Karpenter the guard lets a claim end only for what a user has asked for, and only as ours."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Delete, Ground, Patch
from tenure.core.marks.repaired import repair_mark
from tenure.core.marks.stamp import stamp_claim, take_off_stamp
from tenure.core.marks.timeout import note_found, note_lost, note_ready
from tenure.core.writes import delete_claim, patch
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.resource import DEPLOYMENTS, NODE_POOL_POLICIES
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.providers.absent import NO_PROVIDER
from tenure.runtime.executor.guard import veto
from tests.core.beside.scenes import karpenter
from tests.core.beside.test_repair import (
    FIVE_MINUTES,
    FORCEFUL,
    KARPENTER,
    POOL,
    REPAIR,
    STAMPED,
    booting,
    unhealthy,
)
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    NOW,
    REGISTERED,
    a_claim,
    a_leaving_claim,
    a_node,
    a_policy,
    a_pool,
    ago,
    ahead,
)
from tests.safety.test_beside import status
from tests.snapshots import snapshot_with

SETTINGS = Settings(beside_karpenter=True)
LOST = {names.NODE_LOST_AT: format_time(ago(301))}


def said(action: Any, *objects: Any, settings: Settings = SETTINGS, **more: Any) -> str:
    known = Observations(repair_statements=NO_PROVIDER.repair_statements)
    snapshot = snapshot_with(*objects, observations=known, ours=EVERY_CLASS, **more)
    return veto(action, snapshot, NOW, settings) or ""


def stamps(claim: Any, ground: Ground = Ground.TIME_OUT, **marks: str) -> Patch:
    return stamp_claim(claim, ground, beside=repair_mark("NodeRepair", beside=True) | marks)


# -- what is allowed -------------------------------------------------------------------


def test_a_time_out_is_stamped_and_then_deleted() -> None:
    claim, node = booting()
    assert not said(stamps(claim), claim, node, POOL, FIVE_MINUTES, KARPENTER)
    claim, node = booting(annotations=STAMPED)
    action = delete_claim(claim, Ground.TIME_OUT)
    assert not said(action, claim, node, POOL, FIVE_MINUTES, KARPENTER)


def test_a_forceful_repair_is_stamped_and_then_deleted() -> None:
    claim, node = unhealthy()
    action = stamps(claim, Ground.REPAIR_FORCED)
    assert not said(action, claim, node, POOL, REPAIR, KARPENTER)
    claim, node = unhealthy(annotations=STAMPED)
    deletes = delete_claim(claim, Ground.REPAIR_FORCED)
    assert not said(deletes, claim, node, POOL, REPAIR, KARPENTER)


def test_a_lost_node_is_noted_stamped_and_deleted() -> None:
    claim = a_claim(ref=FOREIGN)
    noted = note_lost(claim, "", beside=True)
    assert not said(noted, claim, POOL, FIVE_MINUTES, KARPENTER)
    claim = a_claim(ref=FOREIGN, annotations={**LOST, **STAMPED})
    assert not said(stamps(claim, Ground.NODE_LOST), claim, POOL, FIVE_MINUTES, KARPENTER)
    deletes = delete_claim(claim, Ground.NODE_LOST)
    assert not said(deletes, claim, POOL, FIVE_MINUTES, KARPENTER)


def test_a_claim_that_is_being_deleted_may_get_an_earlier_deadline() -> None:
    theirs = {names.TERMINATION_TIMESTAMP: format_time(ahead(900))}
    claim, node = a_leaving_claim(ref=FOREIGN, annotations=theirs), unhealthy()[1]
    graceful = a_policy(repair=FORCEFUL | {"terminationMode": "Graceful"})
    assert not said(stamps(claim, Ground.REPAIR), claim, node, POOL, graceful, KARPENTER)
    assert not said(stamps(claim, Ground.REPAIR_FORCED), claim, node, POOL, REPAIR, KARPENTER)


def test_a_deadline_of_ours_is_removed_with_its_marks() -> None:
    claim = a_claim(ref=FOREIGN, annotations=STAMPED)
    assert not said(take_off_stamp(claim), claim, a_node(), POOL, KARPENTER)
    part = patch(claim, {"annotations": {names.TERMINATION_TIMESTAMP: None}})
    assert "would stay without" in said(part, claim, a_node(), POOL, KARPENTER)


def test_memory_is_written_while_it_is_true() -> None:
    claim = a_claim(stage=REGISTERED, ref=FOREIGN)
    assert not said(note_ready(claim), claim, a_node(), POOL, FIVE_MINUTES, KARPENTER)
    unready = a_node(ready=False)
    assert "is not Ready" in said(note_ready(claim), claim, unready, POOL, KARPENTER)
    by_hand = patch(claim, {"annotations": {names.READY_ONCE_AT: "2026-01-01T00:00:00Z"}})
    assert "is not Ready" in said(by_hand, claim, a_node(), POOL, KARPENTER), (
        "not the instant of the write"
    )
    back = a_claim(ref=FOREIGN, annotations=LOST)
    assert not said(note_found(back, beside=True), back, a_node(), POOL, KARPENTER)
    assert "lost or back" in said(note_found(back, beside=True), back, POOL, KARPENTER)
    lost = note_lost(claim, "", beside=True)
    assert "lost or back" in said(lost, claim, a_node(), POOL, KARPENTER)


def test_the_probe_of_a_pool_and_the_status_of_a_policy_are_ours() -> None:
    def noted(value: str, key: str = names.PROBE_BESIDE, dated: str = names.PROBE_BESIDE) -> Patch:
        action = patch(POOL, {"annotations": {key: value}})
        return msgspec.structs.replace(action, dated=dated)

    claim = a_claim(ref=FOREIGN)
    assert not said(noted("zone=a a"), POOL, claim, KARPENTER)
    for wrong in (
        noted("zone=a b"),
        noted("zone=a a", dated=""),
        noted("zone=a a", names.REPAIR_PROBE, names.REPAIR_PROBE),
    ):
        assert "nothing of NodePool general is ours" in said(wrong, POOL, claim, KARPENTER)
    assert not said(status(NODE_POOL_POLICIES, "usual"), REPAIR)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("ground", sorted(set(Ground) - {Ground.TIME_OUT}))
def test_a_claim_is_not_deleted_on_another_ground(ground: Ground) -> None:
    claim, node = booting(annotations=STAMPED)
    objects = (claim, node, POOL, FIVE_MINUTES, KARPENTER)
    assert said(delete_claim(claim, ground), *objects)
    assert said(stamps(claim, ground), *objects)


def test_a_claim_is_not_deleted_before_it_carries_our_deadline_and_that_is_over() -> None:
    theirs = {names.TERMINATION_TIMESTAMP: format_time(ago(1))}
    coming = {**STAMPED, names.TERMINATION_TIMESTAMP: format_time(ahead(1))}
    for written in ({}, theirs, coming, {**STAMPED, names.TERMINATION_BY: "a user"}):
        claim, node = booting(annotations=written)
        action = delete_claim(claim, Ground.TIME_OUT)
        why = said(action, claim, node, POOL, FIVE_MINUTES, KARPENTER)
        assert "is not deleted before it carries our" in why


def test_a_claim_is_not_deleted_on_any_version() -> None:
    claim, node = booting(annotations=STAMPED)
    action = delete_claim(claim, Ground.TIME_OUT)
    objects = (claim, node, POOL, FIVE_MINUTES, KARPENTER)
    assert "on a known version" in said(
        msgspec.structs.replace(action, resource_version=""), *objects
    )
    assert "on a known version" in said(msgspec.structs.replace(action, uid="another"), *objects)


def test_a_deadline_stands_with_our_marks_and_never_over_another_programs() -> None:
    claim, node = booting()
    objects = (claim, node, POOL, FIVE_MINUTES, KARPENTER)
    bare = stamp_claim(claim, Ground.TIME_OUT)
    assert "without our marks" in said(bare, *objects)
    full = stamp_claim(claim, Ground.TIME_OUT, beside=repair_mark("ReadinessTimeout"))
    assert "the deadline of a command of ours" in said(full, *objects)
    theirs, node = booting(annotations={names.TERMINATION_TIMESTAMP: format_time(ahead(60))})
    for action in (stamps(theirs), take_off_stamp(theirs)):
        assert "is not ours to write" in said(action, theirs, node, POOL, FIVE_MINUTES, KARPENTER)


UNASKED = [
    pytest.param((POOL, KARPENTER), "no user has written", id="no TTL"),
    pytest.param((POOL, KARPENTER, a_policy(readinessTTL="1h")), "it times out at", id="not yet"),
    pytest.param(
        (POOL, KARPENTER, a_policy("x", readinessTTL="1m"), a_policy("y", readinessTTL="1m")),
        "no user has written",
        id="refused policies",
    ),
    pytest.param((POOL, FIVE_MINUTES), "not known which Karpenter", id="no Karpenter"),
    pytest.param(
        (POOL, FIVE_MINUTES, karpenter(image="karpenter:1.16.0")),
        "not known which Karpenter",
        id="unsupported",
    ),
]


@pytest.mark.parametrize(("objects", "why"), UNASKED)
def test_a_time_out_that_no_user_asks_for_is_refused(objects: tuple[Any, ...], why: str) -> None:
    claim, node = booting(1200)
    assert why in said(stamps(claim), claim, node, *objects)
    stamped, node = booting(1200, annotations=STAMPED)
    deletes = delete_claim(stamped, Ground.TIME_OUT)
    assert why in said(deletes, stamped, node, *objects)


def test_an_initialized_node_does_not_time_out() -> None:
    claim = a_claim(ref=FOREIGN, annotations=STAMPED)
    action = delete_claim(claim, Ground.TIME_OUT)
    assert "it is Initialized" in said(action, claim, a_node(), POOL, FIVE_MINUTES, KARPENTER)


ON = karpenter(args=("--feature-gates", "NodeRepair=true"))
HIDDEN = msgspec.json.decode(
    msgspec.json.encode(karpenter(env={"FEATURE_GATES": ""})).replace(
        b'"name":"FEATURE_GATES"', b'"name":"FEATURE_GATES","valueFrom":{"configMapKeyRef":{}}'
    ),
    type=type(KARPENTER),
)
NOT_OURS = [
    pytest.param((POOL, KARPENTER), "nothing asks for the repair", id="no block"),
    pytest.param(
        (POOL, KARPENTER, a_policy(repair=FORCEFUL | {"terminationMode": "Graceful"})),
        "by force",
        id="graceful",
    ),
    pytest.param((POOL, REPAIR, ON), "is Karpenter's (NodeRepair)", id="NodeRepair on"),
    pytest.param((POOL, REPAIR, HIDDEN), "is Karpenter's (NodeRepair)", id="gates not known"),
    pytest.param((POOL, REPAIR), "not known which Karpenter", id="no Karpenter"),
    pytest.param(
        (POOL, KARPENTER, a_policy(repair=FORCEFUL | {"maxUnhealthy": "0"})),
        "is repaired above 0",
        id="breaker",
    ),
    pytest.param(
        (POOL, KARPENTER, a_policy(repair=FORCEFUL | {"defaultTolerationDuration": "1h"})),
        "is tolerated until",
        id="tolerated",
    ),
]


@pytest.mark.parametrize(("objects", "why"), NOT_OURS)
def test_a_repair_that_is_not_ours_or_not_due_is_refused(
    objects: tuple[Any, ...], why: str
) -> None:
    claim, node = unhealthy()
    assert why in said(stamps(claim, Ground.REPAIR_FORCED), claim, node, *objects)
    stamped, node = unhealthy(annotations=STAMPED)
    deletes = delete_claim(stamped, Ground.REPAIR_FORCED)
    assert why in said(deletes, stamped, node, *objects)


def test_a_version_that_is_given_says_nothing_of_the_gates() -> None:
    claim, node = unhealthy()
    given = Settings(beside_karpenter=True, karpenter_version="1.15")
    action = stamps(claim, Ground.REPAIR_FORCED)
    assert "NodeRepair" in said(action, claim, node, POOL, REPAIR, settings=given)
    both = msgspec.structs.replace(given, karpenter_feature_gates="NodeRepair=false")
    assert not said(action, claim, node, POOL, REPAIR, settings=both)


def test_deployments_that_cannot_be_listed_end_nothing() -> None:
    claim, node = booting()
    why = said(stamps(claim), claim, node, POOL, FIVE_MINUTES, unlisted={DEPLOYMENTS: "403"})
    assert "cannot be listed" in why


def test_a_delete_of_a_node_or_pool_is_not_ours() -> None:
    for resource in (a_node(), a_pool()):
        action = Delete(
            resource=patch(resource, {}).resource,
            name=resource.name,
            uid=resource.uid,
            resource_version="7",
        )
        refused = said(action, a_node(), a_claim(ref=FOREIGN), POOL, KARPENTER)
        assert "beside Karpenter Tenure sets annotations" in refused


def test_when_a_duration_began_is_not_noted_before_the_node_is_registered() -> None:
    launched = a_claim(stage=LAUNCHED, ref=FOREIGN)
    since = {f"{names.DO_NOT_DISRUPT}-since": "2h"}
    action = patch(launched, {"annotations": since})
    assert "before its Node is registered" in said(action, launched, POOL, KARPENTER)
    removes = patch(launched, {"annotations": dict.fromkeys(since)})
    assert not said(removes, launched, POOL, KARPENTER)
