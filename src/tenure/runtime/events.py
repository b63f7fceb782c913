"""Turns changes of verdict into Kubernetes events.

Only reasons that people should hear of are published (the table in ``core.reasons``),
and only when the reason on a subject changes: a verdict that merely gets a new number
in its sentence is no news. The event's name follows from whom and what it is about, so
a restart meets its own event and raises its count instead of writing another.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.reasons import REASONS
from tenure.errors import AlreadyExists, TenureError
from tenure.kube.client import Client
from tenure.model.meta import format_time
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

_RESOURCES: Final = {kind: resource for (_, kind), resource in BY_KIND.items()}


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
        self._last: dict[tuple[Concern, Subject], str] = {}
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(QUEUE_MAX)
        self.dropped = 0

    def judged(self, verdict: Verdict) -> None:
        """Note a new or changed verdict; publish it if it is news."""
        key = (verdict.concern, verdict.subject)
        known = self._last.get(key)
        self._last[key] = verdict.reason
        info = REASONS[verdict.reason]
        resource = _RESOURCES.get(verdict.subject.kind)
        if known == verdict.reason or not info.event or resource is None:
            return
        if not verdict.subject.uid:
            return  # A claim that does not exist yet; its own verdicts will speak.
        try:
            self._queue.put_nowait(self._manifest(verdict, resource, info.event))
        except asyncio.QueueFull:
            self.dropped += 1

    def forget(self, subject: Subject) -> None:
        for concern in Concern:
            self._last.pop((concern, subject), None)

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
            count = msgspec.json.decode(raw, type=Event).count + 1
            news = {
                "count": count,
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
            "metadata": {"name": f"{subject.name}.{digest}", "namespace": namespace},
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
