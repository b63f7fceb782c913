"""Where the webhook's keys are kept and who is told to trust them: a Secret and a configuration.

Every replica reads the Secret and renews what is due; the resourceVersion lets only the first
one write, and the others take what it wrote. Every replica also sees to it that the
ValidatingWebhookConfiguration, which is installed without a ``caBundle``, has ours in each of its
webhooks. Nothing else in either object is ours, and nothing else is changed.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from tenure.errors import AlreadyExists, Conflict, NotFound, Unavailable
from tenure.kube.certs import Pair, split
from tenure.kube.client import Client
from tenure.kube.webhookkeys import Keys, Lives, renewed
from tenure.model.resource import SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS

#: Whoever loses a race more often than this has no race but a fault.
_TRIES: Final = 4

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
        except (KeyError, ValueError):
            return None


class _Configuration(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    webhooks: list[dict[str, Any]] = []


class KeySecret:
    def __init__(self, client: Client, name: str, namespace: str) -> None:
        self._client = client
        self._name, self._namespace = name, namespace

    async def current(
        self, names: Collection[str], now: datetime, lives: Lives | None = None
    ) -> Keys:
        """The keys for a server of these names, renewed and kept where that is due."""
        for _ in range(_TRIES):
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
        return _decoded(body, _Secret)

    async def _write(self, keys: Keys, secret: _Secret | None) -> None:
        data = {
            "ca.crt": keys.bundle,
            "ca.key": keys.authority.key,
            "tls.crt": keys.server.cert,
            "tls.key": keys.server.key,
        }
        body = {"data": {name: _encoded(text) for name, text in data.items()}}
        if secret is None:
            kind = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self._name}}
            await self._client.create(SECRETS, {**kind, **body}, self._namespace)
        else:
            version = {"metadata": {"resourceVersion": secret.metadata.resource_version}}
            await self._client.patch(
                SECRETS, self._name, {**version, **body}, namespace=self._namespace
            )


async def make_trusted(client: Client, configuration: str, bundle: str) -> None:
    """Every webhook of the configuration trusts the bundle; written only where one does not."""
    for _ in range(_TRIES):
        body = await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration)
        found = _decoded(body, _Configuration)
        trusting = [_trusting(webhook, _encoded(bundle)) for webhook in found.webhooks]
        if trusting == found.webhooks:
            return
        version = {"resourceVersion": found.metadata.resource_version}
        # A list is patched as a whole, so it goes back as it came, every foreign field included.
        patch = {"metadata": version, "webhooks": trusting}
        try:
            await client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration, patch)
        except Conflict:
            continue
        return
    raise Unavailable(f"ValidatingWebhookConfiguration {configuration} changes under us")


def _trusting(webhook: dict[str, Any], bundle: str) -> dict[str, Any]:
    client_config = {**webhook.get("clientConfig", {}), "caBundle": bundle}
    return {**webhook, "clientConfig": client_config}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(body: bytes, type_: type[_T]) -> _T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unavailable(f"an answer that cannot be read: {error}") from error
