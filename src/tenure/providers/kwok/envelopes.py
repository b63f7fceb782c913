"""Where a Node waits for the end of its class's registration delay: in an envelope.

An envelope is a ConfigMap with the whole Node inside, named like it. While it is there the
instance runs and has not registered; no Node is there before its time, and a controller
that crashes finds the envelope when it comes back. ``docs/decisions/0013`` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.errors import NotFound, SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import CONFIG_MAPS
from tenure.parse import jsontext
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.provider import Api
from tenure.providers.kwok import labels as kwok
from tenure.providers.kwok.instances import KwokInstance, read_instance, read_time

#: The key in the ConfigMap.
_CONTENT: Final = "node.json"
_MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "tenure"}


class _Written(ApiObject, frozen=True, kw_only=True):
    data: Mapping[str, str] = {}


_WRITTEN: Final = msgspec.json.Decoder(_Written)


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str
    due_at: datetime
    instance: KwokInstance
    #: The Node as it is to be created.
    node: Mapping[str, Any]


class Envelopes:
    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    async def put(self, node: Mapping[str, Any], due_at: datetime) -> Envelope | None:
        """Raises ``AlreadyExists`` where the same launch has been here before."""
        name = node["metadata"]["name"]
        body = {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": _MANAGED_BY,
                "annotations": {kwok.REGISTERS_AT: due_at.isoformat()},
            },
            "data": {_CONTENT: msgspec.json.encode(node).decode()},
        }
        return _opened(await self._api.create(CONFIG_MAPS, body, self._namespace))

    async def find(self, name: str) -> Envelope | None:
        try:
            return _opened(await self._api.get(CONFIG_MAPS, name, self._namespace))
        except NotFound:
            return None

    async def all(self) -> list[Envelope]:
        items, _ = await self._api.list_all(CONFIG_MAPS, self._namespace)
        opened = (_opened(item) for item in items)
        return [envelope for envelope in opened if envelope is not None]

    async def discard(self, envelope: Envelope) -> None:
        """Repeatable: one that is gone already was discarded before."""
        with suppress(NotFound):
            await self._api.delete(
                CONFIG_MAPS, envelope.name, uid=envelope.uid, namespace=self._namespace
            )


def _opened(data: bytes | msgspec.Raw) -> Envelope | None:
    """None for every ConfigMap that is none of ours."""
    try:
        written = _WRITTEN.decode(data)
    except DECODE_ERRORS:
        return None
    content = written.data.get(_CONTENT, "").encode()
    due_at = read_time(written.annotations.get(kwok.REGISTERS_AT, ""))
    instance = read_instance(content)
    if due_at is None or instance is None or instance.name != written.name:
        return None
    try:
        node = jsontext.body(content)
    except SpecError:
        return None
    return Envelope(
        name=written.name,
        uid=written.uid,
        due_at=due_at,
        instance=instance,
        node=node,
    )
