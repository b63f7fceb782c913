"""Claims get their volumes: one that is there and fits, or a new one.

In the order in which the rules bite, for a claim without a volume:

1. a volume that names it, or that it names;
2. a claim that names no class gets the default class, if there is one by now;
3. where its class waits for the first consumer, nothing more happens until the scheduler has chosen
   the consumer's node, or a pod with the claim has one;
4. the smallest free volume of its class with its access modes and at least its size, which the node
   reaches;
5. a new volume, when its class exists and provisions. ``storageClassName: ""`` asks for a volume that
   is there. A new volume can be used from one zone only (``zones.py``).

A deleted claim stays while a pod uses it. Its volume goes with it (``Delete``), once it is
attached nowhere, or is kept (``Retain``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from tenure.model.api.resource import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Resource,
)
from tenure.sim.actors.scheduling.claims import (
    SELECTED_NODE,
    allows,
    class_of,
    free_volumes,
    is_bound,
    provisions,
    reaches,
    waits_for_consumer,
)
from tenure.sim.actors.volumes.attaching import AttachDetach
from tenure.sim.actors.volumes.uses import ClaimKey, ClaimUses
from tenure.sim.actors.volumes.zones import in_zone, zone_for
from tenure.sim.apiserver.admission.defaults import CLAIM_PROTECTION, VOLUME_PROTECTION
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.classes import default_class
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment


class ClaimBinder:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        uses: ClaimUses,
        attachments: AttachDetach,
        *,
        provision_for: timedelta,
        zones: Sequence[str],
    ) -> None:
        """``zones``: those of the cloud."""
        self._environment, self._store, self._uses = environment, store, uses
        self._attachments = attachments
        self._provision_for, self._zones = provision_for, zones
        self._provisioning: set[str] = set()
        store.subscribe(PERSISTENT_VOLUME_CLAIMS, self._on_claim, replay=True)
        store.subscribe(PERSISTENT_VOLUMES, self._on_volume)
        store.subscribe(STORAGE_CLASSES, self._on_class)

    def look(self, key: ClaimKey) -> None:
        """The claim, or its pods, have changed."""
        claim = self._store.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None:
            return
        if "deletionTimestamp" in claim["metadata"]:
            self._unprotect(claim, key)
        elif not is_bound(claim):
            self._give_volume(claim, key)

    def _on_claim(self, type_: str, claim: Obj, _old: Obj | None) -> None:
        if type_ == DELETED:
            self._reclaim(claim)
        else:
            self.look(_key(claim))

    def _on_volume(self, type_: str, told: Obj, old: Obj | None) -> None:
        volume = self._store.find(PERSISTENT_VOLUMES, "", told["metadata"]["name"])
        if type_ == DELETED or volume is None:
            return
        if "deletionTimestamp" in volume["metadata"]:
            self._release(volume)
        elif old is None and dig(volume, "status", "phase") != "Bound":
            if "claimRef" not in volume["spec"]:
                self._say(volume, "Available")
            self._look_at_all()

    def _on_class(self, *_: object) -> None:
        self._look_at_all()

    def _look_at_all(self) -> None:
        for claim in self._store.list(PERSISTENT_VOLUME_CLAIMS):
            self.look(_key(claim))

    # A volume for a claim.

    def _give_volume(self, claim: Obj, key: ClaimKey) -> None:
        volume = self._meant(claim)
        if volume is not None:
            self._bind(claim, volume)
        elif not claim["spec"].get("volumeName"):
            self._give_any_volume(self._with_class(claim, key), key)

    def _give_any_volume(self, claim: Obj, key: ClaimKey) -> None:
        storage_class = class_of(self._store, claim)
        node = None
        if waits_for_consumer(storage_class):
            node = self._consumer_node(claim, key)
            if node is None:
                self._await_another_node(claim, key)
                return
        for volume in free_volumes(self._store, claim):
            if node is None or reaches(volume, node["metadata"]["name"], _labels(node)):
                self._bind(claim, volume)
                return
        if storage_class is not None and provisions(storage_class):
            self._begin_provisioning(claim, key, storage_class, node)

    def _meant(self, claim: Obj) -> Obj | None:
        wanted = claim["spec"].get("volumeName")
        for volume in self._store.list(PERSISTENT_VOLUMES):
            taken_by = volume["spec"].get("claimRef")
            if taken_by is not None and _refers(taken_by, claim):
                return volume
            if wanted == volume["metadata"]["name"] and taken_by is None:
                return volume
        return None

    def _with_class(self, claim: Obj, key: ClaimKey) -> Obj:
        if "storageClassName" in claim["spec"] or not (name := default_class(self._store)):
            return claim
        patch = {"spec": {"storageClassName": name}}
        return self._store.patch(PERSISTENT_VOLUME_CLAIMS, *key, patch)

    def _consumer_node(self, claim: Obj, key: ClaimKey) -> Obj | None:
        selected = dig(claim, "metadata", "annotations", SELECTED_NODE)
        used_on = (pod["spec"].get("nodeName") for pod in self._uses.of(key))
        name = selected or next((node for node in used_on if node), "")
        return self._store.find(NODES, "", name) if name else None

    def _await_another_node(self, claim: Obj, key: ClaimKey) -> None:
        """The chosen node has gone meanwhile: the scheduler is to choose another."""
        if dig(claim, "metadata", "annotations", SELECTED_NODE):
            patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            self._store.patch(PERSISTENT_VOLUME_CLAIMS, *key, patch)

    def _begin_provisioning(
        self, claim: Obj, key: ClaimKey, storage_class: Obj, node: Obj | None
    ) -> None:
        uid = claim["metadata"]["uid"]
        if uid in self._provisioning:
            return
        if node is not None and not allows(storage_class, _labels(node)):
            return
        self._provisioning.add(uid)
        self._environment.after(self._provision_for, self._provision, key, uid)

    def _provision(self, key: ClaimKey, uid: str) -> None:
        self._provisioning.discard(uid)
        claim = self._store.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None or claim["metadata"]["uid"] != uid or is_bound(claim):
            return
        storage_class = class_of(self._store, claim)
        if storage_class is None:
            return
        node = None
        if waits_for_consumer(storage_class):
            node = self._consumer_node(claim, key)
            if node is None:
                self._await_another_node(claim, key)
                return
        zone = zone_for(claim, storage_class, node, self._zones)
        volume = _new_volume(claim, storage_class, zone)
        self._bind(claim, self._store.create(PERSISTENT_VOLUMES, volume))

    def _bind(self, claim: Obj, volume: Obj) -> None:
        name = volume["metadata"]["name"]
        patch = {"spec": {"claimRef": _reference(claim)}}
        self._say(self._store.patch(PERSISTENT_VOLUMES, "", name, patch), "Bound")
        where = (PERSISTENT_VOLUME_CLAIMS, *_key(claim))
        self._store.patch(*where, {"spec": {"volumeName": name}})
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        self._store.patch(*where, {"status": status}, subresource="status")
        self._attachments.look(_key(claim))

    def _say(self, volume: Obj, phase: str) -> None:
        name, patch = volume["metadata"]["name"], {"status": {"phase": phase}}
        self._store.patch(PERSISTENT_VOLUMES, "", name, patch, subresource="status")

    # The end of both.

    def _unprotect(self, claim: Obj, key: ClaimKey) -> None:
        if not self._uses.of(key):
            self._take_off(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION)

    def _reclaim(self, claim: Obj) -> None:
        for volume in self._store.list(PERSISTENT_VOLUMES):
            if not _refers(volume["spec"].get("claimRef") or {}, claim):
                continue
            self._say(volume, "Released")
            self.discard_released(volume["metadata"]["name"])

    def discard_released(self, name: str) -> None:
        """Delete a volume whose claim is gone, if its policy says so and no node has it."""
        volume = self._store.find(PERSISTENT_VOLUMES, "", name)
        if volume is None or dig(volume, "status", "phase") != "Released":
            return
        if self._attachments.is_attached(name):
            return
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._store.delete(PERSISTENT_VOLUMES, "", name)

    def _release(self, volume: Obj) -> None:
        if dig(volume, "status", "phase") != "Bound":
            self._take_off(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION)

    def _take_off(self, resource: Resource, obj: Obj, finalizer: str) -> None:
        metadata = obj["metadata"]
        left = [one for one in metadata.get("finalizers") or () if one != finalizer]
        patch = {"metadata": {"finalizers": left or None}}
        self._store.patch(resource, metadata.get("namespace", ""), metadata["name"], patch)


def _key(claim: Obj) -> ClaimKey:
    return claim["metadata"]["namespace"], claim["metadata"]["name"]


def _reference(claim: Obj) -> Obj:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _refers(reference: Obj, claim: Obj) -> bool:
    """Whether the volume is kept for this claim; one without a UID is for the next of the name."""
    named = (reference.get("namespace"), reference.get("name")) == _key(claim)
    return named and reference.get("uid", claim["metadata"]["uid"]) == claim["metadata"]["uid"]


def _labels(node: Obj) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _new_volume(claim: Obj, storage_class: Obj, zone: str) -> Obj:
    name = f"pvc-{claim['metadata']['uid']}"
    spec: Obj = {
        "capacity": dig(claim, "spec", "resources", "requests") or {},
        "accessModes": claim["spec"].get("accessModes") or [],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
        "claimRef": _reference(claim),
    }
    if zone:
        spec["nodeAffinity"] = in_zone(zone)
    return {"metadata": {"name": name}, "spec": spec}
