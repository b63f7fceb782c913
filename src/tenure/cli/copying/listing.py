"""Reads the objects of a real cluster, kind by kind and page by page, redacted as they come.

Only reads leave the process. A kind that is refused, missing or not answered is named, and the next is read; only
without Nodes there is nothing to copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec

from tenure.cli.cluster.access import Reached
from tenure.cli.cluster.greeting import advice, server_time, server_version
from tenure.cli.cluster.listing import CannotRead
from tenure.errors import ApiError, SpecError, TenureError, Unavailable
from tenure.kube.cache.informer import in_words
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.model.api.meta import format_time
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, Resource
from tenure.parse import jsontext
from tenure.ports.transport import Transport
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.readonly import LookOnlyTransport
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.copied.copy import NODE_CLASSES, SNAPSHOT, taken
from tenure.sim.copied.leftout import LeftOut, name_of, problem_of, told
from tenure.sim.copied.redaction import TAKEN

#: First those that say which node classes there are.
_ORDER: Final = (NODE_POOLS, NODE_CLAIMS, *(k for k in TAKEN if k not in (NODE_POOLS, NODE_CLAIMS)))


def snapshot_lines(reached: Reached, write: Callable[[Obj], object]) -> None:
    """Hands over every object of the cluster; the last one says when it was, and what is missing."""
    asyncio.run(_from_http(reached, write))


async def _from_http(reached: Reached, write: Callable[[Obj], object]) -> None:
    clock = SystemClock()
    credentials = credentials_for(reached.access, clock)
    whom = f"the API server at {reached.access.server} ({reached.source})"
    async with HttpTransport(reached.access, credentials) as transport:
        try:
            async for obj in objects_of(LookOnlyTransport(transport)):
                write(obj)
        except Unavailable as error:
            why = f"{whom} cannot be reached: {error.message}. Is it up, and is this the right context?"
            raise CannotRead(why) from None


async def objects_of(transport: Transport) -> AsyncIterator[Obj]:
    """Raises ``CannotRead`` where no Nodes can be listed."""
    version = await _version(transport)
    at = await _now(transport)
    client, missing = Client(transport), list[str]()
    wanted: set[tuple[str, str]] = set()
    for resource in _ORDER:
        async for obj in _listed(client, resource, missing):
            if resource in (NODE_POOLS, NODE_CLAIMS):
                wanted.add(_class_of(obj))
            yield obj
    served = {kind.group_kind: kind for kind in NODE_CLASSES}
    for group, kind in sorted(wanted & served.keys()):
        async for obj in _listed(client, served[group, kind], missing):
            yield obj
    yield {
        "apiVersion": SNAPSHOT[0],
        "kind": SNAPSHOT[1],
        "metadata": {"name": "snapshot", "creationTimestamp": format_time(at)},
        "kubernetes": version,
        "missing": missing,
    }


async def _version(transport: Transport) -> str:
    try:
        return await server_version(transport)
    except TimeoutError:
        raise Unavailable("no answer") from None
    except Unavailable:
        raise  # Nor will any list be answered.
    except ApiError:
        return "unknown"  # Some clusters do not show it; the lists count.


async def _now(transport: Transport) -> datetime:
    """By the server's clock: ages are by that one."""
    with suppress(TimeoutError, TenureError):
        if (at := await server_time(transport)) is not None:
            return at
    return datetime.now(UTC)


async def _listed(client: Client, resource: Resource, missing: list[str]) -> AsyncIterator[Obj]:
    unread: list[LeftOut] = []
    try:
        async for page in client.pages(resource):
            for raw in page.items or ():
                obj = _read(resource, raw)
                if isinstance(obj, LeftOut):
                    unread.append(obj)
                else:
                    yield obj
    except TenureError as error:
        said = f"{resource} cannot be listed: {in_words(error)}"
        what = advice(error, resource) if isinstance(error, ApiError) else ""
        if resource == NODES:
            raise CannotRead(f"{said}; {what}" if what else said) from None
        missing.append(f"{said}; the copy goes without them")
    missing += told(unread)


def _read(resource: Resource, raw: bytes | msgspec.Raw) -> Obj | LeftOut:
    found: Obj = {}
    try:
        read = jsontext.body(bytes(raw))
        found = read if isinstance(read, dict) else {}
        return taken(resource, found)
    except (SpecError, AttributeError, LookupError, RecursionError, TypeError) as error:
        problem = problem_of(resource, found, error, hidden=True)
        return LeftOut(resource.kind, name_of(found), problem)


def _class_of(obj: Obj) -> tuple[str, str]:
    ref = dig(obj, "spec", "template", "spec", "nodeClassRef") or dig(obj, "spec", "nodeClassRef")
    return str(dig(ref, "group")), str(dig(ref, "kind"))
