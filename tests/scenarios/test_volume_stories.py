"""Pods with persistent volumes: nodes come where the volumes are, and no pod is kept from its own."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import (
    EVENTS,
    NODE_CLAIMS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.cloud.catalogue import VOLUMES_MAX
from tenure.sim.scenario.dsl import Story
from tests.builders import (
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pod,
    a_pool,
    a_requirement,
    a_stateful_set,
)
from tests.scenarios.fleets import ANY, a_cluster, label_template, scale
from tests.scenarios.signs import is_gone, replacement_of

ZONE = "topology.kubernetes.io/zone"
ONE_PER_ZONE = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "db"}},
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def a_database(policy: str = "OrderedReady", **spec: Any) -> Manifest:
    """Three pods with a volume, in three zones, each of which fills a node."""
    given = {"topologySpreadConstraints": [ONE_PER_ZONE], "cpu": "1500m", **spec}
    return a_stateful_set(replicas=3, storage="1Gi", policy=policy, **given)


def a_settled_database() -> list[Manifest]:
    """Its volumes are in three zones before its pods are, and nothing else spreads them."""
    database = of_class(a_database("Parallel", topologySpreadConstraints=[]), "at-once")
    return [a_class("at-once", mode="Immediate"), database]


def a_class(name: str, *zones: str, mode: str = "WaitForFirstConsumer") -> Manifest:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    topologies = {"allowedTopologies": allowed} if zones else {}
    rest = {"provisioner": "csi.sim.tenure.dev", "volumeBindingMode": mode, **topologies}
    return {**kind, "metadata": {"name": name}, **rest}


def of_class(manifest: Manifest, storage_class: str) -> Manifest:
    for template in manifest["spec"]["volumeClaimTemplates"]:
        template["spec"]["storageClassName"] = storage_class
    return manifest


def pod(story: Story, name: str) -> Obj:
    return story.store.get(PODS, "default", name)


def zone_of(story: Story, name: str) -> str:
    """Of the node that the pod is on."""
    node = story.store.get(NODES, "", pod(story, name)["spec"]["nodeName"])
    zone: str = node["metadata"]["labels"][ZONE]
    return zone


def volume_zone(story: Story, claim: str) -> str:
    bound = story.store.get(PERSISTENT_VOLUME_CLAIMS, "default", claim)
    volume = story.store.get(PERSISTENT_VOLUMES, "", bound["spec"]["volumeName"])
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    zone: str = term["matchExpressions"][0]["values"][0]
    return zone


def zones(story: Story) -> dict[str, str]:
    """Of the database's pods, and that each is where its volume is."""
    found = {f"db-{n}": zone_of(story, f"db-{n}") for n in range(3)}
    assert {name: volume_zone(story, f"data-{name}") for name in found} == found
    return found


def claim_of(story: Story, node: str) -> str:
    (claim,) = (c for c in story.store.list(NODE_CLAIMS) if c["status"].get("nodeName") == node)
    name: str = claim["metadata"]["name"]
    return name


def told(story: Story, name: str) -> list[str]:
    """What Tenure's events say to a pod."""
    return [
        event["message"]
        for event in story.store.list(EVENTS)
        if event["involvedObject"]["kind"] == "Pod" and event["involvedObject"]["name"] == name
    ]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_database_scales_out_on_an_empty_cluster(policy: str) -> None:
    with Story(*a_cluster(a_database(policy))) as story:
        story.run(10 * MINUTE)
        assert story.running("db") == 3
        assert sorted(zones(story).values()) == ["zone-a", "zone-b", "zone-c"]
        assert story.cloud.launch_count == 3


