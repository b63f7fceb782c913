"""The marks of a kind's fields by path, and what there is to say of an object that uses some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from tenure.model.api.meta import ApiObject, Wire
from tenure.schema.fieldmarks import MARKS, FieldMark, Mark, Spec
from tenure.schema.findings import Code, Finding
from tenure.schema.structure.crd import CUSTOM_KINDS, CustomKind, schema_of

CODES_OF = {Mark.IGNORED: Code.DOES_NOTHING_YET, Mark.DIFFERS: Code.DIFFERS_FROM_KARPENTER}


class UsedField(NamedTuple):
    """A field that has a value, and is ignored or differs."""

    at: str
    mark: FieldMark

    @property
    def finding(self) -> Finding:
        how = self.mark.how.rstrip(".")
        if self.mark.mark is Mark.IGNORED:
            yet = " yet" if self.mark.limit else ""
            how = f"does nothing{yet}: {how[0].lower()}{how[1:]}"
        return Finding(CODES_OF[self.mark.mark], self.at, how)


@cache
def marks_of(kind: CustomKind) -> Mapping[str, FieldMark]:
    """By path as in the API reference: lists as ``name[]``. Raises ``LookupError`` for a field without a mark. Of
    a type that is not in the table at all, a provider's, nothing is known.
    """
    found = {"spec": FieldMark(Mark.ACTS)}
    (spec,) = (one for one in msgspec.structs.fields(kind.model) if one.name == "spec")
    waiting = [("spec", inner) for inner in _types_in(spec.type)]
    while waiting:
        at, type_ = waiting.pop()
        marks = {**MARKS, **kind.marks}.get(type_)
        for field in msgspec.structs.fields(type_) if marks is not None else ():
            assert marks is not None, "asked above"
            if field.encode_name not in marks:
                raise LookupError(
                    f"{type_.__name__}.{field.encode_name} has no mark: fieldmarks.py"
                )
            path = f"{at}.{field.encode_name}"
            found[path] = marks[field.encode_name]
            many = "[]" if _is_list(field.type) else ""
            waiting += [(f"{path}{many}", inner) for inner in _types_in(field.type)]
    return found


def _types_in(type_: Any) -> list[type[Wire]]:
    """The types of the values below, through lists and what may be absent."""
    if isinstance(type_, type) and issubclass(type_, Wire):
        return [type_]
    return [inner for part in getattr(type_, "__args__", ()) for inner in _types_in(part)]


def _is_list(type_: Any) -> bool:
    if getattr(type_, "__origin__", None) is tuple:
        return True
    return any(_is_list(part) for part in getattr(type_, "__args__", ()))


def used_fields(spec: Spec, kind: CustomKind) -> Iterator[UsedField]:
    """In a spec as it is written, as plain values. What is absent is not used; nor is what has another type."""
    for path, mark in marks_of(kind).items():
        if mark.mark is not Mark.ACTS:
            for at, value in _values(spec, path.split(".")[1:]):
                if mark.matters(value, spec):
                    yield UsedField(at, mark)


def _values(spec: Any, steps: list[str]) -> Iterator[tuple[str, Any]]:
    found = [("spec", spec)]
    for step in steps:
        name, many, _ = step.partition("[]")
        below = [
            (f"{at}.{name}", value[name])
            for at, value in found
            if isinstance(value, Mapping) and value.get(name) is not None
        ]
        found = below
        if many:
            found = [
                (f"{at}[{index}]", part)
                for at, value in below
                if isinstance(value, list | tuple)
                for index, part in enumerate(value)
            ]
    return iter(found)


_KINDS = {kind.model: kind for kind in CUSTOM_KINDS}


def used_by(obj: ApiObject) -> tuple[UsedField, ...]:
    """Of a living object: a value that is the default cannot be told from one that the API server has written."""
    kind = _KINDS.get(type(obj))
    if kind is None:
        return ()
    spec = _without_defaults(msgspec.to_builtins(obj)["spec"], "spec", _defaults_of(kind))
    return tuple(used_fields(spec, kind))


def _without_defaults(value: Any, at: str, defaults: Mapping[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _without_defaults(part, f"{at}.{name}", defaults)
        for name, part in value.items()
        if f"{at}.{name}" not in defaults or part != defaults[f"{at}.{name}"]
    }


@cache
def _defaults_of(kind: CustomKind) -> Mapping[str, Any]:
    """By path; of fields that are in no list."""
    found: dict[str, Any] = {}
    waiting = [("spec", schema_of(kind)["properties"]["spec"])]
    while waiting:
        at, schema = waiting.pop()
        if "default" in schema:
            found[at] = schema["default"]
        waiting += [(f"{at}.{name}", one) for name, one in schema.get("properties", {}).items()]
    return found
