"""What a pod asks of a node, worked out once for all pods that ask the same.

Two pods are of one *class* when everything the scheduler reads is equal; a thousand
replicas are then one question, asked once per node. Two pods are *kin* when other pods
cannot tell them apart: same namespace, same labels, same dislikes. A daemon set's pods are
kin, but each is a class of its own, because each names its node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tenure.model.api.pod import PodSpec
from tenure.sim.actors.scheduling.claims import ClaimUse, claims_used
from tenure.sim.actors.scheduling.demand import (
    Term,
    hard_spread_of,
    only_node,
    ports_of,
    requests_of,
    terms_of,
)
from tenure.sim.apiserver.objects.tree import Obj

#: The fields of a pod's spec that decide where it may go.
_READ: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "containers",
    "initContainers",
    "overhead",
    "resources",
    "priority",
    "topologySpreadConstraints",
    "hostNetwork",
)


class Kin:
    """Pods that look alike to other pods, and where they are."""

    __slots__ = ("dislikes", "key", "labels", "leaving", "members", "namespace", "placed")

    def __init__(self, key: bytes, namespace: str, labels: Mapping[str, str]) -> None:
        self.key = key
        self.namespace = namespace
        self.labels = labels
        self.dislikes: tuple[Term, ...] = ()
        #: Pods of this kind that exist, waiting ones included.
        self.members = 0
        #: Unfinished pods by node name; ``leaving`` counts those among them that terminate.
        self.placed: dict[str, int] = {}
        self.leaving: dict[str, int] = {}


class PodClass:
    """One question to the nodes, and the pods that ask it."""

    __slots__ = (
        "claims",
        "dislikes",
        "key",
        "kin",
        "likes",
        "members",
        "nominated",
        "only_node",
        "ports",
        "priority",
        "requests",
        "spec",
        "spread",
    )

    def __init__(
        self,
        key: bytes,
        spec: PodSpec,
        kin: Kin,
        claims: tuple[ClaimUse, ...] = (),
        nominated: str = "",
    ) -> None:
        self.key = key
        self.spec = spec
        self.kin = kin
        #: Whose volumes it needs.
        self.claims = claims
        #: The node that is kept for each of its pods.
        self.nominated = nominated
        self.members = 0
        self.priority = spec.priority or 0
        self.requests = tuple((n, a) for n, a in requests_of(spec).items() if a > 0)
        self.ports = tuple(ports_of(spec))
        self.only_node = only_node(spec)
        affinity = spec.affinity
        namespace, labels = kin.namespace, kin.labels
        self.likes = terms_of(affinity.pod_affinity if affinity else None, namespace, labels)
        self.dislikes = terms_of(
            affinity.pod_anti_affinity if affinity else None, namespace, labels
        )
        self.spread = hard_spread_of(spec, labels)

    @property
    def social(self) -> bool:
        """Where it may go depends on where other pods are."""
        return bool(self.likes or self.dislikes or self.spread)


class Classes:
    """Every class and kin that has pods; they go with their last pod."""

    def __init__(self) -> None:
        self.classes: dict[bytes, PodClass] = {}
        self.kin: dict[bytes, Kin] = {}
        #: Those among the kin that will not have certain pods near them.
        self.touchy: dict[bytes, Kin] = {}

    def join(self, pod: Obj) -> PodClass:
        """The pod's class, one member stronger."""
        spec, metadata = pod["spec"], pod["metadata"]
        who = [metadata["namespace"], metadata.get("labels")]
        claims = claims_used(pod) if "volumes" in spec else ()
        nominated = nominated_node(pod)
        key = msgspec.json.encode([who, [spec.get(field) for field in _READ], claims, nominated])
        cls = self.classes.get(key)
        if cls is None:
            typed = msgspec.convert({f: spec[f] for f in _READ if f in spec}, PodSpec)
            dislikes = (spec.get("affinity") or {}).get("podAntiAffinity")
            kin = self._kin(msgspec.json.encode([who, dislikes]), metadata)
            cls = self.classes[key] = PodClass(key, typed, kin, claims, nominated)
            if cls.dislikes:
                kin.dislikes = cls.dislikes
                self.touchy[kin.key] = kin
        cls.members += 1
        cls.kin.members += 1
        return cls

    def leave(self, cls: PodClass) -> None:
        cls.members -= 1
        cls.kin.members -= 1
        if not cls.members:
            del self.classes[cls.key]
        if not cls.kin.members:
            del self.kin[cls.kin.key]
            self.touchy.pop(cls.kin.key, None)

    def _kin(self, key: bytes, metadata: Obj) -> Kin:
        kin = self.kin.get(key)
        if kin is None:
            kin = Kin(key, metadata["namespace"], metadata.get("labels") or {})
            self.kin[key] = kin
        return kin


def nominated_node(pod: Obj) -> str:
    """The node that is kept for a pod until it is bound."""
    if pod["spec"].get("nodeName"):
        return ""
    return (pod.get("status") or {}).get("nominatedNodeName") or ""


def same_demand(old: Obj, new: Obj) -> bool:
    """Surely of one class: an update shares what it does not touch, so identity tells."""
    return nominated_node(old) == nominated_node(new) and same_needs(old, new)


def same_needs(old: Obj, new: Obj) -> bool:
    """The same, but for the node that is kept for it."""
    if old["metadata"].get("labels") != new["metadata"].get("labels"):
        return False
    before, after = old["spec"], new["spec"]
    return before is after or all(before.get(field) is after.get(field) for field in _READ)
