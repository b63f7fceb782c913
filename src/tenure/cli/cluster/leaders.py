"""Which replica acts on a cluster, by what its Leases say; only their holders know whether that is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from tenure.cli.cluster.evaluated import ClockBlocker
from tenure.core.decision import Subject
from tenure.kube.client.client import Client
from tenure.kube.client.servertime import in_words
from tenure.kube.lease.record import held_last_by_tenure, skew_of
from tenure.model.api.meta import format_time, later
from tenure.model.api.resource import LEASES
from tenure.model.api.workload import Lease
from tenure.model.snapshot.kinds import decode


async def leases_in(client: Client, name: str) -> list[Lease]:
    """Sorted; there may be one in several namespaces."""
    raw, _ = await client.list_all(LEASES, field_selector=f"metadata.name={name}")
    found = [decode(LEASES, item) for item in raw]
    return sorted((one for one in found if isinstance(one, Lease)), key=lambda one: one.key)


def leader_of(leases: Sequence[Lease], now: datetime) -> str:
    """In words."""
    said = []
    for lease in leases:
        holder, renewed = lease.spec.holder_identity, lease.spec.renew_time
        if not holder or renewed is None:
            continue
        old = "" if _is_renewed(lease, now) else "; that is too long ago to count"
        who = holder if held_last_by_tenure(lease) else f"{holder}, which is not Tenure"
        said.append(f"{who} (Lease {lease.key}, renewed at {format_time(renewed)}{old})")
    return " and ".join(said) or "none: no replica holds the Lease"


def in_place_of(leases: Sequence[Lease], now: datetime) -> str:
    """What a user who looks has to know where another program acts; empty where none does."""
    others = [one for one in leases if renewed(one, now) and not held_last_by_tenure(one)]
    if not others:
        return ""
    return (
        f"{others[0].spec.holder_identity}, which is not Tenure, is in charge of nodes: this is what Tenure "
        "would do in its place. Where that is Karpenter, --beside-karpenter says what Tenure would do beside it"
    )


def second_tenure(in_charge: Sequence[Lease], beside: Sequence[Lease], now: datetime) -> str:
    """Where a Tenure is in charge and another runs beside Karpenter; empty where at most one does."""
    held = [
        next((one for one in leases if renewed(one, now) and held_last_by_tenure(one)), None)
        for leases in (in_charge, beside)
    ]
    if held[0] is None or held[1] is None:
        return ""
    acts, waits = held[0], held[1]
    return (
        f"two Tenures run on this cluster: {acts.spec.holder_identity} (Lease {acts.key}) is in charge, and "
        f"{waits.spec.holder_identity} (Lease {waits.key}) beside Karpenter does not act; stop one of them"
    )


def no_karpenter(in_charge: Sequence[Lease], now: datetime) -> str:
    """What a user has to know who looks at what Tenure would do beside Karpenter; empty where that is as it is."""
    for one in in_charge:
        if renewed(one, now) and held_last_by_tenure(one):
            return (
                f"{one.spec.holder_identity} (Lease {one.key}), a Tenure, is in charge of this cluster: a Tenure "
                "beside Karpenter would not act here. Without --beside-karpenter you see what the one in charge does"
            )
    return ""


def clock_blockers(leases: Sequence[Lease], now: datetime) -> Iterator[ClockBlocker]:
    """Of replicas that hold a Lease, and take nothing away because of their clock."""
    for lease in leases:
        holder, skew = lease.spec.holder_identity, skew_of(lease)
        if holder and skew and _is_renewed(lease, now):
            off = in_words(skew, f"replica {holder}")
            yield ClockBlocker(off, Subject.of(LEASES.kind, lease))


def namespaces_of_tenure(leases: Sequence[Lease]) -> list[str]:
    return [lease.namespace for lease in leases if held_last_by_tenure(lease)]


def renewed(lease: Lease, now: datetime) -> bool:
    """Whether a replica has it."""
    return bool(lease.spec.holder_identity) and _is_renewed(lease, now)


def _is_renewed(lease: Lease, now: datetime) -> bool:
    """By what it says. A holder whose clock is wrong says by how much."""
    renewed = lease.spec.renew_time
    seconds = timedelta(seconds=lease.spec.lease_duration_seconds or 0)
    return renewed is not None and later(renewed, seconds) >= later(now, skew_of(lease))
