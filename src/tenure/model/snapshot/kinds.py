"""Which type each kind decodes to, and how one bad object is kept from stopping its kind."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar

import msgspec

from tenure.model.api import resource as r
from tenure.model.api.deployment import CustomResourceDefinition, Deployment
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import (
    CsiNode,
    DaemonSet,
    Event,
    Lease,
    LimitRange,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    StorageClass,
    VolumeAttachment,
)
from tenure.model.snapshot.alike import Alike
from tenure.model.snapshot.unreadable import (
    Unreadable,
    placed,
    problem_and_field,
    salvaged,
    stand_in,
)
from tenure.model.values.calendar import within_calendar, without_odd_generations
from tenure.parse.jsontext import DECODE_ERRORS

TYPES: Final[dict[r.Resource, type[ApiObject]]] = {
    r.PODS: Pod,
    r.NODES: Node,
    r.NAMESPACES: Namespace,
    r.DAEMON_SETS: DaemonSet,
    r.DEPLOYMENTS: Deployment,
    r.CRDS: CustomResourceDefinition,
    r.LIMIT_RANGES: LimitRange,
    r.POD_DISRUPTION_BUDGETS: PodDisruptionBudget,
    r.VOLUME_ATTACHMENTS: VolumeAttachment,
    r.PERSISTENT_VOLUMES: PersistentVolume,
    r.PERSISTENT_VOLUME_CLAIMS: PersistentVolumeClaim,
    r.STORAGE_CLASSES: StorageClass,
    r.CSI_NODES: CsiNode,
    r.PRIORITY_CLASSES: PriorityClass,
    r.LEASES: Lease,
    r.EVENTS: Event,
    r.NODE_POOLS: NodePool,
    r.NODE_CLAIMS: NodeClaim,
    r.MAINTENANCE_WINDOWS: MaintenanceWindow,
    r.NODE_POOL_POLICIES: NodePoolPolicy,
}

T = TypeVar("T")

__all__ = ["TYPES", "Unreadable", "WatchEvent", "decode", "decode_event", "decode_list", "type_for"]


def type_for(resource: r.Resource) -> type[ApiObject]:
    """A kind that is not in the table is the node class of a provider."""
    return TYPES.get(resource, NodeClass)


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One line of a watch."""

    type: str
    object: T


_DECODERS: Final = {res: msgspec.json.Decoder(type_) for res, type_ in TYPES.items()}
_NODE_CLASS: Final[msgspec.json.Decoder[ApiObject]] = msgspec.json.Decoder(NodeClass)

_EVENTS: Final[dict[r.Resource, msgspec.json.Decoder[WatchEvent[ApiObject]]]] = {
    # Built at run time from the table above, which no checker can follow.
    res: msgspec.json.Decoder(WatchEvent[type_])  # type: ignore[valid-type]
    for res, type_ in TYPES.items()
}
_NODE_CLASS_EVENT: Final[msgspec.json.Decoder[WatchEvent[ApiObject]]] = msgspec.json.Decoder(
    WatchEvent[NodeClass]
)
_RAW_EVENT: Final = msgspec.json.Decoder(WatchEvent[msgspec.Raw])
#: Types of lines that are not about an object of the kind: bookmarks and errors.
_ABOUT_THE_WATCH: Final = (b'{"type":"BOOKMARK"', b'{"type":"ERROR"')


def decode(resource: r.Resource, data: bytes | msgspec.Raw) -> ApiObject:
    """The typed object, or a stand-in for it that says what is wrong (``Unreadable``)."""
    try:
        return _DECODERS.get(resource, _NODE_CLASS).decode(data)
    except DECODE_ERRORS as error:
        return _decode_patiently(resource, data, error)


def _decode_patiently(
    resource: r.Resource, data: bytes | msgspec.Raw, first: Exception
) -> ApiObject:
    """Instants that our calendar does not have are moved to its ends; what else is wrong counts.

    Not those of a Lease: its holder is not to be guessed.
    """
    type_ = type_for(resource)
    try:
        if resource != r.LEASES:
            return msgspec.convert(_nearest(msgspec.json.decode(data)), type_)
        raise first
    except DECODE_ERRORS as error:
        # Where not even the JSON can be read, the first error says more.
        known = isinstance(error, msgspec.ValidationError)
        problem, field = problem_and_field(str(error if known else first))
    try:
        raw = _nearest(msgspec.json.decode(data))
    except DECODE_ERRORS:
        raw = {"metadata": _name_in(data), "spec": None}
    known_of_it = salvaged(type_, placed(resource, raw))
    known_of_it = msgspec.structs.replace(known_of_it, kind=resource.kind)
    return stand_in(known_of_it, problem, field=field)


def _nearest(raw: Any) -> Any:
    return without_odd_generations(within_calendar(raw))


def decode_event(
    resource: r.Resource, line: bytes
) -> WatchEvent[ApiObject] | WatchEvent[msgspec.Raw]:
    """A line of a watch, its object typed; raw where it is a bookmark or an error."""
    if not line.startswith(_ABOUT_THE_WATCH):
        try:
            event = _EVENTS.get(resource, _NODE_CLASS_EVENT).decode(line)
        except DECODE_ERRORS:
            pass  # Looked at again, more patiently.
        else:
            if event.type in ("ADDED", "MODIFIED", "DELETED"):
                return event
    raw = _RAW_EVENT.decode(line)
    if raw.type in ("BOOKMARK", "ERROR"):
        return raw
    return WatchEvent(raw.type, decode(resource, raw.object))


def decode_list(resource: r.Resource, items: Iterable[bytes | msgspec.Raw]) -> list[ApiObject]:
    """Each item for itself. The garbage collector rests meanwhile: nearly all of it stays,
    and walking it again and again takes as long as decoding 10,000 pods."""
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        found = [decode(resource, item) for item in items]
        alike = Alike()
        for one in found:
            if type(one) is Pod:
                alike.share(one)
        return found
    finally:
        if was_at_work:
            gc.enable()


class _OnlyName(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _OnlyIdentity(msgspec.Struct, frozen=True):
    metadata: _OnlyName = _OnlyName()


def _name_in(data: bytes | msgspec.Raw) -> dict[str, str]:
    """The identity of an object that cannot be read as a whole; empty where it has none."""
    try:
        found = msgspec.json.decode(data, type=_OnlyIdentity).metadata
    except DECODE_ERRORS:
        return {}
    return {"name": found.name, "namespace": found.namespace, "uid": found.uid}
