"""The first words with an API server: whether it is there, who it is, what the cluster is called.

None of it is given up: an answer that may come later is waited for, with growing pauses. What
only a user can correct in the input (certificates that are none) is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random
from typing import Final, TypeVar

import msgspec

from tenure.errors import ApiError, Forbidden, NotFound, SpecError, TenureError, Unavailable
from tenure.kube.client.answers import error_from
from tenure.kube.client.client import ANSWER_MAX, Client
from tenure.kube.client.servertime import date_of, read_date
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NAMESPACES,
    NODE_POOL_POLICIES,
    Resource,
)
from tenure.model.snapshot.kinds import decode
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.transport import Request, Transport

PAUSE_MIN: Final = timedelta(seconds=1)
PAUSE_MAX: Final = timedelta(seconds=15)
#: Its UID is as unique as the cluster, and it is never deleted.
OLDEST_NAMESPACE: Final = "kube-system"
#: How the version of a cluster that ``tenure up`` serves ends.
EMBEDDED: Final = "+tenure"
#: What ``tenure crds --beside-karpenter`` prints.
OWN_KINDS: Final = (MAINTENANCE_WINDOWS, NODE_POOL_POLICIES)

T = TypeVar("T")


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = "of an unknown version"


async def server_version(transport: Transport) -> str:
    request = Request(method="GET", path="/version")
    async with asyncio.timeout(ANSWER_MAX.total_seconds()):
        response = await transport.request(request)
    if response.status >= 400:
        raise error_from(response)
    try:
        return msgspec.json.decode(response.body, type=_Version).git_version
    except DECODE_ERRORS:
        raise Unavailable("what answers there is no Kubernetes API server") from None


async def server_time(transport: Transport) -> datetime | None:
    """By the server's own clock, to the second; None where it does not say."""
    async with asyncio.timeout(ANSWER_MAX.total_seconds()):
        response = await transport.request(Request(method="GET", path="/version"))
    return read_date(date_of(response.headers))


async def cluster_uid(client: Client) -> str:
    raw = await client.get(NAMESPACES, OLDEST_NAMESPACE)
    return decode(NAMESPACES, raw).uid


async def patiently(
    attempt: Callable[[], Awaitable[T]], complain: Callable[[TenureError], None], random: Random
) -> T:
    """Its answer, however long that takes."""
    pause = PAUSE_MIN
    while True:
        try:
            return await attempt()
        except SpecError:
            raise
        except TimeoutError:
            complain(Unavailable("no answer"))
        except TenureError as error:
            complain(error)
        await asyncio.sleep(pause.total_seconds() * (0.75 + random.random() / 4))
        pause = min(pause * 2, PAUSE_MAX)


def advice(error: TenureError, resource: Resource | None = None) -> str:
    """What a user can do about it; empty when the error says it all."""
    if isinstance(error, NotFound) and resource is not None and resource.group:
        # Where Karpenter runs, the CRDs of its kinds are there, and are not to be replaced by ours.
        ours = " --beside-karpenter" if resource in OWN_KINDS else ""
        return f"install the CRDs: tenure crds{ours} | kubectl apply --server-side -f -"
    if isinstance(error, ApiError) and error.status == 401:
        return "the API server does not know us: check the credentials"
    if isinstance(error, Forbidden):
        return "grant it: the role that comes with Tenure has it"
    if isinstance(error, Unavailable):
        return "is the API server up, and the address right? It is tried again"
    return ""
