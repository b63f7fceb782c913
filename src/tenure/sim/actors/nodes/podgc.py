"""Pod garbage collection: pods of nodes that are gone are taken away.

Every 20 s the controller looks for pods bound to a node that does not exist. It puts the
node's name into quarantine for 40 s, in case it only sees the pods earlier than the node;
if it is still missing then, each pod is marked Failed and deleted with grace 0. So an
orphan goes 40 to 60 s after its node. A node that comes back in time saves its pods.

Timers are set only where there is an orphan. Not here: the cap on finished pods, and the
out-of-service taint.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.model.api.meta import BEGINNING
from tenure.model.api.resource import NODES, PODS
from tenure.sim.actors.boundpods import BoundPods
from tenure.sim.actors.kubelet.podstatus import is_finished, with_condition
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

PASS_EVERY: Final = timedelta(seconds=20)
QUARANTINE: Final = timedelta(seconds=40)


class PodGarbageCollector:
    def __init__(self, environment: Environment, store: Store, pods: BoundPods) -> None:
        self._environment, self._store, self._pods = environment, store, pods
        #: Missing nodes that have a timer already.
        self._suspected: set[str] = set()
        store.subscribe(NODES, self._on_node)
        store.subscribe(PODS, self._on_pod, replay=True)

    def _on_node(self, type_: str, node: Obj, _old: Obj | None) -> None:
        if type_ == DELETED and self._pods.on(node["metadata"]["name"]):
            self._suspect(node["metadata"]["name"])

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        node = pod["spec"].get("nodeName")
        if node and type_ != DELETED and (old is None or not old["spec"].get("nodeName")):
            self._suspect(node)

    def _suspect(self, node: str) -> None:
        if node in self._suspected or self._exists(node):
            return
        self._suspected.add(node)
        self._environment.at(_next_pass(self._environment.now()), self._quarantine, node)

    def _quarantine(self, node: str) -> None:
        if self._exists(node) or not self._pods.on(node):
            self._suspected.discard(node)
        else:
            self._environment.after(QUARANTINE, self._collect, node)

    def _collect(self, node: str) -> None:
        self._suspected.discard(node)
        if not self._exists(node):
            for pod in self._pods.on(node):
                self._remove(pod, node)

    def _remove(self, orphan: Obj, node: str) -> None:
        metadata = orphan["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        pod = self._store.find(PODS, namespace, name)
        if pod is None or pod["metadata"]["uid"] != metadata["uid"]:
            return
        if not is_finished(pod):
            conditions = with_condition(
                pod,
                "DisruptionTarget",
                "True",
                self._environment.now(),
                reason="DeletionByPodGC",
                message=f"PodGC: node no longer exists ({node})",
            )
            patch = {"status": {"phase": "Failed", "conditions": conditions}}
            self._store.patch(PODS, namespace, name, patch, subresource="status")
        self._store.delete(PODS, namespace, name, 0, uid=metadata["uid"])

    def _exists(self, node: str) -> bool:
        return self._store.find(NODES, "", node) is not None


def _next_pass(instant: datetime) -> datetime:
    """The controller's first pass at or after the instant."""
    return instant + (BEGINNING - instant) % PASS_EVERY
