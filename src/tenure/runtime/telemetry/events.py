"""Turns changes of verdict into Kubernetes events.

Only reasons that people should hear of are published (the table in ``core.reasons``). One event
stands for one reason on one object: a new reason is a new event, and a verdict that keeps its
reason and says something else rewrites the event, so that it names what is the case now. Each
event is rewritten once a minute at most, with the newest content; one that comes and goes with
the same content is repeated after five. Over all events there is a rate, too.

What thousands of nodes may have in common, that they are not disrupted (``CROWDED``), has a lower
rate of its own: it waits, as long as it holds, and keeps no other event from being written. The event on
their NodePool says how many there are. Of the pods of a scale-out, that each of them is nominated to a node is told of the first
hundred, then of one a second: the others run before their turn would come.

The event's name follows from the object and the reason, so a restart meets its own event and
raises its count instead of writing another. Events that are told once (``ReasonInfo.once``) are left as they are.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.core.decision import Concern, Create, DeletePod, Evict, Subject, Verdict
from tenure.core.reasons import REASONS, Reason
from tenure.core.terminate.facts.pods import EvictionAgreed
from tenure.core.terminate.pods import REFUSED
from tenure.errors import AlreadyExists, NotFound, TenureError
from tenure.kube.client.client import Client
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.resource import BY_KIND, EVENTS, NODES, PODS, Resource
from tenure.model.api.workload import Event
from tenure.model.settings import Settings
from tenure.model.snapshot.kinds import decode
from tenure.model.values.fact import shortened
from tenure.ports.clock import Clock
from tenure.runtime.clock.backoff import Bucket
from tenure.runtime.telemetry.linelimit import LineRate

#: Cluster-scoped objects have their events here, as ``kubectl describe`` expects.
DEFAULT_NAMESPACE: Final = "default"
COMPONENT: Final = "tenure"
#: Events waiting for their turn. Above this what is said of an object for the first time waits as long as it holds, and
#: all others are dropped: news, not state.
QUEUE_MAX: Final = 1000
#: An eviction that is refused every ten seconds for a day is one piece of news, now and then.
REPEAT_AFTER: Final = timedelta(minutes=5)
#: The least time between two contents of one event: a drain counts its pods down one by one.
REWRITE_AFTER: Final = timedelta(minutes=1)
#: Reasons that a whole fleet, or all pods of a scale-out, may have at once; by crowd.
CROWDED: Final = {
    Reason.DISRUPTION_BLOCKED: NODES,
    Reason.VOLUNTARY_DISRUPTION_OFF: NODES,
    Reason.UNCONSOLIDATABLE: NODES,
    Reason.NOMINATED: PODS,
}
#: Events with these reasons at once; then so many a second.
CROWD_BURST: Final = 100
CROWD_RATE: Final = 1.0
#: Reasons of events that are not repeated after a restart.
ONCE: Final = frozenset(str(reason) for reason, info in REASONS.items() if info.once)
MESSAGE_MAX: Final = 1024
#: The longest name that the API takes.
NAME_MAX: Final = 253
#: Seconds. A timer may ring this much early: event loops round, and so do sums of floats.
_RESOLUTION: Final = 1e-6

_RESOURCES: Final = {kind: resource for (_, kind), resource in BY_KIND.items()}


class _EventState(msgspec.Struct):
    """What one event says, and since when."""

    news: tuple[object, ...] = ()
    #: On the monotonic clock.
    at: float | None = None
    #: As it was written last; 0 before the first time.
    count: int = 0
    #: Says something else, or something for the first time, and has to wait.
    newer: Verdict | None = None
    #: Whether an entry of those that wait stands for it.
    waits: bool = False


class _SubjectEvents(msgspec.Struct):
    """The events of one subject."""

    current: dict[Concern, Reason] = {}
    by_reason: dict[Reason, _EventState] = {}

    def outdate(self, reason: Reason | None) -> None:
        """It does not hold any more: what waits to be written of it is not written."""
        if reason is not None and (event := self.by_reason.get(reason)) is not None:
            event.newer = None


class _Late(msgspec.Struct, frozen=True, order=True):
    """An event that is to be written later, or rewritten."""

    #: On the monotonic clock.
    due: float
    subject: Subject
    reason: Reason


class EventRecorder:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: Settings,
        report: Callable[[TenureError], None] = lambda _: None,
        *,
        node_classes: Sequence[Resource] = (),
    ) -> None:
        self._resources = {**_RESOURCES, **{one.kind: one for one in node_classes}}
        self._client = client
        self._clock = clock
        self._report = report
        self._bucket = Bucket(settings.event_rate, settings.event_burst, clock)
        self._subjects: dict[Subject, _SubjectEvents] = {}
        self._queue: deque[tuple[dict[str, Any], _EventState]] = deque()
        #: A heap.
        self._late: list[_Late] = []
        self._something_to_do = asyncio.Event()
        #: When the next event of a crowd is due, on the monotonic clock, if there were no burst.
        self._crowds = {crowd: LineRate() for crowd in CROWDED.values()}
        self.dropped = 0

    def decided(self, verdict: Verdict) -> None:
        """Note a new or changed verdict; publish it if it is news."""
        subject, reason = verdict.subject, verdict.reason
        resource = self._resources.get(subject.kind)
        if resource is None or not subject.uid:
            return  # No object, or none yet: ``acted`` tells when there is one.
        events = self._subjects.setdefault(subject, _SubjectEvents())
        known, events.current[verdict.concern] = events.current.get(verdict.concern), reason
        if known != reason:
            events.outdate(known)
        if not REASONS[reason].event or isinstance(verdict.action, Evict | DeletePod):
            return  # That a pod has to go is news only once the API has agreed: ``acted``.
        event = events.by_reason.setdefault(reason, _EventState())
        if event.at is None:
            self._write_first(verdict, event)
        elif verdict.news != event.news:
            self._write_later(verdict, event, event.at + REWRITE_AFTER.total_seconds())
        else:
            event.newer = None
            if (
                known != reason
                and self._clock.monotonic() >= event.at + REPEAT_AFTER.total_seconds()
            ):
                self._write_now(verdict, event)

    def _write_first(self, verdict: Verdict, event: _EventState) -> None:
        now = self._clock.monotonic()
        crowd = self._crowd_of(verdict)
        if crowd is None and len(self._queue) >= QUEUE_MAX:
            self._write_later(verdict, event, now)
        elif crowd is None:
            self._write_now(verdict, event)
        elif not event.waits and crowd.is_open(now, 1 / CROWD_RATE, CROWD_BURST):
            crowd.spend(now, 1 / CROWD_RATE)
            self._write_now(verdict, event)
        elif CROWDED[verdict.reason] != PODS:  # Where a pod is to run is old by then.
            self._write_later(verdict, event, now)

    def _crowd_of(self, verdict: Verdict) -> LineRate | None:
        crowd = CROWDED.get(verdict.reason)
        return None if crowd is None else self._crowds[crowd]

    def _write_later(self, verdict: Verdict, event: _EventState, due: float) -> None:
        """Once the event had its content for long enough, and no new event waits."""
        event.newer = verdict
        if event.waits:
            return
        event.waits = True
        if (crowd := self._crowd_of(verdict)) is not None:
            crowd.spend(due, 1 / CROWD_RATE)
            due = max(due, crowd.next_at - CROWD_BURST / CROWD_RATE)
        heapq.heappush(self._late, _Late(due, verdict.subject, verdict.reason))
        self._something_to_do.set()

    def _write_now(self, verdict: Verdict, event: _EventState) -> None:
        event.news, event.at, event.newer = verdict.news, self._clock.monotonic(), None
        self._publish(verdict, event)

    def acted(self, verdict: Verdict, made: ApiObject | None = None) -> None:
        """An action was carried out: the news of an eviction, which a budget could have refused,
        and of an object that was not there before, so that nothing could be said of it."""
        resource = self._resources.get(verdict.subject.kind)
        kind = REASONS[verdict.reason].event
        if resource is None:
            return
        if isinstance(verdict.action, Create) and made is not None and kind:
            of = Subject.of(resource.kind, made)
            verdict = msgspec.structs.replace(verdict, subject=of)
        elif not isinstance(verdict.action, Evict | DeletePod):
            return
        elif verdict.reason in REFUSED:
            # Tried again, and agreed to: that it had been refused is no longer the case.
            facts = (EvictionAgreed(),)
            verdict = msgspec.structs.replace(verdict, reason=Reason.EVICTING, facts=facts)
            kind = REASONS[Reason.EVICTING].event
        if kind:
            self._publish(verdict, _EventState())

    def ended(self, verdict: Verdict) -> None:
        """It holds no more: if it comes back, that is a change."""
        if (events := self._subjects.get(verdict.subject)) is not None:
            events.outdate(events.current.pop(verdict.concern, None))

    def forget(self, subject: Subject) -> None:
        """The object is gone."""
        self._subjects.pop(subject, None)

    def _publish(self, verdict: Verdict, event: _EventState) -> None:
        if len(self._queue) >= QUEUE_MAX:
            self.dropped += 1
            return
        self._queue.append((self._manifest(verdict), event))
        self._something_to_do.set()

    async def run(self) -> None:
        """Write what is queued, at a bounded rate, until cancelled."""
        while True:
            manifest, event = await self._next()
            await self._bucket.take()
            try:
                await self._write(manifest, event)
            except TenureError as error:
                self._report(error)  # An event is news: what could not be written is let go.

    async def _next(self) -> tuple[dict[str, Any], _EventState]:
        while True:
            self._something_to_do.clear()
            now = self._clock.monotonic()
            if not self._queue:
                self._take_late(now + _RESOLUTION)
            if self._queue:
                return self._queue.popleft()
            wait = self._late[0].due - now if self._late else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._something_to_do.wait()

    def _take_late(self, now: float) -> None:
        """Queue the first that has waited for its turn and still holds."""
        while self._late and self._late[0].due <= now and not self._queue:
            late = heapq.heappop(self._late)
            events = self._subjects.get(late.subject)
            event = events.by_reason.get(late.reason) if events is not None else None
            if event is None:
                continue
            event.waits = False
            if event.newer is None:
                continue
            due = now if event.at is None else event.at + REWRITE_AFTER.total_seconds()
            if due <= now:
                self._write_now(event.newer, event)
            else:  # It was written meanwhile.
                self._write_later(event.newer, event, due)

    async def _write(self, manifest: dict[str, Any], event: _EventState) -> None:
        once = manifest["reason"] in ONCE
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        if not event.count:
            try:
                await self._client.create(EVENTS, manifest, namespace)
            except AlreadyExists:
                known = decode(EVENTS, await self._client.get(EVENTS, name, namespace))
                event.count = known.count if isinstance(known, Event) else 1
                said = known.message if isinstance(known, Event) else ""
                if once and said == manifest["message"]:
                    return
            else:
                event.count = 1
                return
        newer = {key: manifest[key] for key in ("lastTimestamp", "message")}
        try:
            body = {**newer, "count": event.count + 1}
            await self._client.patch(EVENTS, name, body, namespace=namespace)
        except NotFound:  # Kubernetes keeps events for an hour.
            await self._client.create(EVENTS, manifest, namespace)
            event.count = 0
        event.count += 1

    def _manifest(self, verdict: Verdict) -> dict[str, Any]:
        subject, kind = verdict.subject, REASONS[verdict.reason].event
        resource = self._resources[subject.kind]
        at = format_time(self._clock.now())
        namespace = subject.namespace or DEFAULT_NAMESPACE
        digest = hashlib.sha256(f"{subject.uid}/{verdict.reason}".encode()).hexdigest()[:16]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": _name(subject, digest), "namespace": namespace},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": subject.kind,
                "name": subject.name,
                "namespace": subject.namespace,
                "uid": subject.uid,
            },
            "type": kind,
            "reason": REASONS[verdict.reason].event_reason or str(verdict.reason),
            "message": shortened(verdict.facts, MESSAGE_MAX),
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
        }


def _name(subject: Subject, digest: str) -> str:
    return f"{subject.name[: NAME_MAX - 1 - len(digest)]}.{digest}"
