"""Answers for the page: one thread at a time, on a twin of the cluster that is let go once nothing asks."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.page import answers
from tenure.cli.page.source import PageSource
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.web.source import About, NotNow, NotThere
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.node import Node
from tenure.model.api.resource import NODES
from tenure.model.snapshot.snapshot import MANY, Snapshot, Tables
from tenure.runtime.evaluate.verdicts import VerdictsInForce
from tenure.runtime.telemetry.ring import Entry

NOW = datetime(2026, 1, 5, tzinfo=UTC)
#: So much longer, or shorter, than in life does a look serve.
FOR_EVER, NO_TIME = 1e6, 0.0


class Program:
    def __init__(self) -> None:
        self.tables = Tables()
        self.asked = 0
        self.listed = True
        self.put("n0")

    def put(self, name: str) -> None:
        self.tables.put(NODES, Node(metadata=ObjectMeta(name=name)))

    def about(self) -> About:
        raise NotImplementedError

    def inputs(self) -> Inputs | None:
        raise NotImplementedError

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        raise NotImplementedError

    def evaluated(self) -> EvaluatedCluster | None:
        self.asked += 1
        if not self.listed:
            return None
        return EvaluatedCluster(at=NOW, snapshot=Snapshot(self.tables), evaluator=VerdictsInForce())

    def silence(self) -> str:
        return ""

    def where(self) -> str:
        return ""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setattr(answers, "why", lambda seen, _: ",".join(seen.snapshot.nodes).encode())
    return Program()


def told(
    program: Program, story: Callable[[PageSource], Coroutine[Any, Any, None]], speed: float
) -> None:
    async def whole() -> None:
        source = PageSource(program, speed=speed)
        try:
            await story(source)
        finally:
            source.close()

    asyncio.run(whole())
    assert not program.tables.noted


async def _until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


def test_a_look_serves_all_who_ask_meanwhile(program: Program) -> None:
    async def story(source: PageSource) -> None:
        assert await source.why("a") == b"n0"
        program.put("n1")
        assert await source.why("b") == b"n0"
        assert program.asked == 1

    told(program, story, FOR_EVER)


def test_the_next_look_has_caught_up(program: Program) -> None:
    async def story(source: PageSource) -> None:
        assert await source.why("a") == b"n0"
        program.put("n1")
        assert await source.why("a") == b"n0,n1"

    told(program, story, NO_TIME)


def test_once_nothing_asks_nothing_is_noted_or_kept(program: Program) -> None:
    async def story(source: PageSource) -> None:
        await source.why("a")
        await _until(lambda: not program.tables.noted)

    told(program, story, NO_TIME)


def test_while_it_is_kept_it_catches_up_unasked(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.cli.page.source.LOOK_KEPT", 0.0)

    async def story(source: PageSource) -> None:
        await source.why("a")
        seen = program.asked
        await _until(lambda: program.asked > seen + 1)
        assert program.tables.noted

    told(program, story, FOR_EVER)


def test_it_catches_up_at_once_where_much_has_changed(program: Program) -> None:
    async def story(source: PageSource) -> None:
        await source.why("a")
        for number in range(MANY):
            program.put(f"more{number}")
        await _until(lambda: program.asked == 2)
        said = (await source.why("a")).decode().split(",")
        assert len(said) == MANY + 1

    told(program, story, FOR_EVER)


def test_where_much_changes_it_is_let_go_as_well(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.cli.page.source.TWIN_KEPT", 0.0)

    async def story(source: PageSource) -> None:
        await source.why("a")
        for number in range(MANY):
            program.put(f"more{number}")
        await _until(lambda: program.asked > 1 or not program.tables.noted)
        assert program.asked == 1

    told(program, story, FOR_EVER)


def test_while_the_cluster_is_listed_anew_nothing_is_kept(program: Program) -> None:
    async def story(source: PageSource) -> None:
        await source.why("a")
        program.listed = False
        for number in range(MANY):
            program.put(f"more{number}")
        await _until(lambda: not program.tables.noted)

    told(program, story, FOR_EVER)


def test_before_every_kind_is_listed_it_is_said_and_the_next_question_is_answered(
    program: Program,
) -> None:
    async def story(source: PageSource) -> None:
        program.listed = False
        with pytest.raises(NotNow, match="still being listed"):
            await source.why("a")
        program.listed = True
        assert await source.why("a") == b"n0"

    told(program, story, FOR_EVER)


def test_a_thread_whose_reader_has_left_ends_before_the_next_begins(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, begun, said = threading.Event(), threading.Event(), []

    def slow(_: EvaluatedCluster, subject: str) -> bytes:
        said.append(f"{subject} begins")
        begun.set()
        goes_on.wait()
        said.append(f"{subject} ends")
        return b""

    monkeypatch.setattr(answers, "why", slow)

    async def story(source: PageSource) -> None:
        first = asyncio.create_task(source.why("first"))
        await _until(begun.is_set)
        first.cancel()
        second = asyncio.create_task(source.why("second"))
        for _ in range(10):
            await asyncio.sleep(0)
        goes_on.set()
        await second

    told(program, story, FOR_EVER)
    assert said == ["first begins", "first ends", "second begins", "second ends"]


def test_a_twin_that_could_not_catch_up_begins_anew(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(source: PageSource) -> None:
        await source.why("a")
        program.put("n1")
        with monkeypatch.context() as broken:
            broken.setattr(Tables, "follow", _broken)
            broken.setattr(Tables, "fill", _broken)
            with pytest.raises(ZeroDivisionError):
                await source.why("a")
        assert await source.why("a") == b"n0,n1"

    told(program, story, NO_TIME)


def _broken(*_: object) -> None:
    raise ZeroDivisionError


@pytest.fixture(params=[True, False], ids=["on", "off"])
def collects(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Python's collector, as a program has it."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_the_collector_rests_while_an_answer_is_made(
    program: Program, monkeypatch: pytest.MonkeyPatch, collects: bool
) -> None:
    def why(seen: EvaluatedCluster, subject: str) -> bytes:
        if subject == "broken":
            raise NotThere("x")
        return str(gc.isenabled()).encode()

    monkeypatch.setattr(answers, "why", why)

    async def story(source: PageSource) -> None:
        assert await source.why("x") == b"False"
        assert gc.isenabled() is collects
        with pytest.raises(NotThere):
            await source.why("broken")
        assert gc.isenabled() is collects
        program.listed = False
        with pytest.raises(NotNow):
            await source.why("x")
        assert gc.isenabled() is collects

    told(program, story, NO_TIME)


def test_the_collector_rests_until_the_twin_has_caught_up(
    program: Program, monkeypatch: pytest.MonkeyPatch, collects: bool
) -> None:
    """Else it goes through all that was replaced during a long answer, within a turn."""
    collecting: list[bool] = []
    follow = Tables.follow

    def caught_up(tables: Tables, changed: Any, derived: Any) -> None:
        collecting.append(gc.isenabled())
        follow(tables, changed, derived)

    def why(seen: EvaluatedCluster, _: str) -> bytes:
        for number in range(MANY):
            program.put(f"during-{number}")
        return b""

    monkeypatch.setattr(Tables, "follow", caught_up)
    monkeypatch.setattr(answers, "why", why)

    async def story(source: PageSource) -> None:
        await source.why("x")
        while len(collecting) < 2:
            assert not gc.isenabled()
            await asyncio.sleep(0)
        while gc.isenabled() is not collects:
            await asyncio.sleep(0)
        assert collecting == [False, False]
        await source.why("x")
        source.close()
        assert gc.isenabled() is collects, "closed before it caught up"

    told(program, story, FOR_EVER)
