"""Reads and writes the Lease, and remembers what was seen of it and of those of its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from tenure.errors import Conflict, Unavailable
from tenure.kube.client.client import ANSWER_MAX, Client
from tenure.kube.client.fence import Steady
from tenure.kube.lease.record import first_record, given_back, next_record
from tenure.kube.lease.renewals import Sighting, Sightings
from tenure.model.api.resource import LEASES
from tenure.model.api.workload import Lease
from tenure.model.settings import Settings
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.ports.clock import Clock

#: How often it is given back, if another client writes to it in between.
GIVE_BACK_TRIES: Final = 3


async def list_leases(client: Client, name: str) -> list[Lease]:
    """Of that name, in every namespace."""
    try:
        async with asyncio.timeout(ANSWER_MAX.total_seconds()):
            raw, _ = await client.list_all(LEASES, field_selector=f"metadata.name={name}")
    except TimeoutError as error:
        seconds = ANSWER_MAX.total_seconds()
        raise Unavailable(f"no list of Leases within {seconds:g} s") from error
    leases = []
    for item in raw:
        lease = decode(LEASES, item)
        if not isinstance(lease, Lease):
            raise Unavailable(f"the Lease {lease.key} cannot be read")
        leases.append(lease)
    return leases


class LeaseBook:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: Settings,
        identity: str,
        steady: Steady,
        skew: Callable[[], timedelta],
    ) -> None:
        self._client = client
        self._skew = skew
        self._clock = clock
        self._settings = settings
        self._identity = identity
        self._steady = steady
        self._namespace = settings.lease_namespace
        self.key = f"{settings.lease_namespace}/{settings.lease_name}"
        self.sightings = Sightings(settings.lease_duration)
        #: Whether we ever wrote it; else there is nothing to give back, and no need to ask.
        self.may_be_ours = False
        self.has_looked = False

    @property
    def own(self) -> Sighting | None:
        """The Lease of our namespace, as it was seen last."""
        return self.sightings.find(self._namespace)

    async def look(self) -> float:
        """All of that name, in every namespace; when we asked, on the steady clock."""
        asked_at = self._steady()
        leases = await self._listed()
        self.sightings.note(leases, self._steady())
        self.has_looked = True
        return asked_at

    async def _listed(self) -> list[Lease]:
        leases = await list_leases(self._client, self._settings.lease_name)
        for lease in leases:
            if is_unreadable(lease) and lease.namespace == self._namespace:
                raise Unavailable(f"the Lease {lease.key} cannot be read")
        return leases

    async def write(self) -> float:
        """Make it ours, or keep it so; until when, on the steady clock."""
        settings, now, own = self._settings, self._clock.now(), self.own
        until = self._steady() + settings.lease_renew_deadline.total_seconds()
        name, duration = settings.lease_name, settings.lease_duration
        self.may_be_ours = True
        if own is None or own.gone:
            body = first_record(name, self._identity, duration, now, self._skew())
            await self._client.create(LEASES, body, self._namespace)
        else:
            body = next_record(own.lease, self._identity, duration, now, self._skew())
            await self._client.patch(LEASES, name, body, namespace=self._namespace)
        return until

    async def give_back(self) -> None:
        """If it was ours when we looked last."""
        own = self.own
        if own is not None and not own.gone and own.lease.spec.holder_identity == self._identity:
            body = given_back(own.lease, self._clock.now())
            await self._client.patch(LEASES, own.lease.name, body, namespace=self._namespace)

    async def let_go(self) -> None:
        """Read it and give it back, even if others write to it meanwhile. Takes two calls' time at most."""
        if not self.may_be_ours:
            return
        try:
            async with asyncio.timeout(2 * ANSWER_MAX.total_seconds()):
                for tries_left in reversed(range(GIVE_BACK_TRIES)):
                    await self.look()
                    try:
                        await self.give_back()
                    except Conflict:
                        if not tries_left:
                            raise
                    else:
                        return
        except TimeoutError as error:
            raise Unavailable("no answer in time") from error
