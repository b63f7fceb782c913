"""Where a replica keeps the keys of its webhook, and when it has none."""

from __future__ import annotations

import asyncio
import io
import socket

import pytest

from tenure.cli.cluster.access import Reached
from tenure.cli.replica.webhook import new_webhook
from tenure.kube.client.kubeconfig import Access
from tenure.kube.webhook.webhook import Webhook
from tenure.model.settings import Settings
from tenure.providers.registry import find
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.telemetry.logs import make_log
from tenure.runtime.telemetry.metrics import Metrics
from tests.kube.memoryapi import CONFIGURATION, Json, MemoryApi, a_configuration

URL = "https://127.0.0.1:9443/validate"
POD = Reached(Access(server="https://10.0.0.1", namespace="own"), "the pod's account", in_pod=True)
LAPTOP = Reached(Access(server="https://10.0.0.1", namespace="someones"), "a kubeconfig")


def webhook_of(settings: Settings, reached: Reached, api_server: MemoryApi) -> Webhook | None:
    return new_webhook(
        settings,
        reached,
        find("kwok"),
        client=api_server.client,
        log=make_log(io.BytesIO(), SystemClock(), level="info", text=True),
        metrics=Metrics(),
    )


def kept_at(reached: Reached, configuration: Json) -> list[str]:
    """The Secrets that one look of it leaves."""
    api_server = MemoryApi()
    api_server.put(CONFIGURATION, configuration)

    async def look() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        webhook = webhook_of(Settings(webhook_port=port), reached, api_server)
        assert webhook is not None
        await webhook.look()
        await webhook.close()

    asyncio.run(look())
    return [path for _, path in api_server.writes if "/secrets/" in path]


@pytest.mark.parametrize(
    ("reached", "configuration", "secrets"),
    [
        pytest.param(
            POD,
            a_configuration(),
            ["/api/v1/namespaces/own/secrets/tenure-webhook"],
            id="in a pod in its own namespace",
        ),
        pytest.param(
            LAPTOP,
            a_configuration(URL),
            ["/api/v1/namespaces/kube-system/secrets/tenure-webhook"],
            id="elsewhere beside the Lease",
        ),
        pytest.param(LAPTOP, a_configuration(), [], id="elsewhere nowhere without a URL"),
    ],
)
def test_keys_are_kept_where_all_replicas_find_them(
    reached: Reached, configuration: Json, secrets: list[str]
) -> None:
    assert kept_at(reached, configuration) == secrets


def test_port_0_is_no_webhook() -> None:
    assert webhook_of(Settings(webhook_port=0), POD, MemoryApi()) is None