@pytest.mark.parametrize("name", ["db-0", "db-1", "db-2"])
def test_a_graceful_repair_brings_the_pod_back_to_the_zone_of_its_volume(name: str) -> None:
    with Story(*a_cluster(*a_settled_database())) as story:
        story.run(5 * MINUTE)
        before = zones(story)
        node = pod(story, name)["spec"]["nodeName"]
        claim = claim_of(story, node)
        story.kubelets.set_condition(node, "KWOKUnhealthy", "True", "Test")
        story.run(33 * SECOND)
        new = replacement_of(story, claim)
        assert new is not None
        story.run(8 * MINUTE)
        assert is_gone(story, claim)
        assert (story.running("db"), zones(story)) == (3, before)
        assert pod(story, name)["spec"]["nodeName"] != node
        assert new["metadata"]["name"] == claim_of(story, pod(story, name)["spec"]["nodeName"])
        assert story.cloud.launch_count == 4


def test_drift_replaces_every_node_in_the_zone_of_its_volume() -> None:
    with Story(*a_cluster(*a_settled_database(), budgets=[{"nodes": "1"}])) as story:
        story.run(5 * MINUTE)
        before, old = zones(story), {c["metadata"]["uid"] for c in story.all(NODE_CLAIMS)}
        label_template(story, "2")
        story.run(40 * MINUTE)
        assert (story.running("db"), zones(story)) == (3, before)
        assert not old & {c["metadata"]["uid"] for c in story.all(NODE_CLAIMS)}
        assert story.cloud.launch_count == 6


def test_volumes_that_exist_lead_the_nodes_of_a_set_that_comes_back() -> None:
    with Story(*a_cluster(*a_settled_database())) as story:
        story.run(5 * MINUTE)
        before = zones(story)
        where = (STATEFUL_SETS, "default", "db")
        story.store.patch(*where, {"spec": {"replicas": 0}})
        story.run(2 * MINUTE)
        for claim in story.all(NODE_CLAIMS):
            story.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
        story.run(5 * MINUTE)
        assert story.count("instances") == 0
        story.store.patch(*where, {"spec": {"replicas": 3}})
        story.run(5 * MINUTE)
        assert (story.running("db"), zones(story)) == (3, before)


def test_a_class_that_allows_one_zone_gets_nodes_in_that_zone() -> None:
    database = of_class(a_stateful_set(replicas=2, storage="1Gi", cpu="1500m"), "narrow")
    with Story(*a_cluster(a_class("narrow", "zone-c"), database)) as story:
        story.run(10 * MINUTE)
        assert story.running("db") == 2
        assert {zone_of(story, name) for name in ("db-0", "db-1")} == {"zone-c"}


def test_a_class_that_does_not_wait_gets_nodes_where_its_volumes_are() -> None:
    with Story(*a_cluster(*a_settled_database())) as story:
        story.run(10 * MINUTE)
        assert story.running("db") == 3
        assert sorted(zones(story).values()) == ["zone-a", "zone-b", "zone-c"]


def test_a_pod_with_an_ephemeral_volume_gets_a_node_and_a_new_volume_on_the_next_one() -> None:
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
    with Story(*a_cluster(a_deployment(cpu="1500m", volumes=[scratch]))) as story:
        story.run(5 * MINUTE)
        assert story.running("web") == 1
        (before,) = story.all(PERSISTENT_VOLUMES)
        story.delete_claim()
        story.run(10 * MINUTE)
        assert story.running("web") == 1
        (after,) = story.all(PERSISTENT_VOLUMES)
        assert before["metadata"]["uid"] != after["metadata"]["uid"]


