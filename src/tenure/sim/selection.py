"""Selectors of list and watch requests, as predicates over stored objects.

Labels can be asked about freely; of the fields, only those that a kind offers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from tenure.sim.kinds import Kind
from tenure.sim.refusals import bad_request
from tenure.sim.tree import Obj, dig

Matches = Callable[[Obj], bool]
_Term = Callable[[dict[str, str]], bool]

_EVERYWHERE: Final = frozenset({"metadata.name", "metadata.namespace"})
_FIELD: Final = re.compile(r"(?P<key>[^=!]+)(?P<operator>!=|==?)(?P<value>.*)")
_LABEL: Final = re.compile(
    r"\s*(?:(?P<set>[^\s!=,()]+)\s+(?P<in>in|notin)\s*\((?P<values>[^)]*)\)"
    r"|(?P<key>[^\s!=,()]+)\s*(?P<operator>!=|==?)\s*(?P<value>[^\s,=!()]*)"
    r"|(?P<absent>!?)\s*(?P<exists>[^\s!=,()]+))\s*(?:,|$)"
)


def selected(kind: Kind, label_selector: str, field_selector: str) -> Matches | None:
    """What both selectors want; None when they want everything."""
    labels = _labels(label_selector) if label_selector else None
    fields = _fields(kind, field_selector) if field_selector else None
    if labels is None or fields is None:
        return labels or fields
    return lambda obj: labels(obj) and fields(obj)


def object_selector(selector: Obj) -> Matches:
    """A ``LabelSelector`` object (matchLabels, matchExpressions) as a predicate."""
    exact: dict[str, str] = selector.get("matchLabels") or {}
    terms = [_expression(e) for e in selector.get("matchExpressions") or []]

    def matches(obj: Obj) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(labels.get(k) == v for k, v in exact.items()) and all(t(labels) for t in terms)

    return matches


def _expression(expression: Obj) -> _Term:
    key, operator = expression["key"], expression["operator"]
    return _term(key, operator, frozenset(expression.get("values") or ()))


def _term(key: str, operator: str, values: frozenset[str]) -> _Term:
    match operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
    raise bad_request(f"{operator!r} is not a label selector operator")


def _labels(text: str) -> Matches:
    terms: list[_Term] = []
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise bad_request(f"unable to parse requirement: {text[at:]!r}")
        terms.append(_label_term(found))
        at = found.end()
    return lambda obj: all(term(obj["metadata"].get("labels") or {}) for term in terms)


def _label_term(found: re.Match[str]) -> _Term:
    if key := found["set"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        return _term(key, "In" if found["in"] == "in" else "NotIn", values)
    if key := found["key"]:
        operator = "NotIn" if found["operator"] == "!=" else "In"
        return _term(key, operator, frozenset({found["value"]}))
    return _term(found["exists"], "DoesNotExist" if found["absent"] else "Exists", frozenset())


def _fields(kind: Kind, text: str) -> Matches:
    terms = [_field_term(kind, term) for term in text.split(",") if term]
    return lambda obj: all(_text(dig(obj, *path)) in want for path, want in terms)


class _Not:
    """Everything but one value."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __contains__(self, value: object) -> bool:
        return value != self._value


def _field_term(kind: Kind, term: str) -> tuple[tuple[str, ...], tuple[str, ...] | _Not]:
    found = _FIELD.fullmatch(term.strip())
    if found is None:
        raise bad_request(f"invalid field selector: {term!r}")
    key, value = found["key"], found["value"]
    if key not in _EVERYWHERE and key not in kind.fields:
        raise bad_request(f"field label not supported: {key}")
    return tuple(key.split(".")), _Not(value) if found["operator"] == "!=" else (value,)


def _text(value: Any) -> str:
    """A field's value as selectors spell it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
