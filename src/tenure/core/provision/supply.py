"""Where pods can be placed: nodes that accept pods or soon will, and pools that may launch more.

Nodes: all existing ones and all in flight, claims without a Node included. A node that is not
initialized yet counts as it will be: without the taints it will lose, with the labels, taints and
resources of its claim. So does a node that is being rebooted, without the pods that are terminating
there. Cordoned and terminating nodes accept no pods, but their running pods count towards topology.
A pod that the scheduler is about to bind to a node, once its volume is there, counts as one that runs on it.
Pools: those that may launch, with what their limits leave; for the others, why they may not.

What cannot be read provides no capacity: a Node with an unreadable pod accepts no more pods, because
that pod's requests are unknown; an unreadable claim without a Node is not a node in flight; a Node
with an unreadable claim counts as it is. Against limits an unreadable claim counts as the largest
instance that it may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Final

from tenure.core.claim.initialize import is_ephemeral, is_startup
from tenure.core.claim.register import registered_taints
from tenure.core.facts import NodeClassNotServed
from tenure.core.marks.ownership import is_our_pool, is_ours
from tenure.core.pool.limits import remaining, requirements_of, types_of
from tenure.core.pool.lookup import (
    node_class_key,
    node_class_of,
    node_class_problem,
    to_come,
)
from tenure.core.pool.offers import template_requirements
from tenure.core.provision.facts import (
    Closed,
    NodeClassRefused,
    PoolDeleting,
    PoolNotReady,
    PoolStatic,
    PoolUnreadable,
)
from tenure.core.provision.reserved import without_used
from tenure.model.api import names
from tenure.model.api.meta import find_condition
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.amounts import ALLOCATABLE
from tenure.model.snapshot.derived import Derivation, Derived
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object
from tenure.model.values.quantity import fits, parse_resources, readable_amounts
from tenure.model.values.same import Same
from tenure.packing.demand.problem import NEW_NODE_LABELS, ExistingNode, PoolTemplate
from tenure.schema.problems import in_words
from tenure.schema.semantics.template import template_problems

#: The unreachable taint with every effect: a reboot may take longer than a node lease.
_WHILE_REBOOTING = frozenset({names.REBOOTING_TAINT, names.UNREACHABLE_TAINT})


def nodes_in_flight(snapshot: Snapshot) -> list[ExistingNode]:
    """Of claims whose Node has not appeared yet."""
    derived = snapshot.derived
    return [
        derived.of(_IN_FLIGHT, claim, Same(types_of(claim, snapshot)))
        for _, claim in sorted(snapshot.coming_claims().items())
        if _is_in_flight(claim, snapshot)
    ]


def existing_node(node: Node, snapshot: Snapshot) -> ExistingNode:
    """The node with what its pods leave of it, as it is or soon will be."""
    name, derived, claim = node.name, snapshot.derived, snapshot.claim_of(node)
    pods = (*snapshot.pods_on(name).values(), *snapshot.pods_coming_to(name).values())
    if _takes_none(node, claim, snapshot):
        return derived.of(_CLOSED, node, pods, derived)
    return derived.of(_EXISTING, node, claim, pods, derived)


def _closed(node: Node, pods: Iterable[Pod], derived: Derived) -> ExistingNode:
    return ExistingNode.holding(
        _unfinished(pods),
        name=node.name,
        allocatable=derived.of(ALLOCATABLE, node),
        labels=node.labels,
        taints=node.spec.taints,
        closed=True,
    )


_CLOSED: Final = Derivation("existing node that takes no pods", _closed)


def in_service_at(node: Node, claim: NodeClaim | None) -> datetime | None:
    """Since when the scheduler can use the node; None where it cannot now."""
    if not node.ready or is_closed(node, claim):
        return None
    if is_unreadable(claim):
        claim = None  # Only the Node shows whether the scheduler can use it.
    if claim is not None and (claim.rebooting or not claim.initialized):
        return None
    told = [find_condition(node.status.conditions, "Ready")]
    told += [find_condition(claim.status.conditions, "Initialized")] if claim else []
    instants = [c.last_transition_time for c in told if c and c.last_transition_time]
    return max([node.created_at, *instants])


def is_closed(node: Node, claim: NodeClaim | None) -> bool:
    """It takes no more pods."""
    return node.deleting or node.spec.unschedulable or (claim is not None and claim.deleting)


def _takes_none(node: Node, claim: NodeClaim | None, snapshot: Snapshot) -> bool:
    if is_closed(node, claim):
        return True
    if not snapshot.unreadable():
        return False  # Nearly always.
    pods = snapshot.pods_on(node.name).values()
    return any(is_unreadable(pod) for pod in pods if not pod.finished)


def _unfinished(pods: Iterable[Pod]) -> list[Pod]:
    return sorted([pod for pod in pods if not pod.finished], key=attrgetter("metadata.uid"))


def _existing(
    node: Node, claim: NodeClaim | None, pods: Iterable[Pod], derived: Derived
) -> ExistingNode:
    # No taint is removed from the Node of a claim that cannot be read.
    as_it_is = claim is None or is_unreadable(claim)
    initialized = claim is None or as_it_is or (claim.initialized and not claim.rebooting)
    allocatable = derived.of(ALLOCATABLE, node)
    taints, labels = node.spec.taints, node.labels
    if claim is not None and not initialized:
        allocatable = to_come(allocatable, readable_amounts(claim.status.allocatable))
        taints = taints if claim.registered else registered_taints(claim, node)
        taints = tuple(t for t in taints if not is_startup(t, claim) and not is_ephemeral(t))
        if claim.rebooting:
            # Terminating pods have stopped by then; the pods that replace them use their capacity.
            pods = [pod for pod in pods if not pod.deleting]
            taints = tuple(t for t in taints if t.key not in _WHILE_REBOOTING)
        labels = {**labels, **claim.labels, **NEW_NODE_LABELS}
    return ExistingNode.holding(
        _unfinished(pods),
        name=node.name,
        allocatable=allocatable,
        labels=labels,
        taints=taints,
        initialized=initialized,
    )


#: Computed again only when the Node, its claim or a pod there has been replaced.
_EXISTING: Final = Derivation("existing node", _existing)


def _is_in_flight(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Its Node has not appeared yet. A Node that registered and is gone does not come back.

    An unreadable claim is neither launched nor registered, so no Node is expected for it.
    """
    if is_unreadable(claim) or claim.deleting or claim.registered:
        return False
    if not is_ours(claim, snapshot):
        return False
    return not snapshot.nodes_with_provider(claim.provider_id)


