"""The leader's Lease: one replica acts, the others wait, and none acts beside Karpenter.

Every round lists the Leases of our name in all namespaces, then writes our own. In the
order in which the rules bite, a round ends with "not now" when

1. a Lease of that name in another namespace is being renewed, or changes and cannot be read:
   another program is at work;
2. our Lease is being renewed by another;
3. our Lease was last held by something that is not Tenure, and we were not told to take
   over. Karpenter may be about to come back;
4. the API server does not let us write it: another replica was faster, or it cannot be reached;
5. we are beside Karpenter, and a Tenure is in charge (``secondtenure``). We keep the Lease, by which that
   one knows of us, and do not act.

Otherwise the Lease is ours, and the fence open until ``lease_renew_deadline`` after the
moment *before* the write left: the others count from a later one, and for longer. A Lease
that we had to make may have been deleted under a holder that does not know yet, and
acts until it does: we hold it for ``lease_duration`` before we act.
Holding it means to come back every ``lease_retry``, however busy the work is, but only while it
makes progress. As soon as a round says "not now", the fence closes by itself, or the work is
stuck, the work is cancelled and the waiting begins anew; after stuck work the Lease is given back,
and left to others for ``lease_duration``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Final

from tenure.errors import AlreadyExists, Conflict, TenureError
from tenure.kube.client.client import Client
from tenure.kube.client.fence import LeaseFence, Steady, boottime
from tenure.kube.lease.record import (
    held_last_by_tenure,
    was_never_held,
    who_and_since,
    who_and_until,
)
from tenure.kube.lease.secondtenure import SecondTenure
from tenure.kube.lease.status import Bulletin, LeaseRole, LeaseState
from tenure.kube.lease.store import LeaseBook
from tenure.kube.lease.times import JITTER, check_times
from tenure.model.api.meta import format_time
from tenure.model.api.names import LEASE_IDENTITY
from tenure.model.api.workload import Lease
from tenure.model.settings import Settings
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.ports.clock import Clock

#: How long the work of a term may take to end once the term is over; its calls take 5 s at most.
END_MAX: Final = timedelta(seconds=30)


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
        warn: Callable[[str], None] | None = None,
        steady: Steady = boottime,
        random: Random | None = None,
        loop_speed: float = 1.0,
        stuck: Callable[[], str] = lambda: "",
        clock_skew: Callable[[], timedelta] = lambda: timedelta(0),
        in_charge: SecondTenure | None = None,
    ) -> None:
        """``client`` goes through a transport without a fence and keeps no pace.

        ``warn`` hears what an operator may have to mend; without it ``say`` does. ``loop_speed``:
        seconds of the event loop per second of the steady clock. ``stuck`` says why the work makes
        no progress; nothing while it does. ``clock_skew`` says by how much our clock is ahead, while
        that holds anything: it is written on the Lease, where ``tenure explain`` reads it. ``in_charge``:
        beside Karpenter, the Tenure that may be in charge.
        """
        self._stuck = stuck
        self._in_charge = in_charge
        check_times(settings)
        self._clock = clock
        self._settings = settings
        self.identity = identity
        self._take_over = take_over or settings.take_over
        self._steady = steady
        self._random = random or Random(identity)
        self._loop_speed = loop_speed
        self._book = LeaseBook(client, clock, settings, identity, steady, clock_skew)
        self._key = self._book.key
        #: On the monotonic clock: from then on no replica acts under a Lease that ours replaced.
        self._act_from = 0.0
        self._act_from_in_words = ""
        #: Whether the last term ended because the work was stuck.
        self._gave_up = False
        self.fence = LeaseFence(steady)
        first = f"waiting: the Lease {self._key} was not read yet"
        self._bulletin = Bulletin(clock, say, warn or say, first)

    @property
    def state(self) -> LeaseState:
        return self._bulletin.state

    @property
    def has_looked(self) -> bool:
        """Whether the Leases could be read at least once."""
        return self._book.has_looked

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run ``lead`` whenever the Lease is ours, until it returns or raises.

        Cancel it for a clean stop, and then ``release``.
        """
        while True:
            while not await self._tried(self._acquire):
                await asyncio.sleep(self._pause())
            if await self._leads(lead):
                return
            if self._gave_up:
                await asyncio.sleep(self._settings.lease_duration.total_seconds())

    async def release(self) -> None:
        """Give the Lease back, if it is ours, so that the next one need not wait.

        One that we made and may not act under yet is left to run out: the next one has to wait,
        too, as the holder of the one that was deleted does not know yet.
        """
        self.fence.close("this replica has stopped")
        if self._steady() >= self._act_from:
            await self._let_go()

    # -- holding it --------------------------------------------------------------------

    async def _leads(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Work for as long as the Lease is ours; whether the work came to its own end."""
        self._gave_up = False
        work = asyncio.ensure_future(_awaited(lead))
        try:
            await self._hold(work)
            ended = work.done()
        finally:
            self.fence.close(self.fence.closed() or f"the Lease {self._key} is not held")
            await _cancelled(work)
        if ended or self._gave_up or self.state.role is LeaseRole.HELD_BACK:
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
            if why := self._stuck():
                self._gave_up = True
                sentence = f"stopped: {why}; the Lease {self._key} is given back"
                self._bulletin.post(LeaseRole.WAITING, sentence, trouble=True)
                return
            if left <= 0 or not await self._tried(self._renew, within=left):
                break
        if self.state.role is LeaseRole.LEADING:
            sentence = f"stopped: {self.fence.closed()}, which is too long ago"
            self._bulletin.post(LeaseRole.WAITING, sentence, trouble=True)

    async def _tried(
        self, attempt: Callable[[], Awaitable[bool]], within: float | None = None
    ) -> bool:
        """Whether we may act after the attempt. One that fails changes nothing by itself."""
        try:
            async with asyncio.timeout(within):
                return await attempt()
        except (Conflict, AlreadyExists):
            pass  # Another replica was faster: the next read shows which.
        except TimeoutError:
            self._bulletin.add_trouble(f"the Lease {self._key} is out of reach: no answer in time")
        except TenureError as error:
            self._bulletin.add_trouble(f"the Lease {self._key} is out of reach: {error}")
        return not self.fence.closed()

    # -- one round ---------------------------------------------------------------------

    async def _acquire(self) -> bool:
        if not await self._may_write():
            await self._book.give_back()
            return False
        self._prepare()
        until = await self._book.write()
        if not await self._is_alone():
            return False
        if self._steady() < self._act_from:
            self._say_why_not_yet()
            return False
        # A replica that acquires in another namespace at this moment sees ours, or we see theirs.
        if not await self._may_write():
            await self._book.give_back()
            return False
        self._open(until)
        return True

    def _prepare(self) -> None:
        """Before we make the Lease: an answer that is lost must not shorten the wait."""
        own = self._book.own
        if own is None or own.gone:
            wait = self._settings.lease_duration
            self._act_from = self._steady() + wait.total_seconds()
            self._act_from_in_words = format_time(self._clock.now() + wait)
        elif own.lease.annotations.get(LEASE_IDENTITY) != self.identity:
            self._act_from = 0.0  # Another had it since: it is not the one that we made.

    async def _renew(self) -> bool:
        if not await self._may_write():
            self.fence.close(self.state.sentence)
            return False
        until = await self._book.write()
        if not await self._is_alone():
            self.fence.close(self.state.sentence)
            return False
        self._open(until)
        return True

    async def _may_write(self) -> bool:
        """Look, and say why not if we may not."""
        asked_at = await self._book.look()
        sightings, own = self._book.sightings, self._book.own
        for other in sightings.renewed_outside(self._settings.lease_namespace, asked_at):
            how = "cannot be read" if is_unreadable(other) else f"is held by {who_and_since(other)}"
            self._hold_back(f"the Lease {other.key} {how}")
            return False
        if own is None or own.lease.spec.holder_identity == self.identity:
            return True
        if sightings.is_renewed(own, asked_at):
            self._leave_it_to(own.lease)
            return False
        if self._take_over or held_last_by_tenure(own.lease) or was_never_held(own.lease):
            return True
        self._hold_back(
            f"the Lease {self._key} was last held by {who_and_until(own.lease)}; "
            "when that is gone for good, start with --take-over"
        )
        return False

    async def _is_alone(self) -> bool:
        """Whether no Tenure is in charge beside which we would run."""
        if self._in_charge is None or not (why := await self._in_charge.look()):
            return True
        self._hold_back(why)
        return False

    async def _let_go(self) -> None:
        try:
            await self._book.let_go()
        except TenureError as error:
            self._bulletin.add_trouble(f"the Lease {self._key} was not given back: {error}")

    # -- what we say -------------------------------------------------------------------

    def _open(self, until: float) -> None:
        now, state = self._clock.now(), self.state
        since = state.since if state.role is LeaseRole.LEADING else now
        self.fence.open_until(until, now)
        sentence = f"leading: the Lease {self._key} is ours since {format_time(since)}"
        self._bulletin.post(LeaseRole.LEADING, sentence, self.identity)

    def _say_why_not_yet(self) -> None:
        self._bulletin.post(
            LeaseRole.WAITING,
            f"waiting: there was no Lease {self._key}; the holder of one that was deleted "
            f"has until {self._act_from_in_words} to find out",
            self.identity,
        )

    def _leave_it_to(self, lease: Lease) -> None:
        held = f"the Lease {self._key} is held by {who_and_since(lease)}"
        if held_last_by_tenure(lease):
            holder = lease.spec.holder_identity
            self._bulletin.post(LeaseRole.WAITING, f"waiting: {held}", holder)
        else:
            self._hold_back(held)

    def _hold_back(self, why: str) -> None:
        own = self._book.own
        holder = own.lease.spec.holder_identity if own is not None else ""
        self._bulletin.post(LeaseRole.HELD_BACK, f"not acting: {why}", holder, trouble=True)

    def _pause(self) -> float:
        retry = self._settings.lease_retry.total_seconds() * self._loop_speed
        return retry * (1 - JITTER / 2 + JITTER * self._random.random())


async def _cancelled(work: asyncio.Task[None]) -> None:
    """Work that goes on although it was cancelled would keep this replica from leading ever again."""
    work.cancel()
    _, unfinished = await asyncio.wait({work}, timeout=END_MAX.total_seconds())
    if unfinished:
        seconds = END_MAX // timedelta(seconds=1)
        raise RuntimeError(f"the term is over, and its work has not ended within {seconds} s")


async def _awaited(lead: Callable[[], Awaitable[None]]) -> None:
    await lead()