def test_more_volumes_than_a_node_attaches_need_a_second_node() -> None:
    many = [
        {"name": f"v{n}", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
        for n in range(VOLUMES_MAX // 2)
    ]
    with Story(*a_cluster(a_deployment(replicas=3, cpu="100m", volumes=many))) as story:
        story.run(5 * MINUTE)
        assert story.running("web") == 3
        assert story.count("nodes") == 2, "two pods a node, though there is room for all"


def test_a_missing_storage_class_is_a_verdict_and_an_event_on_the_pod() -> None:
    database = of_class(a_stateful_set(storage="1Gi"), "missing")
    with Story(*a_cluster(database)) as story:
        story.run(2 * MINUTE)
        assert story.count("claims") == 0
        sentence = "StorageClass missing of PersistentVolumeClaim default/data-db-0 does not exist"
        assert any(sentence in message for message in told(story, "db-0"))
        story.apply(a_class("missing"))
        story.run(3 * MINUTE)
        assert story.running("db") == 1


def test_a_missing_claim_is_an_event_on_the_pod_until_it_is_there() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    with Story(*a_cluster(a_pod("lonely", volumes=[volume]))) as story:
        story.run(2 * MINUTE)
        assert story.count("claims") == 0
        sentence = "PersistentVolumeClaim default/data does not exist"
        assert any(sentence in message for message in told(story, "lonely"))
        story.store.create(
            PERSISTENT_VOLUME_CLAIMS,
            {"metadata": {"name": "data", "namespace": "default"}, "spec": CLAIM},
        )
        story.run(3 * MINUTE)
        assert pod(story, "lonely")["status"]["phase"] == "Running"


def test_without_a_default_class_a_claim_that_names_none_is_told_so() -> None:
    with Story(*a_cluster()) as story:
        story.store.delete(STORAGE_CLASSES, "", "standard")
        story.apply(a_stateful_set(storage="1Gi"))
        story.run(2 * MINUTE)
        assert any("no StorageClass is the default" in said for said in told(story, "db-0"))


def a_disk_of(node: str) -> Manifest:
    """A local volume: a directory of one node."""
    at = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [at]}]}},
    }
    meta = {"name": "disk"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}


def test_a_node_is_not_consolidated_whose_disk_a_pod_uses() -> None:
    """The data would go with the instance, and the pod would be pending for ever."""
    pool = a_pool(
        requirements=[a_requirement(INSTANCE_TYPE, "m7i.xlarge")],
        disruption={"budgets": ANY, "consolidateAfter": "30s"},
    )
    local = a_class("local")
    local["provisioner"] = "kubernetes.io/no-provisioner"
    web = a_deployment(replicas=6, cpu="1500m")
    with Story(a_node_class(), pool, web, local) as story:
        story.run(5 * MINUTE)
        home = min(node["metadata"]["name"] for node in story.store.list(NODES))
        story.apply(a_disk_of(home))
        story.apply(of_class(a_stateful_set(replicas=1, storage="1Gi", cpu="300m"), "local"))
        story.run(5 * MINUTE)
        assert pod(story, "db-0")["spec"]["nodeName"] == home
        uid = pod(story, "db-0")["metadata"]["uid"]
        scale(story, 2)
        story.run(30 * MINUTE)
        assert len(story.store.list(NODES)) < 3
        assert (pod(story, "db-0")["metadata"]["uid"], story.running("db")) == (uid, 1)
        assert "Unconsolidatable" in story.reasons(f"Node/{home}")


@pytest.mark.parametrize("provisioner", ["rancher.io/local-path", "kubernetes.io/gce-pd"])
def test_a_driver_may_have_a_slash_in_its_name(provisioner: str) -> None:
    """As drivers had before CSI: a scenario with one ended with an error of the API server."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "old"},
        "provisioner": provisioner,
    }
    database = a_stateful_set(replicas=1, storage="1Gi")
    database["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = "old"
    with Story(a_node_class(), a_pool(), storage_class, database) as story:
        story.run(5 * MINUTE)
        assert story.running("db") == 1


def test_pods_of_one_owner_that_share_a_claim_for_one_pod_get_one_node() -> None:
    """A node for each of them was launched, and all but one were empty."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    web = a_deployment(replicas=20, cpu="1500m", volumes=[volume])
    two_cpus = a_requirement(INSTANCE_TYPE, "m7i.large")
    with Story(a_node_class(), a_pool(requirements=[two_cpus]), claim, web) as story:
        story.run(5 * MINUTE)
        assert (story.running("web"), story.cloud.launch_count) == (1, 1)
        said = {e["message"] for e in story.store.list(EVENTS) if e["reason"] == "FailedScheduling"}
        assert any("ReadWriteOncePod and is in use by Pod default/web" in one for one in said)
