"""Listens to what the cloud announces: interruptions, and recommendations to leave an instance.

A notice becomes an observation on the claim of its instance, and deciders write what it says into the
cluster (``core/notice``). Only when the cluster holds it is the notice
acknowledged: what a process knew that died in between, the cloud says again.

What does not help is acknowledged, too, and counted: a notice that cannot be read, is about no
claim of ours, or came after its instant. A provider that fails is listened to again, later and later;
one that announces too much is slowed down. Neither stops anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Final

from tenure.core.decision import Subject
from tenure.core.marks.deadline import deadline_of, stamp_of
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.ownership import is_ours
from tenure.errors import NotLeader, ProviderError, TenureError, shown
from tenure.model.api.meta import in_utc
from tenure.model.api.names import REBALANCE_CONDITION
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Announcement
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.runtime.clock.backoff import BackOff, Bucket
from tenure.runtime.observe.store import ObservationStore

#: Notices per second, and at once: a whole fleet may be taken back together.
RATE: Final = 100.0
BURST: Final = 5000
#: So many wait for the cluster at most; what comes beyond that comes again.
PENDING_MAX: Final = 10_000
#: An instance may be announced before its launch is in the claim's status.
UNKNOWN_FOR: Final = timedelta(minutes=1)
#: How often those that wait are looked at, beside changes of claims.
LOOK_PERIOD: Final = timedelta(seconds=5)
#: Short beside the two minutes that an interruption leaves.
RETRY_MIN: Final = timedelta(seconds=1)
RETRY_MAX: Final = timedelta(seconds=30)
#: Then it is left to the cloud, which says it again.
ACKNOWLEDGED_TIMES: Final = 5

_STREAM: Final = "stream"


class NoticeOutcome(StrEnum):
    """What became of a notice."""

    #: The cluster holds what it says.
    TAKEN = "taken"
    #: It says nothing that the cluster did not hold already.
    REPEATED = "repeated"
    #: No claim of ours has such an instance, or the claim was gone first.
    UNKNOWN = "unknown"
    #: Its instant had passed.
    LATE = "late"
    UNREADABLE = "unreadable"


class _Pending:
    """A notice that the cluster does not hold yet."""

    def __init__(self, heard_at: float) -> None:
        #: On the monotonic clock.
        self.heard_at = heard_at
        #: It has reached a claim.
        self.known = False
        #: It said something new.
        self.new = False


class NoticeWatch:
    def __init__(
        self,
        *,
        cloud: Cloud,
        observations: ObservationStore,
        clock: Clock,
        settings: Settings,
        snapshot: Callable[[], Snapshot],
        report: Callable[[TenureError], None] = lambda _: None,
        settled: Callable[[Notice | None, NoticeOutcome], None] = lambda _, __: None,
        acknowledged: Callable[[Notice], None] = lambda _: None,
    ) -> None:
        """``settled``, ``acknowledged``: count what became of a notice; None: it could not be read."""
        self._cloud, self._observations = cloud, observations
        self._clock, self._settings = clock, settings
        self._snapshot, self._report = snapshot, report
        self._count, self._count_acknowledged = settled, acknowledged
        self._bucket = Bucket(RATE, BURST, clock)
        # Its jitter is its own, so that no other choice of the same seed depends on it.
        self._back_off = BackOff(RETRY_MIN, RETRY_MAX, Random("notices"))
        self._pending: dict[Notice, _Pending] = {}
        self._changed = asyncio.Event()
        #: Each with whether it could be read.
        self._settled: asyncio.Queue[tuple[Notice, bool]] = asyncio.Queue()

    def claims_changed(self) -> None:
        """The cluster may hold by now what was announced."""
        if self._pending:
            self._changed.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            tasks.create_task(self._settle())
            tasks.create_task(self._acknowledge())

    # -- listening ---------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            opened_at = self._clock.monotonic()
            try:
                async for notice in self._cloud.notices(self._settings.cluster_name):
                    await self._bucket.take()
                    self._back_off.succeeded(_STREAM)
                    self._hear(notice)
                raise ProviderError(f"{self._cloud.name}: notices: the stream has ended")
            except NotLeader:
                pass  # Another replica listens.
            except TenureError as error:
                self._report(error)
            now = self._clock.monotonic()
            if now - opened_at >= RETRY_MAX.total_seconds():
                self._back_off.succeeded(_STREAM)
            pause = self._back_off.failed(_STREAM, now)
            await asyncio.sleep(pause.total_seconds())

    def _hear(self, notice: Notice) -> None:
        if problem := _problem(notice):
            self._report(ProviderError(f"{self._cloud.name}: notices: {problem}; dropped"))
            self._count(None, NoticeOutcome.UNREADABLE)
            if isinstance(notice, Notice):
                self._settled.put_nowait((notice, False))  # Else it would come again for ever.
            return
        if len(self._pending) >= PENDING_MAX:
            why = f"{PENDING_MAX} notices wait for the cluster, more come again later"
            raise ProviderError(f"{self._cloud.name}: notices: {why}")
        self._pending.setdefault(notice, _Pending(self._clock.monotonic()))
        self._changed.set()

    # -- until the cluster holds it ----------------------------------------------------

    async def _settle(self) -> None:
        while True:
            wait = LOOK_PERIOD.total_seconds() if self._pending else None
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            snapshot = self._snapshot()
            for notice, pending in list(self._pending.items()):
                if (outcome := self._outcome(notice, pending, snapshot)) is not None:
                    del self._pending[notice]
                    self._count(notice, outcome)
                    self._settled.put_nowait((notice, True))

    def _outcome(
        self, notice: Notice, pending: _Pending, snapshot: Snapshot
    ) -> NoticeOutcome | None:
        """None: it has to wait."""
        claims = _claims_of(notice, snapshot)
        if not claims:
            waited = self._clock.monotonic() - pending.heard_at
            if pending.known or waited >= UNKNOWN_FOR.total_seconds():
                return NoticeOutcome.UNKNOWN
            return None
        said = _announcement(self._cloud.name, notice)
        pending.known = True
        for claim in claims:
            subject = Subject.of(NODE_CLAIMS.kind, claim)
            if _holds(claim, notice):
                continue
            if _is_late(claim, said, self._clock.now()):
                return NoticeOutcome.LATE
            if self._observations.notices.announced(notice.kind, subject, said):
                pending.new = True
        if not all(_holds(claim, notice) for claim in claims):
            return None
        return NoticeOutcome.TAKEN if pending.new else NoticeOutcome.REPEATED

    # -- acknowledging -----------------------------------------------------------------

    async def _acknowledge(self) -> None:
        while True:
            notice, readable = await self._settled.get()
            target = str(notice.receipt)
            for _ in range(ACKNOWLEDGED_TIMES):
                try:
                    await self._cloud.acknowledge(notice)
                except NotLeader:
                    break
                except TenureError as error:
                    self._report(error)
                    pause = self._back_off.failed(target, self._clock.monotonic())
                    await asyncio.sleep(pause.total_seconds())
                else:
                    if readable:
                        self._count_acknowledged(notice)
                    break
            self._back_off.succeeded(target)


def _problem(notice: object) -> str:
    """What is wrong with what a provider announced, which may be anything; empty: nothing."""
    if not isinstance(notice, Notice):
        return f"got {shown(repr(notice))}, expected a Notice"
    instants = [notice.at] if notice.deadline is None else [notice.at, notice.deadline]
    return _problem_of(notice.kind, notice.provider_id, instants)


def _problem_of(kind: object, instance: object, instants: Sequence[object]) -> str:
    """Nothing has checked the types of its fields."""
    if not isinstance(kind, NoticeKind):
        return f"got the kind {shown(repr(kind))}, expected one of {', '.join(NoticeKind)}"
    if not isinstance(instance, str) or not instance:
        return "it does not say which instance it is about"
    for one in instants:
        if not isinstance(one, datetime) or one.tzinfo is None:
            what = f"got {shown(repr(one))} for instance {shown(instance)}"
            return f"{what}, expected an instant with its time zone"
    return ""


def _announcement(by: str, notice: Notice) -> Announcement:
    deadline = notice.deadline if notice.kind is NoticeKind.INTERRUPTION else None
    return Announcement(
        by=by, at=_whole(notice.at), deadline=None if deadline is None else _whole(deadline)
    )


def _whole(instant: datetime) -> datetime:
    """In whole seconds, as it is written down."""
    return in_utc(instant).replace(microsecond=0, tzinfo=UTC)


def _claims_of(notice: Notice, snapshot: Snapshot) -> list[NodeClaim]:
    found = snapshot.claims_with_provider(notice.provider_id)
    claims = (found[name] for name in sorted(found))
    return [one for one in claims if is_ours(one, snapshot) and not is_unreadable(one)]


def _holds(claim: NodeClaim, notice: Notice) -> bool:
    """Whether the claim says what the notice does, so that no process has to remember it."""
    if notice.kind is NoticeKind.REBALANCE:
        return claim.deleting or claim.is_true(REBALANCE_CONDITION)
    if not is_interrupted(claim):
        return False
    return notice.deadline is None or _is_due_by(claim, _whole(notice.deadline))


def _is_due_by(claim: NodeClaim, instant: datetime) -> bool:
    deadline = deadline_of(claim)
    known = deadline.at if deadline is not None else stamp_of(claim)
    return known is not None and known <= instant


def _is_late(claim: NodeClaim, said: Announcement, now: datetime) -> bool:
    return said.deadline is not None and said.deadline <= now and not is_interrupted(claim)
