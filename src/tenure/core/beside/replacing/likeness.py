"""Which node would do in place of another one, without a list of instance types: one that is like it.

Karpenter chooses the instance type, so only requirements are said:

1. those of the pool's template and its labels: else the new node would drift at once;
2. of the old Node its architecture and system; its zone, because volumes may be bound to it; each label that one
   of its pods asks for; and its value of each label that users define;
3. those of its claim: what Karpenter wrote for the pods that it was launched for.

Where the template forbids what is needed of the second, there is no such node. Where only the third contradicts,
because the template has changed, it is left out. The zone is left open where no pod has a volume and the
template forbids it, or most nodes of it are unhealthy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from tenure.core.beside.replacing.facts import PodAsksForNode, TemplateExcludes
from tenure.core.disrupt.simulate import LeavingNode
from tenure.core.facts import Fact
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import (
    NODE_NAME,
    Requirement,
    Requirements,
    pod_alternatives,
)
from tenure.model.snapshot.governed import as_written
from tenure.model.values.quantity import maximum, parse_resources, total
from tenure.packing.demand.requests import pod_requests

#: Of the Node itself.
_BY_NAME: Final = frozenset({names.HOSTNAME, NODE_NAME})
#: Programs are built for them.
_PROGRAMS: Final = frozenset({names.ARCH, names.OS})
#: Ends of domains whose labels Kubernetes, Karpenter or a provider sets.
_NOT_USERS: Final = ("kubernetes.io", "k8s.io", "karpenter.sh")


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    requirements: Requirements
    #: Labels that users define, with the one value that the new node has.
    labels: Mapping[str, str] = {}
    #: What the claim itself requires was left out.
    template_only: bool = False

    @property
    def zone(self) -> str:
        return self.requirements.labels().get(names.ZONE, "")


def likeness(leaving: LeavingNode, pool: NodePool, outage: Collection[str] = ()) -> Likeness | Fact:
    """The fact: why there is none. ``outage``: zones in which most nodes are unhealthy."""
    asked = dict(_asked(leaving.pods))
    for key in _BY_NAME & asked.keys():
        return PodAsksForNode(asked[key], leaving.node.name)
    template = template_requirements(pool)
    own = Requirements.from_wire(leaving.claim.spec.requirements)
    bound = any(pod.volume_claims for pod in leaving.pods)
    found = template
    for key, value in _kept(leaving, {*asked, *_users(template, pool), *_users(own, pool)}):
        needed = key in asked or key in _PROGRAMS or (key == names.ZONE and bound)
        if not template.allowed(key).has(value):
            if needed:
                return TemplateExcludes(
                    pool.name, leaving.node.name, key, value, asked.get(key, "")
                )
        elif needed or not (key == names.ZONE and value in outage):
            found = _pinned(found, key, value)
    both = found.intersect(own)
    clash = any(one.impossible for one in both.values())
    chosen = _countable(found if clash else both)
    users = set(_users(chosen, pool))
    labels = {key: value for key, value in chosen.labels().items() if key in users}
    return Likeness(requirements=chosen, labels=labels, template_only=clash)


def template_requirements(pool: NodePool) -> Requirements:
    """With its labels, and that of the pool."""
    template = as_written(pool).spec.template
    labels = {**template.metadata.labels, names.NODEPOOL: pool.name}
    own = Requirements.from_wire(template.spec.requirements)
    return own.intersect(Requirements.from_labels(labels))


def requests_of(claim: NodeClaim, pods: Iterable[Pod]) -> dict[str, int]:
    """Of each resource the larger of what it was launched for and what is there now."""
    launched = parse_resources(claim.spec.resources.requests, "spec.resources.requests")
    return maximum(launched, total(map(pod_requests, pods)))


def _asked(pods: Iterable[Pod]) -> Iterator[tuple[str, str]]:
    """Labels that pods ask their Node for, and by which pod."""
    for pod in pods:
        for alternative in pod_alternatives(pod):
            yield from ((key, pod.key) for key in alternative)


def _kept(leaving: LeavingNode, keys: Collection[str]) -> Iterator[tuple[str, str]]:
    """Of these labels, and those that every node has, the values of the old Node."""
    there = leaving.node.labels
    for key in sorted({*keys, *_PROGRAMS, names.ZONE}):
        current = names.NORMALIZED_LABELS.get(key, key)
        if current in there:
            yield current, there[current]


def _users(requirements: Requirements, pool: NodePool) -> Iterator[str]:
    """Keys that neither Kubernetes nor Karpenter nor the provider gives a value."""
    provider = pool.node_class_ref.group
    for key in requirements:
        domain = key.partition("/")[0] if "/" in key else ""
        if domain != provider and not domain.endswith(_NOT_USERS):
            yield key


def _pinned(requirements: Requirements, key: str, value: str) -> Requirements:
    by_key = {one: requirements[one] for one in requirements}
    by_key[key] = Requirement.label(key, value)
    return Requirements(by_key)


def _countable(requirements: Requirements) -> Requirements:
    """Without ``minValues`` that so few values cannot reach: the launch would be refused."""
    return Requirements.of(
        one.with_min_values(None)
        if one.min_values is not None and not one.complement and len(one.listed) < one.min_values
        else one
        for one in requirements.values()
    )
