"""What cannot be read, and so forbids to take anything away."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import first_unreadable
from tenure.model.values.unreadable import UnreadableObject


def unreadable_parts(
    claim: NodeClaim | None, nodes: Iterable[Node], pool: NodePool | None = None
) -> UnreadableObject | None:
    """The first of these that cannot be read; None if all can."""
    return first_unreadable((pool, claim, *nodes))


def unreadable_pods(nodes: Iterable[Node], snapshot: Snapshot) -> UnreadableObject | None:
    """The first pod there that cannot be read and has not finished; it may be on any Node if
    its Node's name cannot be read either."""
    there = [pod for node in nodes for pod in snapshot.pods_on(node.name).values()]
    return first_unreadable(
        pod for pod in (*there, *snapshot.pods_nowhere().values()) if not pod.finished
    )
