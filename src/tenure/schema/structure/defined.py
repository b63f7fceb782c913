"""The schema in a CustomResourceDefinition of any program, as far as it can be checked here.

What our own kinds do not need is brought into the form that the checks know; what cannot be checked is left
out and said, one note for each: a rule that this CEL does not compile, or one for the values of a map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tenure.model.api.resource import Resource
from tenure.schema.structure import cel
from tenure.schema.structure.check import structural_errors
from tenure.schema.structure.fielderror import INVALID, FieldError
from tenure.schema.structure.structural import Schema
from tenure.schema.structure.validate import Json, ResourceSchema

_KEPT: Final = "x-kubernetes-preserve-unknown-fields"
_RULES: Final = "x-kubernetes-validations"
_TOP: Final[Mapping[str, Schema]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}
_EMBEDDED: Final[Mapping[str, Schema]] = {**_TOP, "metadata": {"type": "object", _KEPT: True}}
#: Keyword → what is said of a value that too few or too many of its schemas fit.
_FORMS: Final = {
    "allOf": "must validate all the schemas (allOf)",
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
}


class DefinedSchema(ResourceSchema):
    def __init__(self, resource: Resource, raw: Schema) -> None:
        #: What is not checked, one sentence each.
        self.notes: list[str] = []
        schema = self._read(raw, "")
        schema["properties"] = {**schema.get("properties", {}), **_TOP}
        schema["type"] = "object"
        super().__init__(resource, schema)

    def validate(self, obj: Json, old: Json | None = None) -> list[FieldError]:
        errors = super().validate(obj, old)
        # As with the structure, what was stored before is not checked again.
        known = set(map(str, _combined(old, self.schema, ""))) if old is not None else set()
        found = [one for one in _combined(obj, self.schema, "") if str(one) not in known]
        return [*errors, *found]

    def _read(self, raw: Any, at: str) -> Schema:
        schema = dict(raw) if isinstance(raw, dict) else {}
        if schema.get("x-kubernetes-embedded-resource"):
            schema["properties"] = {**_EMBEDDED, **schema.get("properties", {})}
        properties = schema.get("properties")
        if isinstance(properties, dict):
            schema["properties"] = {
                key: self._read(below, f"{at}.{key}") for key, below in properties.items()
            }
        if "items" in schema:
            schema["items"] = self._read(schema["items"], f"{at}[]")
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            schema["additionalProperties"] = self._read(others, f"{at}.*")
            self._note_rules_below(others, f"{at}.*")
        elif others is True or schema.get(_KEPT):
            schema["additionalProperties"] = {}
        else:
            schema.pop("additionalProperties", None)
        if _RULES in schema:
            schema[_RULES] = list(self._rules_of(schema[_RULES], at))
        return schema

    def _rules_of(self, rules: Any, at: str) -> Iterator[dict[str, str]]:
        for one in rules or ():
            rule = one.get("rule", "")
            message = one.get("message") or f"failed rule: {rule}"
            if one.get("optionalOldSelf"):
                self.notes.append(
                    f"{at or '.'}: the rule {rule!r} is not checked (optionalOldSelf)"
                )
                continue
            try:
                cel.compile_rule(rule, message)
            except Exception as error:  # noqa: BLE001  # The compiler has errors of its own.
                why = str(error).splitlines()[0] if str(error) else type(error).__name__
                self.notes.append(f"{at or '.'}: the rule {rule!r} is not checked: {why}")
            else:
                yield {"rule": rule, "message": message}

    def _note_rules_below(self, schema: Schema, at: str) -> None:
        for one in schema.get(_RULES) or ():
            self.notes.append(f"{at}: the rule {one.get('rule', '')!r} is not checked")


def _combined(value: Any, schema: Schema, at: str) -> Iterator[FieldError]:
    """What is wrong by ``allOf``, ``anyOf``, ``oneOf`` and ``not``, at or below this place."""
    for word, told in _FORMS.items():
        if word in schema and not _fits(value, word, schema[word]):
            yield _wrong(at, value, told)
    if "not" in schema and not any(structural_errors(value, schema["not"])):
        yield _wrong(at, value, "must not validate the schema (not)")
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, item in value.items():
            below = properties.get(key, others)
            if below:
                yield from _combined(item, below, f"{at}.{key}" if at else key)
    elif isinstance(value, list) and schema.get("items"):
        for index, item in enumerate(value):
            yield from _combined(item, schema["items"], f"{at}[{index}]")


def _fits(value: Any, word: str, schemas: list[Schema]) -> bool:
    fitting = sum(
        not any(structural_errors(value, one)) and not any(_combined(value, one, ""))
        for one in schemas
    )
    least, most = {"allOf": (len(schemas), None), "anyOf": (1, None), "oneOf": (1, 1)}[word]
    return fitting >= least and (most is None or fitting <= most)


def _wrong(at: str, value: Any, told: str) -> FieldError:
    return FieldError("<nil>", INVALID, f'Invalid value: "": "{at}" {told}', value, told)
