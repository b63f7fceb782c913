"""Claims get their volumes: one that is there and fits, or a new one.

In the order in which the rules bite, for a claim without a volume:

1. a volume that names it, or that it names;
2. the smallest free volume of its class with its access modes and at least its size;
3. a new volume, when its class exists. A claim that names no class gets one as from a cluster's
   default class; ``storageClassName: ""`` asks for rule 1 and 2 only. A class that waits for the
   first consumer, and the default one does, waits until a pod with the claim has a node.

A deleted claim stays while a pod uses it. Its volume goes with it (``Delete``), once it is
attached nowhere, or is kept (``Retain``).

Simplified: volumes are reachable from every zone, and a waiting claim does not keep the
scheduler from binding its pod; the kubelet waits instead.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.model.api.resource import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Resource,
)
from tenure.model.values.quantity import parse_quantity
from tenure.sim.actors.volumes.attaching import AttachDetach
from tenure.sim.actors.volumes.uses import ClaimKey, ClaimUses
from tenure.sim.apiserver.admission.defaults import CLAIM_PROTECTION, VOLUME_PROTECTION
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

#: The driver of claims that name no class.
DRIVER: Final = "csi.sim.tenure.dev"
_WAITS: Final = "WaitForFirstConsumer"


class ClaimBinder:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        uses: ClaimUses,
        attachments: AttachDetach,
        *,
        provision_for: timedelta,
    ) -> None:
        self._environment, self._store, self._uses = environment, store, uses
        self._attachments = attachments
        self._provision_for = provision_for
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
        elif dig(claim, "status", "phase") != "Bound":
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
        volume = self._existing(claim)
        if volume is not None:
            self._bind(claim, volume)
        elif claim["metadata"]["uid"] not in self._provisioning and self._may_provision(claim, key):
            self._provisioning.add(claim["metadata"]["uid"])
            self._environment.after(self._provision_for, self._provision, key, claim)

    def _existing(self, claim: Obj) -> Obj | None:
        volumes = self._store.list(PERSISTENT_VOLUMES)
        wanted = claim["spec"].get("volumeName")
        for volume in volumes:
            taken_by = volume["spec"].get("claimRef")
            if taken_by is not None and _refers(taken_by, claim):
                return volume
            if wanted == volume["metadata"]["name"] and taken_by is None:
                return volume
        free = [] if wanted else [volume for volume in volumes if _fits(volume, claim)]
        return min(free, key=lambda v: (_size(v), v["metadata"]["name"]), default=None)

    def _may_provision(self, claim: Obj, key: ClaimKey) -> bool:
        class_name = claim["spec"].get("storageClassName")
        if class_name == "" or claim["spec"].get("volumeName"):
            return False
        mode = _WAITS
        if class_name is not None:
            storage_class = self._store.find(STORAGE_CLASSES, "", class_name)
            if storage_class is None:
                return False
            mode = storage_class.get("volumeBindingMode") or "Immediate"
        return mode != _WAITS or any(pod["spec"].get("nodeName") for pod in self._uses.of(key))

    def _provision(self, key: ClaimKey, asked: Obj) -> None:
        uid = asked["metadata"]["uid"]
        self._provisioning.discard(uid)
        claim = self._store.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None or claim["metadata"]["uid"] != uid:
            return
        class_name = claim["spec"].get("storageClassName") or ""
        storage_class = self._store.find(STORAGE_CLASSES, "", class_name) or {}
        driver = storage_class.get("provisioner") or DRIVER
        name = f"pvc-{uid}"
        spec: Obj = {
            "capacity": dig(claim, "spec", "resources", "requests") or {},
            "accessModes": claim["spec"].get("accessModes") or [],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "csi": {"driver": driver, "volumeHandle": name},
            "claimRef": _reference(claim),
        }
        if class_name:
            spec["storageClassName"] = class_name
        volume = self._store.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": spec})
        self._bind(claim, volume)

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


def _fits(volume: Obj, claim: Obj) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    if "claimRef" in spec or "deletionTimestamp" in volume["metadata"]:
        return False
    if (spec.get("storageClassName") or "") != (wanted.get("storageClassName") or ""):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    asked = dig(wanted, "resources", "requests", "storage")
    return _size(volume) >= (parse_quantity(asked) if asked else 0)


def _size(volume: Obj) -> int:
    capacity = dig(volume, "spec", "capacity", "storage")
    return parse_quantity(capacity) if capacity else 0
