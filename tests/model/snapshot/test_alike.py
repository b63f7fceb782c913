"""Pods of one owner share what is equal in them, and nothing else changes."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.snapshot.kinds import decode, decode_list


def a_pod(name: str, owner: str = "web", cpu: str = "500m", **labels: str) -> dict[str, Any]:
    references = [{"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "labels": {"app": owner, **labels},
            "ownerReferences": references if owner else [],
        },
        "spec": {
            "nodeName": f"node-of-{name}",
            "containers": [{"name": "app", "image": "web:1", "resources": resources}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
    }


def listed(*pods: dict[str, Any]) -> list[Pod]:
    """Decoded together; each has to be what it is when it is decoded alone."""
    lines = [msgspec.json.encode(one) for one in pods]
    found = decode_list(PODS, lines)
    assert found == [decode(PODS, line) for line in lines]
    assert all(isinstance(one, Pod) for one in found)
    return [one for one in found if isinstance(one, Pod)]


def test_pods_of_one_owner_share_their_template() -> None:
    first, second, third = listed(a_pod("a"), a_pod("b"), a_pod("c"))
    for one in (second, third):
        assert one.spec.containers is first.spec.containers
        assert one.spec.tolerations is first.spec.tolerations
        assert one.metadata.labels is first.metadata.labels
        assert one.metadata.owner_references is first.metadata.owner_references
    assert [one.spec.node_name for one in (first, third)] == ["node-of-a", "node-of-c"]


def test_what_differs_is_not_shared_and_the_rest_is() -> None:
    first, second = listed(a_pod("a"), a_pod("b", cpu="1", track="canary"))
    assert second.spec.containers is not first.spec.containers
    assert second.metadata.labels == {"app": "web", "track": "canary"}
    assert second.spec.tolerations is first.spec.tolerations


def test_pods_of_other_owners_and_of_none_share_nothing() -> None:
    first, second, third = listed(a_pod("a"), a_pod("b", owner="db"), a_pod("c", owner=""))
    assert first.spec.containers is not second.spec.containers
    assert first.spec.containers is not third.spec.containers
