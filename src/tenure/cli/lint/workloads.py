"""Workloads, PDBs and pools as manifests write them, typed as far as lint needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from tenure.cli.lint.source import Source
from tenure.core.facts import NAMED_MAX, some
from tenure.core.pool.offers import template_requirements
from tenure.core.terminate.workloads import Ground, Workload
from tenure.errors import SpecError
from tenure.model.api.names import WELL_KNOWN_LABELS
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.taints import untolerated
from tenure.model.api.workload import PodDisruptionBudget, PodTemplate
from tenure.model.matching.requirements import Requirements, pod_alternatives
from tenure.model.snapshot.unreadable import expected_and_got, problem_and_field
from tenure.sim.apiserver.objects.tree import dig, without_nulls

#: Where the pods of a workload are described; an empty path is the object itself.
TEMPLATES: Final = {
    ("", "Pod"): "",
    ("apps", "Deployment"): "spec.template",
    ("apps", "ReplicaSet"): "spec.template",
    ("apps", "StatefulSet"): "spec.template",
    ("apps", "DaemonSet"): "spec.template",
    ("batch", "Job"): "spec.template",
    ("batch", "CronJob"): "spec.jobTemplate.spec.template",
}
#: Where they say how many, and what it is when they do not.
_REPLICAS: Final = {
    "Pod": ("metadata", "replicas"),
    "Deployment": ("spec", "replicas"),
    "ReplicaSet": ("spec", "replicas"),
    "StatefulSet": ("spec", "replicas"),
    "Job": ("spec", "parallelism"),
}
#: Maps whose values are amounts of a resource.
_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})
_TYPE_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "nothing",
}

T = TypeVar("T")


class Place(msgspec.Struct, frozen=True):
    """Where pods may run: labels that its nodes have, taints that keep pods away."""

    ground: Ground
    requirements: Requirements
    taints: tuple[Taint, ...]


def workload_in(source: Source) -> Workload | None:
    """None for what has no pods; raises ``CannotBeRead`` for what cannot be read."""
    path = TEMPLATES.get(source.kind)
    if path is None:
        return None
    written = dig(source.value, *path.split(".")) if path else source.value
    kind = source.value["kind"]
    replicas = dig(source.value, *_REPLICAS[kind]) if kind in _REPLICAS else None
    return Workload(
        name=source.name,
        namespace=str(dig(source.value, "metadata", "namespace") or ""),
        template=_template(written or {}, path),
        at=path,
        replicas=replicas if isinstance(replicas, int) else 1 if kind in _REPLICAS else None,
    )


def _template(written: Any, path: str) -> PodTemplate:
    return converted(_with_amounts_as_text(without_nulls(written)), PodTemplate, path)


def _with_amounts_as_text(value: Any, *, amounts: bool = False) -> Any:
    """``cpu: 1`` for ``cpu: "1"``: the API server reads a number as an amount, too."""
    if isinstance(value, list):
        return [_with_amounts_as_text(part) for part in value]
    if not isinstance(value, dict):
        return value
    if amounts:
        return {key: _amount(part) for key, part in value.items()}
    return {
        key: _with_amounts_as_text(part, amounts=key in _AMOUNTS) for key, part in value.items()
    }


def _amount(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return repr(value) if number else value


def pdb_in(source: Source) -> PodDisruptionBudget | None:
    if source.kind != ("policy", "PodDisruptionBudget"):
        return None
    value = {key: part for key, part in source.value.items() if key != "status"}
    return converted(without_nulls(value), PodDisruptionBudget)


# -- what cannot be read -------------------------------------------------------------------


class CannotBeRead(Exception):
    """A field that has another type than it must have."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def converted(value: Any, type_: type[T], path: str = "") -> T:
    """Typed; ``path`` is where the value stands in its object."""
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        problem, field = problem_and_field(str(error))
        # The decoder writes [...] for the key of a map, which no line of a file has.
        field = field.removesuffix("[...]")
        raise CannotBeRead(".".join(filter(None, (path, field))), _in_words(problem)) from None


def _in_words(problem: str) -> str:
    expected, got = expected_and_got(problem)
    if not expected:
        return problem
    wanted, got = (
        " or ".join(_TYPE_WORDS.get(one, one) for one in said.split(" | "))
        for said in (expected, got)
    )
    return f"got {got}, expected {wanted}"


def scaled(workloads: Iterable[Workload], sources: Sequence[Source]) -> list[Workload]:
    """With as many replicas as an autoscaler allows, where there is one."""
    most = {
        _target(source.value): count
        for source in sources
        if source.kind == ("autoscaling", "HorizontalPodAutoscaler")
        and isinstance(count := dig(source.value, "spec", "maxReplicas"), int)
    }
    return [
        msgspec.structs.replace(one, replicas=most.get(one.name, one.replicas)) for one in workloads
    ]


def _target(autoscaler: dict[str, Any]) -> str:
    target = dig(autoscaler, "spec", "scaleTargetRef")
    target = target if isinstance(target, dict) else {}
    parts = (target.get("kind"), dig(autoscaler, "metadata", "namespace"), target.get("name"))
    return "/".join(str(part) for part in parts if part)


# -- where they may run ------------------------------------------------------------------


def places(items: Iterable[object]) -> list[Place]:
    """Of pools and claims; one that cannot be read is nowhere."""
    found = []
    for item in items:
        try:
            if isinstance(item, NodePool):
                found.append(_of_pool(item))
            elif isinstance(item, NodeClaim):
                found.append(_of_claim(item))
        except SpecError:
            continue
    return found


def _of_pool(pool: NodePool) -> Place:
    spec = pool.spec.template.spec
    cap = pool.spec.disruption.max_pod_protection
    ground = Ground(f"NodePool {pool.name}", spec.termination_grace_period, cap)
    return Place(ground, template_requirements(pool), spec.taints)


def _of_claim(claim: NodeClaim) -> Place:
    spec = claim.spec
    labels = Requirements.from_labels(claim.labels)
    wanted = Requirements.from_wire(spec.requirements, "spec.requirements").intersect(labels)
    ground = Ground(f"NodeClaim {claim.name}", spec.termination_grace_period)
    return Place(ground, wanted, spec.taints)


def grounds_for(template: PodTemplate, everywhere: Sequence[Place]) -> tuple[Ground, ...]:
    """Where such a pod may run, those that grant the same together; all if it fits nowhere."""
    pod = Pod(metadata=template.metadata, spec=template.spec)
    fitting = [place.ground for place in everywhere if _fits(pod, place)]
    together: dict[tuple[str | None, str | None], list[str]] = {}
    for ground in fitting or [place.ground for place in everywhere]:
        together.setdefault((ground.period, ground.cap), []).append(ground.name)
    return tuple(Ground(_listed(names), *terms) for terms, names in together.items())


def _listed(pools: Iterable[str]) -> str:
    """Each name once: manifests of several clusters may have pools of one name."""
    unique = list(dict.fromkeys(pools))
    return some(unique) if len(unique) > NAMED_MAX else " and ".join(unique)


def _fits(pod: Pod, place: Place) -> bool:
    if untolerated(place.taints, pod.spec.tolerations) is not None:
        return False
    try:
        alternatives = pod_alternatives(pod)
    except SpecError:
        return False
    return any(place.requirements.is_compatible(one, WELL_KNOWN_LABELS) for one in alternatives)
