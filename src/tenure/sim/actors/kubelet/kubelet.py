"""Kubelets: a booted instance becomes a Node and reports its conditions.

The life of a node, in order: it registers (with the taint that says "not ours yet", its
startup taints, Ready=False, and a CSINode with its storage driver) · its network comes up (Ready=True) · device plugins announce
extended resources · it heartbeats until it dies.

Heartbeats are two, as in a real cluster. The Node's status is written when something
changed and else every 5 minutes. The Lease counts as renewed every 10 seconds but is
computed when it is read: 8,640 writes per node and day would say nothing.

A kubelet that falls silent does nothing at all, for its node or its pods; a program that watches
is told, because the node-lifecycle controller must notice without polling. A Node deleted
under a running kubelet stays away: kubelets register when they start, and only then.
In a zone that is cut off every kubelet is silent, until the zone is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.errors import AlreadyExists
from tenure.model.api.names import ZONE
from tenure.model.api.resource import CSI_NODES, LEASES, NODES
from tenure.sim.actors.boundpods import BoundPods
from tenure.sim.actors.kubelet.completion import Completion
from tenure.sim.actors.kubelet.copies import Twice
from tenure.sim.actors.kubelet.podstatus import PodPace, PodTimings
from tenure.sim.actors.kubelet.podworker import PodWorkers
from tenure.sim.actors.nodestatus import (
    HEALTHY,
    NETWORK_NOT_READY,
    READY,
    BootedInstance,
    Words,
    csi_node_object,
    is_extended,
    micro_time,
    node_object,
    reported,
)
from tenure.sim.actors.volumes.attaching import AttachDetach
from tenure.sim.apiserver.objects.tree import Obj, dig, put
from tenure.sim.apiserver.store.store import Store
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch, strikes
from tenure.sim.virtual.outages import ZoneOutages

LEASE_NAMESPACE: Final = "kube-node-lease"
RENEW_EVERY: Final = timedelta(seconds=10)
LEASE_FOR: Final = timedelta(seconds=40)
STATUS_EVERY: Final = timedelta(minutes=5)


class KubeletTimings(msgspec.Struct, frozen=True, kw_only=True):
    """How long a node takes for the stations of its life, when nothing is wrong."""

    #: Registered → Ready: the network plugin.
    ready_for: timedelta = timedelta(seconds=10)
    #: Ready → extended resources announced: the device plugin.
    devices_for: timedelta = timedelta(seconds=15)
    pods: PodTimings = PodTimings()


class _Kubelet:
    def __init__(self, name: str, now: datetime, zone: str) -> None:
        self.name = name
        self.zone = zone
        #: It stopped by itself, or by a story: the end of an outage does not bring it back.
        self.stopped = False
        self.started_at = now
        #: When it last renewed its lease before it fell silent; None while it is at work.
        self.silent_since: datetime | None = None
        self.words: dict[str, Words] = {**HEALTHY, READY: NETWORK_NOT_READY}
        self.boot_count = 1
        #: Of a Node that was there before its kubelet was played here.
        self.first_boot_id = ""
        self.heartbeat: asyncio.TimerHandle | None = None

    @property
    def ready(self) -> bool:
        return self.words[READY][0] == "True"

    @property
    def boot_id(self) -> str:
        first = self.first_boot_id if self.boot_count == 1 else ""
        return first or f"{self.name}-boot-{self.boot_count}"


class Kubelets:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        pods: BoundPods,
        *,
        timings: KubeletTimings | None = None,
        faults: FaultSwitch | None = None,
        outages: ZoneOutages | None = None,
        volumes: AttachDetach,
    ) -> None:
        self._environment, self._store = environment, store
        self._timings = timings or KubeletTimings()
        self._faults = faults or FaultSwitch()
        self._outages = outages or ZoneOutages()
        self._outages.listen(self._on_outage)
        self._random = environment.random_for("kubelets")
        self._kubelets: dict[str, _Kubelet] = {}
        self._listeners: list[Callable[[str], object]] = []
        self._workers = PodWorkers(
            environment,
            store,
            pods,
            alive=self.is_alive,
            timings=self._timings.pods,
            volumes=volumes,
            refuses=self._refuses,
        )
        self._volumes = volumes
        store.compute_on_read(LEASES, self._renewed)

    # What the cloud does.

    def boot(self, booted: BootedInstance) -> None:
        """The instance has booted: its kubelet registers the Node and gets to work."""
        now = self._environment.now()
        zone = booted.instance.zone
        kubelet = self._kubelets[booted.node_name] = _Kubelet(booted.node_name, now, zone)
        self._register(kubelet, booted)
        faults = self._faults.current
        if not strikes(faults.never_ready_rate, self._random):
            self._environment.after(self._timings.ready_for, self._become_ready, kubelet, booted)
        if faults.kubelet_dies_after is not None:
            life = self._timings.ready_for + faults.kubelet_dies_after
            self._environment.after(life, self._die, kubelet)
        if faults.kubelet_dies_after_mean is not None:
            mean = faults.kubelet_dies_after_mean / timedelta(seconds=1)
            life = timedelta(seconds=self._random.expovariate(1 / mean))
            self._environment.after(life, self._die, kubelet)

    def halt(self, node: str) -> None:
        """The instance is switched off, for good."""
        self.silence(node)
        kubelet = self._kubelets.pop(node, None)
        self._workers.switched_off(node)
        if kubelet is None or kubelet.silent_since is None:
            return
        if self._store.find(LEASES, LEASE_NAMESPACE, node) is not None:
            # There is no pod left to compute it from.
            patch = {"spec": {"renewTime": micro_time(kubelet.silent_since)}}
            self._store.patch(LEASES, LEASE_NAMESPACE, node, patch)

    # What a story does.

    def adopt(self, node: str) -> None:
        """Run a kubelet for a Node that is there already: healthy, unless the Node says no."""
        obj = self._store.get(NODES, "", node)
        zone = str(dig(obj, "metadata", "labels", ZONE) or "")
        kubelet = self._kubelets[node] = _Kubelet(node, self._environment.now(), zone)
        kubelet.first_boot_id = dig(obj, "status", "nodeInfo", "bootID") or ""
        kubelet.words = dict(HEALTHY)
        for old in dig(obj, "status", "conditions") or ():
            words = (old["status"], old.get("reason", ""), old.get("message", ""))
            kubelet.words[old["type"]] = words
        self._create_lease(kubelet, obj)
        self._report(kubelet)
        self._workers.look(node)
        if self._outages.is_out(zone):
            self._fall_silent(kubelet)

    def silence(self, node: str) -> None:
        """The kubelet stops: no heartbeats, no pods started or stopped."""
        kubelet = self._kubelets.get(node)
        if kubelet is not None:
            kubelet.stopped = True
            self._fall_silent(kubelet)

    def resume(self, node: str) -> None:
        """The kubelet is back: it reports its node and looks at all of its pods."""
        kubelet = self._kubelets.get(node)
        if kubelet is not None:
            kubelet.stopped = False
            if not self._outages.is_out(kubelet.zone):
                self._come_back(kubelet)

    def _on_outage(self, zone: str) -> None:
        out = self._outages.is_out(zone)
        for kubelet in [one for one in self._kubelets.values() if one.zone == zone]:
            if out:
                self._fall_silent(kubelet)
            elif not kubelet.stopped:
                self._come_back(kubelet)

    def _fall_silent(self, kubelet: _Kubelet) -> None:
        if kubelet.silent_since is not None:
            return
        kubelet.silent_since = self.last_renewal(kubelet.name)
        for listener in self._listeners:
            listener(kubelet.name)

    def _come_back(self, kubelet: _Kubelet) -> None:
        if kubelet.silent_since is None:
            return
        kubelet.silent_since = None
        kubelet.started_at = self._environment.now()
        self._report(kubelet)
        self._workers.look(kubelet.name)
        self._volumes.kubelet_is_back(kubelet.name)
        if kubelet.ready:
            self._workers.report_ready(kubelet.name)

    def set_condition(
        self, node: str, type_: str, status: str, reason: str = "", message: str = ""
    ) -> None:
        """From now on the kubelet says this of its node; any condition type will do."""
        kubelet = self._kubelets[node]
        was_ready = kubelet.ready
        kubelet.words[type_] = (status, reason, message)
        if kubelet.silent_since is None:
            self._report(kubelet)
            if kubelet.ready and not was_ready:
                self._workers.report_ready(node)

    def heal(self, node: str, type_: str = READY) -> None:
        """The condition is as it is on a healthy node."""
        self.set_condition(node, type_, *HEALTHY[type_])

    def set_paces(self, *paces: PodPace) -> None:
        """From now on the pods of these apps take so long; those set before come last."""
        self._workers.paces = (*paces, *self._workers.paces)

    def set_completion(self, completion: Completion) -> None:
        """From now on it says how long pods run that do not say so."""
        self._workers.runs_for = completion.runs_for

    def reboot(self, node: str, down_for: timedelta) -> None:
        """Silent for that long, then back with another bootID; no kubelet yet: nothing to do."""
        kubelet = self._kubelets.get(node)
        if kubelet is None:
            return
        self.silence(node)
        kubelet.boot_count += 1
        self._environment.after(down_for, self.resume, node)

    # What others ask.

    def _refuses(self, pod: Obj) -> bool:
        app = self._faults.current.kubelet_refuses_app
        return bool(app) and dig(pod, "metadata", "labels", "app") == app

    def is_there(self, node: str) -> bool:
        """Whether the node has a kubelet, silent or not: its instance is not switched off."""
        return node in self._kubelets

    def is_alive(self, node: str) -> bool:
        kubelet = self._kubelets.get(node)
        return kubelet is not None and kubelet.silent_since is None

    def last_renewal(self, node: str) -> datetime | None:
        """When the node's lease was last renewed; None when no kubelet is there."""
        kubelet = self._kubelets.get(node)
        if kubelet is None:
            return None
        if kubelet.silent_since is not None:
            return kubelet.silent_since
        age = self._environment.now() - kubelet.started_at
        return kubelet.started_at + age // RENEW_EVERY * RENEW_EVERY

    @property
    def ran_twice(self) -> Sequence[Twice]:
        """Pods that started while an older copy of the same name was still running."""
        return tuple(self._workers.copies.twice)

    def on_silence(self, listener: Callable[[str], object]) -> None:
        """Call back with the node's name whenever a kubelet falls silent."""
        self._listeners.append(listener)

    # What it writes.

    def _register(self, kubelet: _Kubelet, booted: BootedInstance) -> None:
        now = self._environment.now()
        try:
            node = self._store.create(NODES, node_object(booted, kubelet.boot_id, now))
        except AlreadyExists:
            # As the real one: it takes over the object of that name, whatever created it.
            node = self._store.get(NODES, "", kubelet.name)
        if self._store.find(CSI_NODES, "", kubelet.name) is None:
            self._store.create(CSI_NODES, csi_node_object(booted, node))
        self._create_lease(kubelet, node)
        self._report(kubelet)
        self._workers.look(kubelet.name)

    def _create_lease(self, kubelet: _Kubelet, node: Obj) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": kubelet.name}
        owner["uid"] = node["metadata"]["uid"]
        lease = {
            "metadata": {
                "name": kubelet.name,
                "namespace": LEASE_NAMESPACE,
                "ownerReferences": [owner],
            },
            "spec": {
                "holderIdentity": kubelet.name,
                "leaseDurationSeconds": LEASE_FOR // timedelta(seconds=1),
                "renewTime": micro_time(self._environment.now()),
            },
        }
        if self._store.find(LEASES, LEASE_NAMESPACE, kubelet.name) is None:
            self._store.create(LEASES, lease)

    def _renewed(self, lease: Obj) -> Obj:
        """The lease as its reader sees it: renewed by now, if its kubelet is at work."""
        if lease["metadata"]["namespace"] != LEASE_NAMESPACE:
            return lease
        renewed_at = self.last_renewal(lease["metadata"]["name"])
        if renewed_at is None:
            return lease
        return put(lease, ("spec", "renewTime"), micro_time(renewed_at))

    def _become_ready(self, kubelet: _Kubelet, booted: BootedInstance) -> None:
        if (
            self._kubelets.get(kubelet.name) is not kubelet
            or kubelet.words[READY] != NETWORK_NOT_READY
        ):
            return  # Switched off, or a story has something else to say about it.
        self.heal(kubelet.name)
        if any(map(is_extended, booted.instance.capacity)):
            self._environment.after(self._timings.devices_for, self._announce, kubelet, booted)

    def _announce(self, kubelet: _Kubelet, booted: BootedInstance) -> None:
        """The device plugin has found its devices."""
        if self.is_alive(kubelet.name):
            instance = booted.instance
            status = {"capacity": instance.capacity, "allocatable": instance.allocatable}
            self._write(kubelet, {name: dict(values) for name, values in status.items()})

    def _report(self, kubelet: _Kubelet) -> None:
        """Write the node's status, and again in 5 minutes at the latest."""
        if kubelet.heartbeat is not None:
            kubelet.heartbeat.cancel()
            kubelet.heartbeat = None
        node = self._store.find(NODES, "", kubelet.name)
        if kubelet.silent_since is not None or node is None:
            return
        status = node.get("status") or {}
        old = status.get("conditions") or ()
        conditions = reported(old, kubelet.words, self._environment.now())
        info = {**(status.get("nodeInfo") or {}), "bootID": kubelet.boot_id}
        said = {**status, "conditions": conditions, "nodeInfo": info}
        if said != status:
            # Past the gate, which has nothing to say to a kubelet: most writes of a quiet day.
            self._store.rewrite(NODES, {**node, "status": said})
        kubelet.heartbeat = self._environment.after(STATUS_EVERY, self._report, kubelet)

    def _write(self, kubelet: _Kubelet, status: Obj) -> None:
        if self._store.find(NODES, "", kubelet.name) is not None:
            patch = {"status": status}
            self._store.patch(NODES, "", kubelet.name, patch, subresource="status")

    def _die(self, kubelet: _Kubelet) -> None:
        if self._kubelets.get(kubelet.name) is kubelet:
            self.silence(kubelet.name)
