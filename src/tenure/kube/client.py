"""The Kubernetes API as a few verbs, over any transport.

Answers come back as bytes: whoever asked knows the type to decode them to. Errors come
back as our own tree, and silence does too: no call waits longer than ``ANSWER_MAX``.
Nothing is retried here: a caller that gets ``Unavailable`` or ``Conflict`` looks again
before it repeats anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

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
from tenure.model.resource import PODS, Resource
from tenure.ports.transport import JSON, MERGE_PATCH, Request, Response, Stream, Transport

#: Objects per page of a list: the size client-go settled on.
PAGE: Final = 500

#: A write whose answer takes longer than this counts as unanswered: well below the time
#: after which another replica may hold the lease.
ANSWER_MAX: Final = timedelta(seconds=5)


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


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list; items stay raw, so that a bad one cannot spoil the others."""

    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


_ENCODER = msgspec.json.Encoder()
_STATUS = msgspec.json.Decoder(Status)
_PAGE = msgspec.json.Decoder(ListPage)


class Client:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, resource: Resource, name: str, namespace: str = "") -> bytes:
        return await self._call("GET", resource.path(namespace, name))

    async def list_page(
        self, resource: Resource, *, namespace: str = "", continue_: str = "", limit: int = PAGE
    ) -> ListPage:
        query = {"limit": str(limit)}
        if continue_:
            query["continue"] = continue_
        body = await self._call("GET", resource.path(namespace), query=query)
        try:
            return _PAGE.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # A proxy's page of apology comes with status 200, too.
            raise Unavailable(f"a list of {resource} cannot be read: {error}") from error

    async def list_all(
        self, resource: Resource, namespace: str = ""
    ) -> tuple[list[msgspec.Raw], str]:
        """Every item, page by page, and the version to watch from."""
        items: list[msgspec.Raw] = []
        page = await self.list_page(resource, namespace=namespace)
        while True:
            items += page.items or ()
            if not page.metadata.continue_:
                return items, page.metadata.resource_version
            page = await self.list_page(
                resource, namespace=namespace, continue_=page.metadata.continue_
            )

    async def watch(self, resource: Resource, resource_version: str) -> Stream:
        request = Request(
            method="GET",
            path=resource.path(),
            query={
                "watch": "true",
                "resourceVersion": resource_version,
                "allowWatchBookmarks": "true",
            },
        )
        try:
            async with asyncio.timeout(ANSWER_MAX.total_seconds()):
                answer = await self._transport.stream(request)
        except TimeoutError as error:
            raise _unanswered(request) from error
        if isinstance(answer, Response):
            raise error_from(answer)
        return answer

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str = ""
    ) -> bytes:
        return await self._call("POST", resource.path(namespace), body=body)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        """A JSON merge patch. Put ``metadata.resourceVersion`` in to patch one version only."""
        path = resource.path(namespace, name, subresource)
        return await self._call("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        uid: str,
        namespace: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
    ) -> bytes:
        preconditions = {"uid": uid}
        if resource_version:
            preconditions["resourceVersion"] = resource_version
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            "propagationPolicy": "Background",
        }
        if grace_period_seconds is not None:
            body["gracePeriodSeconds"] = grace_period_seconds
        return await self._call("DELETE", resource.path(namespace, name), body=body)

    async def evict(
        self, name: str, namespace: str, *, uid: str, grace_period_seconds: int | None = None
    ) -> bytes:
        options: dict[str, Any] = {"preconditions": {"uid": uid}}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        return await self._call("POST", PODS.path(namespace, name, "eviction"), body=body)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> bytes:
        request = Request(
            method=method,
            path=path,
            query=query or {},
            body=_ENCODER.encode(body) if body is not None else b"",
            content_type=content_type,
        )
        try:
            async with asyncio.timeout(ANSWER_MAX.total_seconds()):
                response = await self._transport.request(request)
        except TimeoutError as error:
            raise _unanswered(request) from error
        if response.status >= 400:
            raise error_from(response)
        return response.body


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


def _unanswered(request: Request) -> Unavailable:
    seconds = ANSWER_MAX // timedelta(seconds=1)
    return Unavailable(f"no answer to {request.method} {request.path} within {seconds} s")


def error_from(response: Response) -> ApiError:
    """The error an answer stands for."""
    try:
        status = _STATUS.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Unknown groups and proxies on the way answer in plain text.
        status = Status(message=response.body[:300].decode(errors="replace").strip())
    return error_from_status(status, response.status, _seconds(response.headers))


def _seconds(headers: Mapping[str, str]) -> int:
    """``Retry-After``, which a busy server sends with a body in plain text."""
    for name, value in headers.items():
        if name.lower() == "retry-after" and value.isdigit():
            return int(value)
    return 0


def error_from_status(status: Status, code: int = 0, retry_after: int = 0) -> ApiError:
    """The error that a Status stands for; also sent inside a watch stream."""
    code = code or status.code
    kind = _BY_STATUS.get(code, Unavailable)
    if code == 409:
        kind = AlreadyExists if status.reason == "AlreadyExists" else Conflict
    details = status.details or _Details()
    seconds = details.retry_after_seconds or retry_after
    return kind(
        status.message,
        reason=status.reason,
        causes=tuple(Cause(c.reason, c.message, c.field) for c in details.causes or ()),
        retry_after=timedelta(seconds=seconds) if seconds else None,
        status=code,
    )
