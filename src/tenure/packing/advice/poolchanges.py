"""Changes of one NodePool, each tried on the problem of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Final

import msgspec

from tenure.model.api.names import WELL_KNOWN_LABELS
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT, format_resources, maximum
from tenure.packing.advice import podspecs
from tenure.packing.advice.facts import (
    Change,
    LabelPool,
    LowerMinValues,
    OfferResource,
    RaiseLimits,
)
from tenure.packing.advice.trial import Trial
from tenure.packing.demand.problem import NODES, PoolTemplate, Problem
from tenure.packing.demand.requests import first_alternatives, pod_requests
from tenure.packing.facts import LabelUndefined, MinValuesUnmet
from tenure.packing.refusals.facts import TypesLackResource, TypesTooFew
from tenure.packing.refusals.texts import amount_text

#: Label domains that only Kubernetes and Karpenter write: no NodePool can define such a label.
_RESERVED: Final = ("kubernetes.io", "k8s.io", "karpenter.sh")


def limits(trial: Trial) -> Iterator[Change]:
    """The smallest limits of one pool under which the pod gets a node."""
    for template in _by_service(trial):
        if not template.remaining:
            continue
        if not trial.places(trial.with_pool(template.pool, _unlimited)):
            continue
        steps = _steps(template, _left(template, trial))
        found = trial.first_that_places(steps, partial(_raised, trial, template.pool))
        if found is not None:
            yield _told(template, found)


def _by_service(trial: Trial) -> list[PoolTemplate]:
    return sorted(trial.problem.templates, key=lambda one: (-one.weight, one.pool))


def _unlimited(template: PoolTemplate) -> PoolTemplate:
    return msgspec.structs.replace(template, remaining=None)


def _left(template: PoolTemplate, trial: Trial) -> dict[str, int]:
    """What the limits leave beside the claims that are planned for other pods."""
    kinds = {kind.name: kind for kind in template.instance_types}
    left = dict(template.remaining or {})
    for claim in trial.base.claims:
        if claim.pool == template.pool:
            listed = [kinds[name] for name in claim.instance_types]
            for name in left:
                left[name] -= max(_counts(kind, name) for kind in listed)
    return left


def _counts(kind: InstanceType, name: str) -> int:
    return UNIT if name == NODES else kind.capacity.get(name, 0)


def _steps(template: PoolTemplate, left: Mapping[str, int]) -> list[dict[str, int]]:
    """By how much the limits may be raised: for the smallest type, for the two smallest, and so on."""
    kinds = sorted(
        template.instance_types,
        key=lambda kind: (kind.capacity.get("cpu", 0), kind.capacity.get("memory", 0), kind.name),
    )
    short = (
        {name: max(0, _counts(kind, name) - there) for name, there in left.items()}
        for kind in kinds
    )
    steps = [step for step in accumulate(short, maximum) if any(step.values())]
    return [step for number, step in enumerate(steps) if not number or step != steps[number - 1]]


def _raised(trial: Trial, pool: str, step: Mapping[str, int]) -> Problem:
    def more(template: PoolTemplate) -> PoolTemplate:
        remaining = template.remaining or {}
        raised = {name: left + step.get(name, 0) for name, left in remaining.items()}
        return msgspec.structs.replace(template, remaining=raised)

    return trial.with_pool(pool, more)


def _told(template: PoolTemplate, step: Mapping[str, int]) -> RaiseLimits:
    known = template.limits
    amounts = {
        name: (known or {}).get(name, 0) + more for name, more in sorted(step.items()) if more
    }
    texts = format_resources(amounts)
    return RaiseLimits(template.pool, tuple(texts.items()), by=known is None)


def min_values(trial: Trial) -> Iterator[Change]:
    """With as many values as are left."""
    for refusal in trial.refusals:
        found = [one for one in refusal.counts if isinstance(one, TypesTooFew)]
        cause = refusal.cause
        if not found or not isinstance(cause, MinValuesUnmet) or not cause.found:
            continue
        lower = partial(_with_min_values, key=cause.key, min_values=cause.found)
        if trial.places(trial.with_pool(refusal.pool, lower)):
            yield LowerMinValues(refusal.pool, cause.key, cause.wanted, cause.found)


def _with_min_values(template: PoolTemplate, key: str, min_values: int) -> PoolTemplate:
    changed = Requirements.of(
        msgspec.structs.replace(one, min_values=min_values) if one.key == key else one
        for one in template.requirements.values()
    )
    return msgspec.structs.replace(template, requirements=changed)


def labels(trial: Trial) -> Iterator[Change]:
    """With a label that the pod asks for and the pool does not define."""
    wanted, _ = first_alternatives(trial.pod)
    for refusal in trial.refusals:
        cause = refusal.cause
        if not isinstance(cause, LabelUndefined) or _is_reserved(cause.key):
            continue
        asked = wanted[0].get(cause.key)
        if asked is None or asked.complement or not asked.listed:
            continue
        value = min(asked.listed)
        labelled = partial(_labelled, key=cause.key, value=value)
        if trial.places(trial.with_pool(refusal.pool, labelled)):
            yield LabelPool(refusal.pool, cause.key, value)


def _is_reserved(key: str) -> bool:
    domain = key.rpartition("/")[0]
    ours = any(domain == one or domain.endswith(f".{one}") for one in _RESERVED)
    return key in WELL_KNOWN_LABELS or ours


def _labelled(template: PoolTemplate, key: str, value: str) -> PoolTemplate:
    more = template.requirements.add(Requirement.label(key, value))
    return msgspec.structs.replace(template, requirements=more)


def resources(trial: Trial) -> Iterator[Change]:
    """Another pool, for a resource that no instance type has: without it the pod would fit."""
    names = {
        one.resource
        for refusal in trial.refusals
        for one in refusal.counts
        if isinstance(one, TypesLackResource)
    }
    asked = pod_requests(trial.pod)
    for name in sorted(names):
        if trial.places(trial.with_pods(partial(podspecs.requesting, resource=name, nano=0))):
            yield OfferResource(name, amount_text(name, asked[name]))
