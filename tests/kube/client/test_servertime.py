"""By how much our clock is ahead of the API server's, by the ``Date`` of its answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure.cli.cluster.greeting import server_time
from tenure.kube.client.servertime import DatedTransport, ServerTime, read_date
from tenure.ports.transport import Request, Response
from tests.kube.transports import Scripted, answered, in_time

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
BOUND = timedelta(seconds=10)
AT_NOON = "Sun, 15 Nov 2026 12:00:00 GMT"
FAR_AWAY = "Sun, 15 Nov 99999999999 12:00:00 GMT"


class TwoClocks:
    """Each is moved by hand."""

    def __init__(self) -> None:
        self.wall = NOON
        self.ticks = 100.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.ticks += seconds


def test_a_step_shows_at_once_and_not_with_the_next_answer() -> None:
    clocks = TwoClocks()
    server = ServerTime(clocks)
    server.heard(AT_NOON, took=0.1)
    clocks.pass_(50)
    assert server.off(BOUND) == ""
    clocks.wall += timedelta(hours=1)
    assert server.off(BOUND) == "the clock of this replica is 1h0m0s ahead of the API server's"
    clocks.wall -= timedelta(hours=2)
    assert server.off(BOUND) == "the clock of this replica is 1h0m0s behind the API server's"


def test_whole_seconds_and_slow_answers_make_no_skew() -> None:
    clocks = TwoClocks()
    server = ServerTime(clocks)
    server.heard(AT_NOON, took=0.1)
    clocks.pass_(30)
    server.heard(AT_NOON, took=30)
    assert abs(server.skew()) <= timedelta(seconds=1), "an answer that took 30 s says nothing"


@pytest.mark.parametrize(
    "said", ["", "yesterday", "Sun, 31 Feb 2026 12:00:00 GMT", "x" * 10**6, FAR_AWAY]
)
def test_what_is_no_date_says_nothing(said: str) -> None:
    server = ServerTime(TwoClocks())
    server.heard(said, took=0)
    assert (read_date(said), server.skew()) == (None, timedelta(0))


def test_the_form_of_http_is_read() -> None:
    assert read_date("Sun, 06 Nov 1994 08:49:37 GMT") == datetime(
        1994, 11, 6, 8, 49, 37, tzinfo=UTC
    )


@pytest.mark.parametrize("name", ["Date", "date"])
def test_a_header_is_read_however_a_proxy_spells_it(name: str) -> None:
    async def story() -> None:
        answer = Response(status=200, body=b"{}", headers={name: AT_NOON})
        assert await server_time(Scripted(answer)) == NOON

    in_time(story)


def test_the_time_is_asked_for_when_it_is_old_or_would_hold_something() -> None:
    async def story() -> None:
        clocks = TwoClocks()
        server = ServerTime(clocks)
        scripted = Scripted(answered({}, Date=AT_NOON))
        transport = DatedTransport(scripted, server, clocks)
        await transport.request(Request(method="GET", path="/a"))
        await server.ask_if_needed(transport, BOUND)
        assert len(scripted.requests) == 1, "what is known is new"
        clocks.pass_(61)
        await server.ask_if_needed(transport, BOUND)
        assert len(scripted.requests) == 2
        assert server.off(BOUND), "the server says noon, and it is a minute later"
        await server.ask_if_needed(transport, BOUND)
        assert len(scripted.requests) == 2, "it has just been asked"
        clocks.pass_(2)
        await server.ask_if_needed(transport, BOUND)
        assert len(scripted.requests) == 3

    in_time(story)
