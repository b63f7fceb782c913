"""Take every lever back: annotations with our mark, what we recorded beside durations, and commands under way.

Whatever a window says: an operator has asked for it. A value that a user wrote stays. No node goes: a command
is rolled back, and its replacement is a node like any other, which Karpenter removes if it is of no use. Each write is on
the version that was read; an object that changed meanwhile is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from tenure.core.beside.mark import COPIED, is_marked, is_torn, take_back
from tenure.core.beside.replacing import no_trace
from tenure.core.decision import Patch
from tenure.core.protect.protection import since_key
from tenure.core.writes import patch
from tenure.errors import Conflict, NotFound, TenureError
from tenure.kube.client.client import Client
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    DO_NOT_DISRUPT_BECAUSE,
    DO_NOT_DISRUPT_UNTIL,
    DO_NOT_REPAIR,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODES, Resource

#: Writes under way at once, and how often an object that changes under us is read again.
_AT_ONCE: Final = 32
_TRIES: Final = 5
_SINCE: Final = (since_key(DO_NOT_DISRUPT), since_key(DO_NOT_REPAIR))


class Release(msgspec.Struct, frozen=True, order=True):
    """One object, what stood there, and what went wrong."""

    kind: str
    name: str
    said: str = ""
    problem: str = ""


class _Object(msgspec.Struct, frozen=True):
    """The rest may be unreadable: a lever is taken back all the same."""

    metadata: ObjectMeta = ObjectMeta()


_OBJECT: Final = msgspec.json.Decoder(_Object)


async def release_levers(client: Client, *, dry_run: bool = False) -> list[Release]:
    """What was, or would be, taken back; sorted. Raises ``TenureError`` where nothing can be listed."""
    found = [one async for one in _levers(client)]
    if dry_run:
        return sorted(_told(one) for one in found)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def taken(thing: Node | NodeClaim) -> Release:
        async with slots:
            return await _taken(client, thing)

    return sorted(await asyncio.gather(*map(taken, found)))


async def _levers(client: Client) -> AsyncIterator[Node | NodeClaim]:
    for resource in (NODES, NODE_CLAIMS):
        try:
            raw, _ = await client.list_all(resource)
        except NotFound:
            continue  # Without Karpenter's CRDs there are no claims.
        for item in raw:
            thing = _thing(resource, bytes(item))
            if _is_ours(thing):
                yield thing


def _thing(resource: Resource, raw: bytes) -> Node | NodeClaim:
    metadata = _OBJECT.decode(raw).metadata
    return Node(metadata=metadata) if resource == NODES else NodeClaim(metadata=metadata)


def _is_ours(thing: Node | NodeClaim) -> bool:
    if isinstance(thing, Node):
        return is_marked(thing) or is_torn(thing) or any(key in thing.annotations for key in COPIED)
    return bool(_of_claim(thing))


def _patch(thing: Node | NodeClaim) -> Patch:
    if isinstance(thing, Node):
        return take_back(thing)
    return patch(thing, {"annotations": _of_claim(thing)})


def _of_claim(claim: NodeClaim) -> dict[str, None]:
    """What of its annotations goes. The stamp of a claim that is being deleted is its deadline: it stays."""
    found = dict.fromkeys(key for key in _SINCE if key in claim.annotations)
    return {**found, **no_trace(claim)}


async def _taken(client: Client, thing: Node | NodeClaim) -> Release:
    said, resource = _told(thing), _resource(thing)
    try:
        for _ in range(_TRIES):
            try:
                await client.patch(resource, thing.name, _patch(thing).body)
                return said
            except Conflict:
                thing = _thing(resource, await client.get(resource, thing.name))
                if not _is_ours(thing):
                    return said
    except NotFound:
        return said  # It is gone, and the lever with it.
    except TenureError as error:
        return msgspec.structs.replace(said, problem=str(error))
    return msgspec.structs.replace(said, problem="it changed at each of our tries")


def _told(thing: Node | NodeClaim) -> Release:
    if isinstance(thing, NodeClaim):
        if no_trace(thing):
            return Release(NODE_CLAIMS.kind, thing.name, "marks of a replacement")
        return Release(NODE_CLAIMS.kind, thing.name, "the instant that a duration counts from")
    because = thing.annotations.get(DO_NOT_DISRUPT_BECAUSE, "")
    until = thing.annotations.get(DO_NOT_DISRUPT_UNTIL, "")
    return Release(NODES.kind, thing.name, f"{because}, until {until}")


def _resource(thing: Node | NodeClaim) -> Resource:
    return NODES if isinstance(thing, Node) else NODE_CLAIMS
