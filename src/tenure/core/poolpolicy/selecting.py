"""Which NodePools a policy selects, and how specifically.

All parts of a selector must hold. A part that cannot be read holds, so that a policy which cannot be
used protects rather too many NodePools than too few.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

from tenure.errors import SpecError
from tenure.model.api.nodepool import NodePool
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import LabelExpression
from tenure.model.matching.requirement import Requirement
from tenure.model.snapshot.unreadable import Unreadable


class Specificity(IntEnum):
    """The higher wins."""

    EVERY = 0
    LABELS = 1
    NAMES = 2


def specificity(policy: NodePoolPolicy) -> Specificity:
    selector = policy.spec.node_pools
    if selector.names or _is_unknown(policy):
        return Specificity.NAMES
    if selector.match_labels or selector.match_expressions:
        return Specificity.LABELS
    return Specificity.EVERY


def selects(policy: NodePoolPolicy, pool: NodePool) -> bool:
    selector, labels = policy.spec.node_pools, pool.labels
    if _is_unknown(policy):
        return True
    if selector.names and pool.name not in selector.names:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_holds(one, labels) for one in selector.match_expressions)


def most_specific(
    pool: NodePool, policies: Collection[NodePoolPolicy]
) -> tuple[NodePoolPolicy, ...]:
    """By name. One: it applies. Several: they are refused for this pool."""
    found = [policy for policy in policies if selects(policy, pool)]
    highest = max(map(specificity, found), default=Specificity.EVERY)
    return tuple(
        sorted(
            (policy for policy in found if specificity(policy) is highest),
            key=lambda policy: policy.name,
        )
    )


def _is_unknown(policy: NodePoolPolicy) -> bool:
    """Which NodePools it selects cannot be read."""
    if not isinstance(policy, Unreadable):
        return False
    lost = policy.field in ("", "spec") or policy.field.startswith("spec.nodePools")
    return policy.bare or (lost and not policy.decoded)


def _holds(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    # Without its key, which a requirement on Nodes would take for another name of the same label.
    key, own = expression.key, labels.get(expression.key)
    try:
        requirement = Requirement.of("label", expression.operator, expression.values)
    except SpecError:
        return True
    return bool(key) and requirement.matches({} if own is None else {"label": own})
