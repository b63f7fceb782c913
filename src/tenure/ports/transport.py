"""The one API boundary: a request in, a response or a stream of byte lines out.

Client, informers and caches are written once over this port. The embedded store
answers it in process, an HTTP server offers the same store to other programs, and
an HTTP client reaches a real API server: three doors, one set of code behind them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request to the Kubernetes API, host and credentials left out."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = JSON


class Response(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Stream(Protocol):
    """A watch that is open: one JSON document per line, until either side ends it.

    One that breaks while it is read raises ``errors.Unavailable``.
    """

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None:
        """End it from our side. Safe to call twice."""
        ...


class Transport(Protocol):
    async def request(self, request: Request) -> Response:
        """Send one request. Raises ``errors.Unavailable`` when no answer came back."""
        ...

    async def stream(self, request: Request) -> Stream | Response:
        """Open a watch. A ``Response`` comes back instead when it was refused."""
        ...
