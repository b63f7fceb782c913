"""What policies say about one NodePool: the most specific policy, where the NodePool says nothing.

1. Of the policies that select the NodePool, the most specific applies as a whole (``selecting``).
2. A value that the NodePool has of its own wins. One that is the default of the API server says nothing.
   Budgets of both count, unless the NodePool's are the default.
3. A policy that cannot be used, and two that are as specific as each other, are refused: none applies.
   That takes no protection away. Where one of them has budgets, no node is disrupted by choice; where
   one has a repair block, no node is repaired; and the longest of their ``readinessTTL`` counts, with the
   default. Of a policy that cannot be decoded, everything is supposed.
4. While policies must not be listed there may be one that cannot be read: those that are known apply, no node
   is disrupted by choice, and where nothing says how to repair, no node is repaired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from tenure.core.poolpolicy.selecting import most_specific
from tenure.errors import SpecError
from tenure.model.api.nodepool import DEFAULT_BUDGETS, Budget, DisruptionStart, NodePool, Repair
from tenure.model.api.policy import POLICY_STARTS_MAX, NodePoolPolicy
from tenure.model.snapshot.governed import (
    DEFAULT_READINESS_TTL,
    Refusal,
    Ruling,
    as_written,
    ruling_of,
)
from tenure.model.snapshot.unreadable import Unreadable, is_unreadable
from tenure.model.values.duration import NEVER, parse_duration
from tenure.schema.semantics.policy import unusable_problems

#: Budgets of a refused policy: they might be this tight.
CLOSED: Final = Budget(nodes="0")
#: The repair block of a refused policy: it might tolerate everything.
NO_REPAIR: Final = Repair(default_toleration_duration=NEVER)


def govern(
    pool: NodePool, policies: Collection[NodePoolPolicy], unlisted: str = ""
) -> Ruling | None:
    """None: they say nothing that the pool does not say itself. ``unlisted``: why there may be more."""
    ruling = _known(pool, policies)
    return ruling if not unlisted else _with_unknown(pool, ruling or Ruling(), unlisted)


def _known(pool: NodePool, policies: Collection[NodePoolPolicy]) -> Ruling | None:
    found = most_specific(pool, policies)
    if not found:
        return None
    refusal = _refusal(pool, found)
    ruling = _applied(pool, found[0]) if refusal is None else _refused(pool, found, refusal)
    return ruling if ruling.values or ruling.refusal is not None else None


def govern_beside(
    pool: NodePool, policies: Collection[NodePoolPolicy], unlisted: str = ""
) -> Ruling | None:
    """The same beside Karpenter: what is remembered of departures is in the status of policies. Of all of
    them, so that nothing is forgotten when another policy becomes the most specific."""
    ruling = govern(pool, policies, unlisted)
    if ruling is None or ruling.budgets is None:
        return ruling
    return replace(ruling, starts=tuple(_remembered(pool, policies)))


def policy_budgets(pool: NodePool) -> tuple[Budget, ...]:
    """Of the budgets of a governed pool, those that are not its own."""
    ruling = ruling_of(pool)
    if ruling is None or ruling.budgets is None:
        return ()
    return ruling.budgets[len(_own_budgets(as_written(pool))) :]


def _remembered(pool: NodePool, policies: Collection[NodePoolPolicy]) -> Iterator[DisruptionStart]:
    for policy in sorted(policies, key=lambda one: one.name):
        starts = policy.status.disruption_starts
        yield from (start for start in starts if start.pool == pool.name)
        if len(starts) >= POLICY_STARTS_MAX:
            yield DisruptionStart()  # More may have been: like one that cannot be read.


def overruled(pool: NodePool, policy: NodePoolPolicy) -> Iterator[tuple[str, str]]:
    """The fields that both set: of the policy, and of the pool, which wins."""
    theirs, own = policy.spec, pool.spec
    template, block = own.template.spec, own.disruption
    if theirs.readiness_ttl is not None and _says_readiness(pool):
        yield "spec.readinessTTL", "spec.template.spec.readinessTTL"
    if theirs.initialization_ttl is not None and template.initialization_ttl is not None:
        yield "spec.initializationTTL", "spec.template.spec.initializationTTL"
    if theirs.expire_after is not None and template.expire_after != NEVER:
        yield "spec.expireAfter", "spec.template.spec.expireAfter"
    if theirs.repair is not None and own.repair is not None:
        yield "spec.repair", "spec.repair"
    if theirs.max_pod_protection is not None and block.max_pod_protection is not None:
        yield "spec.maxPodProtection", "spec.disruption.maxPodProtection"


def _says_readiness(pool: NodePool) -> bool:
    return pool.spec.template.spec.readiness_ttl not in (None, DEFAULT_READINESS_TTL)


def _applied(pool: NodePool, policy: NodePoolPolicy) -> Ruling:
    spec, own = policy.spec, {field for field, _ in overruled(pool, policy)}
    budgets = None if spec.budgets is None else (*_own_budgets(pool), *spec.budgets)
    return Ruling(
        policies=(policy.name,),
        readiness_ttl=None if "spec.readinessTTL" in own else spec.readiness_ttl,
        initialization_ttl=None if "spec.initializationTTL" in own else spec.initialization_ttl,
        expire_after=None if "spec.expireAfter" in own else spec.expire_after,
        repair=None if "spec.repair" in own else spec.repair,
        max_pod_protection=None if "spec.maxPodProtection" in own else spec.max_pod_protection,
        budgets=budgets,
    )


def _own_budgets(pool: NodePool) -> tuple[Budget, ...]:
    """Those that say something."""
    budgets = pool.spec.disruption.budgets
    return () if budgets == DEFAULT_BUDGETS else budgets


# -- what is refused ---------------------------------------------------------------------


def _refusal(pool: NodePool, found: tuple[NodePoolPolicy, ...]) -> Refusal | None:
    """Why none of them applies; None: the one does."""
    if len(found) > 1:
        return _tie(pool, found)
    policy = found[0]
    if isinstance(policy, Unreadable):
        at = f"{policy.field} of " if policy.field else ""
        expected = "a policy that can be read"
        return Refusal(f"{at}NodePoolPolicy {policy.name}", policy.problem, expected)
    for problem in unusable_problems(policy):
        at = f"{problem.at} of NodePoolPolicy {policy.name}"
        return Refusal(at, problem.got, problem.expected, problem.hint)
    return None


def _tie(pool: NodePool, found: tuple[NodePoolPolicy, ...]) -> Refusal:
    first, *others = (policy.name for policy in found)
    are = "NodePoolPolicy" if len(others) == 1 else "NodePoolPolicies"
    return Refusal(
        f"spec.nodePools of NodePoolPolicy {first}",
        pool.name,
        f"a NodePool that no policy selects in the same way, and {are} {', '.join(others)} "
        f"{'does' if len(others) == 1 else 'do'}",
        "Name the NodePool in the policy that is meant, and only there.",
    )


def _refused(pool: NodePool, found: tuple[NodePoolPolicy, ...], refusal: Refusal) -> Ruling:
    unknown = any(map(is_unreadable, found))
    budgets = unknown or any(policy.spec.budgets is not None for policy in found)
    repair = unknown or any(policy.spec.repair is not None for policy in found)
    repair = repair and pool.spec.repair is None
    return Ruling(
        policies=tuple(policy.name for policy in found),
        readiness_ttl=None if _says_readiness(pool) else _longest_readiness(found),
        repair=NO_REPAIR if repair else None,
        budgets=(*_own_budgets(pool), CLOSED) if budgets else None,
        refusal=replace(refusal, budgets=budgets, repair=repair),
    )


def _with_unknown(pool: NodePool, known: Ruling, why: str) -> Ruling:
    """With a policy that may be there, and may say anything."""
    repair = pool.spec.repair is None and known.repair is None
    refusal = known.refusal or Refusal(
        "NodePoolPolicies",
        why,
        "a list of them",
        "Grant list and watch of nodepoolpolicies.tenure.dev: apply the ClusterRole of this release.",
        unlisted=True,
    )
    return replace(
        known,
        repair=NO_REPAIR if repair else known.repair,
        budgets=(*(_own_budgets(pool) if known.budgets is None else known.budgets), CLOSED),
        refusal=replace(refusal, budgets=True, repair=refusal.repair or repair),
    )


def _longest_readiness(found: tuple[NodePoolPolicy, ...]) -> str | None:
    """None: the default."""
    given = [ttl for policy in found if (ttl := policy.spec.readiness_ttl) is not None]
    longest = max((DEFAULT_READINESS_TTL, *given), key=_span)
    return None if longest == DEFAULT_READINESS_TTL else longest


def _span(text: str) -> timedelta:
    try:
        return parse_duration(text).timedelta
    except (SpecError, OverflowError):
        return timedelta()
