"""Counts what goes through: calls to the API server, calls to the cloud, thoughts about pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, TypeVar

from prometheus_client import Histogram

from tenure.core.decider import AnyDecider
from tenure.core.decision import Concern, Subject, Verdict
from tenure.errors import TenureError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.ports.cloud import Cloud
from tenure.ports.cloudaround import CloudAround
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.runtime.telemetry.metrics import Metrics
from tenure.runtime.telemetry.scrape import PROVISIONER

T = TypeVar("T")

#: The caller of the cloud; Karpenter has a controller for each task, we have one loop.
CONTROLLER: Final = "tenure"
#: One pass decides on the candidates of every reason.
ALL_REASONS: Final = "all"
_VERBS: Final = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class MeteredTransport:
    def __init__(self, transport: Transport, metrics: Metrics) -> None:
        self._transport = transport
        self._metrics = metrics

    async def request(self, request: Request) -> Response:
        return await self._measured(request, self._transport.request, lambda r: r.status)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._measured(
            request,
            self._transport.stream,
            lambda answer: answer.status if isinstance(answer, Response) else 200,
        )

    async def _measured(
        self,
        request: Request,
        send: Callable[[Request], Awaitable[T]],
        status: Callable[[T], int],
    ) -> T:
        verb, resource = errand(request)
        began, code = self._metrics.stopwatch(), 0
        try:
            answer = await send(request)
            code = status(answer)
        finally:
            took = self._metrics.stopwatch() - began
            self._metrics.api_calls.labels(verb, resource).observe(took)
            self._metrics.api_answers.labels(verb, resource, str(code)).inc()
        return answer


def errand(request: Request) -> tuple[str, str]:
    """What is asked for, and of which kind: ``create`` and ``pods/eviction``."""
    prefix, *rest = request.path.strip("/").split("/")
    if prefix not in ("api", "apis"):
        return request.method.lower(), prefix
    group = rest[0] if prefix == "apis" else ""
    rest = rest[2:] if group else rest[1:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    kind = f"{plural}.{group}" if group else plural
    if request.method == "GET":
        verb = "get" if name else "watch" if request.query.get("watch") == "true" else "list"
    else:
        verb = _VERBS.get(request.method, request.method.lower())
    return verb, f"{kind}/{subresource}" if subresource else kind


class MeteredCloud(CloudAround):
    def __init__(self, cloud: Cloud, metrics: Metrics) -> None:
        super().__init__(cloud)
        self._metrics = metrics

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        with self._measured("GetInstanceTypes"):
            return await self._cloud.instance_types(node_class)

    async def launch(self, request: LaunchRequest) -> Instance:
        with self._measured("Create", request.pool):
            return await self._cloud.launch(request)

    async def terminate(self, provider_id: str) -> None:
        with self._measured("Delete"):
            await self._cloud.terminate(provider_id)

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        with self._measured("Reboot"):
            await self._cloud.reboot(provider_id, operation_id)

    async def get(self, provider_id: str) -> Instance:
        with self._measured("Get"):
            return await self._cloud.get(provider_id)

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        with self._measured("List"):
            return await self._cloud.list_instances(cluster)

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        with self._measured("IsDrifted"):
            return await self._cloud.drift(provider_id, node_class)

    async def current_image(self, node_class: NodeClass) -> str:
        with self._measured("CurrentImage"):
            return await self._cloud.current_image(node_class)

    async def acknowledge(self, notice: Notice) -> None:
        with self._measured("AcknowledgeNotice"):
            await self._cloud.acknowledge(notice)

    @contextmanager
    def _measured(self, method: str, pool: str = "") -> Iterator[None]:
        """Methods by Karpenter's names."""
        began = self._metrics.stopwatch()
        labels = (CONTROLLER, method, self.name)
        try:
            yield
        except TenureError as error:
            self._metrics.cloud_errors.labels(*labels, type(error).__name__, pool).inc()
            raise
        finally:
            self._metrics.cloud_calls.labels(*labels).observe(self._metrics.stopwatch() - began)


class TimedDecider:
    """A decider whose thoughts are timed."""

    def __init__(self, decider: AnyDecider, metrics: Metrics, took: Histogram) -> None:
        self._decider = decider
        self._metrics = metrics
        self._took = took

    @property
    def concern(self) -> Concern:
        return self._decider.concern

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return self._decider.keys(snapshot)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return self._decider.touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return self._decider.observed(subject, snapshot)

    def view(self, snapshot: Snapshot, key: str) -> Any:
        return self._decider.view(snapshot, key)

    def decide(self, view: Any, settings: Settings, now: datetime) -> Sequence[Verdict]:
        with self._metrics.timed(self._took):
            return self._decider.decide(view, settings, now)


def timed(deciders: Iterable[AnyDecider], metrics: Metrics) -> tuple[AnyDecider, ...]:
    """The same deciders; the one that places pods and the one that disrupts nodes are timed."""
    timed_ = {
        Concern.PROVISIONING: metrics.scheduling.labels(PROVISIONER),
        Concern.DISRUPTION: metrics.decision_evaluation.labels(ALL_REASONS, ""),
    }
    return tuple(
        TimedDecider(decider, metrics, timed_[decider.concern])
        if decider.concern in timed_
        else decider
        for decider in deciders
    )
