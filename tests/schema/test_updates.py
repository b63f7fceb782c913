"""What is evaluated on an update: only what the update has changed."""

from __future__ import annotations

from tenure.schema.structure.validate import CustomResourceSchema
from tenure.sim.apiserver.objects.customkinds import schema_for
from tests.schema.objects import Json, a_pool, an_object


def schema_of(kind: str) -> CustomResourceSchema:
    schema = schema_for("karpenter.sh", kind)
    assert schema is not None
    return schema


def fields_of_errors(new: Json, old: Json, kind: str = "NodePool") -> list[str]:
    return [error.field for error in schema_of(kind).validate(new, old)]


BAD_WEIGHT = {"spec.weight": 1000}


def test_an_old_mistake_does_not_hinder_a_change_elsewhere() -> None:
    old, new = a_pool(BAD_WEIGHT), a_pool({**BAD_WEIGHT, "spec.limits": {"cpu": 1}})
    assert fields_of_errors(new, old) == []


def test_a_new_mistake_is_reported_beside_an_old_one() -> None:
    old, new = a_pool(BAD_WEIGHT), a_pool({**BAD_WEIGHT, "spec.limits": {"cpu": "x"}})
    assert fields_of_errors(new, old) == ["spec.limits.cpu"]


def test_a_mistake_that_changes_is_a_new_one() -> None:
    assert fields_of_errors(a_pool({"spec.weight": 2000}), a_pool(BAD_WEIGHT)) == ["spec.weight"]


def test_a_list_without_keys_is_checked_anew_as_a_whole() -> None:
    bad = {"nodes": "500%"}
    old = a_pool({"spec.disruption.budgets": [bad]})
    new = a_pool({"spec.disruption.budgets": [bad, {"nodes": "1"}]})
    assert fields_of_errors(new, old) == ["spec.disruption.budgets[0].nodes"]


def condition(type_: str, status: str) -> Json:
    at = "2026-11-15T08:00:00Z"
    # An empty reason is what the schema forbids, and what an old controller wrote.
    return {
        "type": type_,
        "status": status,
        "reason": "",
        "message": "",
        "lastTransitionTime": at,
    }


def test_an_element_with_a_key_is_compared_with_its_former_self() -> None:
    old = an_object("NodeClaim", {"status.conditions": [condition("A", "True")]})
    new = an_object(
        "NodeClaim", {"status.conditions": [condition("B", "True"), condition("A", "True")]}
    )
    assert fields_of_errors(new, old, "NodeClaim") == ["status.conditions[0].reason"]


def test_a_condition_stands_only_once() -> None:
    claim = an_object(
        "NodeClaim", {"status.conditions": [condition("A", "True"), condition("A", "False")]}
    )
    messages = [error.message for error in schema_of("NodeClaim").validate(claim)]
    assert 'Duplicate value: {"type":"A"}' in messages


def test_a_wrong_shape_stops_the_rules_and_says_so() -> None:
    pool = a_pool({"spec.weight": "ten", "spec.disruption.consolidateAfter": "1d"})
    errors = schema_of("NodePool").validate(pool)
    assert [error.reason for error in errors] == [
        "FieldValueTypeInvalid",
        "FieldValueInvalid",
        "FieldValueInvalid",
    ]
    assert "some validation rules were not checked" in errors[-1].message


def test_a_wrong_pattern_does_not_stop_the_rules() -> None:
    pool = a_pool({"spec.disruption.consolidateAfter": "1d"})
    messages = [error.message for error in schema_of("NodePool").validate(pool)]
    assert messages == [
        (
            'Invalid value: "1d": spec.disruption.consolidateAfter in body should match '
            "'^(([0-9]+(s|m|h))+|Never)$'"
        ),
        (
            'Invalid value: "1d": must be whole hours, minutes or seconds, for example 90s, 15m or '
            "720h, or Never; days are no unit, so for 1d use 24h"
        ),
    ]


def test_an_error_becomes_a_cause_of_a_status() -> None:
    error = schema_of("NodePool").validate(a_pool({"spec.weight": 0}))[0]
    assert (error.cause().field, error.cause().reason) == ("spec.weight", "FieldValueInvalid")
    assert str(error).startswith("spec.weight: Invalid value: 0: ")
