"""Take every lever back: annotations with our mark, what we remember on claims and pools, and commands under way.

Also what a Tenure that was in charge has left, unless one is: its commands, what it remembers, and its taint.
Finalizers are Karpenter's own. Whatever a window says: an operator has asked for it. A value that a user wrote stays. No node goes: a command
is rolled back, and its replacement is a node like any other, which Karpenter removes if it is of no use. A claim
that is being deleted keeps its deadline, which is never put off. Each write is on the version that was read; an
object that changed meanwhile is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from tenure.core.beside.leftover.incharge import traces_in_charge
from tenure.core.beside.mark import left_on, take_back
from tenure.core.beside.replacing.stand import no_trace
from tenure.core.marks.repaired import MARKS_BESIDE, is_stamped_by_us
from tenure.core.marks.taints import untaint_reserved
from tenure.core.marks.timeout import NOTES
from tenure.core.protect.protection import since_key
from tenure.core.writes import patch
from tenure.errors import Conflict, NotFound, TenureError
from tenure.kube.client.client import Client
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.names import (
    DISRUPTED_BY,
    DISRUPTED_SINCE,
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    EXPIRED_AT,
    PROBE_BESIDE,
    RESERVED_TAINT,
    TERMINATION_AT,
    TERMINATION_TIMESTAMP,
)
from tenure.model.api.node import Node, NodeSpec, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, Resource

#: Writes under way at once, and how often an object that changes under us is read again.
_AT_ONCE: Final = 32
_TRIES: Final = 5
#: When a duration was first seen.
_SINCE: Final = (since_key(DO_NOT_DISRUPT), since_key(DO_NOT_REPAIR))
#: What Karpenter copies from a claim that is not registered to its Node: this, and a deadline with its marks.
_COPIED: Final = (*_SINCE, EXPIRED_AT, *MARKS_BESIDE, DISRUPTED_BY, DISRUPTED_SINCE)

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


class _Spec(msgspec.Struct, frozen=True):
    taints: tuple[Taint, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    """The rest may be unreadable: a lever is taken back all the same."""

    metadata: ObjectMeta = ObjectMeta()


class _Tainted(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


_OBJECT: Final = msgspec.json.Decoder(_Object)
_TAINTED: Final = msgspec.json.Decoder(_Tainted)


class _Found(msgspec.Struct, frozen=True):
    """An object, and which of its annotations are to go."""

    thing: Thing
    gone: tuple[str, ...]
    #: Of a Node: with the taint of a Tenure that was in charge.
    reserved: bool = False

    def __bool__(self) -> bool:
        return bool(self.gone) or self.reserved


async def release_levers(
    client: Client, *, dry_run: bool = False, in_charge: bool = False
) -> list[Release]:
    """What was, or would be, taken back; sorted. Raises ``TenureError`` where nothing can be listed.

    ``in_charge``: a Tenure is, so what such a one remembers stays.
    """
    found = [one async for one in _levers(client, in_charge=in_charge)]
    if dry_run:
        return sorted(_told(one) for one in found)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def taken(one: _Found) -> Release:
        async with slots:
            return await _taken(client, one, in_charge=in_charge)

    return sorted(await asyncio.gather(*map(taken, found)))


async def _levers(client: Client, *, in_charge: bool) -> AsyncIterator[_Found]:
    for resource in _TYPES:
        try:
            raw, _ = await client.list_all(resource)
        except NotFound:
            continue  # Without Karpenter's CRDs there are no claims.
        for item in raw:
            if found := _found(resource, bytes(item), in_charge=in_charge):
                yield found


def _found(resource: Resource, raw: bytes, *, in_charge: bool) -> _Found:
    thing = _TYPES[resource](metadata=_OBJECT.decode(raw).metadata)
    if isinstance(thing, Node):
        return _on_node(thing, raw, in_charge=in_charge)
    gone = (*_written(thing), *(() if in_charge else traces_in_charge(thing)))
    return _Found(thing, tuple(dict.fromkeys(gone)))


def _on_node(node: Node, raw: bytes, *, in_charge: bool) -> _Found:
    body = take_back(node, *left_on(node)).body if left_on(node) else {"metadata": {}}
    levers = tuple(body["metadata"].get("annotations") or {})
    if in_charge:
        return _Found(node, levers)
    copied = _copied(node)
    try:
        taints = _TAINTED.decode(raw).spec.taints
    except msgspec.MsgspecError:
        return _Found(node, (*levers, *copied))
    tainted = msgspec.structs.replace(node, spec=NodeSpec(taints=taints))
    return _Found(tainted, (*levers, *copied), tainted.has_taint(RESERVED_TAINT))


def _copied(node: Node) -> tuple[str, ...]:
    there = node.annotations
    ours = there.get(TERMINATION_AT) == there.get(TERMINATION_TIMESTAMP)
    stamp = (TERMINATION_TIMESTAMP,) if ours and TERMINATION_TIMESTAMP in there else ()
    return (*(key for key in _COPIED if key in there), *stamp)


def _written(thing: NodeClaim | NodePool) -> tuple[str, ...]:
    """Our annotations there."""
    if isinstance(thing, NodePool):
        return (PROBE_BESIDE,) if PROBE_BESIDE in thing.annotations else ()
    notes = (*_SINCE, *NOTES)
    found = [*(key for key in notes if key in thing.annotations), *no_trace(thing)]
    if thing.deleting:
        return tuple(found)
    stamped = (TERMINATION_TIMESTAMP,) if is_stamped_by_us(thing) else ()
    return (*found, *stamped, *(key for key in MARKS_BESIDE if key in thing.annotations))


def _body(found: _Found) -> Mapping[str, Any]:
    body = patch(found.thing, {"annotations": dict.fromkeys(found.gone)}).body
    if found.reserved and isinstance(found.thing, Node):
        body = {**body, "spec": untaint_reserved(found.thing).body["spec"]}
    return body


async def _taken(client: Client, found: _Found, *, in_charge: bool) -> Release:
    said, resource, name = _told(found), _resource(found.thing), found.thing.name
    try:
        for _ in range(_TRIES):
            try:
                await client.patch(resource, name, _body(found))
                return said
            except Conflict:
                raw = await client.get(resource, name)
                found = _found(resource, raw, in_charge=in_charge)
                if not found:
                    return said
    except NotFound:
        return said  # It is gone, and the lever with it.
    except TenureError as error:
        return msgspec.structs.replace(said, problem=str(error))
    return msgspec.structs.replace(said, problem="it changed at each of our tries")


def _told(found: _Found) -> Release:
    thing = found.thing
    if not isinstance(thing, Node):
        return Release(_resource(thing).kind, thing.name, ", ".join(found.gone))
    levers = [
        f"{kind.annotation}: {thing.annotations.get(kind.because, '')}, "
        f"until {thing.annotations.get(kind.until, '')}"
        for kind in left_on(thing)
    ]
    copied = [key for key in found.gone if key in _copied(thing)]
    taint = [f"taint {RESERVED_TAINT}"] if found.reserved else []
    return Release(NODES.kind, thing.name, "; ".join((*levers, *copied, *taint)))


def _resource(thing: Thing) -> Resource:
    return next(resource for resource, type_ in _TYPES.items() if isinstance(thing, type_))
