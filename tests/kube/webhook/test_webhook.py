"""The webhook as API servers meet it, over real TLS: keys, trust, rotation, and all that may fail."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tenure.kube.webhook.webhook import Webhook, WebhookSettings
from tests.kube.memoryapi import CONFIGURATION, SECRET, MemoryApi, a_configuration
from tests.kube.reviews import a_review, admission
from tests.kube.transports import refused
from tests.schema.objects import an_object

DAY = timedelta(days=1)
PATIENCE: Final = 60.0
WHO: Final = "ValidatingWebhookConfiguration tenure-webhook"
BAD = an_object("MaintenanceWindow", {"spec.schedules": [{"cron": "61 * * * *", "duration": "8h"}]})


class Clock:
    """Starts now, as TLS reads the clock on the wall; goes on when it is told to."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


class Bench:
    """A replica's webhook, and a api_server that others may share."""

    def __init__(self, api_server: MemoryApi | None = None, port: int = 0) -> None:
        self.api_server = api_server or MemoryApi()
        self.clock = Clock()
        self.said: list[str] = []
        self.complaints: list[str] = []
        self.webhook = Webhook(
            client=self.api_server.client,
            clock=self.clock,
            admission=admission(),
            settings=WebhookSettings(namespace="tenure", host="127.0.0.1", port=port),
            say=self.said.append,
            complain=self.complaints.append,
        )

    @property
    def trust(self) -> ssl.SSLContext:
        """What an API server knows that reads the configuration now."""
        (webhook,) = self.api_server.objects[CONFIGURATION]["webhooks"]
        bundle = base64.b64decode(webhook["clientConfig"]["caBundle"]).decode()
        return ssl.create_default_context(cadata=bundle)

    async def review(self, obj: dict[str, Any], trust: ssl.SSLContext | None = None) -> Any:
        async with aiohttp.ClientSession() as session:
            answer = await session.post(
                f"https://127.0.0.1:{self.webhook.port}/validate",
                data=a_review(obj),
                headers={"Content-Type": "application/json"},
                ssl=trust or self.trust,
            )
            return msgspec.json.decode(await answer.read())["response"]


@asynccontextmanager
async def bench(api_server: MemoryApi | None = None, port: int = 0) -> AsyncIterator[Bench]:
    made = Bench(api_server, port)
    try:
        yield made
    finally:
        await made.webhook.close()


def registered() -> MemoryApi:
    api_server = MemoryApi()
    api_server.put(CONFIGURATION, a_configuration("https://127.0.0.1:9443/validate"))
    return api_server


def told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, PATIENCE))


def test_who_trusts_the_configuration_gets_an_answer() -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            await at.webhook.look()
            assert not (await at.review(BAD))["allowed"]
            assert (await at.review(an_object("NodePool")))["allowed"]
            (line,) = at.said
            assert line.startswith(f"webhook: serves on port {at.webhook.port}, with a certificate")

    told(story())


def test_a_look_that_finds_nothing_to_do_writes_nothing_and_says_nothing() -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            await at.webhook.look()
            writes = list(at.api_server.writes)
            await at.webhook.look()
            assert at.api_server.writes == writes == [("POST", SECRET), ("PATCH", CONFIGURATION)]
            assert len(at.said) == 1

    told(story())


def test_two_replicas_present_the_same_certificate() -> None:
    async def story() -> None:
        api_server = registered()
        async with bench(api_server) as one, bench(api_server) as other:
            await asyncio.gather(one.webhook.look(), other.webhook.look())
            assert not (await one.review(BAD))["allowed"]
            assert not (await other.review(BAD))["allowed"]
            assert api_server.writes.count(("POST", SECRET)) == 1

    told(story())


def test_a_renewed_certificate_is_presented_without_a_new_port_and_said() -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            at.clock.at -= 61 * DAY
            await at.webhook.look()
            port, trust = at.webhook.port, at.trust
            at.clock.at += 61 * DAY
            await at.webhook.look()
            assert at.webhook.port == port
            assert not (await at.review(BAD, trust))["allowed"], "by the trust of before"
            assert [line.partition(",")[0] for line in at.said] == [
                f"webhook: serves on port {port}"
            ] * 2

    told(story())


def test_a_replica_that_did_not_renew_itself_presents_what_the_other_made() -> None:
    async def story() -> None:
        api_server = registered()
        async with bench(api_server) as one, bench(api_server) as other:
            for days in (-61, 61):
                for each in (one, other):
                    each.clock.at += days * DAY
                    await each.webhook.look()
            assert len(one.said) == len(other.said) == 2
            assert other.said[1].partition(",")[2] == one.said[1].partition(",")[2]
            assert api_server.writes.count(("PATCH", SECRET)) == 1

    told(story())


