"""What is wrong with one field, worded as the API server words it.

``field``, ``reason`` and ``message`` are what a Kubernetes Status carries in
``details.causes``; ``value`` is what was found there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from tenure.errors import Cause
from tenure.schema.structure.phrases import as_expectation, phrase

INVALID: Final = "FieldValueInvalid"
REQUIRED: Final = "FieldValueRequired"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
DUPLICATE: Final = "FieldValueDuplicate"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
TYPE_INVALID: Final = "FieldValueTypeInvalid"

#: After one of these the rules are not run: they could not rely on the shape of the object.
BLOCKING: Final = frozenset({REQUIRED, NOT_SUPPORTED, TOO_LONG, TOO_MANY, TYPE_INVALID})


class FieldError(msgspec.Struct, frozen=True):
    field: str
    reason: str
    message: str
    value: Any = None
    #: The same for a user at a terminal: what was expected, and what to write instead.
    expected: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def cause(self) -> Cause:
        return Cause(reason=self.reason, message=self.message, field=self.field)


def invalid(field: str, value: Any, detail: str, expected: str, hint: str = "") -> FieldError:
    message = f"Invalid value: {_show(value)}: {field} in body {detail}"
    return FieldError(field, INVALID, message, value, expected, hint)


def mismatch(field: str, value: str, pattern: str) -> FieldError:
    return invalid(field, value, f"should match '{pattern}'", *phrase(pattern, value))


def broken_rule(field: str, value: Any, detail: str) -> FieldError:
    """A rule said no. Whole objects and lists are not shown, as at the API server."""
    shown = "" if isinstance(value, dict | list) else f"{_show(value)}: "
    message = f"Invalid value: {shown}{detail}"
    return FieldError(field, INVALID, message, value, *as_expectation(detail))


def wrong_type(field: str, value: Any, wanted: str, got: str) -> FieldError:
    message = f'Invalid value: "{got}": {field} in body must be of type {wanted}: "{got}"'
    return FieldError(field, TYPE_INVALID, message, value, *_TYPES.get(wanted, (wanted, "")))


def required(field: str, meaning: str) -> FieldError:
    return FieldError(field, REQUIRED, "Required value", NOTHING, "a value", meaning)


def not_supported(field: str, value: Any, supported: Sequence[Any]) -> FieldError:
    choices = ", ".join(_show(choice) for choice in supported)
    message = f"Unsupported value: {_show(value)}: supported values: {choices}"
    expected = f"one of {', '.join(map(str, supported))}"
    return FieldError(field, NOT_SUPPORTED, message, value, expected, _nearest(value, supported))


def duplicate(field: str, value: Any) -> FieldError:
    message = f"Duplicate value: {_show(value)}"
    return FieldError(field, DUPLICATE, message, value, "each value once", "Leave one out.")


def too_long(field: str, value: str, limit: int) -> FieldError:
    message = f"Too long: may not be more than {limit} bytes"
    return FieldError(field, TOO_LONG, message, value, f"at most {limit} characters")


def too_many(field: str, value: Any, limit: int) -> FieldError:
    message = f"Too many: {len(value)}: must have at most {limit} items"
    return FieldError(field, TOO_MANY, message, value, f"at most {limit} items")


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


#: The value of a field that is not there.
NOTHING: Final = _Nothing()

_TYPES: Final = {
    "string": ("text", "Put it in quotes."),
    "integer": ("a whole number", "Use for example 10."),
    "int32": ("a whole number", "Use for example 10."),
    "int64": ("a whole number", "Use for example 10."),
    "integer,string": ("a whole number or text", 'Use for example 10 or "10".'),
    "number": ("a number", ""),
    "boolean": ("true or false", ""),
    "array": ("a list", "Begin each element with a dash."),
    "object": ("fields and values", "Indent them below this field."),
    "date-time": ("an RFC 3339 instant", "Use for example 2026-12-24T00:00:00Z."),
}

UNCHECKED: Final = FieldError(
    "<nil>",
    INVALID,
    "Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation",
)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _nearest(value: Any, supported: Sequence[Any]) -> str:
    lowered = {str(choice).lower(): choice for choice in supported}
    close = get_close_matches(str(value).lower(), lowered, n=1)
    return f'Did you mean "{lowered[close[0]]}"?' if close else f"Use for example {supported[0]}."
