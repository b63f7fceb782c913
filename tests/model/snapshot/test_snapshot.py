"""One look at everything: objects by key, groups that follow every change, both sides of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api import names
from tenure.model.api.meta import Condition, ObjectMeta
from tenure.model.api.node import Node, NodeSpec
from tenure.model.api.nodeclaim import NodeClaim, NodeClaimStatus
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod, PodSpec, PodStatus
from tenure.model.api.resource import NODE_POOLS, NODES, PODS
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import DaemonSet, PodDisruptionBudget
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Change, Snapshot, Tables
from tenure.model.snapshot.unreadable import stand_in
from tests.snapshots import snapshot_with

WAITING = Condition(type="PodScheduled", status="False", reason="Unschedulable")


def named(name: str, **fields: Any) -> ObjectMeta:
    return ObjectMeta(name=name, uid=f"uid-{name}", **fields)


def a_pod(name: str = "web", node: str = "", *, waiting: bool = False, **fields: Any) -> Pod:
    conditions = (WAITING,) if waiting else ()
    return Pod(
        metadata=named(name, namespace="default", **fields),
        spec=PodSpec(node_name=node),
        status=PodStatus(conditions=conditions),
    )


def a_node(name: str = "n1", provider: str = "cloud://1", **fields: Any) -> Node:
    return Node(metadata=named(name, **fields), spec=NodeSpec(provider_id=provider))


def a_claim(name: str = "c1", provider: str = "cloud://1", pool: str = "general") -> NodeClaim:
    return NodeClaim(
        metadata=named(name, labels={names.NODEPOOL: pool} if pool else {}),
        status=NodeClaimStatus(provider_id=provider),
    )


def test_everything_is_found_by_its_key() -> None:
    pool = NodePool(metadata=named("general"))
    window = MaintenanceWindow(metadata=named("nights"))
    agent = DaemonSet(metadata=named("agent", namespace="default"))
    budget = PodDisruptionBudget(metadata=named("web", namespace="default"))
    pod, node, claim = a_pod(), a_node(), a_claim()
    snapshot = snapshot_with(pool, window, agent, budget, pod, node, claim)
    assert snapshot.pools == {"general": pool}
    assert snapshot.windows == {"nights": window}
    assert snapshot.daemon_sets == {"default/agent": agent}
    assert snapshot.pdbs == {"default/web": budget}
    assert snapshot.pdbs_in("default") == {"default/web": budget}
    assert snapshot.pods == {"default/web": pod}
    assert snapshot.nodes == {"n1": node}
    assert snapshot.claims == {"c1": claim}
    assert snapshot.observations == Observations()


def test_what_was_never_seen_is_empty() -> None:
    snapshot = Snapshot(Tables())
    assert (snapshot.pods, snapshot.nodes, snapshot.claims) == ({}, {}, {})
    assert snapshot.unreadable() == {}
    assert snapshot.ours == frozenset()


def test_groups_follow_what_objects_say() -> None:
    leaving = a_node(
        "n2",
        "cloud://2",
        deletion_timestamp=datetime(2026, 3, 2, tzinfo=UTC),
        labels={names.NODEPOOL: "batch"},
    )
    snapshot = snapshot_with(
        a_pod("bound", "n1"), a_pod("waiting", waiting=True), a_node(), leaving, a_claim()
    )
    assert set(snapshot.pods_on("n1")) == {"default/bound"}
    assert set(snapshot.unschedulable_pods()) == {"default/waiting"}
    assert set(snapshot.nodes_with_provider("cloud://1")) == {"n1"}
    assert set(snapshot.leaving_nodes()) == {"n2"}
    assert set(snapshot.nodes_of_pool("batch")) == {"n2"}
    assert set(snapshot.claims_of_pool("general")) == {"c1"}
    assert set(snapshot.claims_with_provider("cloud://1")) == {"c1"}


def test_no_object_is_in_the_group_without_a_name() -> None:
    """A claim that is not launched and a Node without a provider id have nothing in common."""
    snapshot = snapshot_with(a_pod(), a_node(provider=""), a_claim(provider="", pool=""))
    assert snapshot.pods_on("") == {}
    assert snapshot.nodes_with_provider("") == {}
    assert snapshot.claims_with_provider("") == {}
    assert snapshot.claims_of_pool("") == {}
    assert snapshot.claim_of(a_node(provider="")) is None


def test_a_nodes_claim_is_the_one_with_its_provider_id_if_there_is_only_one() -> None:
    assert snapshot_with(a_claim()).claim_of(a_node()) == a_claim()
    assert snapshot_with(a_claim(), a_claim("c2")).claim_of(a_node()) is None
    assert snapshot_with().claim_of(a_node()) is None


def test_a_node_class_is_found_by_group_kind_and_name() -> None:
    default = NodeClass(metadata=named("default"))
    snapshot = snapshot_with(a_pod(), default)
    assert snapshot.node_class("karpenter.kwok.sh", "KWOKNodeClass", "default") == default
    assert snapshot.node_class("karpenter.kwok.sh", "KWOKNodeClass", "other") is None
    assert snapshot.node_class("example.com", "OtherClass", "default") is None


def test_a_change_tells_both_sides_that_exist() -> None:
    tables = Tables()
    old, new = a_pod(node="n1"), a_pod(node="n2")
    came, moved = tables.put(PODS, old), tables.put(PODS, new)
    went = tables.remove(PODS, "default/web")
    assert came == Change(PODS, "default/web", None, old)
    assert moved == Change(PODS, "default/web", old, new)
    assert went == Change(PODS, "default/web", new, None)
    assert [list(change.versions()) for change in (came, moved, went)] == [[old], [old, new], [new]]


def test_an_object_moves_between_groups_and_an_empty_group_disappears() -> None:
    tables = Tables()
    tables.put(PODS, a_pod(node="n1"))
    tables.put(PODS, a_pod(node="n2"))
    assert set(tables.groups(PODS, "node")) == {"n2"}
    tables.remove(PODS, "default/web")
    assert tables.groups(PODS, "node") == {}


def test_removing_what_is_not_there_is_no_change() -> None:
    assert Tables().remove(PODS, "default/web") == Change(PODS, "default/web", None, None)


def test_an_unreadable_object_is_reported_and_not_taken_for_absent() -> None:
    tables = Tables()
    tables.put(NODE_POOLS, NodePool(metadata=named("general")))
    broken = stand_in(NodePool(metadata=named("general")), "expected an object", field="spec")
    change = tables.put(NODE_POOLS, broken)
    snapshot = Snapshot(tables)
    assert change.new is broken
    assert snapshot.pools == {"general": broken}
    assert snapshot.unreadable() == {(NODE_POOLS, "general"): broken}
    tables.put(NODE_POOLS, NodePool(metadata=named("general")))
    assert snapshot.unreadable() == {}


def test_a_copy_does_not_follow_later_changes() -> None:
    tables = Tables()
    tables.put(NODES, a_node())
    tables.put(NODE_POOLS, stand_in(NodePool(metadata=named("general")), "bad"))
    twin = tables.copy()
    tables.remove(NODES, "n1")
    tables.remove(NODE_POOLS, "general")
    assert set(Snapshot(twin).nodes_with_provider("cloud://1")) == {"n1"}
    assert set(Snapshot(twin).unreadable()) == {(NODE_POOLS, "general")}


def test_what_is_worked_out_once_is_worked_out_again_when_something_has_changed() -> None:
    tables, asked = Tables(), []

    def count(snapshot: Snapshot) -> int:
        asked.append(len(snapshot.nodes))
        return len(snapshot.nodes)

    snapshot = Snapshot(tables)
    assert (snapshot.once(count), snapshot.once(count), len(asked)) == (0, 0, 1)
    tables.put(NODES, a_node())
    assert (snapshot.once(count), Snapshot(tables).once(count), len(asked)) == (1, 1, 2)
    tables.remove(NODES, "n1")
    assert snapshot.once(count) == 0
    assert Snapshot(tables.copy()).once(count) == 0


steps = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["", "n1", "n2"]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=20,
)


@given(steps)
def test_groups_kept_up_change_by_change_are_those_made_from_nothing(steps: Any) -> None:
    tables = Tables()
    for name, node, waiting, remove in steps:
        if remove:
            tables.remove(PODS, f"default/{name}")
        else:
            tables.put(PODS, a_pod(name, node, waiting=waiting))
    anew = Tables()
    for pod in tables.table(PODS).values():
        anew.put(PODS, pod)
    for index in ("node", "waiting"):
        assert tables.groups(PODS, index) == anew.groups(PODS, index)
