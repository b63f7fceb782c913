"""What is wrong with the template of a pool, as far as no API server can say.

The name, then labels, then taints, then requirements, then durations, then limits. The result
decides the pool's ``ValidationSucceeded`` condition, so whatever Karpenter refuses at run time is
refused here, and nothing else is, except durations and limits that cannot be counted and names
that cannot be a label: the API server would refuse every claim of such a pool.

Taints, requirements and durations are copied into claims, whose check uses the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tenure.errors import SpecError
from tenure.model.api.names import (
    CAPACITY_ON_DEMAND,
    CAPACITY_RESERVED,
    CAPACITY_SPOT,
    CAPACITY_TYPE,
    NORMALIZED_LABELS,
)
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaimTemplateSpec
from tenure.model.api.nodeclaim import Requirement as Written
from tenure.model.api.nodepool import NodePool
from tenure.model.matching.requirement import Requirement
from tenure.schema.semantics.amounts import amount_problems
from tenure.schema.semantics.labels import is_qualified_name, key_problems, value_problems
from tenure.schema.semantics.spans import span_problems

_AT: Final = "spec.template"
#: Of a label's value.
_NAME_MAX: Final = 63
#: An absent effect is let through, as by Karpenter.
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute", "")
_KNOWN_VALUES: Final = {
    CAPACITY_TYPE: (CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED),
}


def template_problems(pool: NodePool) -> Iterator[SpecError]:
    template = pool.spec.template
    if len(pool.name) > _NAME_MAX:
        yield SpecError(
            "metadata.name",
            pool.name,
            f"at most {_NAME_MAX} characters",
            "It becomes the label karpenter.sh/nodepool of every node, as in general-purpose.",
        )
    for key, value in template.metadata.labels.items():
        yield from key_problems(key, f"{_AT}.metadata.labels")
        yield from value_problems(value, f"{_AT}.metadata.labels.{key}")
    yield from taint_problems(template.spec, f"{_AT}.spec")
    for index, requirement in enumerate(template.spec.requirements):
        at = f"{_AT}.spec.requirements[{index}]"
        yield from _owned_key_problems(requirement, at)
        yield from requirement_problems(requirement, at)
    yield from span_problems_of(template.spec, f"{_AT}.spec")
    yield from amount_problems(pool.spec.limits, "spec.limits")


def taint_problems(spec: NodeClaimTemplateSpec, at: str) -> Iterator[SpecError]:
    """``at`` is where the spec stands: a pool has it in its template, a claim at the top."""
    seen: set[tuple[str, str]] = set()
    for field, taints in (("taints", spec.taints), ("startupTaints", spec.startup_taints)):
        for index, taint in enumerate(taints):
            place = f"{at}.{field}[{index}]"
            yield from _one_taint(taint, place)
            if (taint.key, taint.effect) in seen:
                shown = f"{taint.key}:{taint.effect}"
                yield SpecError(place, shown, "each key with an effect once", "Leave one out.")
            seen.add((taint.key, taint.effect))


def _one_taint(taint: Taint, at: str) -> Iterator[SpecError]:
    if not is_qualified_name(taint.key):
        yield SpecError(f"{at}.key", taint.key, "a taint key", "Use for example example.com/gpu.")
    if taint.value and not is_qualified_name(taint.value):
        yield SpecError(f"{at}.value", taint.value, "a taint value", "Use for example team-a.")
    if taint.effect not in _EFFECTS:
        expected = "NoSchedule, PreferNoSchedule or NoExecute"
        yield SpecError(f"{at}.effect", taint.effect, expected, "Use for example NoSchedule.")


def _owned_key_problems(written: Written, at: str) -> Iterator[SpecError]:
    key = _normal(written.key)
    if is_qualified_name(key):
        yield from key_problems(key, f"{at}.key")


def requirement_problems(written: Written, at: str) -> Iterator[SpecError]:
    key = _normal(written.key)
    if not is_qualified_name(key):
        yield SpecError(f"{at}.key", key, "a label key", "Use for example example.com/team.")
    for index, value in enumerate(written.values):
        yield from value_problems(value, f"{at}.values[{index}]")
    try:
        Requirement.of(key, written.operator, written.values, min_values=written.min_values, at=at)
    except SpecError as error:
        yield error
        return
    yield from _known_value_problems(key, written, at)


def _normal(key: str) -> str:
    return NORMALIZED_LABELS.get(key, key)


def _known_value_problems(key: str, written: Written, at: str) -> Iterator[SpecError]:
    """Unknown values are tolerated as long as enough known ones stand beside them."""
    known = _KNOWN_VALUES.get(key)
    if known is None or written.operator != "In":
        return
    usable = [value for value in written.values if value in known]
    if not usable:
        expected = f"at least one of {', '.join(known)}"
        yield SpecError(f"{at}.values", list(written.values), expected, f"Use [{known[0]}].")
    elif written.min_values is not None and len(usable) < written.min_values:
        expected = f"at least {written.min_values} of {', '.join(known)}"
        yield SpecError(f"{at}.values", list(written.values), expected, "Add some of them.")


def span_problems_of(spec: NodeClaimTemplateSpec, at: str) -> Iterator[SpecError]:
    yield from span_problems(spec.termination_grace_period, f"{at}.terminationGracePeriod")
    yield from span_problems(spec.expire_after, f"{at}.expireAfter", never=True)
    yield from span_problems(spec.readiness_ttl, f"{at}.readinessTTL", positive=True)
    yield from span_problems(
        spec.initialization_ttl, f"{at}.initializationTTL", never=True, positive=True
    )
