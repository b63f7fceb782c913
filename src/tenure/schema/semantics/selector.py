"""What is wrong with a selector of nodes: the part that windows and budgets share."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.errors import SpecError
from tenure.model.api.window import SELECTOR_OPERATORS, LabelExpression, NodeLabelSelector
from tenure.model.matching.requirement import Requirement
from tenure.schema.semantics.labels import is_qualified_name, value_problems


def selector_problems(selector: NodeLabelSelector | None, at: str) -> Iterator[SpecError]:
    if selector is None:
        return
    if selector.match_labels:
        hint = "Use matchExpressions, for example {key: team, operator: In, values: [db]}."
        yield SpecError(f"{at}.matchLabels", dict(selector.match_labels), "no matchLabels", hint)
    for index, expression in enumerate(selector.match_expressions):
        yield from _expression_problems(expression, f"{at}.matchExpressions[{index}]")


def _expression_problems(expression: LabelExpression, at: str) -> Iterator[SpecError]:
    if not is_qualified_name(expression.key):
        hint = "Use for example topology.kubernetes.io/zone."
        yield SpecError(f"{at}.key", expression.key, "a label key", hint)
    for index, value in enumerate(expression.values):
        yield from value_problems(value, f"{at}.values[{index}]")
    yield from _operator_problems(expression, at)


def _operator_problems(expression: LabelExpression, at: str) -> Iterator[SpecError]:
    operator, values = expression.operator, list(expression.values)
    if operator not in SELECTOR_OPERATORS:
        expected = f"one of {', '.join(SELECTOR_OPERATORS)}"
        yield SpecError(f"{at}.operator", operator, expected, "Use for example In.")
    elif operator == "NotIn" and not values:
        yield SpecError(f"{at}.values", values, "at least one value for NotIn", "Use [a, b].")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield SpecError(f"{at}.values", values, f"no values for {operator}", "Leave them out.")
    else:
        try:
            Requirement.of(expression.key, operator, values, at=at)
        except SpecError as error:
            yield error
