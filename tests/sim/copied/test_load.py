"""A copied cluster is the same cluster: its objects, their ages, its pods on its nodes; nothing is rolled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tenure.model.api import resource as r
from tenure.sim.copied.copy import ClusterCopy, read_copy
from tenure.sim.copied.difference import Observed, scene_of
from tenure.sim.copied.load import load, options_for
from tenure.sim.world import World
from tests.sim.copied.clusters import (
    AT,
    KARPENTER,
    Obj,
    a_claimed_node,
    a_copy,
    a_node,
    a_pending_pod,
    a_pool,
    metadata,
)

HOUR = timedelta(hours=1)


def a_world(copy: ClusterCopy) -> tuple[World, tuple[str, ...]]:
    world = World(options_for(copy))
    return world, load(copy, world)


def places(world: World) -> dict[str, str]:
    return {
        pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in world.store.list(r.PODS)
    }


def never_consolidated(copy: ClusterCopy) -> ClusterCopy:
    pools = [
        {**one, "spec": {**one["spec"], "disruption": a_pool()["spec"]["disruption"]}}
        for one in copy.of(r.NODE_POOLS)
    ]
    return msgspec.structs.replace(copy, objects={**copy.objects, r.NODE_POOLS: pools})


def test_names_uids_and_ages_survive() -> None:
    copy = read_copy(KARPENTER)
    with a_world(copy)[0] as world:
        for resource in (r.NODE_POOLS, r.NODE_CLAIMS, r.NODES, r.PODS, r.DEPLOYMENTS, r.JOBS):
            had = {
                (m["name"], m["uid"], m["creationTimestamp"])
                for m in (one["metadata"] for one in copy.of(resource))
            }
            has = {
                (m["name"], m["uid"], m["creationTimestamp"])
                for m in (one["metadata"] for one in world.store.list(resource))
            }
            assert has == had, resource


def test_time_begins_when_the_cluster_was_read() -> None:
    """Without a word about it: at the latest instant that any object speaks of."""
    copy = read_copy(KARPENTER)
    assert copy.at == datetime(2026, 11, 15, 8, 25, 6, tzinfo=UTC)
    snapshot = {
        "apiVersion": "tenure.dev/v1alpha1",
        "kind": "ClusterSnapshot",
        "metadata": {"creationTimestamp": "2026-03-02T12:00:00Z"},
    }
    assert a_copy(snapshot, a_node("n1")).at == datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_the_same_pods_stay_on_the_same_nodes_and_no_workload_is_rolled() -> None:
    with a_world(never_consolidated(read_copy(KARPENTER)))[0] as world:
        before = places(world)
        world.run(HOUR)
        assert places(world) == before
        assert len(before) == 43
        assert len(world.store.list(r.NODES)) == 6
        assert world.cloud.launch_count == world.cloud.termination_count == 0


def test_a_changed_template_rolls_the_workload() -> None:
    with a_world(never_consolidated(read_copy(KARPENTER)))[0] as world:
        world.run(timedelta(minutes=1))
        (name,) = (one["metadata"]["name"] for one in world.store.list(r.DEPLOYMENTS))
        labels = {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}}
        world.store.patch(r.DEPLOYMENTS, "default", name, labels)
        world.run(timedelta(minutes=10))
        assert len(world.store.list(r.REPLICA_SETS)) == 2


def test_scaling_a_workload_does_not_roll_it() -> None:
    with a_world(never_consolidated(read_copy(KARPENTER)))[0] as world:
        before = places(world)
        world.run(timedelta(minutes=1))
        (name,) = (one["metadata"]["name"] for one in world.store.list(r.DEPLOYMENTS))
        world.store.patch(r.DEPLOYMENTS, "default", name, {"spec": {"replicas": 31}})
        world.run(timedelta(minutes=5))
        after = places(world)
        assert before.items() <= after.items()
        assert len(after) == len(before) + 1


def test_a_changed_pool_drifts_these_nodes_and_the_difference_says_so() -> None:
    with a_world(never_consolidated(read_copy(KARPENTER)))[0] as world:
        observed = Observed(world)
        labels = {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}}
        world.store.patch(r.NODE_POOLS, "", "general", labels)
        world.run(12 * HOUR)
        found = observed.difference()
        # Budget 10 %: one at a time; the second node is still being drained, for 48 hours at most.
        assert found.disruptions == {"Drifted": 2}
        assert [one.pool for one in found.gone] == ["general"]
        assert found.moved
        assert all(one.startswith("default/web-") for one in found.moved)


def drift_told(world: World) -> set[str]:
    return {
        entry.message
        for entry in world.history.entries
        if entry.reason in ("Drifted", "DisruptionBlocked") and "has drifted" in entry.message
    }


def test_a_drift_in_the_copy_names_what_has_changed_and_nothing_that_was_not_copied() -> None:
    """Annotations of users are not taken: those of the template looked as if they were new."""
    with a_world(never_consolidated(read_copy(KARPENTER)))[0] as world:
        pool = world.store.get(r.NODE_POOLS, "", "general")
        assert pool["spec"]["template"]["metadata"]["annotations"] == {
            "example.com/owner": "platform"
        }
        labels = {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}}
        world.store.patch(r.NODE_POOLS, "", "general", labels)
        world.run(timedelta(minutes=5))
        told = drift_told(world)
        assert told
        assert all("metadata.labels (release=two added); " in one for one in told)


def test_a_claim_of_an_older_template_gets_no_annotation_of_the_new_one() -> None:
    copy = read_copy(KARPENTER)
    for claim in copy.of(r.NODE_CLAIMS):
        claim["metadata"]["annotations"]["karpenter.sh/nodepool-hash"] = "1"
    with a_world(copy)[0] as world:
        for claim in world.store.list(r.NODE_CLAIMS):
            assert "example.com/owner" not in claim["metadata"]["annotations"]


def test_a_node_that_was_silent_stays_silent() -> None:
    silent = a_node("n2")
    silent["status"]["conditions"][0]["status"] = "Unknown"
    with a_world(a_copy(a_node("n1"), silent))[0] as world:
        assert world.kubelets.is_alive("n1")
        assert not world.kubelets.is_alive("n2")


def test_a_node_keeps_its_boot_id() -> None:
    with a_world(a_copy(a_node("n1")))[0] as world:
        world.run(timedelta(minutes=6))
        assert world.store.get(r.NODES, "", "n1")["status"]["nodeInfo"]["bootID"] == "boot-of-n1"


AWS = {
    "node.kubernetes.io/instance-type": "m7i.xlarge",
    "topology.kubernetes.io/zone": "eu-west-1b",
    "kubernetes.io/arch": "amd64",
}


def test_the_embedded_cloud_stands_in_for_another_clouds_node_class() -> None:
    """Its class is not even there: reading it was refused."""
    copy = a_copy(*a_claimed_node("c1", **AWS), a_pool(), a_pending_pod("new", "3"))
    world, notes = a_world(copy)
    with world:
        assert (
            "EC2NodeClass default was not read: a class of that name that is Ready stands in"
            in notes
        )
        world.run(timedelta(minutes=10))
        assert len(world.store.list(r.NODES)) in (1, 2)
        (pod,) = world.store.list(r.PODS)
        assert pod["status"]["phase"] == "Running"


def test_a_pool_is_served_what_its_requirements_say_in_the_words_of_its_cloud() -> None:
    wanted = {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["r"]}
    pool = a_pool(requirements=[wanted])
    copy = a_copy(*a_claimed_node("c1", **AWS), pool, a_pending_pod("new", "6"))
    with a_world(copy)[0] as world:
        world.run(timedelta(minutes=10))
        (new,) = (n for n in world.store.list(r.NODES) if n["metadata"]["name"] != "node-c1")
        labels = new["metadata"]["labels"]
        assert labels["node.kubernetes.io/instance-type"].startswith("r")
        assert labels["topology.kubernetes.io/zone"] == "eu-west-1b"


def test_a_node_class_that_is_not_known_is_named_and_its_nodes_stay() -> None:
    copy = a_copy(*a_claimed_node("c1", kind="ToyNodeClass", **AWS), a_pool(kind="ToyNodeClass"))
    world, notes = a_world(copy)
    with world:
        assert any(
            note.startswith("ToyNodeClass.toys.example.com is no node class") for note in notes
        )
        world.run(HOUR)
        assert [one["metadata"]["name"] for one in world.store.list(r.NODES)] == ["node-c1"]


GKE = {
    "node.kubernetes.io/instance-type": "n2-standard-4",
    "topology.kubernetes.io/zone": "europe-west4-a",
    "kubernetes.io/arch": "amd64",
}


def test_an_unknown_price_is_unknown_and_the_type_is_what_its_node_says() -> None:
    copy = a_copy(*a_claimed_node("c1", kind="GCENodeClass", **GKE), a_pool(kind="GCENodeClass"))
    world, notes = a_world(copy)
    with world:
        (kind,) = world.cloud.types
        assert kind.name == "n2-standard-4"
        assert kind.allocatable["cpu"] == 3_900_000_000
        assert scene_of(world).nodes["node-c1"].price is None
        assert any(note.startswith("no price is known of n2-standard-4") for note in notes)


def test_a_cluster_without_prices_still_gets_the_nodes_that_it_needs() -> None:
    pool = a_pool(kind="GCENodeClass")
    claimed = a_claimed_node("c1", kind="GCENodeClass", **GKE)
    with a_world(a_copy(*claimed, pool, *(a_pending_pod(f"p{i}", "3") for i in range(3))))[
        0
    ] as world:
        world.run(timedelta(minutes=10))
        assert {pod["status"]["phase"] for pod in world.store.list(r.PODS)} == {"Running"}
        assert len(world.store.list(r.NODES)) == 3


def test_a_price_that_a_label_names_counts() -> None:
    label = {"eks-node-viewer/instance-price": "0.1942"}
    claimed = a_claimed_node("c1", kind="GCENodeClass", **GKE, **label)
    with a_world(a_copy(*claimed, a_pool(kind="GCENodeClass")))[0] as world:
        assert scene_of(world).nodes["node-c1"].price == 194_200


def test_a_node_that_no_claim_owns_is_billed_while_it_is_there() -> None:
    label = {"eks-node-viewer/instance-price": "0.2"}
    with a_world(a_copy(a_node("n1", **GKE, **label), a_node("n2", **GKE, **label)))[0] as world:
        assert world.cloud.bill.hourly == 400_000
        world.store.delete(r.NODES, "", "n2")
        world.run(HOUR)
        assert world.cloud.bill.hourly == 200_000 * len(world.store.list(r.NODES))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
        ({"cloud.google.com/gke-spot": "true"}, "spot"),
        ({"cloud.google.com/gke-provisioning": "standard"}, "on-demand"),
        ({"kubernetes.azure.com/scalesetpriority": "spot"}, "spot"),
        ({"karpenter.sh/capacity-type": "reserved"}, "reserved"),
        ({}, "on-demand"),
    ],
)
def test_how_a_node_was_bought_is_read_from_the_labels_of_its_cloud(
    labels: dict[str, str], expected: str
) -> None:
    with a_world(a_copy(a_node("n1", **labels)))[0] as world:
        assert scene_of(world).nodes["n1"].capacity_type == expected


@pytest.mark.parametrize(
    ("version", "kind"), [("argoproj.io/v1alpha1", "Rollout"), ("v1", "ReplicationController")]
)
def test_pods_of_an_owner_that_is_not_played_stay_and_are_named(version: str, kind: str) -> None:
    owner = {"apiVersion": version, "kind": kind, "name": "web", "uid": "u1"}
    pod = a_pending_pod("p1")
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    pod["spec"]["nodeName"], pod["status"]["phase"] = "n1", "Running"
    world, notes = a_world(a_copy(a_node("n1"), pod))
    with world:
        world.run(timedelta(minutes=5))
        (found,) = world.store.list(r.PODS)
        assert found["metadata"]["ownerReferences"] == [{**owner, "controller": True}]
        assert any(note.startswith(f"pods of {kind} are not made again") for note in notes)


def test_one_object_that_cannot_be_stored_is_named_and_the_others_are() -> None:
    bad: Obj = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    bad["metadata"] = metadata("bad", namespace="shop")
    bad["spec"] = {"minAvailable": [1]}
    world, notes = a_world(a_copy(a_node("n1"), bad))
    with world:
        assert any(
            note.startswith("PodDisruptionBudget shop/bad is left out: spec.minAvailable")
            for note in notes
        )
        assert len(world.store.list(r.NODES)) == 1


def test_lists_in_yaml_are_read_too(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(
        "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: n1, uid: u1, "
        f"creationTimestamp: '{AT}'}}\n  spec: {{}}\n  status: {{}}\n"
    )
    assert [one["metadata"]["name"] for one in read_copy(file).of(r.NODES)] == ["n1"]
