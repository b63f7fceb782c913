"""What a scheduler and a kubelet tell while a pod starts: its events, and that its containers are being created.

Only where people look on: a simulation of a hundred thousand pods has no reader for them. As at a real
API server an event lasts an hour; and there are never more of these than ``MOST``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from tenure.errors import ApiError
from tenure.model.api.meta import format_time
from tenure.model.api.resource import EVENTS, PODS
from tenure.sim.actors.kubelet.podstatus import with_readiness
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.virtual.environment import Environment

MOST: Final = 5000
KEPT_FOR: Final = timedelta(hours=1)
_SCHEDULER: Final[Obj] = {"component": "default-scheduler"}


class _Kept(NamedTuple):
    at: datetime
    namespace: str
    name: str


class PodEvents:
    def __init__(
        self,
        environment: Environment,
        store: Store,
        alive: Callable[[str], bool],
        *,
        most: int = MOST,
    ) -> None:
        """``alive``: whether that node's kubelet is at work; ``most``: events that are kept."""
        self._most = most
        self._environment, self._store, self._alive = environment, store, alive
        self._kept: deque[_Kept] = deque()
        self._count = 0
        store.subscribe(PODS, self._on_pod)

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        node = dig(pod, "spec", "nodeName")
        if type_ == DELETED or not node:
            return
        if not dig(old, "spec", "nodeName"):
            self._bound(pod, node, scheduled=old is not None or _is_daemon_pod(pod))
        elif not _runs(old) and _runs(pod):
            self._started(pod, node)
        elif "deletionTimestamp" in pod["metadata"] and not _leaves(old) and _runs(pod):
            self._tell_of_containers(pod, node, "Killing", "Stopping container {name}")

    def _bound(self, pod: Obj, node: str, *, scheduled: bool) -> None:
        metadata = pod["metadata"]
        if scheduled:  # A pod that comes with a node is no business of the scheduler.
            told = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
            self._tell(pod, "Scheduled", told, _SCHEDULER)
        if self._alive(node) and dig(pod, "status", "phase") == "Pending":
            patch = {"metadata": {"uid": metadata["uid"]}, "status": self._creating(pod)}
            self._write(pod, patch)

    def _creating(self, pod: Obj) -> Obj:
        spec, now = pod["spec"], self._environment.now()
        reason = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
        return {
            "startTime": format_time(now),
            "conditions": with_readiness(pod, "False", now, "ContainersNotReady"),
            "containerStatuses": [
                {
                    "name": container.get("name", ""),
                    "image": container.get("image", ""),
                    "imageID": "",
                    "ready": False,
                    "started": False,
                    "restartCount": 0,
                    "state": {"waiting": {"reason": reason}},
                }
                for container in spec.get("containers", ())
            ],
        }

    def _write(self, pod: Obj, patch: Obj) -> None:
        metadata = pod["metadata"]
        found = self._store.find(PODS, metadata["namespace"], metadata["name"])
        # It may have gone, or run already, since this was told of it.
        if found is not None and found["metadata"]["uid"] == metadata["uid"] and not _runs(found):
            name = metadata["name"]
            self._store.patch(PODS, metadata["namespace"], name, patch, subresource="status")

    def _started(self, pod: Obj, node: str) -> None:
        present = 'Container image "{image}" already present on machine'
        self._tell_of_containers(pod, node, "Pulled", present)
        self._tell_of_containers(pod, node, "Created", "Created container: {name}")
        self._tell_of_containers(pod, node, "Started", "Started container {name}")

    def _tell_of_containers(self, pod: Obj, node: str, reason: str, told: str) -> None:
        source = {"component": "kubelet", "host": node}
        for container in pod["spec"].get("containers", ()):
            name, image = container.get("name", ""), container.get("image", "")
            part = f"spec.containers{{{name}}}"
            self._tell(pod, reason, told.format(name=name, image=image), source, part)

    def _tell(self, pod: Obj, reason: str, message: str, source: Obj, part: str = "") -> None:
        metadata, now = pod["metadata"], self._environment.now()
        self._count += 1
        about = {
            "apiVersion": "v1",
            "kind": PODS.kind,
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        name = f"{metadata['name'][:230]}.{self._count:016x}"
        event = {
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {**about, "fieldPath": part} if part else about,
            "reason": reason,
            "message": message,
            "type": "Normal",
            "count": 1,
            "firstTimestamp": format_time(now),
            "lastTimestamp": format_time(now),
            "source": source,
            "reportingComponent": source["component"],
            "reportingInstance": source.get("host", ""),
        }
        try:
            self._store.create(EVENTS, event)
        except ApiError:
            return  # Its namespace is going.
        self._kept.append(_Kept(now, metadata["namespace"], name))
        self._forget(now)

    def _forget(self, now: datetime) -> None:
        while self._kept and (len(self._kept) > self._most or self._kept[0].at + KEPT_FOR <= now):
            kept = self._kept.popleft()
            if self._store.find(EVENTS, kept.namespace, kept.name) is not None:
                self._store.delete(EVENTS, kept.namespace, kept.name)


def _runs(pod: Obj | None) -> bool:
    return bool(dig(pod, "status", "phase") == "Running")


def _leaves(pod: Obj | None) -> bool:
    return pod is not None and "deletionTimestamp" in pod["metadata"]


def _is_daemon_pod(pod: Obj) -> bool:
    """The embedded cluster gives it its node when it is created; a real one schedules it."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("kind") == "DaemonSet" for owner in owners)
