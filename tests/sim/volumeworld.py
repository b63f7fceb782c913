"""Claims, volumes and pods with them, for stories of the node side of a small cluster."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tenure.sim.apiserver.objects.tree import Obj
from tests.sim.nodeworld import World

ZONE = "topology.kubernetes.io/zone"
BOUND = 40  # Seconds after noon at which ``a_node`` is Ready and pods are bound.
#: A volume is there after a second, attached after five more; a pod starts within three.
ATTACHED, RUNNING = BOUND + 6, BOUND + 9


def a_claim(world: World, name: str = "data", **spec: Any) -> Obj:
    requests = {"requests": {"storage": "1Gi"}}
    claim = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": requests, **spec},
    }
    return world.store.create(PERSISTENT_VOLUME_CLAIMS, claim)


def add_pod(world: World, name: str, node: str, claim: str = "data", **more: Any) -> Obj:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return world.add_pod(name, node, volumes=[volume], **more)


def attachments(world: World) -> list[tuple[str, bool]]:
    """Where volumes are, and whether they are really there."""
    found = world.store.list(VOLUME_ATTACHMENTS)
    return [(va["spec"]["nodeName"], va["status"]["attached"]) for va in found]


def claim_phase(world: World, name: str = "data") -> str:
    claim = world.store.get(PERSISTENT_VOLUME_CLAIMS, "default", name)
    phase: str = claim["status"]["phase"]
    return phase


def a_volume(name: str, size: str, **spec: Any) -> Obj:
    given = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": {"name": name}, "spec": {"nfs": {"server": "a", "path": "/"}, **given}}


def a_class(world: World, name: str = "fast", *zones: str, **more: Any) -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    topologies = {"allowedTopologies": allowed} if zones else {}
    obj = {"metadata": {"name": name}, "provisioner": "disk.example.com", **topologies, **more}
    world.store.create(STORAGE_CLASSES, obj)


def zones_of(world: World) -> list[str]:
    """Of the volumes, by the name of their claim: from where they can be used."""
    volumes = sorted(
        world.store.list(PERSISTENT_VOLUMES), key=lambda v: v["spec"]["claimRef"]["name"]
    )
    terms = [v["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] for v in volumes]
    for (term,) in terms:
        assert [one["key"] for one in term["matchExpressions"]] == [ZONE]
    return [term["matchExpressions"][0]["values"][0] for (term,) in terms]
