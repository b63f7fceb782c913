"""Take every lever back: annotations with our mark, what we remember on claims and pools, and commands under way.

Whatever a window says: an operator has asked for it. A value that a user wrote stays. No node goes: a command
is rolled back, and its replacement is a node like any other, which Karpenter removes if it is of no use. A claim
that is being deleted keeps its deadline, which is never put off. Each write is on the version that was read; an
object that changed meanwhile is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from tenure.core.beside.mark import left_on, take_back
from tenure.core.beside.replacing.stand import no_trace
from tenure.core.decision import Patch
from tenure.core.marks.repaired import MARKS_BESIDE, is_stamped_by_us
from tenure.core.marks.timeout import NOTES
from tenure.core.protect.protection import since_key
from tenure.core.writes import patch
from tenure.errors import Conflict, NotFound, TenureError
from tenure.kube.client.client import Client
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    PROBE_BESIDE,
    TERMINATION_TIMESTAMP,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, Resource

#: Writes under way at once, and how often an object that changes under us is read again.
_AT_ONCE: Final = 32
_TRIES: Final = 5
#: What we remember on a claim.
_NOTES: Final = (since_key(DO_NOT_DISRUPT), since_key(DO_NOT_REPAIR), *NOTES)

Thing = Node | NodeClaim | NodePool
_TYPES: Final[Mapping[Resource, type[Thing]]] = {
    NODES: Node,
    NODE_CLAIMS: NodeClaim,
    NODE_POOLS: NodePool,
}


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

    async def taken(thing: Thing) -> Release:
        async with slots:
            return await _taken(client, thing)

    return sorted(await asyncio.gather(*map(taken, found)))


async def _levers(client: Client) -> AsyncIterator[Thing]:
    for resource in _TYPES:
        try:
            raw, _ = await client.list_all(resource)
        except NotFound:
            continue  # Without Karpenter's CRDs there are no claims.
        for item in raw:
            thing = _thing(resource, bytes(item))
            if _is_ours(thing):
                yield thing


def _thing(resource: Resource, raw: bytes) -> Thing:
    return _TYPES[resource](metadata=_OBJECT.decode(raw).metadata)


def _is_ours(thing: Thing) -> bool:
    if isinstance(thing, Node):
        return bool(left_on(thing))
    return bool(_written(thing))


def _written(thing: NodeClaim | NodePool) -> tuple[str, ...]:
    """Our annotations there."""
    if isinstance(thing, NodePool):
        return (PROBE_BESIDE,) if PROBE_BESIDE in thing.annotations else ()
    found = [*(key for key in _NOTES if key in thing.annotations), *no_trace(thing)]
    if thing.deleting:
        return tuple(found)
    stamped = (TERMINATION_TIMESTAMP,) if is_stamped_by_us(thing) else ()
    return (*found, *stamped, *(key for key in MARKS_BESIDE if key in thing.annotations))


def _patch(thing: Thing) -> Patch:
    if isinstance(thing, Node):
        return take_back(thing, *left_on(thing))
    return patch(thing, {"annotations": dict.fromkeys(_written(thing))})


async def _taken(client: Client, thing: Thing) -> Release:
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


def _told(thing: Thing) -> Release:
    if not isinstance(thing, Node):
        return Release(_resource(thing).kind, thing.name, ", ".join(_written(thing)))
    said = (
        f"{kind.annotation}: {thing.annotations.get(kind.because, '')}, "
        f"until {thing.annotations.get(kind.until, '')}"
        for kind in left_on(thing)
    )
    return Release(NODES.kind, thing.name, "; ".join(said))


def _resource(thing: Thing) -> Resource:
    return next(resource for resource, type_ in _TYPES.items() if isinstance(thing, type_))
