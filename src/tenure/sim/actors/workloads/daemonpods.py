"""A daemon set's pod for one node: its tolerations, its node, its revision."""

from __future__ import annotations

from typing import Final

from tenure.model.api.names import NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT
from tenure.model.api.resource import DAEMON_SETS
from tenure.sim.actors.workloads.podtemplate import new_pod, template_revision
from tenure.sim.apiserver.objects.tree import Obj, dig, put

REVISION_LABEL: Final = "controller-revision-hash"

#: A daemon belongs to its node through all of these.
_TOLERATED: Final = (
    (NOT_READY_TAINT, "NoExecute"),
    (UNREACHABLE_TAINT, "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    (UNSCHEDULABLE_TAINT, "NoSchedule"),
)
_NETWORK_UNAVAILABLE: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def daemon_pod(daemon_set: Obj, node: str) -> Obj:
    """The pod to create for this node."""
    pod = new_pod(daemon_set["spec"]["template"], daemon_set, DAEMON_SETS)
    pod = put(pod, ("metadata", "labels", REVISION_LABEL), revision_of(daemon_set))
    # The node was checked against the template's own terms already.
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pod["spec"] = put(with_tolerations(pod["spec"]), ("affinity", "nodeAffinity", _REQUIRED), terms)
    return pod


def with_tolerations(spec: Obj) -> Obj:
    """The pod spec with what every daemon tolerates."""
    wanted = [*_TOLERATED, *([_NETWORK_UNAVAILABLE] if spec.get("hostNetwork") else [])]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    return {**spec, "tolerations": [*(spec.get("tolerations") or []), *added]}


def target_node(pod: Obj) -> str:
    """The node that a daemon pod is on, or waits for."""
    if node := pod["spec"].get("nodeName"):
        return str(node)
    terms = dig(pod, "spec", "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms") or []
    for term in terms:
        for field in term.get("matchFields") or []:
            if field["key"] == "metadata.name":
                return str(field["values"][0])
    return ""


def revision_of(daemon_set: Obj) -> str:
    return template_revision(daemon_set)
