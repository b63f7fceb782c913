"""The API: requests in, responses or watches out, on top of the store.

It reads paths, query parameters and bodies, calls the store, and turns its refusals into
``Status`` objects. What it cannot place at all gets the answer a real server gives: text
for an unknown group, a Status for an unknown resource in a known one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

import msgspec

from tenure.errors import ApiError, shown
from tenure.model.api.resource import NAMESPACES, PODS, Resource
from tenure.ports.transport import APPLY_PATCH, JSON, Request, Response
from tenure.sim.apiserver import listing
from tenure.sim.apiserver.kubeletonly import kubelet_answer
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.numbers import is_number
from tenure.sim.apiserver.objects.refusals import (
    Unexplained,
    bad_request,
    invalid,
    method_not_allowed,
    status_body,
    untouchable,
)
from tenure.sim.apiserver.objects.storedkinds import SERVICE_ACCOUNTS
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.requests import (
    TRUE,
    body_of,
    deletion_options,
    deletion_wished,
    metadata_in,
    object_for,
    object_in,
    only_tried,
    writer_of,
)
from tenure.sim.apiserver.routes import Route, Routes
from tenure.sim.apiserver.scaling import rescale, scale_of, scaled
from tenure.sim.apiserver.store import eviction
from tenure.sim.apiserver.store.definitions import notes_on
from tenure.sim.apiserver.store.selection import selected
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import Watch

_decode = msgspec.json.decode
_encode = msgspec.json.encode
_TEXT: Final = {"Content-Type": "text/plain"}
_JSON_HEADERS: Final = {"Content-Type": JSON}
_SUCCESS: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
#: Seconds: three years, so that no clock overflows.
_WATCH_MAX: Final = 10**8
_NO_RESOURCE: Final = "the server could not find the requested resource"

Handler = Callable[["Api", Request, Route], Response]


class Api:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.clock = store.clock
        self.routes = Routes(store)

    @property
    def served_version(self) -> int:
        """Counts the changes of what is served."""
        return self._store.served_version

    @property
    def defined(self) -> tuple[Kind, ...]:
        """The kinds that clients have defined."""
        return self._store.defined

    def kind_of(self, resource: Resource) -> Kind:
        return self._store.shelf(resource).kind

    def handle(self, request: Request) -> Response:
        """Answer one request; a watch is opened by ``watch``."""
        target = self.routes.route(request.path)
        if target is None:
            return self._nothing_there(request.path)
        try:
            handler = self._handler(request.method, target)
            if request.method != "GET" and only_tried(request):
                with self._store.dry_run():
                    return handler(self, request, target)
            return handler(self, request, target)
        except ApiError as error:
            return _refusal(error, target)

    def watch(self, request: Request) -> Watch | Response:
        """Open the watch that a ``GET`` with ``watch=true`` asks for."""
        target = self.routes.route(request.path)
        if target is None:
            return self._nothing_there(request.path)
        try:
            return self._open_watch(request, target)
        except ApiError as error:
            return _refusal(error, target)

    def _handler(self, method: str, target: Route) -> Handler:
        if target.subresource:
            return self._subresource_handler(method, target)
        handler = (self._BY_NAME if target.name else self._BY_COLLECTION).get(method)
        everywhere = target.resource.namespaced and not target.namespace
        # Namespaces are deleted one by one.
        together = method == "DELETE" and target.resource == NAMESPACES and not target.name
        read_only = method != "GET" and self.kind_of(target.resource).read_only
        if handler is None or (everywhere and method != "GET") or together or read_only:
            raise method_not_allowed()
        return handler

    def _subresource_handler(self, method: str, target: Route) -> Handler:
        handlers: Mapping[str, Handler] = {}
        if target.resource == PODS:
            handlers = self._OF_PODS.get(target.subresource, {})
        elif target.resource == SERVICE_ACCOUNTS:
            handlers = self._OF_ACCOUNTS.get(target.subresource, {})
        elif target.subresource == "scale" and scaled(self.kind_of(target.resource)):
            handlers = self._OF_SCALE
        if target.subresource == "status" and self._store.shelf(target.resource).kind.status:
            handlers = self._OF_STATUS
        if not handlers:
            raise ApiError(_NO_RESOURCE, status=404, reason="NotFound")
        if method not in handlers:
            raise method_not_allowed()
        return handlers[method]

    def _get(self, request: Request, target: Route) -> Response:
        shelf = self._store.shelf(target.resource)
        return _json(200, shelf.as_read(shelf.found(target.namespace, target.name)).raw)

    def _list(self, request: Request, target: Route) -> Response:
        shelf = self._store.shelf(target.resource)
        version = self._store.version
        return _json(200, listing.list_body(shelf, target.namespace, request.query, version))

    def _create(self, request: Request, target: Route) -> Response:
        strictness = Strictness.wished(request.query)
        obj = object_for(request, target, custom=self.kind_of(target.resource).custom)
        try:
            created = self._store.create(
                target.resource, obj, strictness=strictness, writer=writer_of(request)
            )
        except ApiError as error:
            return _refusal(error, target._replace(name=obj["metadata"].get("name", "")))
        return self._object(201, target.resource, created, strictness)

    def _update(self, request: Request, target: Route) -> Response:
        strictness = Strictness.wished(request.query)
        obj = object_for(request, target, custom=self.kind_of(target.resource).custom)
        updated = self._store.update(
            target.resource,
            obj,
            target.subresource,
            strictness=strictness,
            writer=writer_of(request),
        )
        return self._object(200, target.resource, updated, strictness)

    def _patch(self, request: Request, target: Route) -> Response:
        if request.content_type == APPLY_PATCH:
            return self._apply(request, target)
        strictness = Strictness.wished(request.query, patch=True)
        patched = self._store.patch(
            target.resource,
            target.namespace,
            target.name,
            body_of(request),
            request.content_type,
            target.subresource,
            strictness=strictness,
            writer=writer_of(request),
        )
        return self._object(200, target.resource, patched, strictness)

    def _apply(self, request: Request, target: Route) -> Response:
        """Server-side apply."""
        strictness = Strictness.wished(request.query)
        obj, new = self._store.apply(
            target.resource,
            target.namespace,
            target.name,
            body_of(request),
            writer_of(request),
            subresource=target.subresource,
            force=request.query.get("force") in TRUE,
            strictness=strictness,
        )
        return self._object(201 if new else 200, target.resource, obj, strictness)

    def _delete(self, request: Request, target: Route) -> Response:
        options = deletion_wished(request)
        left = self._store.remove(target.resource, target.namespace, target.name, options)
        stored = self._store.find(target.resource, target.namespace, target.name)
        if target.resource == PODS or stored is not None:
            return self._object(200, target.resource, left)
        details = {"name": target.name, "kind": target.resource.plural}
        if target.resource.group:
            details["group"] = target.resource.group
        details["uid"] = left["metadata"]["uid"]
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return _json(200, _encode(status))

    def _delete_all(self, request: Request, target: Route) -> Response:
        """Delete every object that the query selects; answers with the list of them."""
        options = deletion_wished(request)
        response = self._list(request, target)
        for item in _decode(response.body)["items"]:
            metadata = item["metadata"]
            self._store.remove(
                target.resource, metadata.get("namespace", ""), metadata["name"], options
            )
        return response

    def _evict(self, request: Request, target: Route) -> Response:
        body = object_in(request)
        name = metadata_in(body).get("name", "")
        if name != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = deletion_options(body.get("deleteOptions") or {}, {})
        eviction.evict(self._store, target.namespace, target.name, options)
        return _json(201, _SUCCESS)

    def _bind(self, request: Request, target: Route) -> Response:
        body = object_in(request)
        node = (body.get("target") or {}).get("name", "")
        uid = metadata_in(body).get("uid", "")
        self._store.bind(target.namespace, target.name, node, uid=uid)
        return _json(201, _SUCCESS)

    def _get_scale(self, request: Request, target: Route) -> Response:
        obj = self._store.get(target.resource, target.namespace, target.name)
        return _json(200, _encode(scale_of(self.kind_of(target.resource), obj)))

    def _set_scale(self, request: Request, target: Route) -> Response:
        patch = request.method == "PATCH"
        scale = rescale(
            self._store,
            self.kind_of(target.resource),
            target.namespace,
            target.name,
            body_of(request),
            request.content_type if patch else None,
            Strictness.wished(request.query, patch=patch),
            writer_of(request),
        )
        return _json(200, _encode(scale))

    def _ask_kubelet(self, request: Request, target: Route) -> Response:
        pod = self._store.get(PODS, target.namespace, target.name)
        refusal = kubelet_answer(pod, target.subresource, request.query)
        if refusal is None:
            return Response(status=204, headers=_TEXT)
        if target.subresource == "log" and request.query.get("follow") in TRUE:
            # A client that follows a log asks again after any refusal, for ever.
            return Response(status=200, body=f"{refusal.message}\n".encode(), headers=_TEXT)
        raise refusal

    def _refuse_token(self, request: Request, target: Route) -> Response:
        self._store.get(target.resource, target.namespace, target.name)
        raise bad_request(
            f"serviceaccount {target.namespace}/{target.name} gets no token: "
            "the embedded cluster knows one token, which is in its kubeconfig"
        )

    _OF_STATUS: Final[Mapping[str, Handler]] = {"GET": _get, "PUT": _update, "PATCH": _patch}
    _BY_NAME: Final[Mapping[str, Handler]] = {**_OF_STATUS, "DELETE": _delete}
    _BY_COLLECTION: Final[Mapping[str, Handler]] = {
        "GET": _list,
        "POST": _create,
        "DELETE": _delete_all,
    }
    _OF_PODS: Final[Mapping[str, Mapping[str, Handler]]] = {
        "eviction": {"POST": _evict},
        "binding": {"POST": _bind},
        "attach": {"GET": _ask_kubelet, "POST": _ask_kubelet},
        "ephemeralcontainers": {"PUT": _ask_kubelet, "PATCH": _ask_kubelet},
        "exec": {"GET": _ask_kubelet, "POST": _ask_kubelet},
        "log": {"GET": _ask_kubelet},
        "portforward": {"GET": _ask_kubelet, "POST": _ask_kubelet},
    }
    _OF_ACCOUNTS: Final[Mapping[str, Mapping[str, Handler]]] = {"token": {"POST": _refuse_token}}
    _OF_SCALE: Final[Mapping[str, Handler]] = {
        "GET": _get_scale,
        "PUT": _set_scale,
        "PATCH": _set_scale,
    }

    def _open_watch(self, request: Request, target: Route) -> Watch:
        query = request.query
        shelf = self._store.shelf(target.resource)
        field_selector = query.get("fieldSelector", "")
        if target.name:  # Watching one object is watching its collection by name.
            field_selector = f"metadata.name={target.name}"
        version = query.get("resourceVersion", "") or "0"
        if not is_number(version):
            raise Unexplained(f"resourceVersion: invalid number {shown(version)!r}")
        initial = query.get("sendInitialEvents") in TRUE
        if query.get("resourceVersionMatch", "") != ("NotOlderThan" if initial else ""):
            why = "goes with sendInitialEvents, and is then NotOlderThan"
            raise invalid(target.resource, "", [untouchable("resourceVersionMatch", why)])
        seconds = listing.number(query, "timeoutSeconds")
        return self._store.feed.watch(
            shelf,
            namespace=target.namespace,
            matches=selected(shelf.kind, query.get("labelSelector", ""), field_selector),
            since=None if initial or version == "0" else int(version),
            initial_end=initial,
            bookmarks=query.get("allowWatchBookmarks") in TRUE,
            timeout=timedelta(seconds=min(seconds, _WATCH_MAX)) if seconds > 0 else None,
        )

    def _nothing_there(self, path: str) -> Response:
        if self.routes.known_prefix(path):
            error = ApiError(_NO_RESOURCE, status=404, reason="NotFound")
            return Response(status=404, body=status_body(error), headers=_JSON_HEADERS)
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        return Response(status=404, body=b"404 page not found\n", headers=headers)

    def _object(
        self, status: int, resource: Resource, obj: Obj, strictness: Strictness | None = None
    ) -> Response:
        shelf = self._store.shelf(resource)
        record = shelf.records.get(shelf.key_of(obj))
        raw = record.raw if record is not None and record.obj is obj else _encode(obj)
        if resource == DEFINITIONS and strictness is not None:
            strictness.warnings += notes_on(obj)
        if strictness is not None and strictness.warnings:
            quoted = (text.replace('"', '\\"') for text in strictness.warnings)
            warnings = ", ".join(f'299 - "{text}"' for text in quoted)
            return Response(status=status, body=raw, headers={**_JSON_HEADERS, "Warning": warnings})
        return _json(status, raw)


def _json(status: int, body: bytes) -> Response:
    return Response(status=status, body=body, headers=_JSON_HEADERS)


def _refusal(error: ApiError, target: Route) -> Response:
    body = status_body(error, resource=target.resource, name=target.name)
    headers = dict(_JSON_HEADERS)
    if error.retry_after:
        headers["Retry-After"] = str(error.retry_after // timedelta(seconds=1))
    return Response(status=error.status, body=body, headers=headers)
