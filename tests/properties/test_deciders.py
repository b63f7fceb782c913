"""Every decider: one verdict per subject, order-independent, honest about when to look again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.view import ClaimView
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Quoted
from tenure.core.policy.deciders import UNMOVED, decide_all, deciders
from tenure.core.reasons import Reason
from tenure.model.api.meta import ApiObject
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.properties.clusters import Cluster, clusters
from tests.properties.deciderchecks import (
    BESIDE,
    EVERY,
    SETTINGS,
    check_honest_recheck,
    check_one_verdict_per_subject,
    check_order_does_not_matter,
)
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import reached, tried
from tests.snapshots import RESOURCE_OF, governed_tables, snapshot_with

THOROUGH = tried(100)
LATER = [timedelta(seconds=seconds) for seconds in (1, 5, 10, 21, 120)]


def snapshot_of(cluster: Cluster, objects: Iterable[ApiObject] | None = None) -> Snapshot:
    return snapshot_with(
        *(cluster.objects if objects is None else objects), observations=cluster.observations
    )


@THOROUGH
@given(cluster=clusters())
def test_a_decider_gives_one_verdict_per_subject(cluster: Cluster) -> None:
    for decider in EVERY:
        check_one_verdict_per_subject(decider, snapshot_of(cluster), NOW)


@THOROUGH
@given(cluster=clusters(), seed=st.integers(0, 2**16))
def test_the_order_in_which_the_api_lists_objects_does_not_matter(
    cluster: Cluster, seed: int
) -> None:
    shuffled = list(cluster.objects)
    random.Random(seed).shuffle(shuffled)
    for decider in EVERY:
        check_order_does_not_matter(
            decider, snapshot_of(cluster), snapshot_of(cluster, shuffled), NOW
        )


@tried(300)
@given(cluster=clusters())
def test_no_verdict_changes_before_it_said_it_might(cluster: Cluster) -> None:
    for decider in EVERY:
        for later in LATER:
            check_honest_recheck(decider, snapshot_of(cluster), NOW, later)


@tried(100)
@given(cluster=clusters())
def test_where_karpenter_is_in_charge_of_every_class_that_holds_too(cluster: Cluster) -> None:
    tables = governed_tables()
    for item in cluster.objects:
        tables.put(RESOURCE_OF[type(item)], item)
    snapshot = Snapshot(tables, cluster.observations, ours=EVERY_CLASS)
    gates = msgspec.structs.replace(BESIDE, karpenter_feature_gates="NodeRepair=false")
    for decider in deciders(gates):
        check_one_verdict_per_subject(decider, snapshot, NOW)
        for later in LATER:
            check_honest_recheck(decider, snapshot, NOW, later)


@pytest.mark.parametrize("settings", [SETTINGS, BESIDE], ids=["alone", "beside Karpenter"])
@THOROUGH
@given(before=clusters(), after=clusters(), later=st.sampled_from(LATER))
def test_evaluating_only_what_changed_equals_evaluating_everything(
    settings: Settings, before: Cluster, after: Cluster, later: timedelta
) -> None:
    ours = EVERY_CLASS if settings.beside_karpenter else snapshot_of(before).ours
    tables = governed_tables(beside=settings.beside_karpenter)
    evaluator = Evaluator(deciders(settings), settings, unmoved=UNMOVED)
    first = [tables.put(RESOURCE_OF[type(item)], item) for item in before.objects]
    evaluator.evaluate(Snapshot(tables, before.observations, ours=ours), first, (), NOW)

    kept = {(RESOURCE_OF[type(item)], item.key) for item in after.objects}
    changes = [tables.put(RESOURCE_OF[type(item)], item) for item in after.objects]
    changes += [
        tables.remove(resource, key)
        for resource in list(tables.objects)
        for key in list(tables.table(resource))
        if (resource, key) not in kept
    ]
    changes += tables.take_followers()
    # Our memory stays what it was: its changes are announced, not compared.
    now = Snapshot(tables, before.observations, ours=ours)
    evaluator.evaluate(now, changes, (), NOW + later)

    full = [v for d in deciders(settings) for v in decide_all(d, now, settings, NOW + later)]
    assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))


@THOROUGH
@given(cluster=clusters(), after=clusters())
def test_what_a_concern_says_does_not_move_it_touches_nothing_of_it(
    cluster: Cluster, after: Cluster
) -> None:
    tables = governed_tables()
    for item in cluster.objects:
        tables.put(RESOURCE_OF[type(item)], item)
    changes = [tables.put(RESOURCE_OF[type(item)], item) for item in after.objects]
    changes += tables.take_followers()
    snapshot = Snapshot(tables, cluster.observations, ours=snapshot_of(cluster).ours)
    for decider in EVERY:
        for change in changes:
            if decider.concern in UNMOVED.get(change.resource, ()):
                assert not list(decider.touched(change, snapshot)), f"{decider.concern}: {change}"


class Dishonest(LifecycleDecider):
    """Says nothing will change, and changes its mind a second later."""

    def decide(self, view: ClaimView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return (_verdict(view, f"it is {now:%H:%M:%S}"),)


class Talkative(LifecycleDecider):
    """Judges a claim twice."""

    def decide(self, view: ClaimView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return (_verdict(view, "once"), _verdict(view, "twice"))


class Impressionable(LifecycleDecider):
    """Answers in the order in which it was told."""

    def view(self, snapshot: Snapshot, key: str) -> ClaimView | None:
        first = next(iter(snapshot.claims))
        return super().view(snapshot, first)


def _verdict(view: ClaimView, message: str) -> Verdict:
    subject = Subject.of("NodeClaim", view.claim)
    return Verdict(
        concern=Concern.LIFECYCLE,
        subject=subject,
        reason=Reason.IN_SERVICE,
        facts=(Quoted(message),),
    )


def test_a_dishonest_decider_is_caught() -> None:
    snapshot = _two_claims()
    with pytest.raises(AssertionError, match="changed by itself"):
        check_honest_recheck(Dishonest(), snapshot, NOW, timedelta(seconds=1))


def test_a_decider_that_evaluates_twice_is_caught() -> None:
    with pytest.raises(AssertionError, match="evaluated twice"):
        check_one_verdict_per_subject(Talkative(), _two_claims(), NOW)


def test_a_decider_that_depends_on_order_is_caught() -> None:
    with pytest.raises(AssertionError, match="order"):
        check_order_does_not_matter(
            Impressionable(), _two_claims(), _two_claims(backwards=True), NOW
        )


def _two_claims(*, backwards: bool = False) -> Snapshot:
    from tenure.model.api.meta import ObjectMeta
    from tenure.model.api.nodeclaim import NodeClaim

    claims = [NodeClaim(metadata=ObjectMeta(name=name, uid=name)) for name in ("a", "b")]
    return snapshot_with(*(reversed(claims) if backwards else claims))


def test_the_random_clusters_reach_every_verdict_that_waits_for_an_instant() -> None:
    """Otherwise the properties above would hold because nothing was tried."""
    wanted = {
        Reason.LAUNCH_FAILED,
        Reason.SETTLING,
        Reason.DRAINING,
        Reason.INSTANCE_TERMINATING,
        Reason.POD_TERMINATING,
        Reason.PROTECTED,
        Reason.EVICTION_REFUSED,
        Reason.EVICTION_WAITS,
        Reason.BATCHING,
        Reason.FAILED_SCHEDULING,
        Reason.STAYS_FOR_NOW,
        Reason.ORPHAN_SUSPECTED,
        Reason.DISRUPTION_WATCHED,
        Reason.REBOOT_REQUESTED,
        Reason.REBOOT_ISSUED,
    }

    def waiting(cluster: Cluster) -> set[Reason]:
        snapshot = snapshot_of(cluster)
        found = [v for d in deciders() for v in decide_all(d, snapshot, SETTINGS, NOW)]
        return {verdict.reason for verdict in found if verdict.recheck_at}

    assert wanted - reached(clusters(), waiting, wanted, within=3000) == set()


def test_the_random_clusters_reach_every_verdict_on_levers() -> None:
    wanted = {
        Reason.LEVER_OFF,
        Reason.LEVER_SET,
        Reason.LEVER_ON,
        Reason.LEVER_REMOVED,
        Reason.LEVER_NOT_OURS,
        Reason.LEVER_LEFT_TO_USER,
        Reason.LEVER_IMPOSSIBLE,
        Reason.BUDGETS_AS_LEVERS,
        Reason.STARTS_CURRENT,
        Reason.STARTS_RECORDED,
    }

    def found(cluster: Cluster) -> set[Reason]:
        snapshot, settings = snapshot_of(cluster), BESIDE
        verdicts = [v for d in deciders(settings) for v in decide_all(d, snapshot, settings, NOW)]
        return {verdict.reason for verdict in verdicts}

    assert wanted - reached(clusters(), found, wanted, within=3000) == set()
