"""Notices, with other announcements and a little later: what is evaluated again suffices."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.decider import AnyDecider
from tenure.core.decision import Subject
from tenure.core.notice.interruption import USUAL_GRACE, InterruptionDecider
from tenure.core.notice.recommendation import RecommendationDecider
from tenure.core.policy.deciders import UNMOVED, decide_all
from tenure.core.reasons import Reason
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.properties.clusters import Cluster, clusters
from tests.properties.deciderchecks import SETTINGS, check_honest_recheck
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import reached, tried
from tests.snapshots import RESOURCE_OF, SERVED, snapshot_with

DECIDERS: tuple[AnyDecider, ...] = (InterruptionDecider(), RecommendationDecider())
LATER = st.sampled_from([timedelta(seconds=2), timedelta(seconds=30), 2 * USUAL_GRACE])


@pytest.mark.parametrize("decider", DECIDERS, ids=lambda one: one.concern)
@tried(60)
@given(cluster=clusters(), later=LATER)
def test_no_verdict_changes_before_it_said_it_might(
    decider: AnyDecider, cluster: Cluster, later: timedelta
) -> None:
    snapshot = snapshot_with(*cluster.objects, observations=cluster.observations)
    check_honest_recheck(decider, snapshot, NOW, later)


@pytest.mark.parametrize("decider", DECIDERS, ids=lambda one: one.concern)
@tried(60)
@given(before=clusters(), after=clusters(), later=LATER)
def test_evaluating_what_was_announced_equals_evaluating_everything(
    decider: AnyDecider, before: Cluster, after: Cluster, later: timedelta
) -> None:
    """The objects stay; what the cloud announced is another."""
    tables = Tables()
    changes = [tables.put(RESOURCE_OF[type(item)], item) for item in before.objects]
    evaluator = Evaluator((decider,), SETTINGS, unmoved=UNMOVED)
    evaluator.evaluate(Snapshot(tables, before.observations, ours=SERVED), changes, (), NOW)
    announced = [
        Subject.of("NodeClaim", one) for one in before.objects if isinstance(one, NodeClaim)
    ]
    now = Snapshot(tables, after.observations, ours=SERVED)
    evaluator.evaluate(now, (), announced, NOW + later)
    full = decide_all(decider, now, SETTINGS, NOW + later)
    assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))


def test_the_examples_reach_every_reason() -> None:
    def reasons(cluster: Cluster) -> set[Reason]:
        snapshot = snapshot_with(*cluster.objects, observations=cluster.observations)
        return {
            verdict.reason
            for decider in DECIDERS
            for verdict in decide_all(decider, snapshot, SETTINGS, NOW)
        }

    wanted = {Reason.INTERRUPTED, Reason.INTERRUPTION_LATE, Reason.REBALANCE_RECOMMENDED}
    assert reached(clusters(), reasons, wanted, within=1000) == wanted
