"""Which node qualifies for which daemon set."""

from __future__ import annotations

import msgspec

from tenure.model.api.node import NodeSpec, Taint
from tenure.model.api.pod import PodSpec
from tenure.model.api.taints import untolerated
from tenure.sim.actors.scheduling.matching import matches_node
from tenure.sim.actors.workloads.daemonpods import with_tolerations
from tenure.sim.apiserver.objects.tree import Obj


class NodeView(msgspec.Struct, frozen=True):
    """What a daemon set looks at; replaced whenever one of these changes."""

    labels: dict[str, str]
    taints: tuple[Taint, ...]

    @classmethod
    def of(cls, node: Obj) -> NodeView:
        spec = msgspec.convert(node.get("spec") or {}, NodeSpec)
        return cls(node["metadata"].get("labels") or {}, spec.taints)


class Fate(msgspec.Struct, frozen=True):
    """What a node is to a daemon set: it should have a pod, or what runs there may stay."""

    wanted: bool
    tolerated: bool


def fate_of(spec: PodSpec, name: str, node: NodeView) -> Fate:
    if not matches_node(spec, name, node.labels):
        return Fate(wanted=False, tolerated=False)
    wanted = untolerated(node.taints, spec.tolerations) is None
    tolerated = untolerated(node.taints, spec.tolerations, ("NoExecute",)) is None
    return Fate(wanted=wanted, tolerated=tolerated)


class Fates:
    """By DaemonSet and node; evaluated again only when either changes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Obj, PodSpec, dict[str, tuple[NodeView, Fate]]]] = {}

    def fates(self, daemon_set: Obj, nodes: dict[str, NodeView]) -> dict[str, Fate]:
        uid, template = daemon_set["metadata"]["uid"], daemon_set["spec"]["template"]
        known = self._known.get(uid)
        if known is None or known[0] is not template:
            spec = msgspec.convert(with_tolerations(template["spec"]), PodSpec)
            known = self._known[uid] = (template, spec, {})
        _, spec, fates = known
        for name in [name for name in fates if name not in nodes]:
            del fates[name]
        for name, view in nodes.items():
            before = fates.get(name)
            if before is None or before[0] is not view:
                fates[name] = (view, fate_of(spec, name, view))
        return {name: fate for name, (_, fate) in fates.items()}

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
