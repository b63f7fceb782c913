"""The Kubernetes API as a few verbs, over any transport.

Answers come back as bytes: the caller knows the type to decode them to. Errors come
back as our own tree, and silence does too: no call takes longer than its bound, repeats
included. What is retried, and when, is said in ``retry``; what a repeated create meets
under its own name is ``AlreadyExists``, and its author reads it back. A caller that gets
``Unavailable`` or ``Conflict`` looks again before it repeats anything itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from tenure.errors import Unavailable
from tenure.kube.client.answers import Status as Status
from tenure.kube.client.answers import error_from
from tenure.kube.client.answers import error_from_status as error_from_status
from tenure.kube.client.ratelimit import RateLimit
from tenure.kube.client.retry import ask, names_itself, names_version, tests_version
from tenure.model.api.resource import PODS, Resource
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.transport import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    Request,
    Response,
    Stream,
    Transport,
)

#: Objects per page of a list: the size client-go settled on.
PAGE: Final = 500

#: A write whose answer takes longer than this counts as unanswered: well below the time
#: after which another replica may hold the lease. So does a list that a write waits for.
ANSWER_MAX: Final = timedelta(seconds=5)
#: A read does no harm when it is late, so that it may be tried more than once …
READ_MAX: Final = timedelta(seconds=15)
#: … and a page of a list is large.
LIST_MAX: Final = timedelta(seconds=60)


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list; items stay raw, so that a bad one cannot spoil the others."""

    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


_ENCODER = msgspec.json.Encoder()
_PAGE = msgspec.json.Decoder(ListPage)


class Client:
    def __init__(
        self,
        transport: Transport,
        *,
        rate_limit: RateLimit | None = None,
        random: Random | None = None,
    ) -> None:
        """``random`` is for the jitter of repeats. Who renews a Lease gives no ``pace``."""
        self._transport = transport
        self._rate_limit = rate_limit
        self._random = random or Random(0)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> bytes:
        request = Request(method="GET", path=resource.path(namespace, name))
        return await self._call(request, within=READ_MAX, harmless=True)

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        label_selector: str = "",
        continue_: str = "",
        limit: int = PAGE,
    ) -> ListPage:
        query = {"limit": str(limit)}
        if field_selector:
            query["fieldSelector"] = field_selector
        if label_selector:
            query["labelSelector"] = label_selector
        if continue_:
            query["continue"] = continue_
        request = Request(method="GET", path=resource.path(namespace), query=query)
        return _page(resource, await self._call(request, within=LIST_MAX, harmless=True))

    async def list_now(self, resource: Resource, *, field_selector: str) -> list[msgspec.Raw]:
        """The few that are selected, as they are now, all of them in one answer.

        Without a resourceVersion the server answers by its newest state, and not by a cache that
        is late. Without a limit it may do so from memory, by an index of the field, once that is
        as new (since Kubernetes 1.31); with one, some versions read every object of the kind.
        """
        request = Request(
            method="GET", path=resource.path(), query={"fieldSelector": field_selector}
        )
        page = _page(resource, await self._call(request, harmless=True))
        if page.metadata.continue_:
            raise Unavailable(f"a list of {resource} is not complete")
        return list(page.items or ())

    async def list_all(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        field_selector: str = "",
        label_selector: str = "",
    ) -> tuple[list[msgspec.Raw], str]:
        """Every item, and the version to watch from."""
        items: list[msgspec.Raw] = []
        version = ""
        chosen = {"field_selector": field_selector, "label_selector": label_selector}
        async for page in self.pages(resource, namespace, **chosen):
            items += page.items or ()
            version = page.metadata.resource_version
        return items, version

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        field_selector: str = "",
        label_selector: str = "",
    ) -> AsyncGenerator[ListPage]:
        """A list, page by page; the last one's version is the one to watch from.

        The server makes the next page while the reader works on this one.
        """
        page_of = partial(
            self.list_page,
            resource,
            namespace=namespace,
            field_selector=field_selector,
            label_selector=label_selector,
        )
        page = await page_of()
        while continue_ := page.metadata.continue_:
            following = asyncio.ensure_future(page_of(continue_=continue_))
            try:
                await asyncio.sleep(0)  # So that it is asked for before the reader goes to work.
                yield page
                page = await following
            finally:
                following.cancel()
        yield page

    async def watch(
        self, resource: Resource, resource_version: str, *, label_selector: str = ""
    ) -> Stream:
        query = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
        }
        if label_selector:
            query["labelSelector"] = label_selector
        request = Request(method="GET", path=resource.path(), query=query)
        if self._rate_limit is not None:
            await self._rate_limit.take()
        try:
            async with asyncio.timeout(ANSWER_MAX.total_seconds()):
                answer = await self._transport.stream(request)
        except TimeoutError as error:
            raise _unanswered(request, ANSWER_MAX) from error
        if isinstance(answer, Response):
            raise error_from(answer)
        return answer

    async def create(
        self, resource: Resource, body: Mapping[str, Any], namespace: str = ""
    ) -> bytes:
        request = _write("POST", resource.path(namespace), body)
        return await self._call(request, harmless=names_itself(body))

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
        request = _write("PATCH", path, body, MERGE_PATCH)
        return await self._call(request, harmless=names_version(body))

    async def patch_json(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> bytes:
        """A JSON patch. Let it ``test`` the ``resourceVersion`` to patch one version only."""
        path = resource.path(namespace, name, subresource)
        request = _write("PATCH", path, operations, JSON_PATCH)
        return await self._call(request, harmless=tests_version(operations))

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
        request = _write("DELETE", resource.path(namespace, name), body)
        return await self._call(request, harmless=bool(uid))

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
        request = _write("POST", PODS.path(namespace, name, "eviction"), body)
        return await self._call(request, harmless=False)

    async def _call(
        self, request: Request, *, within: timedelta = ANSWER_MAX, harmless: bool
    ) -> bytes:
        """``within`` bounds all of it. ``harmless`` is what may be said more than once."""
        if self._rate_limit is not None:
            await self._rate_limit.take()
        try:
            async with asyncio.timeout(within.total_seconds()) as patience:
                response = await ask(
                    self._transport, request, patience, harmless=harmless, random=self._random
                )
        except TimeoutError as error:
            raise _unanswered(request, within) from error
        if response.status >= 400:
            raise error_from(response)
        return response.body


def _page(resource: Resource, body: bytes) -> ListPage:
    try:
        return _PAGE.decode(body)
    except DECODE_ERRORS as error:
        # A proxy's page of apology comes with status 200, too.
        raise Unavailable(f"a list of {resource} cannot be read: {error}") from error


def _write(method: str, path: str, body: object, content_type: str = JSON) -> Request:
    return Request(method=method, path=path, body=_ENCODER.encode(body), content_type=content_type)


def _unanswered(request: Request, within: timedelta) -> Unavailable:
    seconds = within // timedelta(seconds=1)
    return Unavailable(f"no answer to {request.method} {request.path} within {seconds} s")
