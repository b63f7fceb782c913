"""What the test bed's storage driver does next, from what it sees."""

from __future__ import annotations

from typing import Any

from tenure.model.api.names import ZONE
from tenure.model.api.resource import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from testbed.storage import orders as driver
from testbed.storage.orders import Order, Seen, orders

Json = dict[str, Any]


def seen(*objects: tuple[Resource, Json]) -> Seen:
    known = Seen()
    for kind, thing in objects:
        metadata = {"uid": f"uid-{thing['metadata']['name']}", "resourceVersion": "1"}
        thing["metadata"] = metadata | thing["metadata"]
        key = (thing["metadata"].get("namespace", ""), thing["metadata"]["name"])
        known.by_kind[kind][key] = thing
    return known


def a_node(**metadata: Any) -> tuple[Resource, Json]:
    said = {
        "name": "n1",
        "labels": {ZONE: "zone-b", driver.VOLUMES_LABEL: "3"},
        "annotations": {driver.ATTACHED_FOR: "true"},
        **metadata,
    }
    taints = [{"key": driver.NOT_READY, "effect": "NoSchedule"}, {"key": "other"}]
    return NODES, {"metadata": said, "spec": {"taints": taints}}


def a_csi_node() -> tuple[Resource, Json]:
    return CSI_NODES, {"metadata": {"name": "n1"}, "spec": {"drivers": []}}


def a_claim(**annotations: str) -> tuple[Resource, Json]:
    metadata = {
        "name": "data",
        "namespace": "default",
        "annotations": {driver.PROVISIONER: driver.DRIVER, **annotations},
    }
    spec = {
        "storageClassName": "disks",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": spec}


def a_class(mode: str, *zones: str) -> tuple[Resource, Json]:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [*zones]}]}] if zones else []
    return STORAGE_CLASSES, {
        "metadata": {"name": "disks"},
        "volumeBindingMode": mode,
        "allowedTopologies": topologies,
    }


def a_volume(phase: str, policy: str = "Delete") -> tuple[Resource, Json]:
    metadata = {"name": "pv", "annotations": {driver.PROVISIONED_BY: driver.DRIVER}}
    spec = {"persistentVolumeReclaimPolicy": policy}
    return PERSISTENT_VOLUMES, {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def an_attachment(**metadata: Any) -> tuple[Resource, Json]:
    spec = {"attacher": driver.DRIVER, "source": {"persistentVolumeName": "pv"}}
    return VOLUME_ATTACHMENTS, {"metadata": {"name": "a", **metadata}, "spec": spec}


def zone_of(order: Order) -> str:
    (term,) = order.body["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (zone,) = term["matchExpressions"][0]["values"]
    return str(zone)


def test_a_node_gets_a_csi_node_with_its_limit_before_its_startup_taint_goes() -> None:
    (first,) = orders(seen(a_node()))
    (published,) = first.body["spec"]["drivers"]
    assert (first.verb, first.kind) == ("create", CSI_NODES)
    assert published["allocatable"] == {"count": 3}
    (second,) = orders(seen(a_node(), a_csi_node()))
    assert second.body["spec"]["taints"] == [{"key": "other"}]
    assert second.body["metadata"] == {"resourceVersion": "1"}
    assert not [*orders(seen(a_node(deletionTimestamp="now")))]


def test_a_claim_that_waits_gets_its_volume_in_the_zone_of_the_selected_node() -> None:
    waits = a_class("WaitForFirstConsumer", "zone-a", "zone-b")
    assert not [*orders(seen(waits, a_claim()))]
    chosen = a_claim(**{driver.SELECTED_NODE: "n1"})
    made = [*orders(seen(waits, chosen, a_node(), a_csi_node()))][-1]
    assert (made.kind, zone_of(made)) == (PERSISTENT_VOLUMES, "zone-b")
    assert made.body["spec"]["claimRef"]["uid"] == "uid-data"


def test_a_selected_node_that_is_gone_is_given_back_to_the_scheduler() -> None:
    chosen = a_claim(**{driver.SELECTED_NODE: "n1"})
    (order,) = orders(seen(a_class("WaitForFirstConsumer"), chosen))
    assert order.body == {"metadata": {"annotations": {driver.SELECTED_NODE: None}}}


def test_a_claim_that_does_not_wait_gets_its_volume_where_its_class_allows_it() -> None:
    (made,) = orders(seen(a_class("Immediate", "zone-c"), a_claim()))
    assert zone_of(made) == "zone-c"
    foreign = a_claim(**{driver.PROVISIONER: "disks.example.com"})
    assert not [*orders(seen(a_class("Immediate"), foreign))]


def test_a_released_volume_is_deleted_once_it_is_attached_nowhere() -> None:
    (order,) = orders(seen(a_volume("Released")))
    assert (order.verb, order.uid) == ("delete", "uid-pv")
    assert not [*orders(seen(a_volume("Bound")))]
    assert not [*orders(seen(a_volume("Released", "Retain")))]
    held = an_attachment(finalizers=[driver.FINALIZER], deletionTimestamp="now")
    (only,) = orders(seen(a_volume("Released"), held))
    assert only.kind == VOLUME_ATTACHMENTS


def test_an_attachment_is_held_then_attached_and_let_go_when_it_is_being_deleted() -> None:
    (first,) = orders(seen(an_attachment(finalizers=["other"])))
    assert first.body["metadata"]["finalizers"] == ["other", driver.FINALIZER]
    (second,) = orders(seen(an_attachment(finalizers=[driver.FINALIZER])))
    assert (second.subresource, second.body) == ("status", {"status": {"attached": True}})
    leaving = an_attachment(finalizers=["other", driver.FINALIZER], deletionTimestamp="now")
    (last,) = orders(seen(leaving))
    assert last.body["metadata"]["finalizers"] == ["other"]
