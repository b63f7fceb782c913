"""Errors this package raises on purpose.

TenureError
├── SpecError             a user wrote something that cannot be used; retrying is useless
├── EvaluationError       a decider failed on an object, by a fault of ours; others go on
├── NotLeader             nothing was sent: the lease is not ours; wait until it is
├── ApiError              the API server said no; the subclass says what to do next
│   ├── NotFound          the object is gone: usually that is what we wanted
│   ├── AlreadyExists     the name is taken: read it back and compare
│   ├── Conflict          the object moved under us: drop the action, look again
│   ├── Gone              our resourceVersion is too old: list again
│   ├── Invalid           the object was rejected: retrying is useless
│   ├── Forbidden         a permission is missing: an administrator must grant it
│   ├── TooManyRequests   ask again after ``retry_after``; for evictions: a budget says no
│   └── Unavailable       the server or the way to it is broken: back off and retry
└── ProviderError         a cloud call failed; the subclass says what to do next
    ├── OutOfCapacity     these offerings are dry: try other ones
    ├── Throttled         ask again, later
    ├── Misconfigured     stop asking until the node class changes
    ├── RebootNotSupported  the provider reboots nothing: replace the instance
    ├── RebootFailed      this instance cannot be rebooted: replace it
    └── InstanceGone      the instance does not exist (any more)

Catch the narrowest class you can act on. Anything outside this tree is a bug in
our code and is left to crash the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final


class TenureError(Exception):
    """Base of every error listed above."""


#: So many characters of a text that others wrote stand in a sentence.
SHOWN_MAX: Final = 120


def shown(text: str) -> str:
    """The text, or its beginning and how long it is: an annotation may have 256 KB."""
    if len(text) <= SHOWN_MAX:
        return text
    return f"{text[:SHOWN_MAX]}… ({len(text)} characters)"


#: What is expected of a field that is not in the schema.
KNOWN_FIELD: Final = "a field that exists"


class SpecError(TenureError):
    """A field of a user's object cannot be used."""

    def __init__(self, at: str, got: object, expected: str, hint: str = "") -> None:
        super().__init__(at, got, expected, hint)
        self.at, self.got, self.expected, self.hint = at, got, expected, hint

    def __str__(self) -> str:
        got = None if self.got is None else quoted(self.got)
        return problem_sentence(self.at, got, self.expected, self.hint)


def problem_sentence(at: str, got: str | None, expected: str, hint: str) -> str:
    """``got``: quoted; None where it is missing."""
    found = "missing" if got is None else f"got {got}"
    message = f"{at}: {found}, expected {expected}"
    if expected == KNOWN_FIELD:
        # As kubectl says it: the value of such a field is not what is wrong.
        place, colon, field = at.rpartition(": ")
        message = f'{place}{colon}unknown field "{field}"'
    return f"{message}. {hint}" if hint else message


def quoted(got: object) -> str:
    return repr(shown(got)) if isinstance(got, str) else shown(repr(got))


class EvaluationError(TenureError):
    """Evaluating an object failed, or telling of it: a fault of ours, said so that it is mended."""


class NotLeader(TenureError):
    """A call that changes something was stopped before it left the process."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of ``details.causes`` in a Kubernetes Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(TenureError):
    """A Kubernetes API request was answered with an error Status."""

    status = 500
    default_reason = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        causes: Sequence[Cause] = (),
        retry_after: timedelta | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.causes = tuple(causes)
        self.retry_after = retry_after
        if status is not None:
            self.status = status

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}"


class NotFound(ApiError):
    status, default_reason = 404, "NotFound"


class AlreadyExists(ApiError):
    status, default_reason = 409, "AlreadyExists"


class Conflict(ApiError):
    status, default_reason = 409, "Conflict"


class Gone(ApiError):
    status, default_reason = 410, "Expired"


class Invalid(ApiError):
    status, default_reason = 422, "Invalid"


class Forbidden(ApiError):
    status, default_reason = 403, "Forbidden"


class TooManyRequests(ApiError):
    status, default_reason = 429, "TooManyRequests"


class Unavailable(ApiError):
    status, default_reason = 503, "ServiceUnavailable"


class ProviderError(TenureError):
    """A cloud call failed."""


class OutOfCapacity(ProviderError):
    """None of the asked-for offerings can be had; ``offerings`` names them."""

    def __init__(self, message: str, *, offerings: Sequence[tuple[str, str, str]] = ()) -> None:
        super().__init__(message)
        #: (instance type, zone, capacity type) triples that turned out to be dry.
        self.offerings = tuple(offerings)


class Throttled(ProviderError):
    """The cloud asks us to slow down."""


class Misconfigured(ProviderError):
    """The node class cannot be used as it is."""


class RebootNotSupported(ProviderError):
    """The provider reboots nothing."""


class RebootFailed(ProviderError):
    """The instance cannot be rebooted, and asking again will not help."""


class InstanceGone(ProviderError):
    """The instance does not exist (any more)."""
