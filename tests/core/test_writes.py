"""Writes carry the version that was evaluated, and finalizers of others stay."""

from __future__ import annotations

from tenure.core.decision import Delete, Ground, Patch, Subject
from tenure.core.writes import delete_claim, delete_node, patch, release, subject_of, with_finalizer
from tenure.model.api import names
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tests.core.build import a_claim, a_node, a_pool


def test_a_patch_insists_on_uid_and_version() -> None:
    assert patch(a_pool(), {"annotations": {"a": "b"}}) == Patch(
        resource=NODE_POOLS,
        name="general",
        uid="uid-general",
        resource_version="7",
        body={
            "metadata": {"annotations": {"a": "b"}, "resourceVersion": "7", "uid": "uid-general"}
        },
    )


def test_the_spec_is_written_only_where_it_is_given() -> None:
    assert patch(a_node(), {}, {"taints": []}).body["spec"] == {"taints": []}
    assert "spec" not in patch(a_node(), {}).body


def test_our_finalizer_comes_last_and_once() -> None:
    assert with_finalizer(a_claim(finalizers=("x",))) == ["x", names.FINALIZER]
    assert with_finalizer(a_claim(finalizers=(names.FINALIZER, "x"))) == ["x", names.FINALIZER]


def test_only_our_finalizer_is_removed() -> None:
    freed = release(a_node(finalizers=("x", names.FINALIZER, "y")))
    assert freed.body["metadata"]["finalizers"] == ["x", "y"]


def test_a_claim_is_deleted_in_the_version_evaluated_a_node_in_any() -> None:
    assert delete_claim(a_claim(), Ground.REPLACED) == Delete(
        resource=NODE_CLAIMS, name="a", uid="uid-a", resource_version="7", ground=Ground.REPLACED
    )
    assert delete_node(a_node()) == Delete(resource=NODES, name="node-a", uid="uid-node-a")


def test_a_verdict_is_about_the_object_it_names() -> None:
    assert subject_of(a_node()) == Subject("Node", "node-a", "", "uid-node-a")
    assert subject_of(a_claim()) == Subject("NodeClaim", "a", "", "uid-a")
