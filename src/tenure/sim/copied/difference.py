"""What became of a copied cluster: its nodes, what they cost, which were disrupted and why, which pods moved.

The scene is taken twice and compared; in between, claims that begin to go are counted by reason. A price that is
not known is counted, never added as 0.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.model.api.names import DISRUPTION_REASON, NODEPOOL
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.sim.actors.workloads.ownedpods import controller_of, phase
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.copied.cloudlabels import bought
from tenure.sim.copied.types import price_at
from tenure.sim.world import World

#: Their owner places them node by node: they do not move.
_STAY: Final = ("DaemonSet", "Node")


class SceneNode(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    #: Micro-dollars per hour; None: not known.
    price: int | None


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    nodes: dict[str, SceneNode]
    #: By UID: ``namespace/name`` of pods that have a node and are not finished, and whose owner lets them move.
    pods: dict[str, str]
    pending: int
    #: Nodes that are being deleted.
    draining: tuple[str, ...] = ()
    #: How many claims are drifted, and not being deleted.
    drifted: int = 0


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    before: Scene
    after: Scene
    gone: tuple[SceneNode, ...]
    came: tuple[SceneNode, ...]
    #: By reason: claims that began to go.
    disruptions: dict[str, int]
    #: ``namespace/name`` of those that had a node at the start, and are gone from it.
    moved: tuple[str, ...]


class Observed:
    """Looks at a world from its start on. Create it when the copy is loaded."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leaving: dict[str, str] = {}
        world.store.subscribe(NODE_CLAIMS, self._on_claim)
        self.before = scene_of(world)

    def difference(self) -> Difference:
        after = scene_of(self._world)
        before = self.before
        return Difference(
            before=before,
            after=after,
            gone=tuple(one for name, one in before.nodes.items() if name not in after.nodes),
            came=tuple(one for name, one in after.nodes.items() if name not in before.nodes),
            disruptions=dict(sorted(Counter(self._leaving.values()).items())),
            moved=tuple(sorted(name for uid, name in before.pods.items() if uid not in after.pods)),
        )

    def _on_claim(self, type_: str, claim: Obj, old: Obj | None) -> None:
        metadata = claim["metadata"]
        leaves = type_ == DELETED or _is_leaving(claim)
        was_leaving = old is not None and _is_leaving(old)
        if leaves and not was_leaving:
            self._leaving.setdefault(metadata["uid"], _reason(claim))


def scene_of(world: World) -> Scene:
    types = {kind.name: kind for kind in world.cloud.types}
    nodes = {}
    for node in world.store.list(NODES):
        metadata = node["metadata"]
        labels: dict[str, str] = metadata.get("labels") or {}
        where = bought(labels)
        nodes[metadata["name"]] = SceneNode(
            name=metadata["name"],
            pool=labels.get(NODEPOOL, ""),
            instance_type=where.type,
            zone=where.zone,
            capacity_type=where.capacity_type,
            price=price_at(types, where),
        )
    pods, pending = {}, 0
    for pod in world.store.list(PODS):
        if phase(pod) in ("Succeeded", "Failed"):
            continue
        owner = controller_of(pod) or {}
        if not pod["spec"].get("nodeName"):
            pending += 1
        elif owner.get("kind") not in _STAY:
            metadata = pod["metadata"]
            pods[metadata["uid"]] = f"{metadata['namespace']}/{metadata['name']}"
    return Scene(
        at=world.now,
        nodes=nodes,
        pods=pods,
        pending=pending,
        draining=tuple(
            one["metadata"]["name"] for one in world.store.list(NODES) if _is_leaving(one)
        ),
        drifted=sum(_is_drifted(one) for one in world.store.list(NODE_CLAIMS)),
    )


def _is_leaving(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _is_drifted(claim: Obj) -> bool:
    conditions = dig(claim, "status", "conditions") or ()
    return not _is_leaving(claim) and any(
        (one.get("type"), one.get("status")) == ("Drifted", "True") for one in conditions
    )


def _reason(claim: Obj) -> str:
    """Why the claim goes, in Karpenter's word for it."""
    marked = (claim["metadata"].get("annotations") or {}).get(DISRUPTION_REASON)
    said: Any = marked or next(
        (
            one.get("reason")
            for one in dig(claim, "status", "conditions") or ()
            if one.get("type") == "DisruptionReason"
        ),
        None,
    )
    return str(said or "Deleted")
