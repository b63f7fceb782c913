"""Run the CEL rules of a schema over a value.

Only places that have rules at or below them are visited. A rule that compares with the
past is run only where there is a past; a place that has not changed is not visited at
all, because the comparing rules of this project hold for whatever stays the same
(a test says so for each of them).

Programs are compiled once per process and shared by their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec
from cel_expr_python import cel

from tenure.schema.structure import fielderror
from tenure.schema.structure.check import ABSENT, correlated, list_key
from tenure.schema.structure.fielderror import FieldError
from tenure.schema.structure.structural import Schema


class Program(msgspec.Struct, frozen=True):
    """A compiled rule."""

    rule: str
    message: str
    compares: bool

    def errors(self, value: Any, at: str, old: Any) -> Iterator[FieldError]:
        if self.compares and old is ABSENT:
            return
        if isinstance(value, str) and not self.compares:
            failure = _evaluate_text(self.rule, value)
        else:
            failure = _failure(self.rule, value, old)
        if failure is not None:
            yield fielderror.broken_rule(at, value, failure or self.message)


@lru_cache(maxsize=8192)
def _evaluate_text(rule: str, value: str) -> str | None:
    """As ``_failure``; remembered, because the same durations and keys come over and over."""
    return _failure(rule, value, ABSENT)


def _failure(rule: str, value: Any, old: Any) -> str | None:
    """None if the rule holds, nothing more to say if not, or why it could not be run."""
    data = {"self": value} if old is ABSENT else {"self": value, "oldSelf": old}
    outcome = _compiled(rule).eval(data=data)
    if outcome.type() != cel.Type.BOOL:
        return f"must be a value that the rule can be evaluated on: {outcome.value()}"
    return None if outcome.value() else ""


class Place(msgspec.Struct, frozen=True):
    """A place in the schema with rules, or on the way to some."""

    schema: Schema
    programs: tuple[Program, ...]
    properties: Mapping[str, Place]
    items: Place | None

    def errors(self, value: Any, at: str, old: Any) -> Iterator[FieldError]:
        if old is not ABSENT and value == old:
            return
        for program in self.programs:
            yield from program.errors(value, at, old)
        if isinstance(value, dict):
            yield from self._below_object(value, at, old)
        elif isinstance(value, list) and self.items is not None:
            before = correlated(old, self.schema)
            for index, item in enumerate(value):
                was = before.get(list_key(item, self.schema), ABSENT)
                yield from self.items.errors(item, f"{at}[{index}]", was)

    def _below_object(self, value: dict[str, Any], at: str, old: Any) -> Iterator[FieldError]:
        before = old if isinstance(old, dict) else {}
        for key, place in self.properties.items():
            if key in value:
                path = f"{at}.{key}" if at else key
                yield from place.errors(value[key], path, before.get(key, ABSENT))


def compile_rules(schema: Schema) -> Place | None:
    """The places with rules in a schema; None if there are none at or below it."""
    programs = tuple(
        compile_rule(rule["rule"], rule["message"])
        for rule in schema.get("x-kubernetes-validations", ())
    )
    properties = {
        key: place
        for key, child in schema.get("properties", {}).items()
        if (place := compile_rules(child)) is not None
    }
    items = compile_rules(schema["items"]) if "items" in schema else None
    if not programs and not properties and items is None:
        return None
    return Place(schema, programs, properties, items)


def compile_rule(rule: str, message: str) -> Program:
    _compiled(rule)
    return Program(rule, message, "oldSelf" in rule)


@cache
def _environment() -> Any:
    return cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN})


@cache
def _compiled(rule: str) -> Any:
    return _environment().compile(rule)
