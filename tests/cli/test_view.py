"""The parts of the view: lines, screen, playback, short forms."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.console import Console

from tenure.cli.commands.demo import DemoRun, frame
from tenure.cli.view import labels as words
from tenure.cli.view.board import look
from tenure.cli.view.playback import FASTEST, SLOWEST, Playback
from tenure.cli.view.screen import Heading, screen
from tenure.cli.view.tail import Tail
from tenure.core.reasons import Reason
from tenure.dashboard.fleet.phases import PHASES
from tenure.model.api.resource import NODE_CLAIMS, PODS
from tenure.sim.cloud.billing import Owed
from tenure.sim.history import Entry
from tenure.sim.world import World

MONDAY = datetime(2026, 1, 5, 8, tzinfo=UTC)


def verdict(subject: str, reason: Reason, message: str = "because", at: datetime = MONDAY) -> Entry:
    return Entry(at=at, source="tenure", subject=subject, reason=reason, message=message)


# -- lines -----------------------------------------------------------------------------


def lines_of(*entries: Entry) -> list[str]:
    tail = Tail()
    for entry in entries:
        tail.hear(entry)
    return [f"{line.who} {line.reason}" for line in tail.take(MONDAY + timedelta(hours=1))]


def test_the_same_news_about_several_is_one_line() -> None:
    pods = [verdict(f"Pod/default/web-{i}", Reason.EVICTING) for i in range(3)]
    assert lines_of(*pods) == ["web-0 and 2 more Evicted"]


def test_news_about_one_subject_is_told_once() -> None:
    again = verdict("Pod/default/web-0", Reason.EVICTION_WAITS)
    tail = Tail()
    tail.hear(again)
    assert len(tail.take(MONDAY + timedelta(seconds=1))) == 1
    tail.hear(again)
    assert tail.take(MONDAY + timedelta(seconds=2)) == []


def test_another_news_for_the_same_reason_is_told_but_not_at_every_change() -> None:
    """A node that waits for a window waits for a budget afterwards."""
    tail, told = Tail(), []
    for seconds, why in ((0, "window"), (40, "budget 1"), (50, "budget 2"), (90, "budget 2")):
        at = MONDAY + timedelta(seconds=seconds)
        tail.hear(verdict("NodeClaim/a", Reason.DISRUPTION_BLOCKED, why, at))
        told += [line.message for line in tail.take(at + timedelta(seconds=1))]
    assert told == ["window", "budget 1", "budget 2"]


def test_different_warnings_are_different_lines() -> None:
    windows = [
        verdict(f"MaintenanceWindow/{name}", Reason.WINDOW_INVALID, why)
        for name, why in (("a", "bad zone"), ("b", "bad zone"), ("c", "bad cron"))
    ]
    assert lines_of(*windows) == ["a and 1 more WindowInvalid", "c WindowInvalid"]


def test_a_node_and_its_claim_do_not_tell_the_same_twice() -> None:
    told = lines_of(
        verdict("Node/node-a", Reason.DRAINING),
        verdict("NodeClaim/a", Reason.DRAINING),
        verdict("Node/node-a", Reason.RELEASING),
        verdict("NodeClaim/a", Reason.RELEASING),
    )
    assert told == ["node-a Draining", "a Releasing"]


def test_book_keeping_is_not_told() -> None:
    assert lines_of(verdict("NodePool/general", Reason.POOL_STATUS_CHANGED)) == []


# -- screen ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy() -> Iterator[DemoRun]:
    """The moment at which one drifted node is drained and the others wait for the budget."""
    with World() as world:
        demo_run = DemoRun(world)
        while not {"draining", "drifted"} <= {row.node.phase for row in look(world).rows}:
            assert not demo_run.story.over
            demo_run.step()
        demo_run.step()
        yield demo_run


def shown(demo_run: DemoRun, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    with console.capture() as capture:
        console.print(frame(demo_run, Playback(10.0), console))
    return capture.get().splitlines()


@pytest.mark.parametrize(
    ("width", "height"),
    [(80, 24), (60, 12), (140, 30), (220, 60)],
    ids=["an old terminal", "a tiny one", "a wide one", "a huge one"],
)
def test_the_screen_is_exactly_as_big_as_the_terminal(
    busy: DemoRun, width: int, height: int
) -> None:
    lines = shown(busy, width, height)
    assert len(lines) == height
    assert max(map(len, lines)) <= width


def test_eighty_columns_are_enough_for_why_and_what_next(busy: DemoRun) -> None:
    text = "\n".join(shown(busy, 80, 24))
    assert "draining" in text
    assert "└ waiting for" in text
    assert "retried" in text
    assert "└ budget 1 of NodePool general allows 1 of" in text


def test_on_a_small_screen_nodes_at_work_give_way(busy: DemoRun) -> None:
    text = "\n".join(shown(busy, 80, 16))
    assert "draining" in text
    assert "in service" not in text
    assert "drifted  " not in text, "nor is a node shown that only waits"


def test_rows_and_totals_are_the_clusters_own(busy: DemoRun) -> None:
    world, board = busy.world, look(busy.world)
    claims = world.store.list(NODE_CLAIMS)
    assert {row.node.name for row in board.rows} == {c["metadata"]["name"] for c in claims}
    totals = board.totals
    assert totals.in_service + totals.coming + totals.terminating == len(claims)
    assert totals.hourly == Owed(sum(instance.price for instance in world.cloud.instances()))
    placed = [pod for pod in world.store.list(PODS) if pod["spec"].get("nodeName")]
    assert sum(row.node.pods for row in board.rows) == len(placed)


@pytest.mark.parametrize(
    ("sum_", "expected"),
    [
        (Owed(1_240_000), "$1.24/h"),
        (Owed(1_240_000, unpriced=2), "at least $1.24/h"),
        (Owed(0, unpriced=2), "an unknown sum/h"),
        (Owed(), "$0.00/h"),
    ],
)
def test_a_price_that_is_unknown_is_no_part_of_a_sum(sum_: Owed, expected: str) -> None:
    assert words.owed(sum_, "/h") == expected


def test_the_board_says_of_how_much_the_price_is_unknown(busy: DemoRun) -> None:
    board = look(busy.world)
    totals = msgspec.structs.replace(board.totals, hourly=Owed(0, 1), spent=Owed(90_000, 1))
    board = msgspec.structs.replace(board, totals=totals)
    heading = Heading(title="a copy", elapsed="1h", speed="1×", footer="")
    console = Console(file=io.StringIO(), width=120, height=24, force_terminal=False)
    with console.capture() as capture:
        console.print(screen(board, (), heading, width=120, height=24))
    assert "an unknown sum/h, at least $0.0900 so far" in capture.get()


def test_a_draining_node_says_when_its_next_pod_is_asked(busy: DemoRun) -> None:
    (row,) = (row for row in look(busy.world).rows if row.node.phase == "draining")
    at, _, rest = row.next_.partition(" ")
    assert at >= f"{busy.world.now:%H:%M:%S}"
    assert rest.endswith((": eviction retried", ": protection ends"))


def test_a_drifted_node_says_what_blocks_it_and_its_phase_says_why_it_is_to_go(
    busy: DemoRun,
) -> None:
    waiting = [row for row in look(busy.world).rows if row.node.phase == "drifted"]
    assert len(waiting) == 2
    assert {row.node.reason for row in waiting} == {Reason.DISRUPTION_BLOCKED}
    # A protection ends at a known instant; the budget that is used up only when others are done.
    budget, protected = sorted(row.why for row in waiting)[::-1]
    assert budget.startswith("budget 1 of NodePool general allows 1 of")
    assert protected.startswith("blocked by Pod ")


def test_every_reason_of_a_node_so_far_has_a_phase(busy: DemoRun) -> None:
    told = [e for e in busy.world.history.entries if e.source == "tenure"]
    of_nodes = {e.reason for e in told if e.subject.startswith(("Node/", "NodeClaim/"))}
    assert len(of_nodes) > 10
    assert of_nodes <= set(PHASES)


# -- playback ------------------------------------------------------------------------------


@pytest.fixture
def keys() -> Iterator[tuple[Playback, int]]:
    read, write = os.pipe()
    yield Playback(10.0, keyboard=read), write
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    ("pressed", "speed"),
    [(b"+", 20.0), (b"-", 5.0), (b"++--", 10.0), (b"+" * 20, FASTEST), (b"-" * 20, SLOWEST)],
    ids=["plus doubles", "minus halves", "they cancel out", "there is a top", "and a bottom"],
)
def test_keys_set_the_speed(keys: tuple[Playback, int], pressed: bytes, speed: float) -> None:
    playback, write = keys
    os.write(write, pressed)
    playback.wait_for_key()
    assert playback.speed == speed


def test_space_pauses_and_goes_on(keys: tuple[Playback, int]) -> None:
    playback, write = keys
    os.write(write, b" ")
    playback.wait_for_key()
    assert playback.described() == "paused"
    os.write(write, b" ")
    playback.wait_for_key()
    assert playback.described() == "10× real time"


def test_q_ends_it(keys: tuple[Playback, int]) -> None:
    playback, write = keys
    os.write(write, b"q")
    assert playback.wait(timedelta(hours=1))
    assert playback.stopped


# -- short forms -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m00s"), (3599, "59m59s"), (8040, "2h14m"), (93_600, "1d02h")],
)
def test_spans_are_short(seconds: float, text: str) -> None:
    assert words.span(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("micro", "text"), [(1_240_000, "$1.24"), (176_300, "$0.18"), (12_400, "$0.0124")]
)
def test_money_keeps_two_digits_that_say_something(micro: int, text: str) -> None:
    assert words.money(micro) == text


def test_sentences_lose_their_dates_not_their_times() -> None:
    said = "default/web-1 is asked again at 2026-01-05T08:02:15Z"
    assert words.short(said, MONDAY) == "web-1 is asked again at 08:02:15"


def test_an_instant_of_another_day_keeps_its_date() -> None:
    """A deadline in two days would look like one that is over."""
    said = "Node n must be drained by 2026-01-07T08:00:00Z"
    later = MONDAY + timedelta(hours=1)
    assert words.short(said, later) == "Node n must be drained by 2026-01-07 08:00:00"
    assert words.clock(later + timedelta(days=2), later) == "2026-01-07 09:00:00"


def test_another_namespace_keeps_its_name() -> None:
    said = (
        "PDB my-default/web covers pod team-default/x, a label example.default/y and pod default/z"
    )
    shown = "PDB my-default/web covers pod team-default/x, a label example.default/y and pod z"
    assert words.short(said, MONDAY) == shown
    assert words.short("Pod/default/web-1 (default/web-2)", MONDAY) == "Pod/web-1 (web-2)"
