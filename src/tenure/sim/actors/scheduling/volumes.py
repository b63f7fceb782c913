"""What the persistent volumes of a pod have to say about where it may go, in kube-scheduler's words.

First about the pod as a whole, whatever the nodes are: a claim that is missing, has lost its volume or
is being deleted, and one that has no volume though its class does not wait for a pod.

Then of each node that passed the filters before, in this order: a claim that only one pod may use and
another one uses · more volumes than the node attaches · a volume that the node does not reach · no
volume to bind, and none that can be made there.

A volume counts once on its node, whether pods use it or it is merely attached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.model.api.resource import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
)
from tenure.sim.actors.scheduling.claims import (
    SELECTED_NODE,
    ClaimUse,
    allows,
    class_of,
    free_volumes,
    is_bound,
    provisions,
    reaches,
    waits_for_consumer,
)
from tenure.sim.actors.scheduling.classes import PodClass
from tenure.sim.actors.scheduling.placement import NodeState, Placement
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store

_ONE_POD: Final = "ReadWriteOncePod"
_UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
_TOO_MANY: Final = "node(s) exceed max volume count"
_OUT_OF_REACH: Final = "node(s) didn't match PersistentVolume's node affinity"
_NONE_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
_NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

#: A volume by its driver and name.
Attached = tuple[str, str]


class PodVolumes:
    """Answers for pods of a class with claims, as the store is at this moment."""

    def __init__(self, store: Store, placement: Placement) -> None:
        self._store, self._placement = store, placement

    def problem(self, cls: PodClass) -> str:
        """Why no node will do; empty: the nodes are to be asked."""
        namespace = cls.kin.namespace
        for use in cls.claims:
            if problem := self._problem_of(use, namespace):
                return problem
        if any(self._waits_for_volume(self._claim(namespace, use.name)) for use in cls.claims):
            return _UNBOUND
        return ""

    def _problem_of(self, use: ClaimUse, namespace: str) -> str:
        claim = self._store.find(PERSISTENT_VOLUME_CLAIMS, namespace, use.name)
        named = f'persistentvolumeclaim "{use.name}"'
        if claim is None:
            waits = "waiting for ephemeral volume controller to create the "
            return f"{waits}{named}" if use.ephemeral else f"{named} not found"
        if dig(claim, "status", "phase") == "Lost":
            volume = claim["spec"].get("volumeName", "")
            return f'{named} bound to non-existent persistentvolume "{volume}"'
        if "deletionTimestamp" in claim["metadata"]:
            return f"{named} is being deleted"
        return ""

    def _waits_for_volume(self, claim: Obj) -> bool:
        if is_bound(claim):
            return False
        waits = waits_for_consumer(class_of(self._store, claim))
        return not waits or bool(claim["spec"].get("volumeName"))

    def rule(self, cls: PodClass) -> VolumeRule:
        """What nodes are asked. There is no ``problem`` with the class."""
        claims = [self._claim(cls.kin.namespace, use.name) for use in cls.claims]
        return VolumeRule(self._store, self._placement, claims)

    def select_node(self, cls: PodClass, node: str) -> None:
        """Tell the claims that wait for their first consumer where it goes."""
        patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
        for use in cls.claims:
            where = (PERSISTENT_VOLUME_CLAIMS, cls.kin.namespace, use.name)
            if not is_bound(self._store.get(*where)):
                self._store.patch(*where, patch)

    def _claim(self, namespace: str, name: str) -> Obj:
        return self._store.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)


class VolumeRule:
    def __init__(self, store: Store, placement: Placement, claims: list[Obj]) -> None:
        self._store, self._placement, self._claims = store, placement, claims
        unbound = [claim for claim in claims if not is_bound(claim)]
        self._free = {one["metadata"]["name"]: free_volumes(store, one) for one in unbound}
        self._wanted = {one for claim in claims if (one := self._attached_for(claim))}
        self._attachments = self._attachments_by_node() if self._wanted else {}
        self._in_use = any(
            _ONE_POD in (claim["spec"].get("accessModes") or ())
            and placement.uses(claim["metadata"]["namespace"], claim["metadata"]["name"])
            for claim in claims
        )

    def refusal(self, node: NodeState) -> str | None:
        if self._in_use:
            return _IN_USE
        if self._wanted and self._exceeds(node):
            return _TOO_MANY
        return self._unreachable(node)

    def _unreachable(self, node: NodeState) -> str | None:
        none_to_bind = False
        for claim in self._claims:
            if not is_bound(claim):
                none_to_bind = none_to_bind or not self._can_bind(claim, node)
                continue
            volume = self._volume(claim)
            if volume is None:
                return _NO_VOLUME
            if not reaches(volume, node.name, node.labels):
                return _OUT_OF_REACH
        return _NONE_TO_BIND if none_to_bind else None

    def _can_bind(self, claim: Obj, node: NodeState) -> bool:
        selected = dig(claim, "metadata", "annotations", SELECTED_NODE)
        if selected:
            return bool(selected == node.name)
        free = self._free[claim["metadata"]["name"]]
        if any(reaches(volume, node.name, node.labels) for volume in free):
            return True
        storage_class = class_of(self._store, claim)
        return (
            storage_class is not None
            and provisions(storage_class)
            and allows(storage_class, node.labels)
        )

    # What the node attaches.

    def _exceeds(self, node: NodeState) -> bool:
        csi_node = self._store.find(CSI_NODES, "", node.name)
        limits = _limits(csi_node) if csi_node is not None else {}
        if not limits.keys() & {driver for driver, _ in self._wanted}:
            return False
        there = {*self._attachments.get(node.name, ()), *self._used_on(node)}
        asked = there | self._wanted
        return any(
            driver in limits and sum(one[0] == driver for one in asked) > limits[driver]
            for driver, _ in self._wanted - there
        )

    def _used_on(self, node: NodeState) -> set[Attached]:
        found: set[Attached] = set()
        for place in self._placement.on(node.name).values():
            for use in place.cls.claims:
                namespace = place.cls.kin.namespace
                claim = self._store.find(PERSISTENT_VOLUME_CLAIMS, namespace, use.name)
                if claim is not None and (one := self._attached_for(claim)):
                    found.add(one)
        return found

    def _attached_for(self, claim: Obj) -> Attached | None:
        """The volume of a claim that has none yet goes by the claim's name."""
        if is_bound(claim):
            volume = self._volume(claim)
            return _attached(volume) if volume is not None else None
        storage_class = class_of(self._store, claim)
        if storage_class is None or not provisions(storage_class):
            return None
        metadata = claim["metadata"]
        return storage_class["provisioner"], f"{metadata['namespace']}/{metadata['name']}"

    def _attachments_by_node(self) -> dict[str, set[Attached]]:
        found: dict[str, set[Attached]] = {}
        for one in self._store.list(VOLUME_ATTACHMENTS):
            spec = one["spec"]
            name = spec["source"].get("persistentVolumeName") or one["metadata"]["name"]
            found.setdefault(spec["nodeName"], set()).add((spec["attacher"], name))
        return found

    def _volume(self, claim: Obj) -> Obj | None:
        return self._store.find(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"])


def _attached(volume: Obj) -> Attached | None:
    driver = dig(volume, "spec", "csi", "driver")
    return (driver, volume["metadata"]["name"]) if driver else None


def _limits(csi_node: Obj) -> Mapping[str, int]:
    counts = {
        driver["name"]: dig(driver, "allocatable", "count")
        for driver in dig(csi_node, "spec", "drivers") or ()
    }
    return {name: count for name, count in counts.items() if count is not None}
