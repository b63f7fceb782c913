"""The leader's Lease: one replica acts, the others wait, and nobody acts beside Karpenter.

Every round lists the Leases of our name in all namespaces, then writes our own. In the
order in which the rules bite, a round ends with "not now" when

1. a Lease of that name in another namespace is being renewed: somebody else is at work;
2. our Lease is being renewed by another;
3. our Lease was last held by something that is not Tenure, and we were not told to take
   over. Karpenter may be about to come back;
4. the API server does not let us write it: somebody was faster, or it cannot be reached.

Otherwise the Lease is ours, and the fence open until ``lease_renew_deadline`` after the
moment *before* the write left: the others count from a later one, and for longer. A Lease
that we had to make may have been deleted under somebody who does not know yet, and who
acts until he does: we hold it for ``lease_duration`` before we act.
Holding it means to come back every ``lease_retry``. As soon as a round says "not now", or
the fence closes by itself, the work is cancelled and the waiting begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Final

from tenure.errors import AlreadyExists, Conflict, SpecError, TenureError, Unavailable
from tenure.kube.client import ANSWER_MAX, Client
from tenure.kube.fence import LeaseFence, Steady, boottime
from tenure.kube.leaserecord import (
    first_record,
    given_back,
    held_last_by_tenure,
    next_record,
    was_never_held,
    who_and_since,
    who_and_until,
)
from tenure.kube.sightings import Sightings
from tenure.kube.standing import Bulletin, LeaseState, Standing
from tenure.model.kinds import decode
from tenure.model.meta import format_time
from tenure.model.resource import LEASES
from tenure.model.settings import Settings
from tenure.model.workload import Lease
from tenure.ports.clock import Clock

#: Share by which a pause varies, so that replicas do not always ask together.
JITTER: Final = 0.2

#: Karpenter goes by its own setting, not by the duration that stands in the Lease.
PEERS_DURATION: Final = timedelta(seconds=15)


class Elector:
    def __init__(
        self,
        *,
        client: Client,
        clock: Clock,
        settings: Settings,
        identity: str,
        take_over: bool = False,
        say: Callable[[str], None] = lambda _: None,
        steady: Steady = boottime,
        random: Random | None = None,
    ) -> None:
        """``client`` goes through a transport without a fence and keeps no pace."""
        _check(settings)
        self._client = client
        self._clock = clock
        self._settings = settings
        self.identity = identity
        self._take_over = take_over or settings.take_over
        self._steady = steady
        self._random = random or Random(identity)
        self._sightings = Sightings(settings.lease_duration)
        self._key = f"{settings.lease_namespace}/{settings.lease_name}"
        #: On the steady clock: nobody acts any more under a Lease that ours replaced.
        self._act_from = 0.0
        #: Whether we ever wrote it; else there is nothing to give back, and nobody to ask.
        self._may_be_ours = False
        self.fence = LeaseFence(steady)
        first = f"waiting: the Lease {self._key} was not read yet"
        self._bulletin = Bulletin(clock, say, first)

    @property
    def state(self) -> LeaseState:
        return self._bulletin.state

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run ``lead`` whenever the Lease is ours, until it returns or raises.

        Cancel it for a clean stop, and then ``release``.
        """
        while True:
            while not await self._tried(self._acquire):
                await asyncio.sleep(self._pause())
            if await self._leads(lead):
                return

    async def release(self) -> None:
        """Give the Lease back, if it is ours, so that the next one need not wait."""
        self.fence.close("this replica has stopped")
        if self._may_be_ours:
            await self._let_go()

    # -- holding it --------------------------------------------------------------------

    async def _leads(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Work for as long as the Lease is ours; whether the work came to its own end."""
        work = asyncio.ensure_future(_awaited(lead))
        try:
            await self._hold(work)
            ended = work.done()
        finally:
            self.fence.close(self.fence.closed() or f"the Lease {self._key} is not held")
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if ended or self.state.standing is Standing.HELD_BACK:
            await self._let_go()
        if ended:
            work.result()  # Raises what ended it.
        return ended

    async def _hold(self, work: asyncio.Task[None]) -> None:
        """Renew until the work is done, or the Lease is lost."""
        while True:
            await asyncio.wait({work}, timeout=self._pause())
            left = self.fence.time_left().total_seconds()
            if work.done():
                return
            if left <= 0 or not await self._tried(self._renew, within=left):
                break
        if self.state.standing is Standing.LEADING:
            sentence = f"stopped: {self.fence.closed()}, which is too long ago"
            self._bulletin.post(Standing.WAITING, sentence)

    async def _tried(
        self, attempt: Callable[[], Awaitable[bool]], within: float | None = None
    ) -> bool:
        """Whether we may act after the attempt. One that fails changes nothing by itself."""
        try:
            async with asyncio.timeout(within):
                return await attempt()
        except (Conflict, AlreadyExists):
            pass  # Somebody was faster: the next look shows who.
        except TimeoutError:
            self._bulletin.add(f"the Lease {self._key} is out of reach: no answer in time")
        except TenureError as error:
            self._bulletin.add(f"the Lease {self._key} is out of reach: {error}")
        return not self.fence.closed()

    # -- one round ---------------------------------------------------------------------

    async def _acquire(self) -> bool:
        if not await self._may_write():
            await self._give_back()
            return False
        self._prepare()
        until = await self._write()
        if self._steady() < self._act_from:
            self._say_why_not_yet()
            return False
        # Whoever acquires in another namespace at this moment sees ours, or we see theirs.
        if not await self._may_write():
            await self._give_back()
            return False
        self._open(until)
        return True

    def _prepare(self) -> None:
        """Before we make the Lease: an answer that is lost must not shorten the wait."""
        own = self._sightings.find(self._settings.lease_namespace)
        if own is None or own.gone:
            self._act_from = self._steady() + self._settings.lease_duration.total_seconds()
        elif own.lease.spec.holder_identity != self.identity:
            self._act_from = 0.0

    async def _renew(self) -> bool:
        if not await self._may_write():
            self.fence.close(self.state.sentence)
            return False
        self._open(await self._write())
        return True

    async def _may_write(self) -> bool:
        """Look, and say why not if we may not."""
        asked_at = self._steady()
        self._sightings.note(await self._listed(), self._steady())
        namespace = self._settings.lease_namespace
        for other in self._sightings.renewed_outside(namespace, asked_at):
            self._hold_back(f"the Lease {other.key} is held by {who_and_since(other)}")
            return False
        own = self._sightings.find(namespace)
        if own is None or own.lease.spec.holder_identity == self.identity:
            return True
        if self._sightings.is_renewed(own, asked_at):
            self._leave_it_to(own.lease)
            return False
        if self._take_over or held_last_by_tenure(own.lease) or was_never_held(own.lease):
            return True
        self._hold_back(
            f"the Lease {self._key} was last held by {who_and_until(own.lease)}; "
            "when that is gone for good, start with --take-over"
        )
        return False

    async def _listed(self) -> list[Lease]:
        selector = f"metadata.name={self._settings.lease_name}"
        try:
            async with asyncio.timeout(ANSWER_MAX.total_seconds()):
                raw, _ = await self._client.list_all(LEASES, field_selector=selector)
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

    async def _write(self) -> float:
        """Make it ours, or keep it so; until when, on the steady clock."""
        settings, now = self._settings, self._clock.now()
        own = self._sightings.find(settings.lease_namespace)
        until = self._steady() + settings.lease_renew_deadline.total_seconds()
        name, duration = settings.lease_name, settings.lease_duration
        self._may_be_ours = True
        if own is None or own.gone:
            body = first_record(name, self.identity, duration, now)
            await self._client.create(LEASES, body, settings.lease_namespace)
        else:
            body = next_record(own.lease, self.identity, duration, now)
            await self._client.patch(LEASES, name, body, namespace=settings.lease_namespace)
        return until

    async def _let_go(self) -> None:
        try:
            self._sightings.note(await self._listed(), self._steady())
            await self._give_back()
        except TenureError as error:
            self._bulletin.add(f"the Lease {self._key} was not given back: {error}")

    async def _give_back(self) -> None:
        """If it was ours when we looked last."""
        namespace = self._settings.lease_namespace
        own = self._sightings.find(namespace)
        if own is not None and not own.gone and own.lease.spec.holder_identity == self.identity:
            body = given_back(own.lease, self._clock.now())
            await self._client.patch(LEASES, own.lease.name, body, namespace=namespace)

    # -- what we say -------------------------------------------------------------------

    def _open(self, until: float) -> None:
        now, state = self._clock.now(), self.state
        since = state.since if state.standing is Standing.LEADING else now
        self.fence.open_until(until, now)
        sentence = f"leading: the Lease {self._key} is ours since {format_time(since)}"
        self._bulletin.post(Standing.LEADING, sentence, self.identity)

    def _say_why_not_yet(self) -> None:
        wait = timedelta(seconds=self._act_from - self._steady())
        act_from = format_time(self._clock.now() + wait)
        self._bulletin.post(
            Standing.WAITING,
            f"waiting: there was no Lease {self._key}; whoever acts under one that was deleted "
            f"has until {act_from} to find out",
            self.identity,
        )

    def _leave_it_to(self, lease: Lease) -> None:
        held = f"the Lease {self._key} is held by {who_and_since(lease)}"
        if held_last_by_tenure(lease):
            holder = lease.spec.holder_identity
            self._bulletin.post(Standing.WAITING, f"waiting: {held}", holder)
        else:
            self._hold_back(held)

    def _hold_back(self, why: str) -> None:
        own = self._sightings.find(self._settings.lease_namespace)
        holder = own.lease.spec.holder_identity if own is not None else ""
        self._bulletin.post(Standing.HELD_BACK, f"not acting: {why}", holder)

    def _pause(self) -> float:
        retry = self._settings.lease_retry.total_seconds()
        return retry * (1 - JITTER / 2 + JITTER * self._random.random())


async def _awaited(lead: Callable[[], Awaitable[None]]) -> None:
    await lead()


def _check(settings: Settings) -> None:
    """What the arithmetic of the fence rests on."""
    deadline, duration = settings.lease_renew_deadline, settings.lease_duration
    if settings.lease_name == Settings().lease_name and deadline + ANSWER_MAX > PEERS_DURATION:
        raise SpecError(
            "lease_renew_deadline",
            f"{deadline.total_seconds():g}s",
            f"at most {(PEERS_DURATION - ANSWER_MAX).total_seconds():g}s for Karpenter's Lease, "
            "which Karpenter takes when it was not renewed for "
            f"{PEERS_DURATION.total_seconds():g}s, whatever stands in it",
        )
    if deadline + ANSWER_MAX > duration:
        raise SpecError(
            "lease_renew_deadline",
            f"{deadline.total_seconds():g}s",
            f"at least {ANSWER_MAX.total_seconds():g}s less than lease_duration, "
            f"which is {duration.total_seconds():g}s",
        )
    if settings.lease_retry * (1 + JITTER) >= deadline:
        raise SpecError(
            "lease_retry",
            f"{settings.lease_retry.total_seconds():g}s",
            f"well below lease_renew_deadline, which is {deadline.total_seconds():g}s",
        )
