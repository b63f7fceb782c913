"""Records what an observer of the cluster and the cloud would see, beside what Tenure says.

Nodes that join, become ready or not, and leave; pods that start and go, or cannot be made;
instances that begin and end. The entries stand in the history between Tenure's own.
"""

from __future__ import annotations

from typing import Final

from tenure.model.api.resource import NODES, PODS, REPLICA_SETS
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.offering import format_known_price
from tenure.sim.actors.workloads.replicaset import REPLICA_FAILURE
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.watch import ADDED, DELETED
from tenure.sim.cloud.cloud import CloudEvent
from tenure.sim.history import History
from tenure.sim.world import World

CLUSTER: Final = "cluster"
CLOUD: Final = "cloud"


class Chronicle:
    def __init__(self, world: World) -> None:
        self._history: History = world.history
        world.store.subscribe(NODES, self._on_node)
        world.store.subscribe(PODS, self._on_pod)
        world.store.subscribe(REPLICA_SETS, self._on_replica_set)
        world.cloud.listen(self._on_instance)

    def _on_node(self, type_: str, node: Obj, old: Obj | None) -> None:
        subject = f"Node/{node['metadata']['name']}"
        if type_ == DELETED:
            self._history.note(CLUSTER, subject, "Deleted")
            return
        if type_ == ADDED:
            self._history.note(CLUSTER, subject, "Joined")
        before, ready = _ready(old), _ready(node)
        if ready != before and (old is not None or ready):
            self._history.note(CLUSTER, subject, "Ready" if ready else "NotReady")

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        metadata = pod["metadata"]
        subject = f"Pod/{metadata['namespace']}/{metadata['name']}"
        on = f"on {pod['spec'].get('nodeName', 'no node')}"
        if type_ == DELETED:
            self._history.note(CLUSTER, subject, "Gone", on)
            return
        phase, before = dig(pod, "status", "phase"), dig(old, "status", "phase")
        if phase != before and phase in ("Running", "Succeeded", "Failed"):
            self._history.note(CLUSTER, subject, phase, on)

    def _on_replica_set(self, type_: str, replica_set: Obj, old: Obj | None) -> None:
        """Pods that cannot even be made leave no other trace."""
        failure = _failure(replica_set)
        # When it begins: later refusals differ at most in the name of the pod.
        if type_ != DELETED and failure is not None and _failure(old) is None:
            metadata = replica_set["metadata"]
            subject = f"ReplicaSet/{metadata['namespace']}/{metadata['name']}"
            self._history.note(CLUSTER, subject, *failure)

    def _on_instance(self, event: CloudEvent, instance: Instance) -> None:
        what = f"{instance.instance_type} in {instance.zone}, {instance.capacity_type}"
        message = f"for {instance.claim_name}"
        if event is CloudEvent.LAUNCHED:
            message = f"{what}, {format_known_price(instance.price)}, {message}"
        self._history.note(CLOUD, f"Instance/{_id(instance)}", event, message)


def _id(instance: Instance) -> str:
    return instance.provider_id.rpartition("/")[2]


def _failure(replica_set: Obj | None) -> tuple[str, str] | None:
    """(reason, message) of the pods that are refused."""
    for one in dig(replica_set, "status", "conditions") or ():
        if one["type"] == REPLICA_FAILURE and one["status"] == "True":
            return one["reason"], one["message"]
    return None


def _ready(node: Obj | None) -> bool:
    conditions = dig(node, "status", "conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
