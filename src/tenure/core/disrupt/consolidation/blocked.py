"""Gates that block a node, as its plan keeps them: the model knows neither gates nor verdicts."""

from __future__ import annotations

from tenure.core.decision import Blocker, Subject
from tenure.core.gates.longest import Keeping
from tenure.model.snapshot.consolidation import BlockedNode, BlockingObject


def blocked_node(kept: Keeping) -> BlockedNode:
    objects = tuple(
        BlockingObject(
            kind=one.subject.kind,
            name=one.subject.name,
            namespace=one.subject.namespace,
            uid=one.subject.uid,
            fact=one.fact,
            until=one.until,
            lasting=one.lasting,
        )
        for one in kept.blockers
    )
    return BlockedNode(gate=kept.governing.gate, objects=objects)


def blockers_of(node: BlockedNode) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(
            subject=Subject(one.kind, one.name, one.namespace, one.uid),
            fact=one.fact,
            until=one.until,
            lasting=one.lasting,
        )
        for one in node.objects
    )
