"""Which pods a node is for: its claim names their UIDs, and the status of a pod may name the Node.

kube-scheduler binds pods in its own order. Left alone, a pod that may run anywhere takes the room on the first new
node, and the pod for which that node was launched, and which may run nowhere else, needs one more. With
``status.nominatedNodeName`` the scheduler tries that node first, and counts the pod there for all pods of equal or
lower priority.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenure.core.decision import Patch
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.model.snapshot.snapshot import Snapshot


def nominated_pods(claim: NodeClaim) -> list[str]:
    """The UIDs of the pods that the claim was created for (``karpenter.sh/nominated-pods``)."""
    return [uid for uid in claim.annotations.get(NOMINATED_PODS, "").split(",") if uid]


def nominating_claims(snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """By pod UID: the names of the claims that name it."""
    return snapshot.once_of(NODE_CLAIMS, _nominating)


def awaits_preemption(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether the scheduler makes room for the pod: pods of lower priority terminate on the node that its status names.

    Other names are Tenure's, or of a node that the pod is about to be bound to.
    """
    name, priority = pod.status.nominated_node_name, pod.spec.priority or 0
    return bool(name) and any(
        other.deleting and not other.finished and (other.spec.priority or 0) < priority
        for other in snapshot.pods_on(name).values()
    )


def preempted_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Names of the Nodes where the scheduler makes room for a pod."""
    waiting = snapshot.unschedulable_pods().values()
    return frozenset(
        pod.status.nominated_node_name
        for pod in waiting
        if pod.status.nominated_node_name and awaits_preemption(pod, snapshot)
    )


def named(pod: Pod, node: str, *, on_any_version: bool = False) -> Patch:
    """Writes the Node into the pod's status, or removes the name that is there (empty).

    ``on_any_version``: the scheduler rewrites the status of a waiting pod all the time, and a first name must not
    wait for that. Late, it is harmless: a name that does not hold is removed again.
    """
    version = pod.metadata.resource_version
    checked = {} if on_any_version else {"resourceVersion": version}
    return Patch(
        resource=PODS,
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        resource_version=version,
        subresource="status",
        body={
            "metadata": {"uid": pod.uid, **checked},
            "status": {"nominatedNodeName": node or None},
        },
    )


def _nominating(claims: Mapping[str, NodeClaim]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, claim in claims.items():
        if NOMINATED_PODS in claim.annotations:
            for uid in nominated_pods(claim):
                found[uid] = (*found.get(uid, ()), name)
    return found
