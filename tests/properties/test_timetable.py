"""The timetable agrees with the verdicts: it foretells what they do, to the instant."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from hypothesis import given

from tenure.core.decision import DeletePod, Evict, Verdict
from tenure.core.marks.deadline import deadline_of
from tenure.core.policy.deciders import decide_all
from tenure.core.terminate.drain import DrainDecider
from tenure.core.terminate.podtimes import PodTimes
from tenure.core.terminate.schedule import Timetable, as_if_deleted, timetable
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tests.properties.clusters import Cluster, clusters
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import tried
from tests.snapshots import snapshot_with

THOROUGH = tried(60)
SETTINGS = Settings()
MOMENT = timedelta(microseconds=1)


def snapshot_of(cluster: Cluster, objects: tuple[ApiObject, ...] | None = None) -> Snapshot:
    shown = cluster.objects if objects is None else objects
    return snapshot_with(*shown, observations=cluster.observations)


def with_claims_along(cluster: Cluster) -> Snapshot:
    """A Node that is being deleted has taken its claim along, as it does within a turn."""
    snapshot = snapshot_of(cluster)
    taken = {
        claim.name
        for node in snapshot.leaving_nodes().values()
        if (claim := snapshot.claim_of(node)) is not None
    }
    return snapshot_of(
        cluster,
        tuple(
            as_if_deleted(item, NOW) if isinstance(item, NodeClaim) and item.name in taken else item
            for item in cluster.objects
        ),
    )


def drained(snapshot: Snapshot, now: datetime) -> dict[str, Verdict]:
    """What is said of each pod of a leaving node."""
    verdicts = decide_all(DrainDecider(), snapshot, SETTINGS, now)
    return {f"{one.subject.namespace}/{one.subject.name}": one for one in verdicts}


def tables(snapshot: Snapshot, now: datetime) -> list[Timetable]:
    return [timetable(node, snapshot, SETTINGS, now) for node in snapshot.nodes.values()]


@THOROUGH
@given(cluster=clusters())
def test_a_pod_is_forced_when_the_timetable_says_and_not_before(cluster: Cluster) -> None:
    snapshot = with_claims_along(cluster)
    evaluated = drained(snapshot, NOW)
    for table in tables(snapshot, NOW):
        for row in table.pods:
            if row.forced_at is None or row.terminating or row.pod not in evaluated:
                continue
            at = max(NOW, row.forced_at)
            assert isinstance(drained(snapshot, at)[row.pod].action, DeletePod)
            if row.forced_at > NOW:
                before = drained(snapshot, row.forced_at - MOMENT)[row.pod]
                assert not isinstance(before.action, DeletePod)


@THOROUGH
@given(cluster=clusters())
def test_no_pod_is_evicted_before_the_timetable_says(cluster: Cluster) -> None:
    snapshot = with_claims_along(cluster)
    rows = {row.pod: row for table in tables(snapshot, NOW) for row in table.pods}
    for seconds in (0, 1, 5, 10, 21, 120, 700):
        now = NOW + timedelta(seconds=seconds)
        for pod, verdict in drained(snapshot, now).items():
            if isinstance(verdict.action, Evict):
                asked = rows[pod].asked_at
                assert asked is not None, verdict
                assert asked <= now, verdict


@THOROUGH
@given(cluster=clusters())
def test_what_is_foretold_is_what_comes(cluster: Cluster) -> None:
    """The timetable of a node that stays is the one it has when it is deleted in that moment."""
    snapshot = snapshot_of(cluster)
    deleted = snapshot_of(
        cluster,
        tuple(
            as_if_deleted(item, NOW)
            if isinstance(item, Node)
            else as_if_deleted(item, NOW)
            if isinstance(item, NodeClaim)
            else item
            for item in cluster.objects
        ),
    )
    for before, after in zip(tables(snapshot, NOW), tables(deleted, NOW), strict=True):
        assert msgspec.structs.replace(before, leaving=True) == after


@THOROUGH
@given(cluster=clusters())
def test_every_row_is_consistent(cluster: Cluster) -> None:
    snapshot = snapshot_of(cluster)
    for table in tables(snapshot, NOW):
        _check(table, snapshot)


def _check(table: Timetable, snapshot: Snapshot) -> None:
    node = snapshot.nodes[table.node]
    named = [row.pod for row in table.pods] + [one.pod for one in table.bystanders]
    assert sorted(named) == sorted(snapshot.pods_on(node.name))
    deadline = table.deadline
    if node.deleting:
        claim = snapshot.claim_of(node)
        assert claim is None or not claim.deleting or deadline == deadline_of(claim)
    if deadline is not None:
        assert table.ends_by is not None, "a deadline bounds every drain"
        assert table.endless == ()
    assert (table.ends_by is None) == bool(table.endless), "no wait is without a reason"
    for row in table.pods:
        assert row.asked_at is None or row.asked_at >= NOW
        if row.asked_at is not None and row.stopped_by is not None:
            assert row.asked_at < row.stopped_by
        if row.stopped_by is not None and table.ends_by is not None and deadline is None:
            assert row.stopped_by <= table.ends_by
        if deadline is not None and row.stopped_by is not None and not row.terminating:
            # A pod that is left after the last minute gets its own grace period, within a minute.
            late = deadline.end <= NOW
            span = timedelta(minutes=1) if late else timedelta(seconds=1)
            assert row.stopped_by <= max(deadline.at, NOW) + span
        _explains_waiting(row)


def _explains_waiting(row: PodTimes) -> None:
    if row.asked_at != NOW and not row.terminating and row.forced_at is None:
        assert row.blocked_by, "a pod that waits says for what"
