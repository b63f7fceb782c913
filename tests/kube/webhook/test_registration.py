"""Which names a configuration sends API servers to, and that only its trust is ours."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from tenure.errors import Conflict
from tenure.kube.webhook.registration import Registration, make_trusted, read_registration
from tests.kube.memoryapi import CONFIGURATION, MemoryApi, a_configuration
from tests.kube.transports import in_time

NAME = "tenure-webhook"
CASES = [
    ("a Service", a_configuration(), ("tenure-webhook.tenure.svc",)),
    (
        "a host",
        a_configuration("https://tenure.example.com:9443/validate"),
        ("tenure.example.com",),
    ),
    ("an address", a_configuration("https://10.1.2.3/validate"), ("10.1.2.3",)),
    ("a long address", a_configuration("https://[0:0:0:0:0:0:0:1]:9443/validate"), ("::1",)),
    ("capitals", a_configuration("https://Tenure.Example.COM/v"), ("tenure.example.com",)),
    ("the same twice", a_configuration("https://a/b", "https://a/c"), ("a",)),
    ("no text of a certificate", a_configuration("https://bücher.example/v"), ()),
    ("no URL", a_configuration("https://[::1/v"), ()),
    ("nothing", {"metadata": {}, "webhooks": []}, ()),
]


@pytest.mark.parametrize(
    ("configuration", "names"), [pytest.param(c, n, id=says) for says, c, n in CASES]
)
def test_the_certificate_gets_the_names_that_api_servers_are_sent_to(
    configuration: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert msgspec.convert(configuration, Registration).names(services=True) == names


def test_outside_the_cluster_a_service_does_not_lead_to_us() -> None:
    both = a_configuration("https://10.1.2.3/validate")
    both["webhooks"] += a_configuration()["webhooks"]
    assert msgspec.convert(both, Registration).names(services=False) == ("10.1.2.3",)


def test_the_bundle_is_filled_in_once_and_nothing_else_is_changed() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        before = api_server.put(CONFIGURATION, a_configuration(timeoutSeconds=3, rules=[{"x": 1}]))
        for _ in range(2):
            found = await read_registration(api_server.client, NAME)
            await make_trusted(api_server.client, NAME, found, "PEM")
        assert api_server.writes == [("PATCH", CONFIGURATION)]
        (webhook,) = api_server.objects[CONFIGURATION]["webhooks"]
        assert webhook["clientConfig"].pop("caBundle") == base64.b64encode(b"PEM").decode()
        assert webhook == before["webhooks"][0]

    in_time(story)


def test_a_change_in_between_is_noticed() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        api_server.put(CONFIGURATION, a_configuration())
        found = await read_registration(api_server.client, NAME)
        api_server.put(CONFIGURATION, a_configuration(timeoutSeconds=7))
        with pytest.raises(Conflict):
            await make_trusted(api_server.client, NAME, found, "PEM")

    in_time(story)
