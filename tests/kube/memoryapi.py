"""A tiny API server in memory that keeps objects by path: enough to race for a Secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tenure.kube.client.client import Client
from tenure.ports.transport import Request, Response, Stream
from tenure.sim.apiserver.patch.merge import merge_patch
from tests.kube.transports import answered, refused

Json = dict[str, Any]

SECRET = "/api/v1/namespaces/tenure/secrets/tenure-webhook"
CONFIGURATION = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/tenure-webhook"
)


class MemoryApi:
    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        #: By verb and path: what is answered instead.
        self.refusals: dict[tuple[str, str], Response] = {}
        #: Called once, right before the next write is looked at.
        self.meanwhile: Callable[[], None] | None = None
        self.writes: list[tuple[str, str]] = []
        self._versions = 0

    @property
    def client(self) -> Client:
        return Client(self)

    def put(self, path: str, obj: Json) -> Json:
        self._versions += 1
        metadata = {**obj.get("metadata", {}), "resourceVersion": str(self._versions)}
        self.objects[path] = {**obj, "metadata": metadata}
        return self.objects[path]

    async def request(self, request: Request) -> Response:
        if (refusal := self.refusals.get((request.method, request.path))) is not None:
            return refusal
        if request.method == "GET":
            found = self.objects.get(request.path)
            return answered(found) if found is not None else refused(404, "NotFound")
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return self._written(request, msgspec.json.decode(request.body))

    def _written(self, request: Request, body: Json) -> Response:
        path = request.path
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return refused(409, "AlreadyExists")
            before: Json = {}
        else:
            before = self.objects[path]
            if body["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
                return refused(409, "Conflict")
        self.writes.append((request.method, path))
        return answered(self.put(path, merge_patch(before, body)))

    async def stream(self, request: Request) -> Stream | Response:
        raise AssertionError("no test watches")


def a_configuration(*urls: str, **more: Any) -> Json:
    """As it is installed: without a caBundle."""
    service = {"name": "tenure-webhook", "namespace": "tenure", "path": "/validate"}
    configs: list[Json] = [{"url": url} for url in urls] or [{"service": service}]
    webhooks = [
        {"name": f"{index}.tenure.dev", "clientConfig": config, "failurePolicy": "Ignore", **more}
        for index, config in enumerate(configs)
    ]
    return {"metadata": {"name": "tenure-webhook"}, "webhooks": webhooks}
