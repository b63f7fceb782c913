"""A small embedded cluster for stories about its workload side, told in virtual time.

Nodes are plain objects that the test creates; ``Kubelet`` is just enough of one: a bound pod
is ready after two seconds, a pod that is told to go is gone after one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.model.api.resource import NODES, POD_DISRUPTION_BUDGETS, PODS, Resource
from tenure.sim.actors.pdb.controller import PdbController
from tenure.sim.actors.scheduling.scheduler import Scheduler
from tenure.sim.actors.workloads.daemonset import DaemonSets
from tenure.sim.actors.workloads.deployment import Deployments
from tenure.sim.actors.workloads.job import Jobs
from tenure.sim.actors.workloads.replicaset import ReplicaSets
from tenure.sim.actors.workloads.statefulset import StatefulSets
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop

NOON = datetime(2030, 6, 3, 12, tzinfo=UTC)
STARTS_IN = timedelta(seconds=2)
STOPS_IN = timedelta(seconds=1)


class Kubelet:
    """Runs every bound pod of the cluster."""

    def __init__(self, env: Environment, store: Store) -> None:
        self._env, self._store = env, store
        self._seen: set[tuple[str, str]] = set()
        store.subscribe(PODS, self._on_pod)

    def _on_pod(self, type_: str, pod: Obj, _old: Obj | None) -> None:
        if type_ == DELETED or not pod["spec"].get("nodeName"):
            return
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        event = "stop" if "deletionTimestamp" in pod["metadata"] else "start"
        if (uid, event) not in self._seen:
            self._seen.add((uid, event))
            if event == "stop":
                self._env.after(STOPS_IN, self._stop, pod["metadata"]["namespace"], name)
            else:
                self._env.after(STARTS_IN, self._start, pod["metadata"]["namespace"], name)

    def _start(self, namespace: str, name: str) -> None:
        pod = self._store.find(PODS, namespace, name)
        if pod is not None and "deletionTimestamp" not in pod["metadata"]:
            set_ready(self._store, pod, ready=True)

    def _stop(self, namespace: str, name: str) -> None:
        if self._store.find(PODS, namespace, name) is not None:
            self._store.delete(PODS, namespace, name, 0)


class World:
    def __init__(self, loop: VirtualLoop, *, seed: int = 1, kubelet: bool = True) -> None:
        self.loop = loop
        self.env = env = Environment(loop, epoch=NOON, seed=seed)
        self.store = Store(env.clock, env.random_for("store"), env.at, env.soon)
        self.errors: list[Any] = []
        loop.set_exception_handler(lambda _, context: self.errors.append(context))
        if kubelet:
            Kubelet(env, self.store)

    def with_scheduler(self, **options: Any) -> World:
        Scheduler(self.env, self.store, **options)
        return self

    def with_workloads(self) -> World:
        replica_sets = ReplicaSets(self.env, self.store)
        Deployments(self.env, self.store, replica_sets.pods)
        DaemonSets(self.env, self.store)
        StatefulSets(self.env, self.store)
        Jobs(self.env, self.store)
        PdbController(self.env, self.store)
        return self

    def run(self, seconds: float) -> None:
        """Let so much time pass; an error in an actor is an error of the test."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        assert not self.errors, self.errors

    def add(self, resource: Resource, *objects: Obj) -> None:
        for obj in objects:
            created = self.store.create(resource, obj)
            if resource is NODES:  # Born not ready; these nodes are ready at once.
                taints = {"spec": {"taints": obj["spec"]["taints"]}}
                self.store.patch(NODES, "", created["metadata"]["name"], taints)

    def pods(self, **labels: str) -> list[Obj]:
        wanted = labels.items()
        pods = self.store.list(PODS)
        return [pod for pod in pods if wanted <= (pod["metadata"].get("labels") or {}).items()]

    def pod(self, name: str) -> Obj:
        return self.store.get(PODS, "default", name)

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def why_pending(self, name: str) -> tuple[str, str]:
        """Reason and message of the condition PodScheduled=False."""
        for condition in self.pod(name)["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition["reason"], condition["message"]
        return "", ""

    def budget(self, name: str) -> Obj:
        status: Obj = self.store.get(POD_DISRUPTION_BUDGETS, "default", name)["status"]
        return status

    def cordon(self, node: str, *, unschedulable: bool = True) -> None:
        self.store.patch(NODES, "", node, {"spec": {"unschedulable": unschedulable}})

    def taint(self, node: str, *taints: str) -> None:
        self.store.patch(NODES, "", node, {"spec": {"taints": [_taint(t) for t in taints]}})

    def writes(self, resource: Resource) -> list[Obj]:
        """A list that fills with every version written from now on."""
        seen: list[Obj] = []
        self.store.subscribe(resource, lambda _type, new, _old: seen.append(new))
        return seen


@contextmanager
def a_world(**options: Any) -> Iterator[World]:
    loop = VirtualLoop()
    try:
        yield World(loop, **options)
    finally:
        loop.close()


def a_node(name: str, *taints: str, cpu: str = "4", zone: str = "", **more: Any) -> Obj:
    """``a_node("a", "gpu=true:NoSchedule", zone="z1", labels={...}, allocatable={...})``"""
    labels = {"kubernetes.io/hostname": name, **more.get("labels", {})}
    if zone:
        labels["topology.kubernetes.io/zone"] = zone
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "110", **more.get("allocatable", {})}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [_taint(text) for text in taints]},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def _taint(text: str) -> Obj:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def a_spec(cpu: str = "1", **spec: Any) -> Obj:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {"containers": [container], **spec}


def a_pod(name: str, cpu: str = "1", *, labels: Any = None, **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": "default", "labels": labels or {"app": name}}
    return {"metadata": metadata, "spec": a_spec(cpu, **spec)}


def a_workload(name: str, *, replicas: int | None = 1, cpu: str = "1", **more: Any) -> Obj:
    """A Deployment, ReplicaSet or DaemonSet; ``pod={...}`` adds to its pods' spec."""
    labels = {"app": name}
    pod = more.pop("pod", {})
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            **({} if replicas is None else {"replicas": replicas}),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": a_spec(cpu, **pod)},
            **more,
        },
    }


def a_pdb(name: str, app: str, **limits: Any) -> Obj:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **limits},
    }


def set_ready(store: Store, pod: Obj, *, ready: bool, phase: str = "Running") -> None:
    conditions = [c for c in pod["status"].get("conditions", ()) if c["type"] != "Ready"]
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": store.stamp(),
    }
    status = {"phase": phase, "conditions": [*conditions, condition]}
    metadata = pod["metadata"]
    store.patch(
        PODS, metadata["namespace"], metadata["name"], {"status": status}, subresource="status"
    )
