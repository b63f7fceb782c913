"""Which values of a pool or claim come from a NodePoolPolicy, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from tenure.core.facts import some
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import DEFAULT_BUDGETS, Budget, NodePool, Repair
from tenure.model.snapshot.governed import as_written, known_part, refusal_of, ruling_of

#: Those that a claim has a copy of.
_TIMES: Final = ("readinessTTL", "initializationTTL", "expireAfter")


class PolicyOutlook(msgspec.Struct, frozen=True):
    #: The policy that applies; of a refusal, those that would.
    policies: tuple[str, ...]
    #: By the name of the field in the policy: the value, in words.
    values: Mapping[str, str]
    #: Why none of them applies; empty: one does.
    refused: str = ""
    #: Why there may be more of them; empty: all are known.
    unlisted: str = ""


def policy_outlook(item: ApiObject) -> PolicyOutlook | None:
    """None where no policy says anything."""
    refusal = refusal_of(item)
    unlisted = str(refusal.problem) if refusal is not None and refusal.unlisted else ""
    ruling = ruling_of(known_part(item) if isinstance(item, NodePool) else item)
    if ruling is None:
        return None
    values = ruling.values
    if isinstance(item, NodeClaim):
        values = {name: values[name] for name in _differing(item) if name in values}
    elif isinstance(item, NodePool) and ruling.budgets is not None:
        own = as_written(item).spec.disruption.budgets
        beside = () if own == DEFAULT_BUDGETS else own
        values = {**values, "budgets": ruling.budgets[len(beside) :]}
    if unlisted and values.get("budgets") == ():
        values = {name: value for name, value in values.items() if name != "budgets"}
    told = {name: _in_words(value) for name, value in values.items()}
    refused = str(refusal.problem) if refusal is not None and not unlisted else ""
    if refused and "repair" in told:
        told["repair"] = "off"  # The block only stands in for those that are refused.
    return PolicyOutlook(ruling.policies, told, refused, unlisted)


def policy_lines(outlook: PolicyOutlook) -> Iterator[str]:
    kinds, are = (
        ("NodePoolPolicy", "is") if len(outlook.policies) == 1 else ("NodePoolPolicies", "are")
    )
    named = f"{kinds} {' and '.join(outlook.policies)}"
    if outlook.unlisted:
        yield f"  policy    unknown, so no node is disrupted by choice: {outlook.unlisted}"
    if outlook.refused:
        yield f"  policy    refused: {outlook.refused}"
    for name, value in outlook.values.items():
        how = f"because {named} {are} refused" if outlook.refused else f"from {named}"
        yield f"  policy    {name} {value}, {how}"


def policy_json(outlook: PolicyOutlook | None) -> dict[str, Any] | None:
    if outlook is None:
        return None
    return {
        "policies": list(outlook.policies),
        "values": dict(outlook.values),
        "refused": outlook.refused or None,
        "unlisted": outlook.unlisted or None,
    }


def _differing(claim: NodeClaim) -> Iterator[str]:
    own, now = as_written(claim).spec, claim.spec
    fields = zip(_TIMES, ("readiness_ttl", "initialization_ttl", "expire_after"), strict=True)
    return (name for name, field in fields if getattr(own, field) != getattr(now, field))


def _in_words(value: object) -> str:
    match value:
        case Repair():
            conditions = [one.condition_type for one in value.policies]
            of = f" with policies for {some(conditions)}" if conditions else ""
            return f"{value.termination_mode}{of}"
        case tuple():
            return "; ".join(map(_budget, value)) or "none"
        case _:
            return str(value)


def _budget(budget: Budget) -> str:
    parts = [f"nodes {budget.nodes}"]
    parts += [f"within {budget.within}"] if budget.within else []
    parts += [f"per {budget.per}"] if budget.per else []
    parts += [f"for {', '.join(budget.reasons)}"] if budget.reasons else []
    if budget.schedule:
        zone = f" {budget.time_zone}" if budget.time_zone else ""
        parts.append(f"from {budget.schedule} for {budget.duration}{zone}")
    return " ".join(parts)
