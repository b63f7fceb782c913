"""Schemas of any program's definitions: what is checked, and what is said not to be."""

from __future__ import annotations

from typing import Any

from tenure.model.api.resource import Resource
from tenure.schema.structure.defined import DefinedSchema

SHOES = Resource("example.com", "v1", "Shoe", "shoes", True)


def schema(**spec: Any) -> DefinedSchema:
    return DefinedSchema(SHOES, {"type": "object", "properties": {"spec": spec}})


def fields(defined: DefinedSchema, spec: Any) -> list[str]:
    return [error.field for error in defined.validate({"metadata": {}, "spec": spec})]


def test_a_rule_that_this_cel_does_not_know_is_named_and_not_checked() -> None:
    rules = [
        {"rule": "self.size > 3", "message": "too small"},
        {"rule": "isURL(self.link)", "message": "no link"},
    ]
    defined = schema(type="object", **{"x-kubernetes-validations": rules})
    (note,) = defined.notes
    assert note.startswith(".spec: the rule 'isURL(self.link)' is not checked: ")
    assert fields(defined, {"size": 1}) == ["spec"]


def test_a_rule_without_a_message_says_itself() -> None:
    defined = schema(type="object", **{"x-kubernetes-validations": [{"rule": "self.a == 1"}]})
    (error,) = defined.validate({"metadata": {}, "spec": {"a": 2}})
    assert "failed rule: self.a == 1" in error.message


def test_rules_at_the_values_of_a_map_are_named() -> None:
    values = {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}
    defined = schema(type="object", additionalProperties=values)
    assert defined.notes == [""".spec.*: the rule "self != ''" is not checked"""]


def test_what_is_to_be_kept_is_kept_and_the_rest_is_not() -> None:
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    defined = schema(type="object", properties={"free": kept, "open": {"type": "object"}})
    spec = {"free": {"a": {"b": 1}}, "open": {"a": 1}, "c": 2}
    assert defined.prune({"metadata": {}, "spec": spec})["spec"] == {
        "free": {"a": {"b": 1}},
        "open": {},
    }


def test_forms_are_counted() -> None:
    either = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}}
    parts = {key: {"type": "integer"} for key in "abc"}
    defined = schema(type="object", properties=parts, **either)
    assert fields(defined, {"a": 1, "b": 2}) == []
    assert fields(defined, {}) == ["<nil>"]
    assert fields(defined, {"a": 1, "c": 1}) == ["<nil>"]
