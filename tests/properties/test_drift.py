"""Drift, an hour ahead, and with other answers of the provider: what is evaluated again suffices."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.decision import Subject
from tenure.core.drift.decider import TYPE_GONE_AFTER, DriftDecider
from tenure.core.policy.deciders import UNMOVED, decide_all
from tenure.core.reasons import Reason
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.observations import DriftAnswer
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.properties.clusters import Cluster, clusters
from tests.properties.deciderchecks import SETTINGS, check_honest_recheck
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import reached, tried
from tests.snapshots import RESOURCE_OF, SERVED, snapshot_with

DECIDER = DriftDecider()
#: A type that is gone counts an hour after the creation of its claim.
LATER = st.sampled_from([timedelta(seconds=9), TYPE_GONE_AFTER, 2 * TYPE_GONE_AFTER])


@tried(60)
@given(cluster=clusters(), later=LATER)
def test_no_verdict_changes_before_it_said_it_might(cluster: Cluster, later: timedelta) -> None:
    snapshot = snapshot_with(*cluster.objects, observations=cluster.observations)
    check_honest_recheck(DECIDER, snapshot, NOW, later)


@tried(60)
@given(before=clusters(), after=clusters(), later=LATER)
def test_evaluating_what_was_announced_equals_evaluating_everything(
    before: Cluster, after: Cluster, later: timedelta
) -> None:
    """The objects stay; what the provider says of them, and which types it lists, is another."""
    tables = Tables()
    changes = [tables.put(RESOURCE_OF[type(item)], item) for item in before.objects]
    evaluator = Evaluator((DECIDER,), SETTINGS, unmoved=UNMOVED)
    evaluator.evaluate(Snapshot(tables, before.observations, ours=SERVED), changes, (), NOW)

    announced = [
        Subject("NodeClass", "KWOKNodeClass/default"),
        *(Subject.of("NodeClaim", one) for one in before.objects if isinstance(one, NodeClaim)),
    ]
    now = Snapshot(tables, after.observations, ours=SERVED)
    evaluator.evaluate(now, (), announced, NOW + later)
    full = decide_all(DECIDER, now, SETTINGS, NOW + later)
    assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))


def test_the_examples_reach_every_reason() -> None:
    def reasons(cluster: Cluster) -> set[Reason]:
        snapshot = snapshot_with(*cluster.objects, observations=cluster.observations)
        return {verdict.reason for verdict in decide_all(DECIDER, snapshot, SETTINGS, NOW)}

    wanted = {Reason.DRIFTED, Reason.NOT_DRIFTED, Reason.DRIFT_UNKNOWN, Reason.HASH_RENEWED}
    examples = clusters() | clusters().map(with_a_silent_provider)
    assert reached(examples, reasons, wanted, within=4000) == wanted


def with_a_silent_provider(cluster: Cluster) -> Cluster:
    """Otherwise it takes two thousand clusters until it is silent of a claim that has not drifted."""
    claims = [one for one in cluster.objects if isinstance(one, NodeClaim)]
    silent = {claim.uid: DriftAnswer(silent_since=NOW, failure="no answer") for claim in claims}
    observed = msgspec.structs.replace(cluster.observations, drifts=silent)
    return msgspec.structs.replace(cluster, observations=observed)
