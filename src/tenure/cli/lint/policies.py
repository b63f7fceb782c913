"""What NodePoolPolicies mean beside each other and beside the NodePools: a tie, nothing, or not all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tenure.core.poolpolicy.govern import overruled
from tenure.core.poolpolicy.selecting import most_specific, selects
from tenure.model.api.nodepool import Disruption, NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.snapshot.governed import DEFAULT_READINESS_TTL, as_written
from tenure.schema.findings import Code, Finding

DEFAULT_DISRUPTION: Final = Disruption()


def policy_findings(
    policies: Sequence[NodePoolPolicy], pools: Sequence[NodePool], *, beside: bool = False
) -> Iterator[tuple[NodePoolPolicy, Finding]]:
    """Without a NodePool it is not known what a policy selects. ``beside``: Karpenter."""
    for policy in policies:
        if pools and not any(selects(policy, pool) for pool in pools):
            message = f"none of {len(pools)} NodePools is selected, so the policy does nothing"
            if len(pools) == 1:
                message = "the only NodePool is not selected, so the policy does nothing"
            yield policy, Finding(Code.SELECTS_NO_POOL, "spec.nodePools", message)
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


def dropped_findings(pool: NodePool) -> Iterator[Finding]:
    """Beside Karpenter: fields of a NodePool, as it is written, that Karpenter's CRD does not know."""
    for at in _dropped(pool):
        message = (
            f"{at} of NodePool {pool.name} is dropped by Karpenter's CRD; use a NodePoolPolicy"
        )
        yield Finding(Code.DROPPED_FIELD, at, message)


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


def _overruled(pool: NodePool, policy: NodePoolPolicy, *, beside: bool) -> Iterator[Finding]:
    for field, own in overruled(pool, policy):
        message = f"{own} of NodePool {pool.name} wins, so this has no effect there"
        if field == "spec.expireAfter":
            message = f"{own} of NodePool {pool.name} is not Never, so this has no effect there"
            message += "; Karpenter expires its nodes by force" if beside else ""
        yield Finding(Code.INLINE_WINS, field, message)
