"""The backends through which the contract suite talks to an API server.

A test sees a ``Backend`` and nothing behind it: requests and watches over the transport
port. So the same tests can be run through any backend, and where two backends differ, the
embedded store is wrong. What a backend cannot do it says, and the tests that need it are
skipped with that sentence.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from tenure.kube.client.http import Limits
from tenure.model.api.resource import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Resource,
)
from tenure.ports.transport import MERGE_PATCH, Request, Response, Stream, Transport
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.serve.access import opened
from tenure.sim.serve.kubeconfig import write_kubeconfig
from tenure.sim.serve.pace import PacedLoop
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop, run_virtually
from testbed.controlplane import ControlPlane
from tests.real.cluster import ANSWER, connected

Json = dict[str, Any]
#: The spec of a Deployment, ReplicaSet or DaemonSet, as short as it can be.
WORKLOAD: Json = {
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    },
}
#: Longer than any backend needs for what is due. Controllers of a real cluster look for an API server
#: that was away at intervals that double, up to a minute.
PATIENCE_SECONDS: Final = 240.0
LOOK_EVERY: Final = 0.1
#: People wait for an answer longer than a controller does, which has a Lease to lose.
PATIENT: Final = Limits(answer=ANSWER)
#: Of the served store: halves what the tests wait for, and still leaves a client its seconds.
SPEED: Final = 2.0


class Answer(NamedTuple):
    status: int
    body: Json

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def causes(self) -> list[Json]:
        causes: list[Json] = self.body.get("details", {}).get("causes", [])
        return causes

    @property
    def fields(self) -> list[str]:
        """The fields that a validation error names, each once."""
        return sorted({cause.get("field", "") for cause in self.causes})


class Watching:
    """An open watch, read event by event."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lines = aiter(stream)

    async def event(self) -> tuple[str, Json]:
        """The next event that is no bookmark: its type and its object."""
        while True:
            type_, obj = await self.line()
            if type_ != "BOOKMARK":
                return type_, obj

    async def line(self) -> tuple[str, Json]:
        raw = await asyncio.wait_for(anext(self._lines), PATIENCE_SECONDS)
        event = msgspec.json.decode(raw)
        return event["type"], event["object"]

    async def ended(self) -> bool:
        """Whether the server has ended it; waits for that, or for one more line."""
        try:
            await asyncio.wait_for(anext(self._lines), PATIENCE_SECONDS)
        except StopAsyncIteration:
            return True
        return False

    async def close(self) -> None:
        await self._stream.close()


class Backend:
    """What a test may use. Names are unique per test: some backends are shared."""

    name: str = ""
    #: Whether this backend collects garbage and empties namespaces.
    has_controllers = True
    _tests = itertools.count(1)

    def __init__(self) -> None:
        self.transport: Transport
        self._prefix = f"t{next(self._tests)}"
        self.namespace = self.unique("ns")
        self._watches: list[Watching] = []

    def unique(self, name: str) -> str:
        """A name that no other test uses, for objects outside of namespaces."""
        return f"{self._prefix}-{name}"

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Run a test to its end behind this backend."""
        raise NotImplementedError

    async def restart_history(self) -> None:
        """Make the server forget its past, so that old versions are too old."""
        raise NotImplementedError

    async def prepared(self, main: Coroutine[Any, Any, None]) -> None:
        answer = await self.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        assert answer.status == 201, answer
        try:
            await main
        finally:
            for watching in self._watches:
                await watching.close()

    # Requests.

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> Answer:
        raw = b"" if body is None else msgspec.json.encode(body)
        response = await self.transport.request(
            Request(method=method, path=path, query=query, body=raw, content_type=content_type)
        )
        return Answer(response.status, msgspec.json.decode(response.body))

    async def raw_status(self, method: str, path: str) -> Answer:
        """For answers that may be plain text: the status alone."""
        response = await self.transport.request(Request(method=method, path=path))
        return Answer(response.status, {})

    def path(self, resource: Resource, name: str = "", subresource: str = "") -> str:
        return resource.path(self.namespace, name, subresource)

    async def create(self, resource: Resource, obj: Json, **query: str) -> Answer:
        return await self.send("POST", self.path(resource), _typed(resource, obj), **query)

    async def created(self, resource: Resource, obj: Json) -> Json:
        """The object as the server stored it; the test is wrong if it did not."""
        answer = await self.create(resource, obj)
        assert answer.status == 201, answer
        return answer.body

    async def get(self, resource: Resource, name: str) -> Answer:
        return await self.send("GET", self.path(resource, name))

    async def list(self, resource: Resource, **query: str) -> Answer:
        return await self.send("GET", self.path(resource), **query)

    async def put(self, resource: Resource, obj: Json, subresource: str = "") -> Answer:
        path = self.path(resource, obj["metadata"]["name"], subresource)
        return await self.send("PUT", path, _typed(resource, obj))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
        **query: str,
    ) -> Answer:
        path = self.path(resource, name, subresource)
        return await self.send("PATCH", path, patch, content_type=content_type, **query)

    async def delete(self, resource: Resource, name: str, **options: Any) -> Answer:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        return await self.send("DELETE", self.path(resource, name), body)

    async def evict(self, name: str, **options: Any) -> Answer:
        body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        if options:
            body["deleteOptions"] = options
        return await self.send("POST", self.path(PODS, name, "eviction"), body)

    async def watch(self, resource: Resource, **query: str) -> Watching:
        request = Request(method="GET", path=self.path(resource), query={"watch": "true", **query})
        stream = await self.transport.stream(request)
        assert not isinstance(stream, Response), stream
        self._watches.append(Watching(stream))
        return self._watches[-1]

    async def gone(self, resource: Resource, name: str) -> None:
        """Wait until the object is gone."""
        await self.until_seen(resource, name, lambda answer: answer.status == 404)

    async def until_seen(
        self, resource: Resource, name: str, holds: Callable[[Answer], bool]
    ) -> Answer:
        """Look at the object until that holds; what was seen then."""
        return await self.until_answered(lambda: self.get(resource, name), holds)

    async def until_answered(
        self, ask: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]
    ) -> Answer:
        """Ask until that holds of the answer; the answer."""
        for _ in range(round(PATIENCE_SECONDS / LOOK_EVERY)):
            if holds(answer := await ask()):
                return answer
            await asyncio.sleep(LOOK_EVERY)
        raise AssertionError(f"not within {PATIENCE_SECONDS:.0f} s: {answer}")

    async def until_later(self, seconds: int) -> None:
        """Wait until so many seconds have passed on the server's clock."""
        began = _created_at(await self._tried())
        later = began + timedelta(seconds=seconds)
        await self.until_answered(self._tried, lambda answer: _created_at(answer) >= later)

    async def _tried(self) -> Answer:
        """An object that is not stored: the answer tells the server's time."""
        return await self.create(CONFIG_MAPS, {"metadata": {"name": "now"}}, dryRun="All")

    # Things that tests are about.

    async def running_pod(self, name: str, *, ready: bool = True, **spec: Any) -> Json:
        """A pod bound to a node, with a status as a kubelet writes it."""
        labels = {"app": "web"}
        metadata = {"name": name, "labels": labels}
        await self.created(PODS, a_pod(name, metadata=metadata, nodeName="node-1", **spec))
        status = "True" if ready else "False"
        conditions = [{"type": "Ready", "status": status}]
        patch = {"status": {"phase": "Running", "conditions": conditions}}
        answer = await self.patch(PODS, name, patch, subresource="status")
        assert answer.status == 200, answer
        return answer.body

    async def budget(self, name: str, *, spec: Json | None = None, **status: Any) -> Json:
        """A disruption budget over the running pods whose controller has spoken."""
        wanted = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}, **(spec or {})}
        await self.created(POD_DISRUPTION_BUDGETS, {"metadata": {"name": name}, "spec": wanted})
        filled = {
            "observedGeneration": 1,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "disruptionsAllowed": 0,
            **status,
        }
        answer = await self.patch(
            POD_DISRUPTION_BUDGETS, name, {"status": filled}, subresource="status"
        )
        assert answer.status == 200, answer
        return answer.body


