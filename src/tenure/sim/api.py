"""The API door: requests in, responses or watches out, on top of the store.

It reads paths, query parameters and bodies, calls the store, and turns its refusals into
``Status`` objects. What it cannot place at all gets the answer a real server gives: text
for an unknown group, a Status for an unknown resource in a known one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.errors import ApiError, Invalid
from tenure.model.resource import PODS, Resource
from tenure.ports.transport import JSON, Request, Response
from tenure.sim import eviction, listing
from tenure.sim.admission import Strictness
from tenure.sim.deletion import POLICIES, DeleteOptions
from tenure.sim.kinds import KINDS
from tenure.sim.refusals import (
    Unexplained,
    bad_request,
    invalid,
    method_not_allowed,
    status_body,
    unsupported,
    unsupported_media_type,
    untouchable,
)
from tenure.sim.routes import Route, known_prefix, route
from tenure.sim.selection import selected
from tenure.sim.store import Store
from tenure.sim.tree import Obj
from tenure.sim.watch import Watch

_decode = msgspec.json.decode
_encode = msgspec.json.encode
_JSON_HEADERS: Final = {"Content-Type": JSON}
_SUCCESS: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
_TRUE: Final = ("true", "1", "True")
_NO_RESOURCE: Final = "the server could not find the requested resource"

Handler = Callable[["Api", Request, Route], Response]


class Api:
    def __init__(self, store: Store) -> None:
        self._store = store

    def handle(self, request: Request) -> Response:
        """Answer one request; a watch is opened by ``watch``."""
        target = route(request.path)
        if target is None:
            return _nothing_there(request.path)
        try:
            return self._handler(request.method, target)(self, request, target)
        except ApiError as error:
            return _refusal(error, target)

    def watch(self, request: Request) -> Watch | Response:
        """Open the watch that a ``GET`` with ``watch=true`` asks for."""
        target = route(request.path)
        if target is None:
            return _nothing_there(request.path)
        try:
            return self._open_watch(request, target)
        except ApiError as error:
            return _refusal(error, target)

    def _handler(self, method: str, target: Route) -> Handler:
        if target.subresource:
            return self._subresource_handler(method, target)
        handler = (self._BY_NAME if target.name else self._BY_COLLECTION).get(method)
        everywhere = target.resource.namespaced and not target.namespace
        if handler is None or (everywhere and method != "GET"):
            raise method_not_allowed()
        return handler

    def _subresource_handler(self, method: str, target: Route) -> Handler:
        handlers: Mapping[str, Handler] = {}
        if target.resource == PODS:
            handlers = self._OF_PODS.get(target.subresource, {})
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
        obj = _body_object(request, target)
        strictness = _strictness(request.query)
        try:
            created = self._store.create(target.resource, obj, strictness=strictness)
        except ApiError as error:
            return _refusal(error, target._replace(name=obj["metadata"].get("name", "")))
        return self._object(201, target.resource, created, strictness)

    def _update(self, request: Request, target: Route) -> Response:
        obj = _body_object(request, target)
        strictness = _strictness(request.query)
        updated = self._store.update(
            target.resource, obj, target.subresource, strictness=strictness
        )
        return self._object(200, target.resource, updated, strictness)

    def _patch(self, request: Request, target: Route) -> Response:
        strictness = _strictness(request.query)
        patched = self._store.patch(
            target.resource,
            target.namespace,
            target.name,
            _body(request),
            request.content_type,
            target.subresource,
            strictness=strictness,
        )
        return self._object(200, target.resource, patched, strictness)

    def _delete(self, request: Request, target: Route) -> Response:
        options = _delete_options(_body(request) if request.body else {}, request.query)
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
        options = _delete_options(_body(request) if request.body else {}, request.query)
        response = self._list(request, target)
        for item in _decode(response.body)["items"]:
            metadata = item["metadata"]
            self._store.remove(
                target.resource, metadata.get("namespace", ""), metadata["name"], options
            )
        return response

    def _evict(self, request: Request, target: Route) -> Response:
        body = _body(request)
        name = _metadata(body).get("name", "")
        if name != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = _delete_options(body.get("deleteOptions") or {}, {})
        eviction.evict(self._store, target.namespace, target.name, options)
        return _json(201, _SUCCESS)

    def _bind(self, request: Request, target: Route) -> Response:
        body = _body(request)
        node = (body.get("target") or {}).get("name", "")
        uid = _metadata(body).get("uid", "")
        self._store.bind(target.namespace, target.name, node, uid=uid)
        return _json(201, _SUCCESS)

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
    }

    def _open_watch(self, request: Request, target: Route) -> Watch:
        query = request.query
        shelf = self._store.shelf(target.resource)
        field_selector = query.get("fieldSelector", "")
        if target.name:  # Watching one object is watching its collection by name.
            field_selector = f"metadata.name={target.name}"
        version = query.get("resourceVersion", "") or "0"
        if not version.isdigit():
            raise Unexplained(f"resourceVersion: invalid number {version!r}")
        initial = query.get("sendInitialEvents") in _TRUE
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
            bookmarks=query.get("allowWatchBookmarks") in _TRUE,
            timeout=timedelta(seconds=seconds) if seconds > 0 else None,
        )

    def _object(
        self, status: int, resource: Resource, obj: Obj, strictness: Strictness | None = None
    ) -> Response:
        shelf = self._store.shelf(resource)
        record = shelf.records.get(shelf.key_of(obj))
        raw = record.raw if record is not None and record.obj is obj else _encode(obj)
        if strictness is not None and strictness.warnings:
            warnings = ", ".join(f'299 - "{text}"' for text in strictness.warnings)
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


def _nothing_there(path: str) -> Response:
    if known_prefix(path):
        error = ApiError(_NO_RESOURCE, status=404, reason="NotFound")
        return Response(status=404, body=status_body(error), headers=_JSON_HEADERS)
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return Response(status=404, body=b"404 page not found\n", headers=headers)


def _body(request: Request) -> Any:
    try:
        return _decode(request.body)
    except msgspec.DecodeError as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from error


def _metadata(body: Any) -> Mapping[str, Any]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _body_object(request: Request, target: Route) -> Obj:
    """The object in the body, settled to be the one that the path names."""
    if request.content_type != JSON:
        raise unsupported_media_type(request.content_type, [JSON])
    obj = _body(request)
    if not isinstance(obj, dict):
        raise bad_request("the body of the request is not an object")
    resource, custom = target.resource, KINDS[target.resource].custom
    for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        # A built-in kind is known from the path; a custom object must say what it is.
        got = obj.get(field, "" if custom else expected)
        if got != expected:
            raise bad_request(f"{field} {got!r} cannot be handled as {expected!r}")
    metadata = dict(_metadata(obj))
    if metadata.setdefault("namespace", target.namespace) != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if target.name and metadata.setdefault("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({target.name})"
        )
    return {**obj, "metadata": metadata}


def _strictness(query: Mapping[str, str]) -> Strictness | None:
    """Unknown fields: refused, warned about (the server's default), or silently dropped."""
    wish = query.get("fieldValidation", "Warn")
    return None if wish == "Ignore" else Strictness(refuse=wish == "Strict")


def _delete_options(body: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds", "").isdigit():
        grace = int(query["gracePeriodSeconds"])
    policy = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    if policy and policy not in POLICIES:
        cause = unsupported("propagationPolicy", policy, POLICIES)
        raise Invalid(f"DeleteOptions is invalid: {cause.message}", causes=[cause])
    return DeleteOptions(
        grace_period_seconds=grace,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        propagation_policy=policy,
    )
