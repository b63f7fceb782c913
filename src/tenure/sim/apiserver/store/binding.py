"""The binding subresource: a pod gets its node, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.model.api.resource import PODS
from tenure.sim.apiserver.objects.refusals import Unexplained, conflict
from tenure.sim.apiserver.objects.tree import Obj, dig, drop, put

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store


def bind(store: Store, namespace: str, name: str, node: str, *, uid: str = "") -> Obj:
    """The bound pod. A pod that is going, gated or bound already is a conflict."""
    if not node:
        raise Unexplained("a binding must name its target")
    pod = store.get(PODS, namespace, name)
    metadata, spec = pod["metadata"], pod["spec"]
    if uid and uid != metadata["uid"]:
        raise conflict(PODS, name, f"Precondition failed: UID in precondition: {uid}")
    if "deletionTimestamp" in metadata:
        raise conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict(PODS, name, f"pod {name} is already assigned to node {spec['nodeName']!r}")
    if spec.get("schedulingGates"):
        raise conflict(PODS, name, f"pod {name} has non-empty .spec.schedulingGates")
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": store.stamp(),
    }
    others = [c for c in dig(pod, "status", "conditions") or [] if c["type"] != "PodScheduled"]
    bound = put(pod, ("spec", "nodeName"), node)
    bound = put(bound, ("status", "conditions"), [*others, scheduled])
    bound = drop(bound, ("status", "nominatedNodeName"))  # It has its node.
    return store.rewrite(PODS, bound)  # Being bound is no change of the pod's generation.
