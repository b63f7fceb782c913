"""An informer's table is what the server has, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from tenure.errors import TenureError
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.informer import FRESH_FOR, RETRY_MAX, SILENCE_MAX, Informer
from tenure.kube.client.client import Client
from tenure.model.api.resource import NODE_POOLS, PODS
from tenure.model.snapshot.kinds import decode
from tenure.ports.transport import Request, Response, Transport
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualClock, VirtualLoop, run_virtually
from tests.kube.transports import (
    Lines,
    Played,
    Silent,
    a_line,
    a_list,
    a_pool,
    answered,
    json,
    refused,
    status_of,
)

EPOCH = datetime(2030, 6, 3, 12, tzinfo=UTC)


class Followed:
    """An informer at work on a transport, and what it made of it."""

    def __init__(self, transport: Transport, resource: Any = NODE_POOLS) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.clock = VirtualClock(loop, EPOCH)
        self.cache = Cache()
        self.reports: list[str] = []
        self.informer = Informer(
            Client(transport),
            resource,
            self.cache,
            clock=self.clock,
            random=Random(1),
            report=lambda _, error: self._report(error),
        )
        self.resource = resource
        self.task = loop.create_task(self.informer.run())

    def _report(self, error: TenureError) -> None:
        self.reports.append(str(error))

    async def after(self, seconds: float) -> list[str]:
        """The keys that are known that much later."""
        await asyncio.sleep(seconds)
        if self.task.done():
            self.task.result()
        return sorted(self.cache.tables.table(self.resource))

    def versions(self) -> list[tuple[str, str]]:
        return [
            (c.key, c.new.metadata.resource_version if c.new else "gone")
            for c in self.cache.take_changes()
        ]


def follow(transport: Transport, tell: Callable[[Followed], Awaitable[None]]) -> None:
    async def run() -> None:
        followed = Followed(transport)
        await tell(followed)
        followed.task.cancel()

    run_virtually(run())


def test_a_list_then_events_then_a_bookmark_then_on_from_there() -> None:
    lines = [
        a_line("ADDED", a_pool("b", 6)),
        a_line("MODIFIED", a_pool("a", 7, apiVersion="v1")),
        a_line("DELETED", a_pool("b", 8)),
        a_line("BOOKMARK", {"metadata": {"resourceVersion": "40"}}),
    ]
    transport = Played(a_list(a_pool("a", 3)), Lines(lines), Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        assert await followed.after(1) == ["a"]
        assert followed.cache.tables.table(NODE_POOLS)["a"].metadata.resource_version == "7"
        assert transport.watched_from == ["5", "40"]
        assert transport.lists == 1
        assert followed.reports == []

    follow(transport, tell)


def test_a_bookmark_without_a_version_moves_nothing() -> None:
    transport = Played(a_list(), Lines([a_line("BOOKMARK", {"metadata": {}})]), Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(1)
        assert (transport.watched_from, transport.lists) == (["5", "5"], 1)

    follow(transport, tell)


@pytest.mark.parametrize(
    "too_old",
    [
        pytest.param(refused(410, "Expired"), id="as a refusal"),
        pytest.param(Lines([a_line("ERROR", status_of(410, "Expired"))]), id="inside the stream"),
    ],
)
def test_a_version_that_is_too_old_means_to_list_again(too_old: Any) -> None:
    transport = Played(a_list(), too_old, Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(1)
        assert transport.lists == 2
        assert followed.reports == [], "that is no fault"

    follow(transport, tell)


def test_a_server_that_forgets_at_once_is_not_asked_in_a_loop() -> None:
    transport = Played(a_list(), refused(410, "Expired"))

    async def tell(followed: Followed) -> None:
        await followed.after(600)
        assert transport.lists < 40
        assert not followed.informer.connected

    follow(transport, tell)


def test_streams_that_end_at_once_are_not_opened_in_a_loop() -> None:
    transport = Played(a_list(), Lines())

    async def tell(followed: Followed) -> None:
        await followed.after(600)
        assert len(transport.opened_at) < 40
        assert transport.lists == 1, "nothing was lost, so nothing is listed again"

    follow(transport, tell)


def test_pauses_grow_are_jittered_and_end_where_they_may() -> None:
    transport = Played(a_list(), Lines())

    async def tell(followed: Followed) -> None:
        await followed.after(900)
        gaps = [b - a for a, b in zip(transport.opened_at, transport.opened_at[1:], strict=False)]
        longest = RETRY_MAX.total_seconds()
        assert 0.1 <= gaps[0] <= 0.2
        assert all(0.5 * longest <= gap <= longest for gap in gaps[-5:])
        assert len(set(gaps[-5:])) == 5

    follow(transport, tell)


def test_a_stream_that_brought_something_begins_the_pauses_anew() -> None:
    bookmark = Lines([a_line("BOOKMARK", {"metadata": {"resourceVersion": "9"}})], then="breaks")
    transport = Played(a_list(), *[Lines()] * 8, bookmark, Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(120)
        assert transport.opened_at[8] - transport.opened_at[7] > 5
        assert transport.opened_at[9] - transport.opened_at[8] <= 0.2
        assert followed.reports == ["503 ServiceUnavailable: connection reset"]

    follow(transport, tell)


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(Lines([b"<html>"]), id="a line that is no JSON"),
        pytest.param(Lines([b'{"type":"ERROR","object":5}']), id="an error that is none"),
        pytest.param(Lines([b'{"type":"BOOKMARK","object":[]}']), id="a bookmark that is none"),
        pytest.param(Lines([a_line("ERROR", status_of(500))]), id="an internal error"),
        pytest.param(refused(403, "Forbidden"), id="a watch that is forbidden"),
        pytest.param(answered(b"<html>", 502), id="a proxy's apology"),
    ],
)
def test_nothing_that_a_server_may_say_ends_an_informer(nonsense: Any) -> None:
    transport = Played(
        a_list(), nonsense, nonsense, Lines([a_line("ADDED", a_pool("a", 9))], then="stays")
    )

    async def tell(followed: Followed) -> None:
        assert await followed.after(10) == ["a"]
        assert len(followed.reports) == 2

    follow(transport, tell)


def test_a_list_that_cannot_be_read_is_tried_again() -> None:
    transport = Played(answered(b"<html>"), Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(60)
        assert 5 < transport.lists < 20
        assert not followed.informer.synced
        assert "cannot be read" in followed.reports[0]

    follow(transport, tell)


def test_an_api_that_never_answers_is_waited_for() -> None:
    async def tell(followed: Followed) -> None:
        await followed.after(300)
        assert not followed.informer.synced
        assert not followed.informer.is_fresh(followed.clock.monotonic())
        assert all("no answer" in report for report in followed.reports)

    follow(Silent(), tell)


SILENCE = SILENCE_MAX.total_seconds()


class Probed(Played):
    """What is listed changes with the second list, which is the probe."""

    def __init__(self, listed: Response, probed: Response, *streams: Lines | Response) -> None:
        super().__init__(listed, *streams)
        self._probed = probed

    async def request(self, request: Request) -> Response:
        answer = await super().request(request)
        return answer if self.lists == 1 else self._probed


def test_a_quiet_kind_whose_bookmarks_are_late_is_no_news_and_not_listed_anew() -> None:
    first, second = Lines(then="stays"), Lines([a_line("ADDED", a_pool("b", 12))], then="stays")
    same = a_list(a_pool("a", 3), version="9")
    transport = Probed(a_list(a_pool("a", 3)), same, first, second)

    async def tell(followed: Followed) -> None:
        assert await followed.after(SILENCE - 1) == ["a"]
        assert not first.closed
        assert await followed.after(2) == ["a", "b"]
        assert followed.reports == []
        assert transport.watched_from == ["5", "9"], "it goes on from the version of the page"
        assert followed.informer.lists == 1
        assert followed.informer.is_fresh(followed.clock.monotonic())

    follow(transport, tell)


@pytest.mark.parametrize(
    ("probed", "missed"),
    [
        (a_list(a_pool("a", 9), a_pool("b", 12), version="20"), "a change of b"),
        (a_list(a_pool("a", 11), version="20"), "a change of a"),
        (a_list(version="20"), "the end of a"),
    ],
    ids=["came", "changed", "went"],
)
def test_a_silent_watch_that_is_behind_is_said_and_opened_again_where_it_was(
    probed: Response, missed: str
) -> None:
    first = Lines([a_line("ADDED", a_pool("a", 9))], then="stays")
    transport = Probed(
        a_list(), probed, first, Lines([a_line("ADDED", a_pool("b", 12))], then="stays")
    )

    async def tell(followed: Followed) -> None:
        assert await followed.after(SILENCE - 1) == ["a"]
        assert await followed.after(2) == ["a", "b"]
        assert first.closed
        assert transport.watched_from == ["5", "9"]
        (report,) = followed.reports
        said = "503 ServiceUnavailable: the watch of nodepools.karpenter.sh fell silent and missed"
        assert report == f"{said} {missed}"
        assert followed.informer.lists == 1

    follow(transport, tell)


def test_a_page_that_is_not_the_whole_list_proves_nothing_about_the_rest() -> None:
    """It is opened again without a word, but what we have is not fresh by that."""
    page = a_list(a_pool("a", 3), version="9", continue_="more")
    transport = Probed(a_list(a_pool("a", 3), a_pool("z", 4)), page, Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(SILENCE + 1)
        assert (followed.reports, transport.watched_from) == ([], ["5", "5"])
        await followed.after(SILENCE)
        assert not followed.informer.is_fresh(followed.clock.monotonic())

    follow(transport, tell)


def test_an_object_that_cannot_be_read_is_compared_as_well() -> None:
    bad = a_pool("bad", 6) | {"spec": {"weight": {"heavy": True}}}
    transport = Probed(a_list(bad), a_list(bad, version="9"), Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(SILENCE + 1)
        assert transport.watched_from == ["5", "9"]
        assert len(followed.reports) == 1, "of the object, when it was listed"

    follow(transport, tell)


def test_what_was_written_by_us_since_is_not_taken_for_something_missed() -> None:
    page = a_list(a_pool("a", 3), version="9")
    transport = Probed(a_list(a_pool("a", 3)), page, Lines(then="stays"))

    async def tell(followed: Followed) -> None:
        await followed.after(1)
        new = decode(NODE_POOLS, json(a_pool("new", 15)))
        followed.cache.upsert(NODE_POOLS, new)
        await followed.after(SILENCE + 1)
        assert followed.reports == []

    follow(transport, tell)


def test_an_object_that_cannot_be_read_stops_no_other_and_recovers() -> None:
    bad = a_pool("bad", 6) | {"spec": {"weight": {"heavy": True}}}
    transport = Played(
        a_list(a_pool("good", 3), bad),
        Lines([a_line("ADDED", a_pool("late", 7))]),
        Lines([a_line("MODIFIED", a_pool("bad", 8))], then="stays"),
    )

    async def tell(followed: Followed) -> None:
        assert await followed.after(1) == ["bad", "good", "late"]
        assert not followed.cache.tables.unreadable
        assert len(followed.reports) == 1
        assert followed.reports[0].startswith("NodePool/bad: got 'Expected `int")

    follow(transport, tell)


def test_health_says_what_was_heard_and_when() -> None:
    transport = Played(a_list(), Lines([a_line("ADDED", a_pool("a", 9))], then="stays"))

    async def tell(followed: Followed) -> None:
        informer = followed.informer
        await followed.after(60)
        assert (informer.synced, informer.connected) == (True, True)
        assert informer.last_heard_at == 0
        assert informer.is_fresh(FRESH_FOR.total_seconds())
        assert not informer.is_fresh(FRESH_FOR.total_seconds() + 1)

    follow(transport, tell)


# -- on the embedded store ------------------------------------------------------------------


def stored(tell: Callable[[Store, InProcessTransport], Awaitable[None]]) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        env = Environment(loop, epoch=EPOCH, seed=1)
        store = Store(env.clock, env.random_for("store"), env.at, env.soon)
        await tell(store, InProcessTransport(Api(store)))

    run_virtually(run())


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "app"}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_a_day_of_streams_that_end_loses_and_invents_nothing() -> None:
    """The server ends a watch after 30 to 60 minutes; objects come and go all the time."""

    async def tell(store: Store, transport: InProcessTransport) -> None:
        followed = Followed(transport, PODS)
        for number in range(200):
            store.create(PODS, pod(f"p{number}"))
            if number > 2:
                store.delete(PODS, "default", f"p{number - 3}", 0)
            keys = await followed.after(437)
            assert len(keys) == min(number + 1, 3)
        assert followed.reports == []
        followed.task.cancel()

    stored(tell)


def test_what_was_deleted_while_we_could_not_hear_vanishes_exactly_once() -> None:
    async def tell(store: Store, transport: InProcessTransport) -> None:
        for name in ("a", "b"):
            store.create(PODS, pod(name))
        followed = Followed(transport, PODS)
        await followed.after(1)
        followed.versions()
        store.delete(PODS, "default", "a", 0)
        store.shelf(PODS).history.forget(store.version)
        for watch in list(store.shelf(PODS).watches):
            watch._lines.clear()  # What was on its way is lost with the connection.
            watch.end()
        assert await followed.after(5) == ["default/b"]
        assert followed.versions() == [("default/a", "gone")]
        followed.task.cancel()

    stored(tell)
