"""The scheduler and persistent volumes: who waits, for what, where pods go, and when it looks again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.model.api.resource import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tests.sim.workworld import World, a_node, a_pod, a_world

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disk.example.com"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        for zone in ("a", "b"):
            world.add(NODES, a_node(zone, labels={ZONE: zone}))
        yield world.with_scheduler()


def in_zone(zone: str) -> dict[str, Any]:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def a_class(name: str = "fast", *zones: str, waits: bool = True, **more: Any) -> dict[str, Any]:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    topologies = {"allowedTopologies": allowed} if zones else {}
    rest = {"provisioner": DRIVER, "volumeBindingMode": mode, **topologies, **more}
    return {"metadata": {"name": name}, **rest}


def a_claim(name: str = "data", storage_class: str = "fast", **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {**wanted, "storageClassName": storage_class, **spec}}


def a_volume(name: str, zone: str, storage_class: str = "fast", **spec: Any) -> dict[str, Any]:
    given = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "nodeAffinity": in_zone(zone),
        **spec,
    }
    return {"metadata": {"name": name}, "spec": given}


def bind(world: World, claim: str, volume: str) -> None:
    """As the volume controller does."""
    where = (PERSISTENT_VOLUME_CLAIMS, "default", claim)
    world.store.patch(*where, {"spec": {"volumeName": volume}})
    world.store.patch(*where, {"status": {"phase": "Bound"}}, subresource="status")


def bound(world: World, claim: str, zone: str, **spec: Any) -> None:
    """A claim with a volume that can be used from the zone."""
    world.add(PERSISTENT_VOLUMES, a_volume(f"pv-{claim}", zone))
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim(claim, **spec))
    bind(world, claim, f"pv-{claim}")


def with_claims(pod: str, *claims: str, **spec: Any) -> dict[str, Any]:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return a_pod(pod, cpu="100m", volumes=volumes, **spec)


def why(world: World, pod: str = "db") -> str:
    return world.why_pending(pod)[1]


def attaches(node: str, count: int | None, driver: str = DRIVER) -> dict[str, Any]:
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    entry = {"name": driver, "nodeID": node, "topologyKeys": [ZONE], **allocatable}
    return {"metadata": {"name": node}, "spec": {"drivers": [entry]}}


def test_a_pod_whose_claim_is_missing_waits_for_it(world: World) -> None:
    world.add(STORAGE_CLASSES, a_class())
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world) == '0/2 nodes are available: persistentvolumeclaim "data" not found.'
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim())
    world.run(1)
    assert world.node_of("db") in ("a", "b")


def test_a_pod_with_an_ephemeral_volume_waits_for_the_claim_of_its_own(world: World) -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": a_claim()}}
    world.add(PODS, a_pod("db", volumes=[volume]))
    world.run(1)
    assert why(world) == (
        "0/2 nodes are available: waiting for ephemeral volume controller to create the "
        'persistentvolumeclaim "db-scratch".'
    )


def test_a_pod_whose_claim_is_being_deleted_waits(world: World) -> None:
    bound(world, "data", "a")
    world.store.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world) == '0/2 nodes are available: persistentvolumeclaim "data" is being deleted.'


@pytest.mark.parametrize("storage_class", ["at-once", "missing", ""])
def test_a_claim_that_does_not_wait_for_a_pod_must_have_its_volume(
    world: World, storage_class: str
) -> None:
    world.add(STORAGE_CLASSES, a_class("at-once", waits=False))
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim("data", storage_class))
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world) == (
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    )
    world.add(PERSISTENT_VOLUMES, a_volume("pv", "b", storage_class))
    bind(world, "data", "pv")
    world.run(1)
    assert world.node_of("db") == "b"


def test_a_pod_goes_where_its_volume_is(world: World) -> None:
    bound(world, "data", "b")
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert world.node_of("db") == "b"


def test_a_pod_whose_volume_is_in_another_zone_is_told_and_waits_for_a_node(world: World) -> None:
    bound(world, "data", "c")
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world) == f"0/2 nodes are available: 2 {OUT_OF_REACH}."
    world.add(NODES, a_node("c", labels={ZONE: "c"}))
    world.run(1)
    assert world.node_of("db") == "c"


def test_volumes_in_two_zones_fit_nowhere(world: World) -> None:
    bound(world, "one", "a")
    bound(world, "two", "b")
    world.add(PODS, with_claims("db", "one", "two"))
    world.run(1)
    assert why(world) == f"0/2 nodes are available: 2 {OUT_OF_REACH}."


def test_a_claim_bound_to_a_volume_that_is_gone_fits_nowhere(world: World) -> None:
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim())
    bind(world, "data", "gone")
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world).endswith(
        "2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."
    )


def test_a_claim_that_waits_is_told_the_node_of_its_pod(world: World) -> None:
    world.add(STORAGE_CLASSES, a_class("fast", "b"))
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim())
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert world.node_of("db") == "b", "volumes are made there only"
    claim = world.store.get(PERSISTENT_VOLUME_CLAIMS, "default", "data")
    assert claim["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "b"}


def test_a_second_pod_of_a_claim_without_a_volume_goes_to_the_node_of_the_first(
    world: World,
) -> None:
    world.add(STORAGE_CLASSES, a_class())
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim())
    for pod in ("one", "two", "three"):
        world.add(PODS, with_claims(pod, "data"))
    world.run(1)
    assert len({world.node_of(pod) for pod in ("one", "two", "three")}) == 1


def test_where_the_class_allows_no_node_it_waits_until_the_class_changes(world: World) -> None:
    world.add(STORAGE_CLASSES, a_class("fast", "c"))
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim())
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world) == f"0/2 nodes are available: 2 {NONE_TO_BIND}."
    world.store.delete(STORAGE_CLASSES, "", "fast")
    world.add(STORAGE_CLASSES, a_class("fast", "a"))
    world.run(1)
    assert world.node_of("db") == "a"


def test_a_class_without_a_provisioner_needs_a_volume_that_is_there(world: World) -> None:
    world.add(STORAGE_CLASSES, a_class("local", provisioner="kubernetes.io/no-provisioner"))
    world.add(PERSISTENT_VOLUME_CLAIMS, a_claim("data", "local"))
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert why(world) == f"0/2 nodes are available: 2 {NONE_TO_BIND}."
    world.add(PERSISTENT_VOLUMES, a_volume("disk", "b", "local"))
    world.run(1)
    assert world.node_of("db") == "b"


def test_a_node_attaches_no_more_volumes_than_its_driver_says(world: World) -> None:
    world.cordon("b")
    world.add(CSI_NODES, attaches("a", 2))
    for name in ("one", "two", "three"):
        bound(world, name, "a")
        world.add(PODS, with_claims(name, name))
    world.add(PODS, with_claims("again", "one"))
    world.run(1)
    assert [world.node_of(pod) for pod in ("one", "two", "three", "again")] == ["a", "a", "", "a"]
    assert why(world, "three") == (
        "0/2 nodes are available: 1 node(s) exceed max volume count, 1 node(s) were unschedulable."
    )
    world.store.patch(CSI_NODES, "", "a", {"spec": attaches("a", 3)["spec"]})
    world.run(1)
    assert world.node_of("three") == "a"


def test_what_is_still_attached_counts_too(world: World) -> None:
    world.cordon("b")
    world.add(CSI_NODES, attaches("a", 1))
    source = {"persistentVolumeName": "old"}
    spec = {"attacher": DRIVER, "nodeName": "a", "source": source}
    world.add(VOLUME_ATTACHMENTS, {"metadata": {"name": "va"}, "spec": spec})
    bound(world, "data", "a")
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert "exceed max volume count" in why(world)
    world.store.delete(VOLUME_ATTACHMENTS, "", "va")
    world.run(1)
    assert world.node_of("db") == "a"


@pytest.mark.parametrize(
    "csi_node", [None, attaches("a", None), attaches("a", 0, driver="another.example.com")]
)
def test_a_driver_without_a_count_attaches_any_number(
    world: World, csi_node: dict[str, Any] | None
) -> None:
    world.cordon("b")
    if csi_node is not None:
        world.add(CSI_NODES, csi_node)
    bound(world, "data", "a")
    world.add(PODS, with_claims("db", "data"))
    world.run(1)
    assert world.node_of("db") == "a"


def test_a_claim_for_one_pod_is_free_when_that_pod_is_gone(world: World) -> None:
    bound(world, "data", "a", accessModes=["ReadWriteOncePod"])
    world.add(PODS, with_claims("first", "data"))
    world.run(1)
    world.add(PODS, with_claims("second", "data"))
    world.run(1)
    assert why(world, "second") == (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with "
        "ReadWriteOncePod access mode already in-use by another pod."
    )
    world.store.delete(PODS, "default", "first")
    world.run(5)
    assert world.node_of("second") == "a"


def test_a_node_that_the_pod_does_not_want_is_not_asked_about_volumes(world: World) -> None:
    bound(world, "data", "a")
    world.add(PODS, with_claims("db", "data", nodeSelector={ZONE: "b"}))
    world.run(1)
    assert why(world) == (
        f"0/2 nodes are available: 1 {OUT_OF_REACH}, "
        "1 node(s) didn't match Pod's node affinity/selector."
    )


def test_no_pod_is_preempted_for_one_that_its_volume_keeps_away(world: World) -> None:
    world.add(PODS, a_pod("low", cpu="4", nodeSelector={ZONE: "a"}))
    world.run(1)
    bound(world, "data", "c")
    world.add(PODS, with_claims("db", "data", priorityClassName="system-cluster-critical"))
    world.run(1)
    assert "deletionTimestamp" not in world.pod("low")["metadata"]