def test_a_bundle_that_was_taken_away_comes_back() -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            await at.webhook.look()
            at.api_server.put(CONFIGURATION, a_configuration("https://127.0.0.1:9443/validate"))
            await at.webhook.look()
            assert not (await at.review(BAD))["allowed"]

    told(story())


def test_a_configuration_that_changes_meanwhile_is_read_again() -> None:
    """Else an old bundle could be written over a newer one."""

    async def story() -> None:
        async with bench(registered()) as at:
            await at.webhook.look()
            api_server = at.api_server
            api_server.put(CONFIGURATION, a_configuration("https://127.0.0.1:9443/validate"))

            def another_client() -> None:
                slower = a_configuration("https://127.0.0.1:9443/validate", timeoutSeconds=4)
                api_server.put(CONFIGURATION, slower)

            api_server.meanwhile = another_client
            await at.webhook.look()
            (webhook,) = api_server.objects[CONFIGURATION]["webhooks"]
            assert webhook["timeoutSeconds"] == 4
            assert at.webhook.trouble == ""

    told(story())


# What may fail.


def test_without_a_configuration_nothing_is_written_and_nothing_listens() -> None:
    async def story() -> None:
        async with bench() as at:
            await at.webhook.look()
            await at.webhook.look()
            assert at.said == [
                f"webhook: there is no {WHO}: the API server asks no webhook; it does without"
            ]
            assert (at.complaints, at.api_server.writes, at.webhook.port) == ([], [], None)

    told(story())


def test_it_begins_when_the_configuration_comes() -> None:
    async def story() -> None:
        async with bench() as at:
            await at.webhook.look()
            at.api_server.objects |= registered().objects
            await at.webhook.look()
            assert not (await at.review(BAD))["allowed"]

    told(story())


REFUSALS = [
    ("GET", CONFIGURATION, "ValidatingWebhookConfiguration tenure-webhook: 403", None),
    ("GET", SECRET, "Secret tenure/tenure-webhook: 403", None),
    ("POST", SECRET.rpartition("/")[0], "Secret tenure/tenure-webhook: 403", None),
    ("PATCH", CONFIGURATION, "API servers may not believe us", int),
]


@pytest.mark.parametrize(
    ("verb", "path", "says", "port"),
    [pytest.param(*case, id=f"{case[0]} {case[1].split('/')[-1]}") for case in REFUSALS],
)
def test_a_missing_permission_is_one_line(
    verb: str, path: str, says: str, port: type[int] | None
) -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            at.api_server.refusals[verb, path] = refused(403, "Forbidden")
            await at.webhook.look()
            await at.webhook.look()
            (line,) = at.complaints
            assert says in line
            assert isinstance(at.webhook.port, port or type(None))

    told(story())


def test_an_api_server_that_is_away_takes_nothing_from_who_serves_already() -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            await at.webhook.look()
            for path in (SECRET, CONFIGURATION):
                at.api_server.refusals["GET", path] = refused(500, "InternalError")
            await at.webhook.look()
            assert not (await at.review(BAD))["allowed"]
            assert at.complaints[0].endswith("it goes on with the keys it has")
            at.api_server.refusals.clear()
            await at.webhook.look()
            assert at.webhook.trouble == ""
            assert len(at.said) == 2, "and says when all is well again"

    told(story())


def test_a_port_that_is_taken_is_one_line() -> None:
    async def story() -> None:
        api_server = registered()
        async with bench(api_server) as one:
            await one.webhook.look()
            assert one.webhook.port is not None
            async with bench(api_server, one.webhook.port) as other:
                await other.webhook.look()
                assert other.complaints == [
                    f"webhook: cannot serve on port {one.webhook.port}: Address already in use"
                ]

    told(story())


def test_a_configuration_that_does_not_lead_here_is_left_alone() -> None:
    async def story() -> None:
        async with bench() as at:
            at.api_server.put(CONFIGURATION, {"metadata": {}, "webhooks": []})
            await at.webhook.look()
            assert at.said == [f"webhook: {WHO} does not lead here; it does without"]
            assert at.api_server.writes == []

    told(story())


def test_no_key_is_ever_said() -> None:
    async def story() -> None:
        async with bench(registered()) as at:
            await at.webhook.look()
            data = at.api_server.objects[SECRET]["data"]
            at.api_server.put(SECRET, {"metadata": {}, "data": {**data, "tls.crt": "bm8="}})
            at.api_server.refusals["PATCH", SECRET] = refused(403, "Forbidden")
            await at.webhook.look()
            lines = " ".join(at.said + at.complaints)
            assert "PRIVATE" not in lines
            assert not any(value in lines for value in data.values())

    told(story())
