"""Every rule of the schemas, with objects that keep it and objects that break it."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.schema.structure.cel import compile_rule
from tenure.schema.structure.fielderror import FieldError
from tenure.schema.structure.rules import Rule
from tenure.schema.structure.validate import CustomResourceSchema
from tenure.sim.apiserver.objects.customkinds import SERVED_KINDS, schema_for
from tests.schema.cases import CASES, GOOD_CASES, Case
from tests.schema.objects import an_object


def schema_of(case: Case) -> CustomResourceSchema:
    schema = schema_for(case.object["apiVersion"].split("/")[0], case.kind)
    assert schema is not None
    return schema


def errors_of(case: Case) -> list[FieldError]:
    schema = schema_of(case)
    old = None if case.old is None else schema.default(case.old)
    return schema.validate(schema.default(case.object), old)


BAD = [case for case in CASES if case.field]


@pytest.mark.parametrize("case", GOOD_CASES, ids=lambda case: case.says)
def test_what_keeps_the_rules_is_accepted(case: Case) -> None:
    assert errors_of(case) == []


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.says)
def test_what_breaks_a_rule_is_reported_where_it_is_broken(case: Case) -> None:
    found = [error.message for error in errors_of(case) if error.field == case.field]
    assert any(case.message in message for message in found), errors_of(case)


ALL_RULES = [
    pytest.param(kind.resource.kind, path, rule, id=f"{kind.resource.kind} {path}: {rule.message}")
    for kind in SERVED_KINDS
    for path, rules in kind.rules.items()
    for rule in rules
]


@pytest.mark.parametrize(("kind", "path", "rule"), ALL_RULES)
def test_each_rule_is_broken_by_some_case(kind: str, path: str, rule: Rule) -> None:
    broken = [
        error
        for case in BAD
        if case.kind == kind
        for error in errors_of(case)
        if error.message.endswith(rule.message)
    ]
    assert broken


@pytest.mark.parametrize(("kind", "path", "rule"), ALL_RULES)
def test_each_message_says_what_must_be(kind: str, path: str, rule: Rule) -> None:
    assert rule.message.startswith("must ")
    assert not rule.message.endswith(".")


COMPARING = [
    pytest.param(kind.resource.kind, path, rule, id=f"{kind.resource.kind} {path}: {rule.message}")
    for kind in SERVED_KINDS
    for path, rules in kind.rules.items()
    for rule in rules
    if rule.compares
]


@pytest.mark.parametrize(("kind", "path", "rule"), COMPARING)
def test_a_rule_that_compares_holds_for_what_stays_the_same(
    kind: str, path: str, rule: Rule
) -> None:
    value: Any = an_object(kind)
    for part in path.split("."):
        value = value[part]
    program = compile_rule(rule.rule, rule.message)
    assert list(program.errors(value, path, old=value)) == []
