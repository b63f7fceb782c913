"""A pod that a workload may not make, told once: the event ``FailedCreate``.

A real cluster repeats it with every try. Here it is told when it begins, and again when what the API server says is
of another kind: of another quota, or no more of a quota.
"""

from __future__ import annotations

import hashlib
from typing import Final

from tenure.errors import ApiError
from tenure.model.api.resource import EVENTS, PODS, STATEFUL_SETS, Resource
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store

REASON: Final = "FailedCreate"
_COMPONENTS: Final = {
    "DaemonSet": "daemonset-controller",
    "Job": "job-controller",
    "ReplicaSet": "replicaset-controller",
    "StatefulSet": "statefulset-controller",
}


def create_pod(store: Store, pod: Obj, owner: Obj, resource: Resource) -> None:
    """Create the owner's pod; a refusal is told and raised."""
    try:
        store.create(PODS, pod)
    except ApiError as error:
        _tell(store, owner, resource, error)
        raise


def _tell(store: Store, owner: Obj, resource: Resource, error: ApiError) -> None:
    """Write the event, unless this owner has it."""
    metadata = owner["metadata"]
    # Names and amounts change with every try: "pods "a-x" is forbidden: exceeded quota: team, requested: …".
    kind = error.message.partition(": ")[2].partition(",")[0]
    mark = hashlib.sha256(f"{metadata['uid']}{kind}".encode()).hexdigest()[:16]
    name = f"{metadata['name'][:230]}.{mark}"
    if store.find(EVENTS, metadata["namespace"], name) is not None:
        return
    told = f"Error creating: {error.message}"
    if resource == STATEFUL_SETS:
        told = f"create Pod in StatefulSet {metadata['name']} failed error: {error.message}"
    now, component = store.stamp(), _COMPONENTS[resource.kind]
    event = {
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "reason": REASON,
        "message": told,
        "type": "Warning",
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    }
    try:
        store.create(EVENTS, event)
    except ApiError:
        return  # Its namespace is going.
