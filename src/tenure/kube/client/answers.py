"""What an API server's no means, in the words of our own tree of errors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from tenure.errors import (
    AlreadyExists,
    ApiError,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.transport import Response


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """A ``metav1.Status``: how the API server says no."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


#: Seconds: a server that wants more for us to wait is believed no further.
_LONGEST: Final = 24 * 60 * 60
_STATUS = msgspec.json.Decoder(Status)

_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
}


def error_from(response: Response) -> ApiError:
    """The error an answer stands for."""
    try:
        status = _STATUS.decode(response.body)
    except DECODE_ERRORS:
        # Unknown groups and proxies on the way answer in plain text.
        status = Status(message=response.body[:300].decode(errors="replace").strip())
    return error_from_status(status, response.status, _seconds(response.headers))


def _seconds(headers: Mapping[str, str]) -> int:
    """``Retry-After``, which a busy server sends with a body in plain text."""
    for name, value in headers.items():
        if name.lower() == "retry-after" and value.isdecimal():
            return int(value[:10])  # More than we wait anyway, whatever follows.
    return 0


def error_from_status(status: Status, code: int = 0, retry_after: int = 0) -> ApiError:
    """The error that a Status stands for; also sent inside a watch stream."""
    code = code or status.code
    kind = _BY_STATUS.get(code, Unavailable)
    if code == 409:
        kind = AlreadyExists if status.reason == "AlreadyExists" else Conflict
    details = status.details or _Details()
    seconds = min(details.retry_after_seconds or retry_after, _LONGEST)
    return kind(
        status.message,
        reason=status.reason,
        causes=tuple(Cause(c.reason, c.message, c.field) for c in details.causes or ()),
        retry_after=timedelta(seconds=seconds) if seconds > 0 else None,
        status=code,
    )
