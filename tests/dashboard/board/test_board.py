"""What a user sees on the board, key by key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from tenure.dashboard.board.app import Board
from tenure.dashboard.board.source import PodLine
from tenure.dashboard.fleet.values import Frame, Lane, Mark, Tone
from tenure.dashboard.fleet.values import Segment as Stretch
from tenure.errors import Unavailable
from tests.dashboard.board.frames import (
    NOW,
    Shown,
    changed,
    fleet,
    frame,
    minutes,
    node,
    screen_text,
    story,
)
from tests.folders import ROOT

GOLDEN = Path(__file__).parent / "golden"
#: What the page reads, then where an operator reads of signs.
PAGES = ("web/src/values.ts", "docs/board.md", "docs/web-page.md")
Steps = Callable[[Board, "Pilot[int]"], Awaitable[None]]


def play(source: Shown, steps: Steps, size: tuple[int, int] = (100, 30)) -> None:
    async def run() -> None:
        board = Board(source)
        async with board.run_test(size=size) as pilot:
            while board.frame is None and source.frames:
                await pilot.pause()
            await pilot.pause()
            await steps(board, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    """An answer comes from another thread."""
    async with asyncio.timeout(20):
        while not condition():
            await pilot.pause()


def golden(name: str, said: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TENURE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(said + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == said + "\n"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
def test_a_cluster_on_a_small_and_on_a_wide_terminal(width: int, height: int) -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down", "down")
        golden(f"story-{width}x{height}", screen_text(board))

    play(Shown(story()), steps, (width, height))


def test_without_colours_signs_and_words_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down", "down")
        golden("story-80x24", screen_text(board))
        assert all(
            _is_grey(one) for strip in board.screen._compositor.render_strips() for one in strip
        )

    play(Shown(story()), steps, (80, 24))


def _is_grey(segment: Segment) -> bool:
    colour = segment.style.color if segment.style is not None else None
    if colour is None or colour.triplet is None:
        return True
    red, green, blue = colour.triplet
    return max(red, green, blue) - min(red, green, blue) <= 2


def test_each_tone_has_a_sign_of_its_own() -> None:
    from tenure.dashboard.board.tones import LOOKS

    assert set(LOOKS) == set(Tone)
    assert len({look.sign for look in LOOKS.values()}) == len(Tone)
    assert len({look.colour for look in LOOKS.values()}) == len(Tone)


def test_board_page_and_documents_show_a_tone_by_the_same_sign_and_word() -> None:
    from tenure.dashboard.board.tones import LOOKS
    from tenure.dashboard.fleet.tones import SIGNS

    texts = {name: (ROOT / name).read_text("utf-8") for name in PAGES}
    for tone, said in SIGNS.items():
        assert (LOOKS[tone].sign, LOOKS[tone].word) == (said.sign, said.word)
        assert f'{tone.value}: {{ sign: "{said.sign}", word: "{said.word}"' in texts[PAGES[0]]
        assert f"| {said.sign} | {said.word} | {said.means} |" in texts[PAGES[1]]
        assert f"| {said.sign} | {said.word}" in texts[PAGES[2]]


def test_the_selected_row_says_what_blocks_it_and_until_when() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down", "down")
        said = screen_text(board)
        assert "EvictionRefused: 2 of 9 pods are left" in said
        assert "blocked by PodDisruptionBudget/default/web, until 08:30:30, in 30s" in said
        assert "next eviction retried, 08:30:30, in 30s  deadline 08:45:00, in 15m00s" in said

    play(Shown(story()), steps)


def test_a_filter_lets_through_rows_that_have_every_word() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("slash", *"gpu")
        await pilot.press("space", *"unhealthy", "enter")
        said = screen_text(board)
        assert "gpu-x7k2p" in said
        assert "gpu-26szh" not in said
        assert "general-4nv74" not in said
        assert "1 of 2 nodes" in said
        await pilot.press("escape")
        assert "general-4nv74" in screen_text(board)

    play(Shown(story()), steps)


def test_a_pool_is_folded_and_all_of_them_are() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down", "space")
        said = screen_text(board)
        assert "▸ general" in said
        assert "general-4nv74" not in said
        assert "gpu-26szh" in said
        await pilot.press("f")
        assert "general-4nv74" in screen_text(board)

    play(Shown(story()), steps)


def test_nodes_are_sorted_by_a_column_within_their_pool() -> None:
    busy = frame(
        node("a", pods=1), node("b", pods=9), node("c", pods=4), node("z", pool="other", pods=30)
    )

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        columns = [one.key for one in board.table.layout_of_columns.columns]
        await pilot.press(str(columns.index("pods") + 1))
        assert keys(board) == ["b", "c", "a", "z"]
        await pilot.press("r")
        assert keys(board) == ["a", "c", "b", "z"]
        await pilot.press("0")
        assert keys(board) == ["a", "b", "c", "z"]

    play(Shown(busy), steps)


def keys(board: Board) -> list[str]:
    return [row.key.split("/")[1] for row in board.table.rows if row.key.startswith("NodeClaim/")]


def test_the_cursor_stays_on_its_node_while_others_come_and_go() -> None:
    before = frame(node("b"), node("c"), node("d"))
    after = frame(node("a"), node("b"), node("c"), node("d"), at=NOW + minutes(1))

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down", "down")
        assert selected(board) == "NodeClaim/c"
        board.show(after)
        assert selected(board) == "NodeClaim/c"
        board.show(frame(node("a"), node("d"), at=NOW + minutes(2)))
        assert selected(board) == "NodeClaim/d"

    play(Shown(before), steps)


def selected(board: Board) -> str:
    assert board.table.selected is not None
    return board.table.selected.key


def test_the_scroll_offset_stays_by_the_node_under_the_cursor() -> None:
    many = fleet(300)
    fewer = frame(*many.nodes[40:], at=NOW)

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        board.table.move_to_key("NodeClaim/pool-05-00155")
        await pilot.pause()
        line = board.table._cursor - board.table.scroll_offset.y
        board.show(fewer)
        await pilot.pause()
        assert selected(board) == "NodeClaim/pool-05-00155"
        assert board.table._cursor - board.table.scroll_offset.y == line

    play(Shown(many), steps)


def test_explain_timeline_and_pods_of_the_selected_row() -> None:
    lane = Lane(
        key="NodeClaim/general-4nv74",
        name="general-4nv74",
        pool="general",
        segments=(
            Stretch(
                begin=NOW - minutes(3),
                phase="in service",
                tone=Tone.SERVING,
                reason="InService",
                because="initialized",
            ),
        ),
        marks=(
            Mark(at=NOW - minutes(4), what="launched"),
            Mark(
                at=NOW + timedelta(hours=2),
                what="expires",
                because="expireAfter 720h",
                foreseen=True,
            ),
        ),
    )
    pods = [PodLine(namespace="default", name="web-1", phase="Running", cpu=250, memory=64 << 20)]
    source = Shown(story(), explain="verdict  InService: all is well", pods=pods, lane=lane)

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down")
        await pilot.press("e")
        await until(pilot, lambda: "verdict  InService: all is well" in screen_text(board))
        await pilot.press("escape", "p")
        await until(pilot, lambda: "default/web-1" in screen_text(board))
        assert "250m" in screen_text(board)
        await pilot.press("escape", "t")
        await until(pilot, lambda: "── now ──" in screen_text(board))
        said = screen_text(board)
        assert (
            said.index("launched")
            < said.index("InService")
            < said.index("expires (in 2h00m, foreseen)")
        )
        assert source.asked == [
            ("explain", "NodeClaim/general-4nv74"),
            ("pods", "NodeClaim/general-4nv74"),
            ("lane", "NodeClaim/general-4nv74"),
        ]

    play(source, steps)


def test_an_answer_that_cannot_be_had_says_why() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("e")
        await until(pilot, lambda: "the cluster is still being read" in screen_text(board))

    play(Shown(story(), explain=Unavailable("the cluster is still being read")), steps)


def test_frames_go_on_below_an_open_panel() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("question_mark")
        board.show(changed(story(), "NodeClaim/general-4nv74", phase="draining"))
        assert "sort by the next column" in screen_text(board)
        await pilot.press("escape")
        await pilot.pause()
        assert screen_text(board).count("draining") == 2

    play(Shown(story()), steps)


def test_pods_that_wait_are_listed_with_their_reasons() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("w")
        said = screen_text(board)
        assert "team-a/train-0, for 12m00s" in said
        assert "FailedScheduling: NodePool gpu: limit of 16 nvidia.com/gpu is reached" in said
        assert "and 2 more" in said

    play(Shown(story()), steps)


def test_a_lost_connection_is_a_banner_and_goes_away() -> None:
    async def steps(board: Board, pilot: Pilot[int]) -> None:
        board.connection("no connection to https://api since 08:29:00")
        await pilot.pause()
        assert "! no connection to https://api since 08:29:00" in screen_text(board)
        board.connection("")
        await pilot.pause()
        assert "no connection" not in screen_text(board)

    play(Shown(story()), steps)


def test_notes_are_named_and_shown_as_a_whole() -> None:
    import msgspec

    noted = msgspec.structs.replace(
        story(), notes=("limitranges cannot be listed: forbidden", "second")
    )

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        assert "! limitranges cannot be listed: forbidden (n: all 2 notes)" in screen_text(board)
        await pilot.press("n")
        assert "second" in screen_text(board)

    play(Shown(noted), steps)


HOSTILE = (
    "[bold red]x[/]\x1b[2J\x1b]0;owned\x07\u202egnp.exe\r\n\u200b"
    "a\u0301\u0301\u0301\u0301" + "宽" * 40
)


def test_hostile_names_move_nothing_and_are_no_markup() -> None:
    evil = frame(
        node(
            HOSTILE,
            zone=HOSTILE,
            phase=HOSTILE,
            reason=HOSTILE,
            because=HOSTILE * 20_000,
            pool=HOSTILE,
            instance_type=HOSTILE,
        ),
        cluster=HOSTILE,
        leader=HOSTILE,
        notes=(HOSTILE,),
    )

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        await pilot.press("down")
        _is_harmless(board)
        await pilot.press("e")
        await until(pilot, lambda: "asking" not in screen_text(board))
        _is_harmless(board)
        assert "[bold red]x[/]" in screen_text(board)
        await pilot.press("escape", "p")
        await until(pilot, lambda: "asking" not in screen_text(board))
        _is_harmless(board)

    pods = [
        PodLine(namespace=HOSTILE, name=HOSTILE, phase=HOSTILE, reason=HOSTILE, because=HOSTILE)
    ]
    play(Shown(evil, explain=HOSTILE, pods=pods), steps, (80, 24))


def _is_harmless(board: Board) -> None:
    strips = board.screen._compositor.render_strips()
    assert {strip.cell_length for strip in strips} == {board.size.width}
    said = screen_text(board).replace("\n", "")
    assert said.isprintable()
    assert "\u202e" not in said


def test_a_thousand_nodes_draw_only_what_is_in_sight_and_has_changed() -> None:
    """A bound on lines drawn, and not on time."""
    many = fleet(1000)

    async def steps(board: Board, pilot: Pilot[int]) -> None:
        before = board.table.drawn
        assert before <= 10 * board.size.height
        board.show(_a_moment_later(many))
        await pilot.pause()
        assert board.table.drawn == before  # Nothing looks different.
        board.show(changed(many, "NodeClaim/pool-09-00999", pods=99))
        await pilot.pause()
        assert board.table.drawn == before  # Not in sight.
        board.show(changed(many, "NodeClaim/pool-00-00000", pods=99))
        await pilot.pause()
        assert board.table.drawn == before + 1
        await pilot.press("end")
        await pilot.pause()
        assert selected(board) == "NodeClaim/pool-09-00989"
        assert board.table.drawn <= before + 3 * board.size.height

    play(Shown(many), steps, (160, 50))


def _a_moment_later(one: Frame) -> Frame:
    import msgspec

    return msgspec.structs.replace(one, at=one.at + timedelta(milliseconds=300))


def test_a_source_that_fails_ends_the_board_with_its_error() -> None:
    class Failing(Shown):
        def run(self, listener: object) -> None:
            raise Unavailable("the API server cannot be reached")

    async def run() -> None:
        board = Board(Failing())
        async with board.run_test() as pilot:
            await until(pilot, lambda: board.error is not None)
        assert board.return_value == 1
        assert "cannot be reached" in str(board.error)

    asyncio.run(run())
