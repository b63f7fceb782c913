"""What is legal in an object and probably not meant: worth a word, never a refusal.

First what contradicts itself: labels that no node can have, times that never come; then what one
should know. Fields that do nothing are in ``fields``. Ask for objects without problems only; what
cannot be read cannot be advised about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Final
from zoneinfo import ZoneInfo

from tenure.model.api.meta import ApiObject
from tenure.model.api.names import DO_NOT_CONSOLIDATE, DO_NOT_DISRUPT, DO_NOT_EVICT
from tenure.model.api.nodeclaim import NodeClaim, NodeClaimTemplateSpec
from tenure.model.api.nodepool import Budget, NodePool, Repair
from tenure.model.api.policy import NodePoolPolicy, NodePoolPolicySpec
from tenure.model.api.window import MaintenanceWindow
from tenure.model.matching.requirements import Requirements
from tenure.model.values.cron import Cron
from tenure.model.values.duration import NEVER, parse_duration
from tenure.model.values.quantity import parse_resources
from tenure.schema.findings import Code, Finding
from tenure.schema.labeladvice import old_labels, unknown_values
from tenure.schema.semantics.repair import KNOWN_CONDITIONS

#: Annotations that older releases of Karpenter read, and what is written instead.
OLD_ANNOTATIONS: Final = {
    DO_NOT_EVICT: f'write {DO_NOT_DISRUPT}: "true" on the pod',
    DO_NOT_CONSOLIDATE: (
        f'write {DO_NOT_DISRUPT}: "true" on the Node, which blocks drift, expiration and emptiness '
        "too, or disruption.consolidateAfter: Never in its NodePool"
    ),
}

#: A shorter ``readinessTTL`` is probably a mistake.
QUICKEST_BOOT: Final = timedelta(minutes=1)


#: What nodes have without a device plugin, and how many of them there may be.
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pods", "nodes")
_RESOURCE_PREFIXES: Final = ("hugepages-", "attachable-volumes-")


def _template(pool: NodePool) -> NodeClaimTemplateSpec:
    return pool.spec.template.spec


def advice_for(obj: ApiObject, now: datetime, watched: Collection[str] = ()) -> tuple[Finding, ...]:
    """``watched``: the condition types that the pool's provider states, as far as known."""
    match obj:
        case NodePool():
            return (*_for_pool(obj), *_for_repair(obj.spec.repair, watched))
        case NodeClaim():
            return tuple(_for_labels(obj.spec, "spec"))
        case MaintenanceWindow():
            return tuple(_for_window(obj, now))
        case NodePoolPolicy():
            return (
                *_for_times(obj.spec, "spec"),
                *_for_budgets(obj.spec.budgets or (), "spec.budgets"),
                *_for_repair(obj.spec.repair, watched),
            )
        case _:
            return ()


def _for_pool(pool: NodePool) -> Iterator[Finding]:
    yield from _for_labels(_template(pool), "spec.template.spec")
    yield from _for_budgets(pool.spec.disruption.budgets, "spec.disruption.budgets")
    for name, amount in parse_resources(pool.spec.limits).items():
        if amount < 0:
            message = "below zero, so the pool launches nothing"
            yield Finding(Code.LIMIT_BELOW_ZERO, f"spec.limits[{name}]", message)
        if (fault := _no_resource(name)) is not None:
            yield Finding(Code.LIMIT_OF_NOTHING, f"spec.limits[{name}]", fault)
    yield from _for_times(_template(pool), "spec.template.spec")
    if (period := _template(pool).termination_grace_period) is not None:
        yield Finding(
            Code.PERIOD_DRIFTS_NODES,
            "spec.template.spec.terminationGracePeriod",
            f"nodes made from now on have {period}, those that are there keep their own; each "
            f"change makes all of the pool's nodes count as drifted",
        )


def _no_resource(name: str) -> str | None:
    """Why no node has that resource. Resources of other programs have a domain: example.com/gpu."""
    if "/" in name or name in _RESOURCES or name.startswith(_RESOURCE_PREFIXES):
        return None
    close = get_close_matches(name, _RESOURCES, n=1)
    meant = f". Did you mean {close[0]}?" if close else f"; known are {', '.join(_RESOURCES)}"
    return f"no node has a resource {name}, so this limits nothing{meant}"


def missing_statuses(obj: ApiObject, watched: Collection[str]) -> Iterator[Finding]:
    """One result, whatever else is wrong with the pool, and wherever it is read."""
    if isinstance(obj, NodePool | NodePoolPolicy):
        yield from _for_repair(obj.spec.repair, watched)


