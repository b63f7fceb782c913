"""Takes the levers of a cluster back, unless a replica would set them again."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from tenure.cli.cluster.access import Reached
from tenure.cli.cluster.leaders import leader_of, leases_in, renewed
from tenure.cli.cluster.listing import CannotRead
from tenure.cli.cluster.seen import or_note
from tenure.errors import TenureError
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.kube.client.ratelimit import RateLimit
from tenure.kube.lease.record import held_last_by_tenure
from tenure.model.api.workload import Lease
from tenure.model.settings import BESIDE_LEASE, IN_CHARGE_LEASE, Settings
from tenure.ports.transport import Transport
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.release import Release, release_levers


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    taken: tuple[Release, ...] = ()
    #: The replica that would set the levers again, in words; then nothing was done.
    runs: str = ""
    notes: tuple[str, ...] = ()


def released(reached: Reached, *, dry_run: bool) -> Outcome:
    """Raises ``CannotRead``."""

    async def work() -> Outcome:
        clock = SystemClock()
        credentials = credentials_for(reached.access, clock)
        async with HttpTransport(reached.access, credentials) as transport:
            return await release_over(transport, clock.now(), dry_run=dry_run)

    try:
        return asyncio.run(work())
    except TenureError as error:
        raise CannotRead(f"{reached.access.server}: {error}") from None


async def release_over(transport: Transport, now: datetime, *, dry_run: bool) -> Outcome:
    usual, notes = Settings(), list[str]()
    client = Client(transport, rate_limit=RateLimit(usual.client_qps, usual.client_burst))
    leases = await or_note(
        lambda: leases_in(client, BESIDE_LEASE), list[Lease](), "whether a replica runs", notes
    )
    live = [one for one in leases if renewed(one, now)]
    if live and not dry_run:
        return Outcome(runs=f"a replica runs: {leader_of(live, now)}", notes=tuple(notes))
    if live:
        notes.append(f"nothing is released while a replica runs: {leader_of(live, now)}")
    taken = await release_levers(
        client, dry_run=dry_run, in_charge=await _is_in_charge(client, now, notes)
    )
    return Outcome(taken=tuple(taken), notes=tuple(notes))


async def _is_in_charge(client: Client, now: datetime, notes: list[str]) -> bool:
    """Whether a Tenure is: what it remembers is not touched then. Also where that cannot be read."""
    found = await or_note(
        lambda: leases_in(client, IN_CHARGE_LEASE), None, "whether a Tenure is in charge", notes
    )
    if found is None:
        return True
    return any(held_last_by_tenure(one) and renewed(one, now) for one in found)
