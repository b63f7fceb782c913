"""What a pod that fits nowhere is told, in kube-scheduler's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

NO_NODES = "no nodes available to schedule pods"
ELSEWHERE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def unschedulable_message(refusals: Iterable[tuple[str, ...]], *, nodes: int) -> str:
    """``refusals``: one node's reasons each. A node may be short of several things."""
    if not nodes:
        return NO_NODES
    counts = Counter(reason for reasons in refusals for reason in reasons)
    texts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{nodes} nodes are available: {', '.join(texts)}."


def no_node_will_do(problem: str, *, nodes: int) -> str:
    """``problem``: what is wrong with the pod, whatever the nodes are."""
    return f"0/{nodes} nodes are available: {problem}." if nodes else NO_NODES
