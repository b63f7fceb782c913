"""The API server's ways of saying no, and how a no is written down.

Actors get the exceptions of ``tenure.errors``; a client of the API gets
the same refusal as a ``Status`` object. Tests compare code, reason and the causes'
fields, so those are exact here; the sentences are our own where no program reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.errors import AlreadyExists, ApiError, Cause, Conflict, Forbidden, Invalid, NotFound
from tenure.model.api.resource import Resource

_encode = msgspec.json.encode
#: Server-side apply would change a field of another manager.
FIELD_MANAGER_CONFLICT: Final = "FieldManagerConflict"


class Unexplained(ApiError):
    """A 500 without a reason, where the real server gives none."""

    default_reason = ""


def not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource} "{name}" not found')


def already_exists(resource: Resource, name: str) -> AlreadyExists:
    return AlreadyExists(f'{resource} "{name}" already exists')


def conflict(resource: Resource, name: str, why: str = "") -> Conflict:
    why = why or (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {why}')


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> Forbidden:
    return Forbidden(f'{resource} "{name}" is forbidden: {why}', causes=causes)


def bad_request(message: str) -> ApiError:
    return ApiError(message, status=400, reason="BadRequest")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(message, status=405, reason="MethodNotAllowed")


def unsupported_media_type(content_type: str, accepted: Sequence[str]) -> ApiError:
    message = (
        f"the body of the request was in an unknown format ({content_type}) - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return ApiError(message, status=415, reason="UnsupportedMediaType")


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> Invalid:
    group = f".{resource.group}" if resource.group else ""
    sentences = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    return Invalid(f'{resource.kind}{group} "{name}" is invalid: {listed}', causes=causes)


def required(field: str, message: str = "Required value") -> Cause:
    return Cause(reason="FieldValueRequired", field=field, message=message)


def malformed(field: str, message: str) -> Cause:
    return Cause(reason="FieldValueInvalid", field=field, message=message)


def unsupported(field: str, got: object, known: Sequence[str]) -> Cause:
    message = f"Unsupported value: {got!r}: supported values: {', '.join(known)}"
    return Cause(reason="FieldValueNotSupported", field=field, message=message)


def untouchable(field: str, message: str) -> Cause:
    return Cause(reason="FieldValueForbidden", field=field, message=message)


def status_body(error: ApiError, *, resource: Resource | None = None, name: str = "") -> bytes:
    """The ``Status`` object that tells a client of this error."""
    details: dict[str, Any] = {}
    named = not _about_the_request(error)
    if name and named:
        details["name"] = name
    if resource is not None and named:
        if resource.group:
            details["group"] = resource.group
        # A validation error names the kind, all others the plural: the real server's habit.
        details["kind"] = resource.kind if isinstance(error, Invalid) else resource.plural
    if error.causes:
        details["causes"] = [_cause(cause) for cause in error.causes]
    if error.retry_after:
        details["retryAfterSeconds"] = error.retry_after // timedelta(seconds=1)
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        status["reason"] = error.reason
    if details:
        status["details"] = details
    status["code"] = error.status
    return _encode(status)


def _about_the_request(error: ApiError) -> bool:
    """Whether it makes no sense as such, whatever object it is about."""
    if isinstance(error, Invalid):
        return not error.causes or error.causes[0].field == "patch"
    conflicting = bool(error.causes) and error.causes[0].reason == FIELD_MANAGER_CONFLICT
    return conflicting or error.status in (400, 405)


def _cause(cause: Cause) -> dict[str, str]:
    parts = {"reason": cause.reason, "message": cause.message, "field": cause.field}
    return {key: value for key, value in parts.items() if value}
