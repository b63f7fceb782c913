"""What stands in a Lease: who holds it, whether that is Tenure, and what we write into it.

Karpenter does not know our annotations and keeps them when it takes the Lease, so the
name in the annotation alone proves nothing. It counts every change of hands, though: the
annotations are those of the last holder only while their count is the Lease's own.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tenure.model.api.meta import format_time
from tenure.model.api.names import LEASE_CLOCK_SKEW, LEASE_IDENTITY, LEASE_TRANSITIONS
from tenure.model.api.resource import LEASES
from tenure.model.api.workload import Lease

SECOND: Final = timedelta(seconds=1)
#: Characters of a skew in seconds; more is not ours.
_SKEW_MAX: Final = 12


def new_identity(environment: Mapping[str, str]) -> str:
    """The pod's or the host's name, and something that no other start of it has."""
    name = environment.get("POD_NAME") or socket.gethostname()
    return f"{name}_{secrets.token_hex(4)}"


def held_last_by_tenure(lease: Lease) -> bool:
    """Whether its holder, or who gave it back last, is a Tenure."""
    identity = lease.annotations.get(LEASE_IDENTITY, "")
    count = lease.annotations.get(LEASE_TRANSITIONS, "")
    return (
        identity != ""
        and lease.spec.holder_identity in ("", identity)
        and count == str(lease.spec.lease_transitions)
    )


def was_never_held(lease: Lease) -> bool:
    spec = lease.spec
    return not (spec.holder_identity or spec.renew_time or spec.lease_transitions)


def validity(lease: Lease, fallback: timedelta) -> timedelta:
    """How long it holds after a renewal, as its holder wrote."""
    seconds = lease.spec.lease_duration_seconds
    return timedelta(seconds=seconds) if seconds else fallback


def who_and_since(lease: Lease) -> str:
    """For people: of a Lease that has a holder."""
    since = lease.spec.acquire_time
    return f"{_who(lease)} since {format_time(since)}" if since else _who(lease)


def who_and_until(lease: Lease) -> str:
    """For people: of a Lease that is not renewed any more, or was given back."""
    until = lease.spec.renew_time
    return f"{_who(lease)} until {format_time(until)}" if until else _who(lease)


def _who(lease: Lease) -> str:
    if held_last_by_tenure(lease):
        return lease.spec.holder_identity
    holder = lease.spec.holder_identity
    return f"{holder}, which is not Tenure," if holder else "something that is not Tenure"


def skew_of(lease: Lease) -> timedelta:
    """By how much the clock of its holder is ahead, if that holds anything; nothing if it does not."""
    text = lease.annotations.get(LEASE_CLOCK_SKEW, "")
    if not held_last_by_tenure(lease) or len(text) > _SKEW_MAX or not text.endswith("s"):
        return timedelta(0)
    try:
        return timedelta(seconds=int(text[:-1]))
    except ValueError:
        return timedelta(0)


def first_record(
    name: str, identity: str, duration: timedelta, now: datetime, skew: timedelta = timedelta(0)
) -> dict[str, Any]:
    """A Lease that is not there yet."""
    skewed = {LEASE_CLOCK_SKEW: _seconds(skew)} if skew else {}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "annotations": {**_mark(identity, 0), **skewed}},
        "spec": _held(identity, duration, now, acquired=now, transitions=0),
    }


def next_record(
    lease: Lease,
    identity: str,
    duration: timedelta,
    now: datetime,
    skew: timedelta = timedelta(0),
) -> dict[str, Any]:
    """A patch of this very version: ours from now on, or still ours."""
    skewed: dict[str, str | None] = {}
    if skew or LEASE_CLOCK_SKEW in lease.annotations:
        skewed = {LEASE_CLOCK_SKEW: _seconds(skew) if skew else None}
    spec = lease.spec
    renewal = spec.holder_identity == identity
    transitions = spec.lease_transitions + (not renewal)
    acquired = spec.acquire_time if renewal and spec.acquire_time else now
    return {
        "metadata": {
            "resourceVersion": lease.metadata.resource_version,
            "annotations": {**_mark(identity, transitions), **skewed},
        },
        "spec": _held(identity, duration, now, acquired=acquired, transitions=transitions),
    }


def given_back(lease: Lease, now: datetime) -> dict[str, Any]:
    """A patch of this very version, without a holder. Others need not wait, whatever they go by."""
    return {
        "metadata": {"resourceVersion": lease.metadata.resource_version},
        "spec": {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": micro_time(now),
            "acquireTime": micro_time(now),
        },
    }


def micro_time(instant: datetime) -> str:
    """As the API wants ``metav1.MicroTime``: six digits, always."""
    return f"{instant.astimezone(UTC).isoformat(timespec='microseconds')[:26]}Z"


def _mark(identity: str, transitions: int) -> dict[str, str]:
    return {LEASE_IDENTITY: identity, LEASE_TRANSITIONS: str(transitions)}


def _seconds(skew: timedelta) -> str:
    return f"{round(skew / SECOND):+d}s"


def _held(
    identity: str, duration: timedelta, now: datetime, *, acquired: datetime, transitions: int
) -> dict[str, Any]:
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": -(
            -duration // SECOND
        ),  # Rounded up: no replica may take it too soon.
        "acquireTime": micro_time(acquired),
        "renewTime": micro_time(now),
        "leaseTransitions": transitions,
    }
