"""Where the webhook's keys are kept: one Secret for all replicas.

Every replica reads it and renews what is due; the resourceVersion lets only the first one write,
and the others take what it wrote. Nothing but our four entries is changed in it.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from tenure.errors import AlreadyExists, Conflict, NotFound, Unavailable
from tenure.kube.certfacts import UNREADABLE, split
from tenure.kube.certs import Pair
from tenure.kube.client.client import Client
from tenure.kube.webhook.keys import Keys, Lives, renewed
from tenure.model.api.resource import SECRETS
from tenure.parse.jsontext import DECODE_ERRORS

#: A race that is lost more often than this is no race but a fault.
TRIES: Final = 4

_T = TypeVar("_T")


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    data: Mapping[str, bytes] | None = None

    @property
    def keys(self) -> Keys | None:
        """None where one of them is missing or cannot be read."""
        data = self.data or {}
        try:
            bundle = data["ca.crt"].decode()
            return Keys(
                bundle=bundle,
                authority=Pair(split(bundle)[0], data["ca.key"].decode()),
                server=Pair(data["tls.crt"].decode(), data["tls.key"].decode()),
            )
        except (KeyError, *UNREADABLE):
            return None


class KeySecret:
    def __init__(self, client: Client, name: str, namespace: str) -> None:
        self._client = client
        self._name, self._namespace = name, namespace

    async def current(
        self, names: Collection[str], now: datetime, lives: Lives | None = None
    ) -> Keys:
        """The keys for a server of these names, renewed and kept where that is due."""
        for _ in range(TRIES):
            secret = await self._read()
            kept = secret.keys if secret else None
            keys = renewed(kept, names, now, lives)
            if keys == kept:
                return keys
            try:
                await self._write(keys, secret)
            except (Conflict, AlreadyExists):
                continue  # Another replica was faster, and its keys are as good.
            return keys
        raise Unavailable(f"Secret {self._namespace}/{self._name} changes under us")

    async def _read(self) -> _Secret | None:
        try:
            body = await self._client.get(SECRETS, self._name, self._namespace)
        except NotFound:
            return None
        return decoded(body, _Secret)

    async def _write(self, keys: Keys, secret: _Secret | None) -> None:
        data = {
            "ca.crt": keys.bundle,
            "ca.key": keys.authority.key,
            "tls.crt": keys.server.cert,
            "tls.key": keys.server.key,
        }
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
        if secret is None:
            kind = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self._name}}
            await self._client.create(SECRETS, {**kind, "data": encoded}, self._namespace)
        else:
            version = {"resourceVersion": secret.metadata.resource_version}
            await self._client.patch(
                SECRETS,
                self._name,
                {"metadata": version, "data": encoded},
                namespace=self._namespace,
            )


def decoded(body: bytes, type_: type[_T]) -> _T:
    try:
        return msgspec.json.decode(body, type=type_)
    except DECODE_ERRORS as error:
        raise Unavailable(f"an answer that cannot be read: {error}") from error
