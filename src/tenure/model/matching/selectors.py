"""What is selected: label selectors of objects, and the two selectors of query strings.

* ``matches`` reads the ``LabelSelector`` of budgets, affinities and spread constraints.
  A missing selector selects nothing, an empty one everything.
* ``parse_label_selector`` reads ``a=b,c!=d,e in (x,y),!f``. Conditions on a label that
  is missing: ``!=`` and ``notin`` hold, ``=``, ``in``, ``>`` and ``<`` do not.
* ``parse_field_selector`` reads ``metadata.name=x,status.phase!=Running``. Only the
  fields that the caller supports can be asked for, as in the API server.

All conditions of one selector must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from tenure.errors import SpecError
from tenure.model.api import fields
from tenure.model.api.pod import LabelSelector, LabelSelectorRequirement
from tenure.model.matching.requirement import Requirement

LabelPredicate = Callable[[Mapping[str, str]], bool]
ObjectPredicate = Callable[[Mapping[str, Any]], bool]

_LABEL_SYNTAX: Final = "conditions such as app=web,tier!=db,zone in (a,b),!legacy"
_FIELD_SYNTAX: Final = "conditions such as metadata.name=x,status.phase!=Running"

#: One condition and what separates it from the next. Words end at these characters or a blank.
_CONDITION: Final = re.compile(
    r"""\s* (?:
        ! \s* (?P<absent> [^\s=!(),<>]++ )
        | (?P<key> [^\s=!(),<>]++ ) \s* (?:
            (?P<set> in | notin ) \s* \( (?P<values> [^=!()<>]* ) \)
            | (?P<sign> == | != | [=<>] ) \s* (?P<value> [^\s=!(),<>]* )
        )?
    ) \s* (?P<end> , | $ )""",
    re.VERBOSE,
)
_KEY: Final = re.compile(fields.QUALIFIED_NAME)
_VALUE: Final = re.compile(fields.LABEL_VALUE)
_PREFIX_LENGTH: Final = 253

#: Fields that the API server reads as ``false`` when an object leaves them out.
_FALSE_WHEN_ABSENT: Final = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_FIELD_TERM: Final = re.compile(r"((?:[^\\,]|\\.?)*)(?:,|$)", re.DOTALL)
_FIELD_CONDITION: Final = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_FIELD_VALUE: Final = re.compile(r"(?:[^\\,=]|\\[\\,=])*", re.DOTALL)


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether something with these labels is selected."""
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    for expression in selector.match_expressions:  # noqa: SIM110 - twice as fast as all()
        if not _expression_holds(expression, labels):
            return False
    return True


def _expression_holds(expression: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    operator, value = expression.operator, labels.get(expression.key)
    if operator == "In":
        return value is not None and value in expression.values
    if operator == "NotIn":
        return value is None or value not in expression.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    expected = "one of In, NotIn, Exists, DoesNotExist"
    raise SpecError(f"matchExpressions[{expression.key}].operator", operator, expected)


def parse_label_selector(text: str, at: str = "labelSelector") -> LabelPredicate:
    """The predicate on labels that the text spells; an empty text selects everything."""
    conditions = tuple(_label_conditions(text, at)) if text.strip() else ()
    return lambda labels: all(condition.matches(labels) for condition in conditions)


def _label_conditions(text: str, at: str) -> list[Requirement]:
    conditions, position, more = [], 0, True
    while more:
        match = _CONDITION.match(text, position)
        if match is None:
            raise SpecError(at, text, _LABEL_SYNTAX, f"Unclear from {text[position:]!r} on.")
        conditions.append(_label_condition(match, text, at))
        position, more = match.end(), match["end"] == ","
    return conditions


def _label_condition(match: re.Match[str], text: str, at: str) -> Requirement:
    key, sign = match["absent"] or match["key"], match["sign"]
    values = [match["value"] or ""]
    if match["set"]:
        values = [value.strip() for value in match["values"].split(",")]
    if not _is_label_key(key):
        raise SpecError(at, text, f"label keys, and {key!r} is none", "Use example.com/name=x.")
    for value in values:
        if _VALUE.fullmatch(value) is None or len(value) > fields.LABEL_VALUE_LENGTH:
            raise SpecError(at, text, f"label values, and {value!r} is none", "Use name=x-1.")
    # Not Requirement.of: it would rename legacy keys, but here objects are asked literally.
    if match["absent"]:
        return Requirement(key, allows_absent=True)
    if not sign and not match["set"]:
        return Requirement(key, complement=True)
    if sign in ("<", ">"):
        bounded = Requirement.of("", "Lt" if sign == "<" else "Gt", values, at=at)
        return Requirement(key, frozenset(), True, False, bounded.at_least, bounded.at_most)
    negated = sign == "!=" or match["set"] == "notin"
    return Requirement(key, frozenset(values), negated, negated)


def _is_label_key(key: str) -> bool:
    prefix, _, name = key.rpartition("/")
    short = len(prefix) <= _PREFIX_LENGTH and len(name) <= fields.LABEL_VALUE_LENGTH
    return short and _KEY.fullmatch(key) is not None


def parse_field_selector(
    text: str, supported: Collection[str], at: str = "fieldSelector"
) -> ObjectPredicate:
    """The predicate on plain objects that the text spells; other fields are an error."""
    conditions = []
    for term in _FIELD_TERM.findall(text):
        if not term:
            continue
        match = _FIELD_CONDITION.fullmatch(term)
        if match is None or _FIELD_VALUE.fullmatch(match[3]) is None:
            raise SpecError(at, text, _FIELD_SYNTAX, f"Unclear: {term!r}.")
        field, sign, value = match.groups()
        if field not in supported:
            expected = f"a field out of {', '.join(sorted(supported))}"
            raise SpecError(at, field, expected, "Use metadata.name=x.")
        wanted = re.sub(r"\\(.)", r"\1", value)
        conditions.append((field, tuple(field.split(".")), wanted, sign != "!="))
    return lambda obj: all(
        (_field_text(obj, field, path) == wanted) == equal
        for field, path, wanted, equal in conditions
    )


def _field_text(obj: Mapping[str, Any], field: str, path: tuple[str, ...]) -> str:
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return "false" if field in _FALSE_WHEN_ABSENT else ""
    return str(value).lower() if isinstance(value, bool) else str(value)
