"""One object must never stop another: a fault injected into any one object, for every decider."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.core.decision import Concern, Verdict, takes_away
from tenure.core.marks.deadline import deadline_of
from tenure.core.policy.deciders import UNMOVED, decide_all, deciders
from tenure.core.provision.knownnodes import nodes_with_capacity
from tenure.core.reasons import Reason
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import PodDisruptionBudget, VolumeAttachment
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, stand_in, type_of
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.faults import ERRORS, faulty
from tests.properties.clusters import Cluster, clusters
from tests.properties.deciderchecks import SETTINGS
from tests.properties.drawn.basics import NOW
from tests.properties.thoroughness import tried
from tests.snapshots import RESOURCE_OF, governed_tables, snapshot_with

THOROUGH = tried(75)

errors = st.sampled_from(ERRORS)
Said = dict[tuple[Concern, str], tuple[Reason, str]]


@THOROUGH
@given(cluster=clusters(), which=st.integers(0, 2**16), error=errors)
def test_a_fault_in_one_object_leaves_the_verdicts_on_all_others(
    cluster: Cluster, which: int, error: Callable[[], Exception]
) -> None:
    bad, cluster = chosen(cluster, which)
    others = [item for item in cluster.objects if item is not bad]
    evaluator, snapshot = evaluated([*others, faulty(bad, error)], cluster)
    assert evaluator.failing() == []
    now, before, without = (
        said(evaluator.in_force()),
        said(in_full(cluster.objects, cluster)),
        said(in_full(others, cluster)),
    )
    for name, verdict in now.items():
        if name[1] == str_of(bad):
            assert verdict[0] in ABOUT_IT, f"{name}: {verdict}"
        elif verdict[0] is Reason.BLOCKED_BY_UNREADABLE:
            own = isinstance(bad, NodeClaim) and name[1] in related(bad, cluster)
            if own and name[0] is Concern.TERMINATION and name[1].startswith("Node/"):
                assert verdict[1] in ("NoneType", "Inspect", "Patch"), "it is closed at the most"
            else:
                assert verdict[1] in ("NoneType", "Inspect"), "… asks the cloud at the most"
        elif verdict not in (before.get(name), without.get(name)):
            # What differs belongs to it, and stays; a pod may have another place, but has one.
            elsewhere = name[0] is Concern.PROVISIONING and is_place(verdict, bad)
            belongs = elsewhere or name[1] in related(bad, cluster)
            stays = verdict[1] not in TAKING or name[1] in past_deadline(cluster)
            assert belongs, f"{name}: {verdict}"
            assert stays, f"{name}: {verdict}"
    place = RESOURCE_OF[type(bad)], bad.key
    if place in snapshot.unreadable():  # Else no decider has looked at it.
        assert now[Concern.OBJECT, str_of(bad)][0] is Reason.EVALUATION_FAILED


@THOROUGH
@given(cluster=clusters(), which=st.integers(0, 2**16), error=errors)
def test_who_was_set_aside_counts_as_one_that_never_could_be_read(
    cluster: Cluster, which: int, error: Callable[[], Exception]
) -> None:
    bad, cluster = chosen(cluster, which)
    others = [item for item in cluster.objects if item is not bad]
    evaluator, snapshot = evaluated([*others, faulty(bad, error)], cluster)
    known = snapshot.objects(RESOURCE_OF[type(bad)])[bad.key]
    if is_unreadable(known):
        full = in_full([*others, known], cluster)
        assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))


@THOROUGH
@given(cluster=clusters(), which=st.integers(0, 2**16))
def test_nothing_more_is_taken_away_because_an_object_cannot_be_read(
    cluster: Cluster, which: int
) -> None:
    bad = cluster.objects[which % len(cluster.objects)]
    others = [item for item in cluster.objects if item is not bad]
    before, without = taken(in_full(cluster.objects, cluster)), taken(in_full(others, cluster))
    now = taken(in_full([*others, unread(bad)], cluster))
    ended = past_deadline(cluster)
    assert {name for name in now if name not in before | without and name[0] not in ended} == set()


@THOROUGH
@given(
    before=clusters(), after=clusters(), masks=st.tuples(st.integers(0, 255), st.integers(0, 255))
)
def test_objects_that_can_be_read_no_more_or_again_are_evaluated_as_from_nothing(
    before: Cluster, after: Cluster, masks: tuple[int, int]
) -> None:
    tables, evaluator = governed_tables(), Evaluator(deciders(), SETTINGS, unmoved=UNMOVED)
    snapshot = Snapshot(tables, before.observations, ours=snapshot_with().ours)
    for objects, mask in ((before.objects, masks[0]), (after.objects, masks[1])):
        items = [unread(item) if mask >> n % 8 & 1 else item for n, item in enumerate(objects)]
        kept = {(RESOURCE_OF[type_of(item)], item.key) for item in items}
        changes = [tables.put(RESOURCE_OF[type_of(item)], item) for item in items]
        changes += [
            tables.remove(resource, key)
            for resource in list(tables.objects)
            for key in list(tables.table(resource))
            if (resource, key) not in kept
        ]
        changes += tables.take_followers()
        evaluator.evaluate(snapshot, changes, (), NOW)
    full = [v for decider in deciders() for v in decide_all(decider, snapshot, SETTINGS, NOW)]
    assert evaluator.failing() == []
    assert sorted(map(repr, evaluator.in_force())) == sorted(map(repr, full))


@THOROUGH
@given(cluster=clusters(), which=st.integers(0, 2**16))
def test_what_cannot_be_read_promises_no_place_and_takes_none_from_others(
    cluster: Cluster, which: int
) -> None:
    owing = [item for item in cluster.objects if isinstance(item, Pod | NodeClaim)]
    assume(owing)
    bad = owing[which % len(owing)]
    others = [item for item in cluster.objects if item is not bad]
    before = with_room(cluster.objects, cluster)
    now = with_room([*others, unread(bad)], cluster)
    nowhere = bad.name if isinstance(bad, NodeClaim) else bad.spec.node_name
    if isinstance(bad, NodeClaim) or not bad.finished:
        assert nowhere not in now
    nodes = {n.name for n in others if isinstance(n, Node) and str_of(n) in related(bad, cluster)}
    assert {*before} - {*now} <= {nowhere, *nodes}
    assert {*now} - {*before} <= nodes


def with_room(objects: Iterable[ApiObject], cluster: Cluster) -> list[str]:
    snapshot = snapshot_with(*objects, observations=cluster.observations)
    return [node.name for node in nodes_with_capacity(snapshot)]


def chosen(cluster: Cluster, which: int) -> tuple[ApiObject, Cluster]:
    """One of its objects. Of a claim that a policy governs, deciders see another object, without the
    fault: then the cluster has no policies."""
    bad = cluster.objects[which % len(cluster.objects)]
    if not isinstance(bad, NodeClaim):
        return bad, cluster
    kept = tuple(item for item in cluster.objects if not isinstance(item, NodePoolPolicy))
    return bad, msgspec.structs.replace(cluster, objects=kept)


def unread(item: ApiObject) -> ApiObject:
    return stand_in(item, "Expected `int`, got `str`", field="spec")


#: What may be said of an object that no decider can look into.
ABOUT_IT = (
    Reason.EVALUATION_FAILED,
    Reason.BLOCKED_BY_UNREADABLE,
    Reason.FORCED,
    Reason.INSTANCE_TERMINATING,
)


#: What is said of a pod that has a place, or gets one.
WITH_PLACE = (Reason.NOMINATED, Reason.NEEDED_FOR_PODS, Reason.BATCHING, Reason.STAYS_FOR_NOW)


def is_place(verdict: tuple[Reason, str], bad: ApiObject) -> bool:
    """Only without a pool, a node class or what daemons need may a pod be left without one."""
    return verdict[0] in WITH_PLACE or not isinstance(bad, Pod | Node | NodeClaim)


TAKING = ("Evict", "DeletePod", "Terminate", "Delete", "Reboot")


def related(bad: ApiObject, cluster: Cluster) -> set[str]:
    """What belongs together: a claim, its Nodes, their pods; for a PDB or window all it may cover."""
    nodes = [item for item in cluster.objects if isinstance(item, Node)]
    pods = [item for item in cluster.objects if isinstance(item, Pod)]
    claims = [item for item in cluster.objects if isinstance(item, NodeClaim)]
    instances = {n.spec.provider_id for n in nodes if n.key == names_node(bad)}
    if isinstance(bad, Node):
        instances = {bad.spec.provider_id}
    elif isinstance(bad, NodeClaim):
        instances = {bad.provider_id}
    elif isinstance(bad, NodePool | NodePoolPolicy | PodDisruptionBudget | MaintenanceWindow):
        instances = {node.spec.provider_id for node in nodes}
    near = [node for node in nodes if node.spec.provider_id in instances]
    names = {node.name for node in near}
    there = [pod for pod in pods if pod.spec.node_name in names]
    owning = [claim for claim in claims if claim.provider_id in instances]
    beside: list[ApiObject] = []
    if isinstance(bad, NodePoolPolicy):  # Its pools, and the policies that it may tie with.
        beside = [one for one in cluster.objects if isinstance(one, NodePool | NodePoolPolicy)]
    return {str_of(item) for item in (*near, *there, *owning, *beside)}


def names_node(bad: ApiObject) -> str:
    return bad.spec.node_name if isinstance(bad, Pod | VolumeAttachment) else ""


def past_deadline(cluster: Cluster) -> set[str]:
    """Claims whose time is over, and their Nodes: nothing that cannot be read holds them longer."""
    claims = [item for item in cluster.objects if isinstance(item, NodeClaim)]
    over = [c for c in claims if (at := deadline_of(c)) is not None and at.end <= NOW]
    instances = {claim.provider_id for claim in over}
    nodes = (item for item in cluster.objects if isinstance(item, Node))
    gone = [node for node in nodes if node.spec.provider_id in instances]
    return {str_of(item) for item in (*over, *gone)}


def evaluated(objects: Iterable[ApiObject], cluster: Cluster) -> tuple[Evaluator, Snapshot]:
    tables, evaluator = governed_tables(), Evaluator(deciders(), SETTINGS, unmoved=UNMOVED)
    changes = [tables.put(RESOURCE_OF[type_of(item)], item) for item in objects]
    changes += tables.take_followers()
    snapshot = Snapshot(tables, cluster.observations, ours=snapshot_with().ours)
    evaluator.evaluate(snapshot, changes, (), NOW)
    return evaluator, snapshot


def in_full(objects: Iterable[ApiObject], cluster: Cluster) -> list[Verdict]:
    snapshot = snapshot_with(*objects, observations=cluster.observations)
    return [v for decider in deciders() for v in decide_all(decider, snapshot, SETTINGS, NOW)]


def said(verdicts: Iterable[Verdict]) -> Said:
    return {(v.concern, str(v.subject)): (v.reason, type(v.action).__name__) for v in verdicts}


def taken(verdicts: Iterable[Verdict]) -> set[tuple[str, str]]:
    actions = ((str(v.subject), v.action) for v in verdicts if v.action is not None)
    return {(name, type(action).__name__) for name, action in actions if takes_away(action)}


def str_of(item: ApiObject) -> str:
    kind = RESOURCE_OF[type_of(item)].kind
    return f"{kind}/{item.key}"
