"""Which pods a drain evicts and when, for random clusters.

The rules are computed here from the objects themselves, not asked from the code that decides.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given

from tenure.core.decision import DeletePod, Evict, Verdict
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import DrainDecider
from tenure.model.api.names import DISRUPTED_TAINT, DO_NOT_DISRUPT, FINALIZER, TERMINATION_TIMESTAMP
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import parse_duration
from tests.properties.clusters import Cluster, clusters
from tests.properties.drawn.basics import NOW
from tests.snapshots import snapshot_with

EVER = datetime.max.replace(tzinfo=UTC)
#: What the random clusters may write as a protection, in seconds from a pod's creation.
SPANS = {"10m": 600, "9m50s": 590}
CAP = timedelta(minutes=9)


def look(cluster: Cluster) -> tuple[Snapshot, dict[str, Verdict]]:
    snapshot = snapshot_with(*cluster.objects, observations=cluster.observations)
    told = decide_all(DrainDecider(), snapshot, Settings(), NOW)
    return snapshot, {f"{v.subject.namespace}/{v.subject.name}": v for v in told}


def deadline(node: Node, snapshot: Snapshot) -> datetime | None:
    claim = snapshot.claim_of(node)
    if claim is None or claim.metadata.deletion_timestamp is None:
        return None
    found = []
    if (period := claim.spec.termination_grace_period) is not None:
        found.append(claim.metadata.deletion_timestamp + parse_duration(period).timedelta)
    stamp = claim.annotations.get(TERMINATION_TIMESTAMP, "soon")
    found += [] if stamp == "soon" else [datetime.fromisoformat(stamp)]
    return min(found, default=None)


def protected_until(pod: Pod, node: Node, snapshot: Snapshot) -> datetime:
    value = pod.annotations.get(DO_NOT_DISRUPT, "false")
    if value == "false":
        return pod.created_at
    until = pod.created_at + timedelta(seconds=SPANS[value]) if value in SPANS else EVER
    pool = snapshot.pools.get(node.labels.get("karpenter.sh/nodepool", ""))
    capped = pool is not None and pool.spec.disruption.max_pod_protection is not None
    return min(until, pod.created_at + CAP) if capped else until


def grace(pod: Pod) -> timedelta:
    seconds = pod.spec.termination_grace_period_seconds
    return timedelta(seconds=30 if seconds is None else seconds)


@given(clusters())
def test_no_pod_is_evicted_while_protected(cluster: Cluster) -> None:
    snapshot, told = look(cluster)
    for key, verdict in told.items():
        if isinstance(verdict.action, Evict):
            pod = snapshot.pods[key]
            assert protected_until(pod, snapshot.nodes[pod.spec.node_name], snapshot) <= NOW


@given(clusters())
def test_no_pod_is_forced_before_the_deadline_less_its_grace(cluster: Cluster) -> None:
    snapshot, told = look(cluster)
    for key, verdict in told.items():
        if not isinstance(verdict.action, DeletePod):
            continue
        pod = snapshot.pods[key]
        end = deadline(snapshot.nodes[pod.spec.node_name], snapshot)
        assert end is not None
        assert verdict.action.grace_at(NOW) >= 1
        if pod.metadata.deletion_timestamp is None:
            assert end - grace(pod) <= NOW
        else:  # It is terminating, and would outlive the node.
            assert pod.metadata.deletion_timestamp > end


@given(clusters())
def test_every_pod_is_forced_from_then_on(cluster: Cluster) -> None:
    snapshot, told = look(cluster)
    for key, verdict in told.items():
        pod = snapshot.pods[key]
        end = deadline(snapshot.nodes[pod.spec.node_name], snapshot)
        waits = verdict.reason not in (Reason.LEFT_ALONE, Reason.POD_TERMINATING)
        if end is not None and waits and end - grace(pod) <= NOW:
            assert isinstance(verdict.action, DeletePod), verdict


@given(clusters())
def test_every_pod_that_a_node_waits_for_says_why_it_is_still_there(cluster: Cluster) -> None:
    snapshot, told = look(cluster)
    for node in snapshot.leaving_nodes().values():
        held = FINALIZER in node.metadata.finalizers
        if not held or not node.has_taint(DISRUPTED_TAINT, "NoSchedule"):
            continue
        for key in snapshot.pods_on(node.name):
            verdict = told[key]
            assert verdict.message
            # Something is done, or changes with time, or another object is named.
            moved = verdict.action is not None or verdict.recheck_at is not None
            named = verdict.blockers or verdict.reason in (
                Reason.LEFT_ALONE,
                Reason.TIER_WAITS,
                Reason.PROTECTED,
                Reason.PROTECTION_UNREADABLE,
            )
            assert moved or named, verdict