class StoreBackend(Backend):
    """The embedded store, in process and in virtual time."""

    name = "store"
    _store: Store

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        run_virtually(self._run(main))

    async def _run(self, main: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = Environment(loop, epoch=datetime(2031, 5, 2, 8, tzinfo=UTC), seed=1)
        self._store = Store(world.clock, world.random_for("store"), world.at, world.soon)
        self.transport = InProcessTransport(Api(self._store))
        await self.prepared(main)

    async def restart_history(self) -> None:
        self._store.compact()


class ServedStore:
    """The embedded store behind HTTPS, one for all tests, on a loop of its own.

    Server and client share the loop: a test runs both until it is done.
    """

    def __init__(self, folder: Path) -> None:
        self.loop = PacedLoop(SPEED)
        self.kubeconfig = folder / "kubeconfig"
        world = Environment(self.loop, epoch=datetime.now(UTC), seed=1)
        self.store = Store(world.clock, world.random_for("store"), world.at, world.soon)
        self.faults: list[str] = []
        self._open = opened(Api(self.store), world.clock, speed=SPEED, report=self.faults.append)

    def start(self) -> None:
        write_kubeconfig(self.loop.run_until_complete(self._open.__aenter__()), self.kubeconfig)

    def stop(self) -> None:
        self.loop.run_until_complete(self._open.__aexit__(None, None, None))
        self.loop.close()


class ServedBackend(Backend):
    """The embedded store over HTTPS, reached by the same client as a real server."""

    name = "served"

    def __init__(self, served: ServedStore) -> None:
        super().__init__()
        self._served = served

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        self._served.loop.run_until_complete(self._run(main))
        assert self._served.faults == []

    async def _run(self, main: Coroutine[Any, Any, None]) -> None:
        async with connected(self._served.kubeconfig, PATIENT) as transport:
            self.transport = transport
            await self.prepared(main)

    async def restart_history(self) -> None:
        self._served.store.compact()


class RealBackend(Backend):
    """A real API server, over HTTPS and in real time. One for all tests: names differ."""

    name = "real"

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane = plane

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        asyncio.run(self._run(main))

    async def _run(self, main: Coroutine[Any, Any, None]) -> None:
        async with connected(self._plane.kubeconfig, PATIENT) as transport:
            self.transport = transport
            await self.prepared(main)

    async def restart_history(self) -> None:
        """A server that has just started refuses watches until it has read what is stored."""
        await asyncio.to_thread(self._plane.forget_history)
        await self.until_answered(self._watched, lambda answer: answer.status == 200)

    async def _watched(self) -> Answer:
        request = Request(method="GET", path=CONFIG_MAPS.path(), query={"watch": "true"})
        stream = await self.transport.stream(request)
        if isinstance(stream, Response):
            return Answer(stream.status, {})
        await stream.close()
        return Answer(200, {})


def a_pod(name: str, *, metadata: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {"metadata": metadata or {"name": name}, "spec": {"containers": containers, **spec}}


def a_node(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": spec}


def _created_at(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer.body["metadata"]["creationTimestamp"])


def _typed(resource: Resource, obj: Json) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


async def a_cluster_node(api: Backend, name: str, **spec: Any) -> Json:
    """A node under a name of this test's own."""
    return await api.created(NODES, a_node(api.unique(name), **spec))
