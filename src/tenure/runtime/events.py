"""Turns changes of verdict into Kubernetes events.

Only reasons that people should hear of are published (the table in ``core.reasons``),
and only when the reason on a subject changes: a verdict that merely gets a new number
in its sentence is no news, and neither is one that comes and goes all the time: it is
repeated after a while at the earliest. The event's name follows from whom and what it is
about, so a restart meets its own event and raises its count instead of writing another.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.core.decision import Concern, Create, DeletePod, Evict, Subject, Verdict
from tenure.core.reasons import REASONS, Reason
from tenure.errors import AlreadyExists, TenureError
from tenure.kube.client import Client
from tenure.model.kinds import decode
from tenure.model.meta import ApiObject, format_time
from tenure.model.resource import BY_KIND, EVENTS, Resource
from tenure.model.settings import Settings
from tenure.model.workload import Event
from tenure.ports.clock import Clock
from tenure.runtime.backoff import Bucket

#: Cluster-scoped objects have their events here, as ``kubectl describe`` expects.
DEFAULT_NAMESPACE: Final = "default"
COMPONENT: Final = "tenure"
#: Events waiting for their turn; above this the newest are dropped: news, not state.
QUEUE_MAX: Final = 1000
#: An eviction that is refused every ten seconds for a day is one piece of news, now and then.
REPEAT_AFTER: Final = timedelta(minutes=5)
#: The longest name that the API takes.
NAME_MAX: Final = 253

_RESOURCES: Final = {kind: resource for (_, kind), resource in BY_KIND.items()}


class _Said(msgspec.Struct):
    """What one subject's events have said."""

    current: dict[Concern, Reason] = {}
    #: On the monotonic clock.
    last_at: dict[Reason, float] = {}


class EventRecorder:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: Settings,
        report: Callable[[TenureError], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._report = report
        self._bucket = Bucket(settings.event_rate, settings.event_burst, clock)
        self._said: dict[Subject, _Said] = {}
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(QUEUE_MAX)
        self.dropped = 0

    def judged(self, verdict: Verdict) -> None:
        """Note a new or changed verdict; publish it if it is news."""
        subject, reason = verdict.subject, verdict.reason
        resource = _RESOURCES.get(subject.kind)
        if resource is None or not subject.uid:
            return  # No object, or none yet: ``acted`` tells when there is one.
        said = self._said.setdefault(subject, _Said())
        known, said.current[verdict.concern] = said.current.get(verdict.concern), reason
        kind = REASONS[reason].event
        if known == reason or not kind or isinstance(verdict.action, Evict | DeletePod):
            return  # That a pod has to go is news only once the API has agreed: ``acted``.
        now, last = self._clock.monotonic(), said.last_at.get(reason)
        if last is not None and now < last + REPEAT_AFTER.total_seconds():
            return
        said.last_at[reason] = now
        self._publish(self._manifest(verdict, resource, kind))

    def acted(self, verdict: Verdict, made: ApiObject | None = None) -> None:
        """An action was carried out: the news of an eviction, which a budget could have refused,
        and of an object that was not there before, so that nothing could be said of it."""
        resource = _RESOURCES.get(verdict.subject.kind)
        kind = REASONS[verdict.reason].event
        if resource is None:
            return
        if isinstance(verdict.action, Create) and made is not None and kind:
            of = Subject.of(resource.kind, made)
            verdict = msgspec.structs.replace(verdict, subject=of)
        elif not isinstance(verdict.action, Evict | DeletePod):
            return
        self._publish(self._manifest(verdict, resource, kind))

    def ended(self, verdict: Verdict) -> None:
        """It holds no more: if it comes back, that is a change."""
        if (said := self._said.get(verdict.subject)) is not None:
            said.current.pop(verdict.concern, None)

    def forget(self, subject: Subject) -> None:
        """The object is gone."""
        self._said.pop(subject, None)

    def _publish(self, manifest: dict[str, Any]) -> None:
        try:
            self._queue.put_nowait(manifest)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write what is queued, at a bounded rate, until cancelled."""
        while True:
            manifest = await self._queue.get()
            await self._bucket.take()
            try:
                await self._write(manifest)
            except TenureError as error:
                self._report(error)  # An event is news: what could not be written is let go.

    async def _write(self, manifest: dict[str, Any]) -> None:
        meta = manifest["metadata"]
        try:
            await self._client.create(EVENTS, manifest, meta["namespace"])
        except AlreadyExists:
            raw = await self._client.get(EVENTS, meta["name"], meta["namespace"])
            known = decode(EVENTS, raw)
            news = {
                "count": known.count + 1 if isinstance(known, Event) else 1,
                "lastTimestamp": manifest["lastTimestamp"],
                "message": manifest["message"],
            }
            await self._client.patch(EVENTS, meta["name"], news, namespace=meta["namespace"])

    def _manifest(self, verdict: Verdict, resource: Resource, kind: str) -> dict[str, Any]:
        subject = verdict.subject
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
            "reason": str(verdict.reason),
            "message": verdict.message[:1024],
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
        }


def _name(subject: Subject, digest: str) -> str:
    return f"{subject.name[: NAME_MAX - 1 - len(digest)]}.{digest}"
