"""Taint-based eviction: pods leave a node that carries a NoExecute taint they mind.

For each pod on the node, in this order: a NoExecute taint that no toleration matches → it
goes now; all tolerated, some for a limited time → it goes when the shortest time is over,
counted from when the limit began to run; all tolerated for ever → it stays. When the taints
go in time, so does the threat. It goes by a plain deletion with its own grace: budgets are
not asked, and on a node whose kubelet is silent it stays Terminating.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.model.api.node import Taint
from tenure.model.api.pod import Toleration
from tenure.model.api.resource import NODES, PODS
from tenure.model.api.taints import tolerates
from tenure.sim.actors.boundpods import BoundPods
from tenure.sim.actors.kubelet.podstatus import with_condition
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

NO_EXECUTE: Final = "NoExecute"
_FOR_EVER: Final = None


class _Threat:
    """A pod that will be deleted when the timer fires, because of a taint since then."""

    __slots__ = ("since", "timer")

    def __init__(self, since: datetime, timer: asyncio.TimerHandle) -> None:
        self.since, self.timer = since, timer


class TaintEviction:
    def __init__(self, environment: Environment, store: Store, pods: BoundPods) -> None:
        self._environment, self._store, self._pods = environment, store, pods
        #: NoExecute taints by node; nodes without any are not here.
        self._taints: dict[str, tuple[Taint, ...]] = {}
        self._threats: dict[str, _Threat] = {}
        store.subscribe(NODES, self._on_node, replay=True)
        store.subscribe(PODS, self._on_pod, replay=True)

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        name = node["metadata"]["name"]
        taints = () if type_ == DELETED else _no_execute(node)
        if taints == self._taints.get(name, ()):
            return
        if taints:
            self._taints[name] = taints
        else:
            self._taints.pop(name, None)
        for pod in self._pods.on(name):
            self._evaluate(pod)

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        if type_ == DELETED:
            self._spare(pod["metadata"]["uid"])
        elif old is None or old["spec"] is not pod["spec"]:  # Status writes share the spec.
            self._evaluate(pod)

    def _evaluate(self, pod: Obj) -> None:
        metadata, taints = pod["metadata"], self._taints.get(dig(pod, "spec", "nodeName") or "")
        if not taints or "deletionTimestamp" in metadata:
            self._spare(metadata["uid"])
            return
        written = pod["spec"].get("tolerations", [])
        limit = tolerated_for(msgspec.convert(written, list[Toleration]), taints)
        if limit is _FOR_EVER:
            self._spare(metadata["uid"])
            return
        known = self._threats.get(metadata["uid"])
        now = self._environment.now()
        since = now if known is None else known.since
        self._spare(metadata["uid"])
        timer = self._environment.at(max(now, since + limit), self._evict, pod)
        self._threats[metadata["uid"]] = _Threat(since, timer)

    def _spare(self, uid: str) -> None:
        threat = self._threats.pop(uid, None)
        if threat is not None:
            threat.timer.cancel()

    def _evict(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        self._threats.pop(metadata["uid"], None)
        namespace, name = metadata["namespace"], metadata["name"]
        fresh = self._store.find(PODS, namespace, name)
        if fresh is None or fresh["metadata"]["uid"] != metadata["uid"]:
            return
        conditions = with_condition(
            fresh,
            "DisruptionTarget",
            "True",
            self._environment.now(),
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
        )
        patch = {"status": {"conditions": conditions}}
        self._store.patch(PODS, namespace, name, patch, subresource="status")
        self._store.delete(PODS, namespace, name, uid=metadata["uid"])


def _no_execute(node: Obj) -> tuple[Taint, ...]:
    taints = node["spec"].get("taints", ())
    return tuple(msgspec.convert(t, Taint) for t in taints if t["effect"] == NO_EXECUTE)


def tolerated_for(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> timedelta | None:
    """How long the pod puts up with all of these taints; None is for ever."""
    limits: list[int] = []
    for taint in taints:
        matching = [t for t in tolerations if tolerates((t,), taint)]
        if not matching:
            return timedelta(0)
        limits += [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
    # A negative number of seconds means "at once", as zero does.
    return timedelta(seconds=max(0, min(limits))) if limits else _FOR_EVER
