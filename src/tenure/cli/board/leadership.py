"""Which replica acts on the cluster, read from the Leases now and then."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from tenure.cli.cluster.leaders import clock_blockers, leases_in, renewed
from tenure.cli.cluster.read import about_leaders, other_leases
from tenure.cli.cluster.seen import or_note
from tenure.kube.client.client import Client
from tenure.kube.lease.record import held_last_by_tenure
from tenure.model.api.workload import Lease
from tenure.model.settings import Settings
from tenure.ports.clock import Clock
from tenure.sim.cloud.remote import LEADER

PERIOD: Final = timedelta(seconds=10)


class Leadership:
    def __init__(self, client: Client, settings: Settings, clock: Clock, *, embedded: bool) -> None:
        self._client, self._settings, self._clock = client, settings, clock
        self._embedded = embedded
        #: In a few words, and what a reader has to know about it.
        self.leader = ""
        self.notes: tuple[str, ...] = ()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(PERIOD.total_seconds())

    async def look(self) -> None:
        notes: list[str] = []
        leases = await or_note(
            lambda: leases_in(self._client, self._settings.lease_name),
            list[Lease](),
            "which replica acts",
            notes,
        )
        others = await other_leases(self._client, self._settings)
        now = self._clock.now()
        said = about_leaders(leases, others, self._settings, now, self._embedded)
        notes += filter(None, said)
        notes += (str(blocker) for blocker in clock_blockers(leases, now))
        self.leader = LEADER if self._embedded else _holders(leases, self._clock)
        self.notes = tuple(notes)


def _holders(leases: list[Lease], clock: Clock) -> str:
    held = [one for one in leases if renewed(one, clock.now())]
    said = (
        one.spec.holder_identity + ("" if held_last_by_tenure(one) else ", which is not Tenure")
        for one in held
    )
    return " and ".join(said) or "no replica"
