"""What every Kubernetes object has: metadata, owner references, conditions.

These types mirror the wire (camel-case names, optional fields with the API's own
zero values) and hold only what we read. They are lenient on purpose: an object that
an older schema let in must still decode; what is *valid* is said in ``tenure.schema``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything decoded from the API. Unknown fields are skipped while decoding."""


class AbsentMap(dict[str, str]):
    """An empty map that was not written. Karpenter's hash tells it from ``{}``."""


class AbsentList(tuple[Any, ...]):
    """An empty list that was not written. Karpenter's hash tells it from ``[]``."""

    __slots__ = ()


#: An instant without a zone is none: it cannot be compared with others. See ``calendar``.
Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class OwnerReference(Wire, frozen=True, kw_only=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Condition(Wire, frozen=True, kw_only=True, gc=False):
    """A status condition. We write only those of our own kinds, so all their fields are here.

    Heartbeats of nodes and probe times of pods are left out on purpose: nothing depends on
    them, and a heartbeat must not look like a change.
    """

    type: str = ""
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None
    observed_generation: int | None = None


class ApiObject(Wire, frozen=True, kw_only=True):
    """An object as the API lists it. ``kind`` may be empty: items of a list have none."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def created_at(self) -> datetime:
        """The creation instant; the beginning of time for an object that has none yet."""
        return self.metadata.creation_timestamp or BEGINNING

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
#: No calendar goes further, in either direction.
FOR_EVER = datetime.max.replace(tzinfo=UTC)
LONG_AGO = datetime.min.replace(tzinfo=UTC)

#: Go counts a span in nanoseconds, in a signed 64-bit integer that wraps around.
_GO_SPANS: Final = 1 << 64


# All arithmetic with instants is in these few functions, and saturates: an object may carry any
# instant and any number of seconds, and no overflow may become an action. ``tests/test_arithmetic``
# keeps it out of every other place.


#: Of an instant, with more digits and blanks than one needs.
_INSTANT_LENGTH = 64


def later(instant: datetime, span: timedelta) -> datetime:
    """So much later, for instants and spans that users write, whatever they are."""
    try:
        return instant + span
    except OverflowError:
        return FOR_EVER if span > timedelta() else LONG_AGO


def earlier(instant: datetime, span: timedelta) -> datetime:
    """So much earlier; the beginning of all calendars where that is before it."""
    try:
        return instant - span
    except OverflowError:
        return LONG_AGO if span > timedelta() else FOR_EVER


def seconds_of(count: int) -> timedelta:
    """That many seconds, at most as many as there are."""
    try:
        return timedelta(seconds=count)
    except OverflowError:
        return timedelta.max if count > 0 else timedelta.min


def wrapped_seconds_of(count: int) -> timedelta:
    """That many seconds as the API server adds them to an instant: beyond 292 years Go wraps."""
    nanoseconds = (count * 10**9 + _GO_SPANS // 2) % _GO_SPANS - _GO_SPANS // 2
    return timedelta(microseconds=nanoseconds // 1000)


def read_instant(text: str) -> datetime | None:
    """An instant that says in which zone, as users write it; None for anything else."""
    if len(text) > _INSTANT_LENGTH:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return in_utc(instant) if instant.tzinfo is not None else None


def in_utc(instant: datetime) -> datetime:
    """The same instant; the nearest that UTC has for one that lies beyond its calendar."""
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return FOR_EVER if instant.year > BEGINNING.year else LONG_AGO


def find_condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if the object has one."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def condition_status(conditions: tuple[Condition, ...], type_: str) -> str:
    """``True``, ``False`` or ``Unknown``; a condition that is absent is ``Unknown``."""
    condition = find_condition(conditions, type_)
    return condition.status if condition else "Unknown"


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages this object, if any."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None


@lru_cache(256)  # One instant is written many times: by every object that changes at it.
def format_time(instant: datetime) -> str:
    """RFC 3339 with whole seconds, as the API server writes ``metav1.Time``."""
    if instant.tzinfo is not UTC:
        instant = in_utc(instant)
    return f"{instant.isoformat(timespec='seconds')[:19]}Z"
