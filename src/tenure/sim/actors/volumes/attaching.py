"""The attach-detach controller: volumes follow the pods that use them, node by node.

A volume is attached to a node once a pod with it is bound there. One that only a single node may
write to (``ReadWriteOnce``) waits until it is attached nowhere else. It is detached when the last
pod with it there is finished or gone, and the kubelet has unmounted it, which a living one has done
by then. While it is still mounted, because the kubelet is dead or the volume *sticks*, it
stays, until

* the kubelet is back, or the story lets go of it;
* six minutes have passed and the Node is gone or not Ready: then it is force detached;
* the Node carries the taint ``node.kubernetes.io/out-of-service``: force detached, too, and at once.

The objects it writes are the driver's orders (``driver.py``). Only volumes of a CSI driver are
attached; others are there wherever their pod is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api.resource import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
)
from tenure.sim.actors.nodestatus import READY, status_of
from tenure.sim.actors.volumes.driver import is_ours, tracking
from tenure.sim.actors.volumes.uses import ClaimKey, ClaimUses, claims_of
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch, strikes

FORCE_AFTER: Final = timedelta(minutes=6)
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_SHARED: Final = ("ReadWriteMany", "ReadOnlyMany")


class _Leaving:
    """A volume that no pod on the node needs any more."""

    __slots__ = ("asked_at", "sticks")

    def __init__(self, asked_at: datetime, *, sticks: bool) -> None:
        self.asked_at, self.sticks = asked_at, sticks


class AttachDetach:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        uses: ClaimUses,
        *,
        alive: Callable[[str], bool],
        faults: FaultSwitch,
    ) -> None:
        """``alive``: whether that node's kubelet is at work."""
        self._environment, self._store, self._uses = environment, store, uses
        self._alive, self._faults = alive, faults
        self._random = environment.random_for("volumes")
        #: Attachments by volume and node.
        self._attached: dict[str, dict[str, Obj]] = {}
        self._leaving: dict[tuple[str, str], _Leaving] = {}
        self._sticky_nodes: set[str] = set()
        self._on_ready: list[Callable[[Obj], object]] = []
        self._on_detached: list[Callable[[str], object]] = []
        store.subscribe(VOLUME_ATTACHMENTS, self._on_attachment, replay=True)
        store.subscribe(NODES, self._on_node)

    # What others ask and do.

    def is_ready(self, pod: Obj) -> bool:
        """Whether all of the pod's volumes are there, on its node."""
        return all(self._is_there(claim, pod["spec"]["nodeName"]) for claim in claims_of(pod))

    def is_attached(self, volume: str) -> bool:
        """Whether the volume is attached to any node."""
        return volume in self._attached

    def on_ready(self, listener: Callable[[Obj], object]) -> None:
        """Call back with a bound pod when one of its volumes has come."""
        self._on_ready.append(listener)

    def on_detached(self, listener: Callable[[str], object]) -> None:
        """Call back with a volume when it has left a node."""
        self._on_detached.append(listener)

    def stick(self, node: str) -> None:
        """From now on no volume is unmounted from that node."""
        self._sticky_nodes.add(node)

    def unstick(self, node: str) -> None:
        """Volumes leave that node again; those that are stuck there, too."""
        self._sticky_nodes.discard(node)
        for (_, where), leaving in self._leaving.items():
            if where == node:
                leaving.sticks = False
        self.kubelet_is_back(node)

    def kubelet_is_back(self, node: str) -> None:
        """It unmounts what no pod needs any more."""
        for volume, where in [*self._leaving]:
            if where == node:
                self._evaluate(volume, node)

    # Volumes follow pods.

    def look(self, claim: ClaimKey) -> None:
        """The pods that use the claim have changed, or its volume has."""
        volume = self._volume_of(claim)
        if volume is None:
            return
        if dig(volume, "spec", "csi") is None:
            self._tell(claim)
            return
        name = volume["metadata"]["name"]
        nodes = dict.fromkeys(pod["spec"].get("nodeName", "") for pod in self._uses.of(claim))
        nodes.pop("", None)
        for node in [*self._attached.get(name, ())]:
            if node in nodes:
                self._leaving.pop((name, node), None)
            else:
                self._begin_leaving(name, node)
        for node in nodes:
            if node not in self._attached.get(name, ()) and self._may_attach(volume, node):
                self._attach(volume, node)

    def _may_attach(self, volume: Obj, node: str) -> bool:
        if self._store.find(NODES, "", node) is None:
            return False
        shared = any(mode in _SHARED for mode in volume["spec"].get("accessModes") or ())
        return shared or not self._attached.get(volume["metadata"]["name"])

    def _attach(self, volume: Obj, node: str) -> None:
        name, driver = volume["metadata"]["name"], volume["spec"]["csi"]["driver"]
        attachment = {
            "metadata": {"name": _name(volume, node), "finalizers": [tracking(driver)]},
            "spec": {
                "attacher": driver,
                "nodeName": node,
                "source": {"persistentVolumeName": name},
            },
        }
        # Noted at once, not when we are told: two pods may ask within one instant.
        here = self._attached.setdefault(name, {})
        here[node] = self._store.create(VOLUME_ATTACHMENTS, attachment)

    def _begin_leaving(self, volume: str, node: str) -> None:
        if (volume, node) in self._leaving:
            return
        sticks = strikes(self._faults.current.volume_stuck_rate, self._random)
        now = self._environment.now()
        self._leaving[volume, node] = _Leaving(now, sticks=sticks)
        self._environment.at(now + FORCE_AFTER, self._evaluate, volume, node)
        self._evaluate(volume, node)

    def _evaluate(self, volume: str, node: str) -> None:
        """Detach what is no longer mounted, or what must not wait for that any longer."""
        leaving = self._leaving.get((volume, node))
        attachment = self._attached.get(volume, {}).get(node)
        if leaving is None or attachment is None:
            return
        mounted = leaving.sticks or node in self._sticky_nodes or not self._alive(node)
        if mounted and not self._is_forced(leaving, node):
            return
        self._store.delete(VOLUME_ATTACHMENTS, "", attachment["metadata"]["name"])

    def _is_forced(self, leaving: _Leaving, name: str) -> bool:
        node = self._store.find(NODES, "", name)
        taints = dig(node, "spec", "taints") or ()
        if any(taint["key"] == OUT_OF_SERVICE for taint in taints):
            return True
        waited = self._environment.now() >= leaving.asked_at + FORCE_AFTER
        return waited and (node is None or status_of(node, READY) != "True")

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        if type_ == "ADDED":
            self._look_at_pods_on(node["metadata"]["name"])
        if not self._leaving:
            return  # Every heartbeat of every quiet day.
        name = node["metadata"]["name"]
        for volume, where in [*self._leaving]:
            if where == name:
                self._evaluate(volume, name)

    def _look_at_pods_on(self, node: str) -> None:
        """A pod may be bound to a Node that has not been seen yet."""
        for claim in self._uses.on(node):
            self.look(claim)

    def _on_attachment(self, type_: str, attachment: Obj, _old: Obj | None) -> None:
        if not is_ours(attachment) and type_ != DELETED:
            return
        node = attachment["spec"]["nodeName"]
        volume = attachment["spec"]["source"].get("persistentVolumeName", "")
        claim = self._claim_of(volume)
        if type_ != DELETED:
            self._attached.setdefault(volume, {})[node] = attachment
            if claim is not None and dig(attachment, "status", "attached"):
                self._tell(claim)
            return
        here = self._attached.get(volume, {})
        if dig(here.get(node), "metadata", "uid") != attachment["metadata"]["uid"]:
            return
        del here[node]
        self._leaving.pop((volume, node), None)
        if not here:
            del self._attached[volume]
        for listener in self._on_detached:
            listener(volume)
        if claim is not None:
            self.look(claim)

    def _tell(self, claim: ClaimKey) -> None:
        for pod in self._uses.of(claim):
            if pod["spec"].get("nodeName"):
                for listener in self._on_ready:
                    listener(pod)

    # Claims and their volumes.

    def _is_there(self, claim: ClaimKey, node: str) -> bool:
        volume = self._volume_of(claim)
        if volume is None or dig(volume, "spec", "csi") is None:
            return volume is not None
        attachment = self._attached.get(volume["metadata"]["name"], {}).get(node)
        if attachment is None or "deletionTimestamp" in attachment["metadata"]:
            return False
        return bool(dig(attachment, "status", "attached"))

    def _volume_of(self, claim: ClaimKey) -> Obj | None:
        found = self._store.find(PERSISTENT_VOLUME_CLAIMS, *claim)
        if found is not None:
            name = found["spec"].get("volumeName")
        else:  # It was force deleted; its volumes must still be detached.
            name = next((one for one in self._attached if self._claim_of(one) == claim), None)
        return self._store.find(PERSISTENT_VOLUMES, "", name) if name else None

    def _claim_of(self, volume: str) -> ClaimKey | None:
        claim = dig(self._store.find(PERSISTENT_VOLUMES, "", volume), "spec", "claimRef")
        return (claim["namespace"], claim["name"]) if claim else None


def _name(volume: Obj, node: str) -> str:
    """As real ones are called, so that no test relies on a readable name."""
    csi = volume["spec"]["csi"]
    text = f"{csi.get('volumeHandle', '')}{csi['driver']}{node}"
    return f"csi-{hashlib.sha256(text.encode()).hexdigest()}"
