"""Pods that ask for more than they need: preferences, soft spreads, and classes that are hard on a plan.

The sizes are those of ``workloads.easy``, so that the fleets are as large as without preferences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from benchmarks.scheduling.workloads import MEBIBYTES, MILLICORES, ZONES, a_pod, term
from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.api.pod import Pod

Spec = dict[str, Any]
Labels = Mapping[str, str]
CLASSES: Final = 200


def _zone(zone: str) -> Spec:
    wanted = {"key": ZONE, "operator": "In", "values": [zone]}
    preferred = [{"weight": 1, "preference": {"matchExpressions": [wanted]}}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _apart(labels: Labels) -> Spec:
    preferred = [{"weight": 1, "podAffinityTerm": term(HOSTNAME, labels)}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _anyway(*keys: str, labels: Labels) -> Spec:
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        for key in keys
    ]
    return {"topologySpreadConstraints": constraints}


def _deployments(
    count: int, classes: int, spec: Callable[[int, Labels], Spec], seed: int = 7
) -> tuple[Pod, ...]:
    random = Random(seed)
    sizes = [(random.choice(MILLICORES), random.choice(MEBIBYTES)) for _ in range(classes)]
    weights = [random.paretovariate(1.2) for _ in sizes]
    labels = [{"app": f"app-{number}"} for number in range(classes)]
    specs = [spec(number, labels[number]) for number in range(classes)]
    chosen = random.choices(range(classes), weights, k=count)
    return tuple(a_pod(n, *sizes[i], labels[i], **specs[i]) for n, i in enumerate(chosen))


def two_preferences(count: int, classes: int = CLASSES) -> tuple[Pod, ...]:
    """Every pod: rather in one zone, and rather on a node without pods of its Deployment."""

    def spec(number: int, labels: Labels) -> Spec:
        return {"affinity": {**_zone(ZONES[number % 3]), **_apart(labels)}}

    return _deployments(count, classes, spec)


def soft_spreads(count: int) -> tuple[Pod, ...]:
    """A third each: spreads over zones and hostnames that say ScheduleAnyway, two preferences, none."""

    def spec(number: int, labels: Labels) -> Spec:
        if number % 3 == 0:
            return _anyway(ZONE, HOSTNAME, labels=labels)
        if number % 3 == 1:
            return {"affinity": {**_zone(ZONES[number % 2]), **_apart(labels)}}
        return {}

    return _deployments(count, CLASSES, spec)


def few_huge_classes(count: int) -> tuple[Pod, ...]:
    """Five Deployments; rather in one zone, apart, and spread over zones and hostnames."""

    def spec(number: int, labels: Labels) -> Spec:
        affinity = {**_zone(ZONES[number % 3]), **_apart(labels)}
        return {"affinity": affinity, **_anyway(ZONE, HOSTNAME, labels=labels)}

    return _deployments(count, 5, spec)


def every_pod_another_class(count: int) -> tuple[Pod, ...]:
    """Deployments of one small pod, with two preferences each: hundreds on one node."""

    def spec(number: int, labels: Labels) -> Spec:
        return {"affinity": {**_zone(ZONES[number % 3]), **_apart(labels)}}

    random = Random(3)
    return tuple(
        a_pod(n, random.randint(20, 110), random.randint(16, 160), labels, **spec(n, labels))
        for n in range(count)
        for labels in ({"app": f"app-{n}"},)
    )