def in_flight(claim: NodeClaim, types: Iterable[InstanceType]) -> ExistingNode:
    """The node of a claim in flight; before the launch is answered, the least that it can be."""
    wanted = requirements_of(claim)
    listed = {key: one.listed for key, one in wanted.items() if one.operator == "In"}
    decided = {key: next(iter(values)) for key, values in listed.items() if len(values) == 1}
    labels = {**decided, **claim.labels, **NEW_NODE_LABELS}
    return ExistingNode(
        name=claim.name,
        labels=labels,
        taints=claim.spec.taints,
        available=(
            readable_amounts(claim.status.allocatable)
            if claim.launched
            else _least_of(claim, wanted, types)
        ),
        initialized=False,
        undecided={key: values for key, values in listed.items() if key not in labels},
    )


def _in_flight(claim: NodeClaim, types: Same[tuple[InstanceType, ...]]) -> ExistingNode:
    return in_flight(claim, types.value)


_IN_FLIGHT: Final = Derivation("node in flight", _in_flight)


def _least_of(
    claim: NodeClaim, wanted: Requirements, types: Iterable[InstanceType]
) -> dict[str, int]:
    """By resource, the minimum over the instance types that satisfy and fit the claim."""
    requests = readable_amounts(claim.spec.resources.requests)
    least: dict[str, int] | None = None
    for kind in types:
        if could_fit(kind, wanted, requests):
            there = kind.allocatable
            if least is None:
                least = dict(there)
            else:
                least = {name: min(nano, there.get(name, 0)) for name, nano in least.items()}
    # Without a matching type nothing is launched; the claim's own verdict says why.
    return requests if least is None else least


def could_fit(kind: InstanceType, wanted: Requirements, requests: Mapping[str, int]) -> bool:
    """Whether a claim with these requirements and requests may get an instance of that type."""
    return (
        wanted.allowed(names.INSTANCE_TYPE).has(kind.name)
        and fits(requests, kind.allocatable)
        and kind.requirements.is_compatible(wanted, allow_undefined=wanted)
    )


# -- pools ---------------------------------------------------------------------------


def closed_because(pool: NodePool, snapshot: Snapshot) -> Closed | None:
    """Why the pool launches nothing for pods; None when it does."""
    ref = pool.node_class_ref
    if not is_our_pool(pool, snapshot):
        return NodeClassNotServed(ref.kind, ref.group)
    if is_unreadable(pool):
        return PoolUnreadable(unreadable_object(pool))
    if pool.deleting:
        return PoolDeleting()
    if pool.static:
        return PoolStatic()
    problem = node_class_problem(ref, node_class_of(pool, snapshot))
    if problem is not None:
        return PoolNotReady(problem[1])
    if problems := in_words(template_problems(pool)):
        return PoolNotReady(problems)
    return _refused(ref, snapshot.observations)


def _refused(ref: NodeClassRef, observations: Observations) -> NodeClassRefused | None:
    """Why the cloud refused the pool's node class; None once it lists instance types for it."""
    key = node_class_key(ref)
    refusal = observations.refused_classes.get(key)
    if refusal is None or key in observations.instance_types:
        return None
    return NodeClassRefused(f"{ref.kind} {ref.name}", refusal.at, refusal.message, refusal.until)


def open_pools(snapshot: Snapshot) -> tuple[list[PoolTemplate], dict[str, Closed]]:
    """Pools that may launch; and by name, why the others may not."""
    templates: list[PoolTemplate] = []
    closed: dict[str, Closed] = {}
    for name, pool in sorted(snapshot.pools.items()):
        why = closed_because(pool, snapshot)
        if why is not None:
            closed[name] = why
        else:
            templates.append(_template(pool, snapshot))
    return templates, closed


def unlisted_pools(templates: Iterable[PoolTemplate], snapshot: Snapshot) -> tuple[str, ...]:
    """Pools whose instance types have not been listed yet: right after a start."""
    known = snapshot.observations.instance_types
    return tuple(
        template.pool
        for template in templates
        if node_class_key(snapshot.pools[template.pool].spec.template.spec.node_class_ref)
        not in known
    )


def _template(pool: NodePool, snapshot: Snapshot) -> PoolTemplate:
    spec = pool.spec.template.spec
    types = snapshot.observations.instance_types
    offered = types.get(node_class_key(spec.node_class_ref), ())
    return PoolTemplate(
        pool=pool.name,
        weight=pool.weight,
        requirements=template_requirements(pool),
        taints=spec.taints,
        startup_taints=spec.startup_taints,
        instance_types=without_used(offered, snapshot),
        remaining=remaining(pool, snapshot),
        limits=parse_resources(pool.spec.limits, "spec.limits") if pool.spec.limits else None,
    )
