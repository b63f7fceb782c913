"""What is wrong with one field, worded as the API server words it.

``field``, ``reason`` and ``message`` are what a Kubernetes Status carries in
``details.causes``; ``value`` is what was found there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tenure.errors import Cause

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

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def cause(self) -> Cause:
        return Cause(reason=self.reason, message=self.message, field=self.field)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, INVALID, f"Invalid value: {_show(value)}: {detail}", value)


def broken_rule(field: str, value: Any, detail: str) -> FieldError:
    """A rule said no. Whole objects and lists are not shown, as at the API server."""
    if isinstance(value, dict | list):
        return FieldError(field, INVALID, f"Invalid value: {detail}", value)
    return invalid(field, value, detail)


def wrong_type(field: str, value: Any, wanted: str, got: str) -> FieldError:
    detail = f'{field} in body must be of type {wanted}: "{got}"'
    return FieldError(field, TYPE_INVALID, f'Invalid value: "{got}": {detail}', value)


def required(field: str) -> FieldError:
    return FieldError(field, REQUIRED, "Required value")


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> FieldError:
    choices = ", ".join(_show(choice) for choice in supported)
    message = f"Unsupported value: {_show(value)}: supported values: {choices}"
    return FieldError(field, NOT_SUPPORTED, message, value)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, DUPLICATE, f"Duplicate value: {_show(value)}", value)


def too_long(field: str, value: str, limit: int) -> FieldError:
    message = f"Too long: may not be more than {limit} bytes"
    return FieldError(field, TOO_LONG, message, value)


def too_many(field: str, value: Any, limit: int) -> FieldError:
    message = f"Too many: {len(value)}: must have at most {limit} items"
    return FieldError(field, TOO_MANY, message, value)


UNCHECKED: Final = FieldError(
    "<nil>",
    INVALID,
    "Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation",
)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
