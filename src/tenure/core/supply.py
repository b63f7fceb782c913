"""The question that provisioning asks of packing: which pods, which nodes, which pools.

Pods: those the scheduler found no node for, and those of leaving nodes that may go now
(so their replacement capacity is on its way while they drain). Nodes: everything that
takes pods or soon will, claims without a Node included; a node that is not initialized
yet is taken without the taints it will lose. Pools: those that may launch, with what
their limits leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from tenure.core.claims import is_ours as claim_is_ours
from tenure.core.lifecycle import is_ephemeral
from tenure.core.pools import (
    is_ours,
    node_class_key,
    node_class_of,
    node_class_problem,
    usage_of,
)
from tenure.core.protection import protected_until
from tenure.errors import SpecError
from tenure.model import names
from tenure.model.meta import controller_of
from tenure.model.node import Node, Taint
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.pod import Pod
from tenure.model.quantity import maximum, parse_resources, readable_amounts, subtract
from tenure.model.requirements import Requirements
from tenure.model.snapshot import Snapshot
from tenure.packing.problem import Daemon, ExistingNode, PoolTemplate
from tenure.schema.runtime import template_errors


def pods_to_place(snapshot: Snapshot) -> list[tuple[Pod, datetime]]:
    """Each pod that needs a place, with the instant from which it has waited."""
    waiting = [
        (pod, _unschedulable_since(pod))
        for pod in snapshot.unschedulable_pods().values()
        if not pod.spec.scheduling_gates and not pod.daemon
    ]
    for node in snapshot.leaving_nodes().values():
        since = node.metadata.deletion_timestamp or node.created_at
        leaving = snapshot.pods_on(node.name).values()
        waiting += [(pod, since) for pod in leaving if reschedulable(pod)]
    waiting.sort(key=lambda item: item[0].uid)
    return waiting


def reschedulable(pod: Pod) -> bool:
    """Whether somebody will create it again elsewhere once it is evicted, and it may be."""
    return (
        pod.active
        and not pod.daemon
        and not pod.mirror
        and not pod.tolerates_disruption
        and protected_until(pod) is None
        and controller_of(pod.metadata) is not None
    )


def _unschedulable_since(pod: Pod) -> datetime:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.last_transition_time is not None:
            return condition.last_transition_time
    return pod.created_at


# -- nodes ---------------------------------------------------------------------------


def nodes_with_room(snapshot: Snapshot) -> list[ExistingNode]:
    found: list[ExistingNode] = []
    for name, node in sorted(snapshot.nodes.items()):
        claim = snapshot.claim_of(node)
        if node.deleting or node.spec.unschedulable or (claim is not None and claim.deleting):
            continue
        found.append(_existing(node, claim, snapshot.pods_on(name).values()))
    for claim in sorted(snapshot.claims.values(), key=lambda claim: claim.name):
        if claim.deleting or not claim_is_ours(claim, snapshot):
            continue
        if not snapshot.nodes_with_provider(claim.provider_id):
            found.append(_in_flight(claim))
    return found


def _existing(node: Node, claim: NodeClaim | None, pods: Iterable[Pod]) -> ExistingNode:
    initialized = claim is None or claim.initialized
    allocatable = dict(node.allocatable)
    taints, labels = node.spec.taints, node.labels
    if claim is not None and not initialized:
        # What the node does not offer yet, its claim says it will.
        allocatable = maximum(allocatable, readable_amounts(claim.status.allocatable))
        taints = _lasting(taints, claim)
        labels = {**claim.labels, **labels}
    bound = sorted((pod for pod in pods if not pod.finished), key=lambda pod: pod.uid)
    return ExistingNode.holding(
        bound,
        name=node.name,
        allocatable=allocatable,
        labels=labels,
        taints=taints,
        initialized=initialized,
    )


def _lasting(taints: tuple[Taint, ...], claim: NodeClaim) -> tuple[Taint, ...]:
    startup = {(t.key, t.effect) for t in claim.spec.startup_taints}
    return tuple(t for t in taints if (t.key, t.effect) not in startup and not is_ephemeral(t))


def _in_flight(claim: NodeClaim) -> ExistingNode:
    """A claim whose Node is not there yet. Before the launch we count on no more than it asked for."""
    allocatable = claim.status.allocatable if claim.launched else claim.spec.resources.requests
    return ExistingNode(
        name=claim.name,
        labels=_labels_to_come(claim),
        taints=claim.spec.taints,
        available=readable_amounts(allocatable),
        initialized=False,
    )


def _labels_to_come(claim: NodeClaim) -> dict[str, str]:
    """Any value its requirements allow suits every pod it was made for."""
    try:
        requirements = Requirements.from_wire(claim.spec.requirements)
    except SpecError:
        return dict(claim.labels)
    chosen = {
        key: value
        for key, requirement in requirements.items()
        if requirement.operator == "In" and (value := requirement.any()) is not None
    }
    return {**chosen, **claim.labels}


# -- pools ---------------------------------------------------------------------------


def pool_templates(snapshot: Snapshot) -> list[PoolTemplate]:
    return [
        template
        for _, pool in sorted(snapshot.pools.items())
        if (template := _template(pool, snapshot)) is not None
    ]


def _template(pool: NodePool, snapshot: Snapshot) -> PoolTemplate | None:
    ref = pool.spec.template.spec.node_class_ref
    if pool.deleting or pool.spec.replicas is not None or not is_ours(pool, snapshot):
        return None
    if node_class_problem(ref, node_class_of(pool, snapshot)) or template_errors(pool):
        return None
    spec = pool.spec.template.spec
    return PoolTemplate(
        pool=pool.name,
        weight=pool.spec.weight or 0,
        requirements=template_requirements(pool),
        taints=spec.taints,
        startup_taints=spec.startup_taints,
        instance_types=snapshot.observations.instance_types.get(node_class_key(ref), ()),
        remaining=_remaining(pool, snapshot),
    )


def template_requirements(pool: NodePool) -> Requirements:
    """What every node of the pool will be labelled with, as requirements."""
    spec = pool.spec.template.spec
    ref = spec.node_class_ref
    labels = {
        **pool.spec.template.metadata.labels,
        names.NODEPOOL: pool.name,
        f"{ref.group}/{ref.kind.lower()}": ref.name,
    }
    written = Requirements.from_wire(spec.requirements, "spec.template.spec.requirements")
    return written.intersect(Requirements.from_labels(labels))


def _remaining(pool: NodePool, snapshot: Snapshot) -> dict[str, int] | None:
    if not pool.spec.limits:
        return None
    try:
        limits = parse_resources(dict(pool.spec.limits), "spec.limits")
    except SpecError:
        return {"nodes": 0}  # A limit that cannot be read lets nothing through.
    used = usage_of(pool.name, snapshot)
    left = subtract(limits, {key: used.get(key, 0) for key in limits})
    for claim in snapshot.claims_of_pool(pool.name).values():
        if not claim.launched and not claim.deleting:
            left = subtract(left, _largest(claim, snapshot, limits))
    return left


def _largest(claim: NodeClaim, snapshot: Snapshot, limits: Mapping[str, int]) -> dict[str, int]:
    """The most an unanswered launch may turn out to be."""
    types = snapshot.observations.instance_types.get(node_class_key(claim.spec.node_class_ref), ())
    allowed = {
        value
        for entry in claim.spec.requirements
        if entry.key == names.INSTANCE_TYPE and entry.operator == "In"
        for value in entry.values
    }
    largest: dict[str, int] = {}
    for kind in types:
        if kind.name in allowed:
            largest = maximum(largest, dict(kind.capacity))
    return {key: largest.get(key, 0) for key in limits if key != "nodes"}


def daemons(snapshot: Snapshot) -> list[Daemon]:
    return [
        Daemon(name=key, spec=daemon_set.spec.template.spec)
        for key, daemon_set in sorted(snapshot.daemon_sets.items())
        if not daemon_set.deleting
    ]
