"""What is wrong with the disruption block of a pool, as far as no API server can say."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.errors import SpecError
from tenure.model.api.fields import PERCENT_OR_COUNT, PLAIN_DURATION
from tenure.model.api.nodepool import (
    BUDGET_REASONS,
    CONSOLIDATION_POLICIES,
    EXPIRATION_POLICIES,
    WITHIN_MAX,
    Budget,
    NodePool,
)
from tenure.model.values.duration import parse_duration
from tenure.schema.semantics.labels import is_qualified_name
from tenure.schema.semantics.selector import selector_problems
from tenure.schema.semantics.spans import cron_problems, span_problems, zone_problems
from tenure.schema.structure.check import matches


def disruption_problems(pool: NodePool) -> Iterator[SpecError]:
    block, at = pool.spec.disruption, "spec.disruption"
    yield from span_problems(block.consolidate_after, f"{at}.consolidateAfter", never=True)
    yield from span_problems(block.max_pod_protection, f"{at}.maxPodProtection", positive=True)
    yield from choice_problems(
        block.consolidation_policy, CONSOLIDATION_POLICIES, f"{at}.consolidationPolicy"
    )
    yield from choice_problems(
        block.expiration_policy, EXPIRATION_POLICIES, f"{at}.expirationPolicy"
    )
    for index, budget in enumerate(block.budgets):
        yield from budget_problems(budget, f"{at}.budgets[{index}]")


def choice_problems(value: str | None, choices: tuple[str, ...], at: str) -> Iterator[SpecError]:
    if value is not None and value not in choices:
        expected = f"one of {', '.join(choices)}"
        yield SpecError(at, value, expected, f"Use for example {choices[0]}.")


def share_problems(value: str | int, at: str) -> Iterator[SpecError]:
    """A number of nodes or a percentage of them."""
    if not matches(PERCENT_OR_COUNT, str(value)):
        yield SpecError(at, value, "a number or a percentage up to 100%", "Use for example 10%.")


def budget_problems(budget: Budget, at: str) -> Iterator[SpecError]:
    """One budget with any of these closes its pool: it might be the tightest."""
    yield from share_problems(budget.nodes, f"{at}.nodes")
    for index, reason in enumerate(budget.reasons):
        yield from choice_problems(reason, BUDGET_REASONS, f"{at}.reasons[{index}]")
    yield from _schedule_problems(budget, at)
    yield from _within_problems(budget.within, f"{at}.within")
    yield from _per_problems(budget.per, f"{at}.per")
    yield from selector_problems(budget.selector, f"{at}.selector")


def _per_problems(per: str | None, at: str) -> Iterator[SpecError]:
    if per is None:
        return
    if matches(PLAIN_DURATION, per):
        hint = f"For at most so many starts in any {per} use within: {per}."
        yield SpecError(at, per, "a label key, no duration", hint)
    elif not is_qualified_name(per):
        yield SpecError(at, per, "a label key", "Use for example topology.kubernetes.io/zone.")


def _within_problems(within: str | None, at: str) -> Iterator[SpecError]:
    bad = list(span_problems(within, at, positive=True))
    yield from bad
    if within is not None and not bad and parse_duration(within).timedelta > WITHIN_MAX:
        yield SpecError(at, within, "at most 24h", "Use for example 1h.")


def _schedule_problems(budget: Budget, at: str) -> Iterator[SpecError]:
    if (budget.schedule is None) != (budget.duration is None):
        got = budget.schedule if budget.duration is None else budget.duration
        hint = 'Use for example schedule: "0 9 * * mon-fri", duration: 8h.'
        yield SpecError(at, got, "schedule and duration together", hint)
    yield from cron_problems(budget.schedule, f"{at}.schedule")
    yield from span_problems(budget.duration, f"{at}.duration")
    yield from zone_problems(budget.time_zone, f"{at}.timeZone")
