"""What NodePoolPolicies mean beside each other and beside the NodePools: a tie, nothing, or not all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from tenure.core.poolpolicy.govern import overruled
from tenure.core.poolpolicy.selecting import most_specific, selects
from tenure.model.api.nodepool import DEFAULT_BUDGETS, Disruption, NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.cloud.repairs import RepairAction
from tenure.model.snapshot.governed import DEFAULT_READINESS_TTL, as_written
from tenure.model.values.duration import NEVER
from tenure.schema.findings import Code, Finding

_OF_LAUNCHES: Final = frozenset({Code.FOREIGN_NODE_CLASS, Code.DOES_NOTHING_YET})
_CLOSE: Final = 0.7
DEFAULT_DISRUPTION: Final = Disruption()


def policy_findings(
    policies: Sequence[NodePoolPolicy], pools: Sequence[NodePool], *, beside: bool = False
) -> Iterator[tuple[NodePoolPolicy, Finding]]:
    """Without a NodePool it is not known what a policy selects. ``beside``: Karpenter."""
    for policy in policies:
        if pools and not any(selects(policy, pool) for pool in pools):
            names = [pool.name for pool in pools]
            meant = did_you_mean(policy.spec.node_pools.names, names)
            message = f"{none_selected(pools)}, so the policy does nothing{meant}"
            yield policy, Finding(Code.SELECTS_NO_POOL, "spec.nodePools", message)
        yield from ((policy, one) for one in _reboots(policy) if beside)
    for pool in map(as_written, sorted(pools, key=lambda pool: pool.name)):
        found = most_specific(pool, policies)
        for policy in found:
            if len(found) > 1:
                others = ", ".join(one.name for one in found if one is not policy)
                message = (
                    f"{others} selects NodePool {pool.name} in the same way: none applies there"
                )
                yield policy, Finding(Code.POLICIES_TIED, "spec.nodePools", message)
            else:
                yield from ((policy, one) for one in _overruled(pool, policy, beside=beside))
                if beside and pool.static:
                    yield from ((policy, one) for one in _of_replicas(pool, policy))


def did_you_mean(written: Iterable[str], known: Iterable[str]) -> str:
    """To be added to a sentence; empty where no name that exists is close."""
    known = sorted(known)
    close = [near for one in written for near in get_close_matches(one, known, 1, _CLOSE)]
    return f"; did you mean {' or '.join(dict.fromkeys(close))}?" if close else ""


def none_selected(pools: Sequence[NodePool]) -> str:
    if len(pools) == 1:
        return "the only NodePool is not selected"
    return f"none of {len(pools)} NodePools is selected"


def dropped_findings(pool: NodePool) -> Iterator[Finding]:
    """Beside Karpenter: fields of a NodePool, as it is written, that Karpenter's CRD does not know."""
    for at in _dropped(pool):
        yield Finding(
            Code.DROPPED_FIELD,
            at,
            "Karpenter's CRD does not know the field, so the API server drops it",
        )


def launched_by_karpenter(found: Iterable[Finding]) -> Iterator[Finding]:
    """Beside Karpenter: without what is said of nodes that Tenure would launch. Those are Karpenter's there,
    of every node class, and of NodePools with ``replicas``, too."""
    return (one for one in found if one.code not in _OF_LAUNCHES)


def _dropped(pool: NodePool) -> Iterator[str]:
    spec, template = pool.spec, pool.spec.template.spec
    given: dict[str, object] = {
        "spec.repair": spec.repair,
        "spec.template.spec.initializationTTL": template.initialization_ttl,
        "spec.disruption.maxPodProtection": spec.disruption.max_pod_protection,
    }
    if (
        template.readiness_ttl != DEFAULT_READINESS_TTL
    ):  # Written by the API server where it is ours.
        given["spec.template.spec.readinessTTL"] = template.readiness_ttl
    if spec.disruption.expiration_policy != DEFAULT_DISRUPTION.expiration_policy:
        given["spec.disruption.expirationPolicy"] = spec.disruption.expiration_policy
    for number, budget in enumerate(spec.disruption.budgets):
        at = f"spec.disruption.budgets[{number}]"
        given |= {
            f"{at}.timeZone": budget.time_zone,
            f"{at}.within": budget.within,
            f"{at}.per": budget.per,
            f"{at}.selector": budget.selector,
        }
    return (at for at, value in given.items() if value is not None)


#: By Tenure in charge; Karpenter's claims lack them.
_COPIED_TO_CLAIMS: Final = ("spec.readinessTTL", "spec.initializationTTL")


def _reboots(policy: NodePoolPolicy) -> Iterator[Finding]:
    repair = policy.spec.repair
    for number, entry in enumerate(repair.policies if repair is not None else ()):
        if entry.action == RepairAction.REBOOT:
            message = (
                "beside Karpenter Tenure reboots no Node, so nothing is done about "
                f"{entry.condition_type}"
            )
            yield Finding(Code.NO_REBOOT, f"spec.repair.policies[{number}].action", message)


def _of_replicas(pool: NodePool, policy: NodePoolPolicy) -> Iterator[Finding]:
    has = f"NodePool {pool.name} has spec.replicas, whose number Karpenter keeps"
    if policy.spec.expire_after not in (None, NEVER):
        message = f"{has}: none of its nodes expires by a policy"
        yield Finding(Code.REPLICAS_ARE_KEPT, "spec.expireAfter", message)
    repair = policy.spec.repair
    modes = [one.termination_mode for one in repair.policies] if repair is not None else []
    if repair is not None and "Graceful" in (repair.termination_mode, *modes):
        message = f"{has}: its next node is launched once the unhealthy one is deleted, not before"
        yield Finding(Code.REPLICAS_ARE_KEPT, "spec.repair", message)


def _overruled(pool: NodePool, policy: NodePoolPolicy, *, beside: bool) -> Iterator[Finding]:
    own_budgets = pool.spec.disruption.budgets != DEFAULT_BUDGETS
    if policy.spec.budgets is not None and own_budgets:
        message = f"spec.disruption.budgets of NodePool {pool.name} count as well, and the tightest of all wins"
        yield Finding(Code.BUDGETS_OF_BOTH, "spec.budgets", message)
    for field, own in overruled(pool, policy):
        message = f"{own} of NodePool {pool.name} wins, so this has no effect there"
        if field == "spec.expireAfter":
            message = f"{own} of NodePool {pool.name} is not Never, so this has no effect there"
            if beside:
                message += "; Karpenter expires its nodes by force. Never makes Karpenter roll the pool once"
        if field in _COPIED_TO_CLAIMS and beside:
            message = (
                f"{own} of NodePool {pool.name} wins, and Karpenter does not copy it to NodeClaims: "
                "neither acts there"
            )
        yield Finding(Code.INLINE_WINS, field, message)
