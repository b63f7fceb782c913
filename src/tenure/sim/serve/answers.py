"""From what a client sent to what the store understands, and back.

In: YAML becomes JSON, and so do messages in protobuf. Out: objects and
lists as tables, as metadata alone, or as YAML, where a client asks for it by its ``Accept`` header: the
first of the listed forms that we can give is given, and a client that would rather have protobuf says
JSON next. Errors stay as they are, and so do the lines of a watch that say one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from tenure.errors import ApiError, SpecError
from tenure.model.api.resource import Resource
from tenure.parse import yamltext
from tenure.parse.limits import BODY
from tenure.ports.transport import APPLY_PATCH, JSON, Request, Response
from tenure.sim.apiserver.kubeletonly import PLAYED
from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import bad_request, status_body
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.routes import Route
from tenure.sim.apiserver.scaling import SCALES
from tenure.sim.serve import messages, proto
from tenure.sim.serve.table.table import (
    API_VERSION,
    SCALE_COLUMNS,
    Columns,
    custom_columns,
    partial,
    table,
)

_decode = msgspec.json.decode
_encode = msgspec.json.encode
_TYPE: Final = "Content-Type"
YAML: Final = "application/yaml"
_ANY: Final = ("*/*", "application/*", "")
#: Transformations of an object or a list that a client may ask for.
TABLE: Final = "Table"
METADATA: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
AGGREGATED: Final = "APIGroupDiscoveryList"


class Form(NamedTuple):
    media: str = JSON
    #: What the object is turned into; nothing for itself.
    as_: str = ""
    version: str = ""


def wanted(accept: str, offered: tuple[str, ...] = (TABLE, *METADATA)) -> Form:
    """The form to answer in. Raises 406 when we have none of those asked for."""
    for part in accept.split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        given = dict(p.split("=", 1) for p in parameters if "=" in p)
        media = JSON if media in _ANY else media
        as_ = given.get("as", "")
        if media in (JSON, YAML) and (not as_ or as_ in offered):
            return Form(media, as_, given.get("v", ""))
    raise ApiError(
        f"only the following media types are accepted: {JSON}, {YAML}",
        status=406,
        reason="NotAcceptable",
    )


def refusal(error: ApiError) -> Response:
    return Response(status=error.status, body=status_body(error), headers={_TYPE: JSON})


def understood(request: Request) -> Request:
    """The request with its body as JSON. Raises 400 or 415."""
    if not request.body:
        return request
    if request.content_type == proto.MEDIA_TYPE:
        return _with_body(request, _from_protobuf(request))
    if request.content_type == YAML:
        return _with_body(request, _from_yaml(request))
    if request.content_type == APPLY_PATCH:
        return _with_body(request, _from_yaml(request), APPLY_PATCH)
    return request


def _from_yaml(request: Request) -> Any:
    try:
        return yamltext.load(request.body.decode(), "body", limits=BODY)
    except (SpecError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from error


def _from_protobuf(request: Request) -> Obj:
    try:
        obj = messages.read(request.body)
    except proto.Unreadable as error:
        message = (
            f"the body of the request was in an unknown format (of protobuf this server does not "
            f"read {error}) - accepted media types include: {JSON}, {YAML}"
        )
        raise ApiError(message, status=415, reason="UnsupportedMediaType") from error
    # Of kubectl, debug alone sends a Pod so: for a Node, or as a copy of another pod.
    if obj["kind"] == "Pod" and request.query.get("fieldManager", "").startswith("kubectl"):
        raise bad_request(f"no container to debug: {PLAYED}")
    return obj


def _with_body(request: Request, body: Any, content_type: str = JSON) -> Request:
    return msgspec.structs.replace(request, body=_encode(body), content_type=content_type)


class Presenter:
    """Turns answers about one resource into the form that a client asked for."""

    def __init__(self, request: Request, form: Form, target: Route, kind: Kind) -> None:
        """``target``: what the request is about, and of which ``kind``."""
        self._kind = kind
        self._resource: Resource | None = None
        if target.subresource in ("", "status"):
            self._resource = target.resource
        elif target.subresource == "scale":
            self._resource = SCALES
        self._include = request.query.get("includeObject", "")
        self._form = form
        self._headings = True

    @property
    def media(self) -> str:
        return self._form.media

    def answer(self, response: Response, now: datetime) -> Response:
        if response.status >= 300 or self._form == Form(JSON):
            return response
        body = _decode(response.body)
        if body.get("kind") != "Status" and self._resource is not None and self._form.as_:
            body = self._presented(self._resource, body, now)
        raw = _encode(body) if self.media == JSON else _as_yaml(body)
        return msgspec.structs.replace(
            response, body=raw, headers={**response.headers, _TYPE: self.media}
        )

    def _presented(self, resource: Resource, body: Obj, now: datetime) -> Obj:
        if self._form.as_ == TABLE:
            return table(
                resource,
                body.get("items", [body]),
                now,
                metadata=_of_list(body["metadata"]),
                include=self._include,
                headings=self._headings,
                columns=self._columns(),
            )
        if "items" not in body:
            return partial(body)
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": API_VERSION,
            "metadata": body["metadata"],
            "items": [partial(item) for item in body["items"]],
        }

    def _columns(self) -> Columns | None:
        definition = self._kind.definition
        if self._resource == SCALES:
            return SCALE_COLUMNS
        return None if definition is None else custom_columns(definition.columns)

    def lines(self, lines: Iterable[bytes], now: datetime) -> Iterator[bytes]:
        """The lines of a watch in that form; only JSON goes over a watch."""
        if self._resource is None or not self._form.as_:
            yield from lines
            return
        for line in lines:
            event = _decode(line)
            if event["type"] != "ERROR":
                event["object"] = self._presented(self._resource, event["object"], now)
                self._headings = False
            yield _encode(event) + b"\n"


def _of_list(metadata: Obj) -> Obj:
    """What a table repeats of a list's metadata, or of the one object's."""
    kept = ("resourceVersion", "continue", "remainingItemCount")
    return {key: metadata[key] for key in kept if key in metadata}


def _as_yaml(body: Any) -> bytes:
    return yaml.safe_dump(body, allow_unicode=True).encode()
