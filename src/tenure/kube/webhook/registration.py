"""Who asks us, and under which names: the ValidatingWebhookConfiguration that is installed.

It comes without a ``caBundle``, which is ours to fill in; nothing else in it is changed. The names
that our certificate needs are the ones it sends API servers to: those of Services, or the hosts
of URLs where Tenure runs outside the cluster.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tenure.kube.client.client import Client
from tenure.kube.webhook.secret import decoded
from tenure.model.api.resource import VALIDATING_WEBHOOK_CONFIGURATIONS


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class Registration(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    webhooks: list[dict[str, Any]] = []

    def names(self, *, services: bool) -> tuple[str, ...]:
        """Hosts and addresses; without those that no certificate can have. ``services``: whether
        a Service can lead to us."""
        found = {name for webhook in self.webhooks for name in _names(webhook, services=services)}
        return tuple(sorted(found))

    def trusting(self, bundle: str) -> Registration:
        encoded = base64.b64encode(bundle.encode()).decode()
        changed = [_with(webhook, caBundle=encoded) for webhook in self.webhooks]
        return msgspec.structs.replace(self, webhooks=changed)


async def read_registration(client: Client, name: str) -> Registration:
    return decoded(await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, name), Registration)


async def make_trusted(client: Client, name: str, found: Registration, bundle: str) -> None:
    """Written only where one of its webhooks does not trust the bundle yet. Raises ``Conflict``
    where another client has changed it since: then the bundle may be the older one."""
    trusting = found.trusting(bundle)
    if trusting == found:
        return
    # A list is patched as a whole, so it goes back as it came, every foreign field included.
    version = {"resourceVersion": found.metadata.resource_version}
    patch = {"metadata": version, "webhooks": trusting.webhooks}
    await client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, name, patch)


def _with(webhook: Mapping[str, Any], **client_config: str) -> dict[str, Any]:
    return {**webhook, "clientConfig": {**webhook.get("clientConfig", {}), **client_config}}


def _names(webhook: Mapping[str, Any], *, services: bool) -> Iterator[str]:
    config = webhook.get("clientConfig", {})
    if service := config.get("service"):
        if services:
            yield f"{service.get('name')}.{service.get('namespace')}.svc"
    elif host := _host(config.get("url", "")):
        yield host


def _host(url: str) -> str:
    """As a certificate has it, so that equal ones are equal."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host if host.isascii() else ""
