"""What is wrong with a NodePoolPolicy, as far as no API server can say: as of the inline fields.

A policy with a problem is refused. An entry of its repair block that cannot be used is ignored by itself,
as in a NodePool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tenure.errors import SpecError
from tenure.model.api.policy import NodePoolPolicy, NodePoolSelector
from tenure.model.api.window import NodeLabelSelector
from tenure.schema.semantics.disruption import budget_problems
from tenure.schema.semantics.labels import is_qualified_name, value_problems
from tenure.schema.semantics.repair import block_problems, entry_problems
from tenure.schema.semantics.selector import selector_problems
from tenure.schema.semantics.spans import span_problems


def pool_policy_problems(
    policy: NodePoolPolicy, watched: Collection[str] | None
) -> Iterator[SpecError]:
    """``watched``: the condition types that the provider states; None: unknown."""
    yield from unusable_problems(policy)
    if policy.spec.repair is not None:
        yield from entry_problems(policy.spec.repair, watched)


def unusable_problems(policy: NodePoolPolicy) -> Iterator[SpecError]:
    """What takes the whole policy out of use."""
    spec = policy.spec
    yield from _selector_problems(spec.node_pools, "spec.nodePools")
    yield from span_problems(spec.readiness_ttl, "spec.readinessTTL", positive=True)
    yield from span_problems(
        spec.initialization_ttl, "spec.initializationTTL", never=True, positive=True
    )
    yield from span_problems(spec.expire_after, "spec.expireAfter", never=True)
    yield from span_problems(spec.max_pod_protection, "spec.maxPodProtection", positive=True)
    for index, budget in enumerate(spec.budgets or ()):
        yield from budget_problems(budget, f"spec.budgets[{index}]")
    if spec.repair is not None:
        yield from block_problems(spec.repair)


def _selector_problems(selector: NodePoolSelector, at: str) -> Iterator[SpecError]:
    for index, name in enumerate(selector.names):
        if not name:
            hint = "Use for example general."
            yield SpecError(f"{at}.names[{index}]", name, "the name of a NodePool", hint)
    for key, value in selector.match_labels.items():
        if not is_qualified_name(key):
            yield SpecError(f"{at}.matchLabels", key, "a label key", "Use for example team.")
        yield from value_problems(value, f"{at}.matchLabels.{key}")
    expressions = NodeLabelSelector(match_expressions=selector.match_expressions)
    yield from selector_problems(expressions, at)