def _for_repair(block: Repair | None, watched: Collection[str]) -> Iterator[Finding]:
    known = {*KNOWN_CONDITIONS, *watched}
    exact = {name.lower(): name for name in known}
    for index, policy in enumerate(block.policies if block is not None else ()):
        meant = exact.get(policy.condition_type.lower(), policy.condition_type)
        if meant != policy.condition_type:
            said = f"no Node has the condition {policy.condition_type}; did you mean {meant}?"
            at = f"spec.repair.policies[{index}].conditionType"
            yield Finding(Code.CONDITION_MISSPELT, at, said)
            continue
        if policy.status is None and policy.condition_type not in known:
            message = (
                f"which status of {policy.condition_type} means unhealthy is not said, and the policy "
                f"is ignored unless the provider watches that condition"
            )
            yield Finding(Code.STATUS_MISSING, f"spec.repair.policies[{index}]", message)


def foreign_class(
    item: NodePool | NodeClaim, ours: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """One of another controller, or a typo: only its author knows. ``ours``: groups and kinds. For the claims
    of a pool the pool is told.
    """
    if isinstance(item, NodeClaim) and item.pool_name:
        return
    ref = item.node_class_ref
    if not ref.group or not ref.kind or (ref.group, ref.kind) in ours:
        return  # That it is missing is told where it is required.
    served = " or ".join(sorted(f"{kind} of {group}" for group, kind in ours))
    message = (
        f"{ref.kind} of {ref.group} is left to another provider, and Tenure launches nothing for it; "
        f"it serves {served}"
    )
    # In a group that is served, another provider is hardly meant.
    siblings = [kind for group, kind in ours if group == ref.group]
    message += f". Did you mean {siblings[0]}?" if siblings else ""
    at = "spec.template.spec" if isinstance(item, NodePool) else "spec"
    yield Finding(Code.FOREIGN_NODE_CLASS, f"{at}.nodeClassRef", message)


def by_force(*, beside: bool = False) -> Finding:
    """For a pool whose block does not say how nodes are repaired, or has just been added. ``beside``:
    Karpenter, where nothing is repaired without a block."""
    message = (
        "repair is Forceful: an unhealthy node is terminated whatever budgets, "
        "PodDisruptionBudgets, karpenter.sh/do-not-disrupt and terminationGracePeriod say"
    )
    if not beside:
        message += "; without the block repair is Graceful, and the replacement is launched first"
    return Finding(Code.REPAIR_BY_FORCE, "spec.repair", message)


def _for_budgets(budgets: Sequence[Budget], at: str) -> Iterator[Finding]:
    for index, budget in enumerate(budgets):
        if budget.selector is not None:
            where = f"{at}[{index}].selector.matchExpressions"
            yield from unknown_values(budget.selector.match_expressions, where)


def _for_times(spec: NodeClaimTemplateSpec | NodePoolPolicySpec, at: str) -> Iterator[Finding]:
    ttl, age = spec.readiness_ttl, spec.expire_after
    if ttl is not None and ttl != NEVER and parse_duration(ttl).timedelta < QUICKEST_BOOT:
        message = f"{ttl} is less than most nodes need to become Ready"
        yield Finding(Code.TTL_SHORT, f"{at}.readinessTTL", message)
    if age is not None and age != NEVER and not parse_duration(age):
        message = f"{age} is no time in which a node could be used: its nodes never expire"
        yield Finding(Code.NEVER_EXPIRES, f"{at}.expireAfter", message)


def _for_labels(spec: NodeClaimTemplateSpec, at: str) -> Iterator[Finding]:
    yield from unknown_values(spec.requirements, f"{at}.requirements")
    for index, written in enumerate(spec.requirements):
        if written.operator in ("Exists", "DoesNotExist") and written.values:
            where = f"{at}.requirements[{index}].values"
            message = f"not looked at, because the operator is {written.operator}"
            yield Finding(Code.VALUES_IGNORED, where, message)
    for key, wanted in sorted(Requirements.from_wire(spec.requirements).items()):
        if wanted.impossible:
            message = f"those on {key} contradict each other, so no node fits"
            yield Finding(Code.NO_NODE_FITS, f"{at}.requirements", message)


def _for_window(window: MaintenanceWindow, now: datetime) -> Iterator[Finding]:
    expressions = window.spec.selector.match_expressions
    yield from old_labels(expressions, "spec.selector.matchExpressions")
    yield from unknown_values(expressions, "spec.selector.matchExpressions")
    for index, schedule in enumerate(window.spec.schedules):
        zone = ZoneInfo(schedule.time_zone or "UTC")
        if Cron.parse(schedule.cron).next_after(now, zone) is None:
            message = "there is no such day, so it never begins"
            yield Finding(Code.NEVER_BEGINS, f"spec.schedules[{index}].cron", message)
    for index, dates in enumerate(window.spec.dates):
        if datetime.fromisoformat(dates.until.upper()) <= now:
            message = "is past, so these dates never come again"
            yield Finding(Code.DATES_PAST, f"spec.dates[{index}].until", message)
