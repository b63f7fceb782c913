"""One Secret for all replicas: the first one writes it, and the others take what it wrote."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tenure.errors import Forbidden, Unavailable
from tenure.kube.webhook.keys import Keys
from tenure.kube.webhook.secret import KeySecret
from tests.kube.memoryapi import SECRET, MemoryApi
from tests.kube.transports import in_time, refused

MAY_DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
MONTHS = timedelta(days=70)
NAMES = ["tenure-webhook.tenure.svc"]


def a_secret(api_server: MemoryApi) -> KeySecret:
    return KeySecret(api_server.client, "tenure-webhook", "tenure")


def entries(**texts: str) -> dict[str, Any]:
    data = {
        name.replace("_", "."): base64.b64encode(t.encode()).decode() for name, t in texts.items()
    }
    return {"metadata": {"name": "tenure-webhook"}, "data": data}


def test_keys_are_made_once_and_read_from_then_on() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        first = await a_secret(api_server).current(NAMES, MAY_DAY)
        assert await a_secret(api_server).current(NAMES, MAY_DAY) == first
        assert api_server.writes == [("POST", SECRET)]

    in_time(story)


def test_the_empty_secret_of_the_chart_is_filled() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        api_server.put(SECRET, {"metadata": {"name": "tenure-webhook"}, "type": "Opaque"})
        await a_secret(api_server).current(NAMES, MAY_DAY)
        assert api_server.writes == [("PATCH", SECRET)]
        assert set(api_server.objects[SECRET]["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}

    in_time(story)


def test_replicas_that_start_together_end_with_the_same_keys() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        asked = (a_secret(api_server).current(NAMES, MAY_DAY) for _ in range(5))
        got: list[Keys] = await asyncio.gather(*asked)
        assert all(keys == got[0] for keys in got)
        assert len(api_server.writes) == 1

    in_time(story)


def test_who_loses_the_race_to_create_takes_what_the_other_wrote() -> None:
    async def story() -> None:
        other = MemoryApi()
        theirs = await a_secret(other).current(NAMES, MAY_DAY)
        api_server = MemoryApi()
        api_server.meanwhile = lambda: api_server.objects.update(other.objects)
        assert await a_secret(api_server).current(NAMES, MAY_DAY) == theirs
        assert api_server.writes == []

    in_time(story)


def test_who_loses_the_race_to_renew_takes_what_the_other_wrote() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        await a_secret(api_server).current(NAMES, MAY_DAY)
        before = dict(api_server.objects)
        theirs = await a_secret(api_server).current(NAMES, MAY_DAY + MONTHS)
        renewed = dict(api_server.objects)
        api_server.objects = before
        api_server.meanwhile = lambda: api_server.objects.update(renewed)
        assert await a_secret(api_server).current(NAMES, MAY_DAY + MONTHS) == theirs

    in_time(story)


@pytest.mark.parametrize(
    "garbage",
    [
        entries(),
        entries(ca_crt="no", ca_key="no", tls_crt="no", tls_key="no"),
        entries(ca_crt="", ca_key="", tls_crt="", tls_key=""),
        {"metadata": {"name": "tenure-webhook"}, "data": None},
        {"metadata": {"name": "tenure-webhook"}, "data": {"ca.crt": "/////w=="}},
    ],
    ids=["empty", "no certificates", "empty entries", "no data", "no text"],
)
def test_what_is_not_ours_is_written_over(garbage: dict[str, Any]) -> None:
    async def story() -> None:
        api_server = MemoryApi()
        api_server.put(SECRET, garbage)
        keys = await a_secret(api_server).current(NAMES, MAY_DAY)
        assert await a_secret(api_server).current(NAMES, MAY_DAY) == keys

    in_time(story)


def test_entries_of_others_stay() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        api_server.put(SECRET, entries(note="theirs"))
        await a_secret(api_server).current(NAMES, MAY_DAY)
        assert api_server.objects[SECRET]["data"]["note"] == base64.b64encode(b"theirs").decode()

    in_time(story)


def test_what_may_not_be_read_or_written_is_raised() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        api_server.refusals["GET", SECRET] = refused(403, "Forbidden")
        with pytest.raises(Forbidden):
            await a_secret(api_server).current(NAMES, MAY_DAY)

    in_time(story)


def test_a_secret_that_never_rests_is_given_up_for_now() -> None:
    async def story() -> None:
        api_server = MemoryApi()
        api_server.put(SECRET, entries())
        api_server.refusals["PATCH", SECRET] = refused(409, "Conflict")
        with pytest.raises(Unavailable, match="changes under us"):
            await a_secret(api_server).current(NAMES, MAY_DAY)

    in_time(story)
