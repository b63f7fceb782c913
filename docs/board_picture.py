"""Draws docs/pictures/board.svg and tour.svg: the board while a scenario is played, from real runs.

    python -m docs.board_picture

The scenario is nightly-drift: an image is released at noon, and nodes go in the maintenance window of the night, two at a
time. Nothing is fetched for the pictures, no font either, and they run no script. ``tests/dashboard/board`` holds that they
can be drawn, and how large they are; they are drawn again when the board changes.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from textual.pilot import Pilot

from docs.picture import Film, Picture, film
from tenure.cli.board.playing import PlayedScenario
from tenure.dashboard.board.app import Board
from tenure.dashboard.board.source import Listener

ROOT: Final = Path(__file__).parents[1]
SCENARIO: Final = ROOT / "examples" / "scenarios" / "nightly-drift.yaml"
BOARD: Final = ROOT / "docs" / "pictures" / "board.svg"
TOUR: Final = ROOT / "docs" / "pictures" / "tour.svg"
SIZE: Final = (120, 28)
TOLD: Final = Film(
    name="tenure-board",
    title="tenure board: a released image rolls through a pool at night",
    told=(
        "The board. Twelve nodes have drifted; each says until when its maintenance window is closed. One key explains the "
        "selected node, one shows its timeline. In the window two nodes go at a time, each replacement first."
    ),
    stays=1.6,
    last_stays=5.0,
)


class Scene(NamedTuple):
    """At this time after the start, these keys; ``still``: the picture for readers who want no motion."""

    at: timedelta
    keys: tuple[str, ...] = ()
    still: bool = False


def _at(hours: float, *keys: str, still: bool = False) -> Scene:
    return Scene(timedelta(hours=hours), keys, still)


TOUR_SCENES: Final = (
    _at(0.05),
    _at(0.3, "down", "down"),
    _at(4.5, "down"),
    _at(4.5, "e"),
    _at(4.5, "escape"),
    _at(16.05),
    _at(16.2, still=True),
    _at(16.3, "slash", *"drain"),
    _at(16.35, "escape"),
    _at(16.4, "down", "down"),
    _at(16.45, "t"),
    _at(16.55, "escape"),
    _at(17.0, "2"),
    _at(17.0, "w"),
    _at(17.0, "escape", "0", "home"),
)


class Stepped(PlayedScenario):
    """Stands still until it is told to go on; each question is answered at once, in the thread that asks."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self._end = threading.Event()

    def run(self, listener: Listener) -> None:
        while not self._end.wait(0.02):
            self._questions.answer()

    def stop(self) -> None:
        self._end.set()
        super().stop()


async def _drawn(scenes: Sequence[Scene]) -> list[Picture]:
    source = Stepped(SCENARIO)
    await asyncio.to_thread(source.begin)
    board = Board(source)
    shown = []
    async with board.run_test(size=SIZE) as pilot:
        for scene in scenes:
            board.show(await asyncio.to_thread(source.advance, scene.at))
            await pilot.pause()
            for key in scene.keys:
                await pilot.press("space" if key == " " else key)
            await _settled(board, pilot)
            shown.append(Picture(picture_of(board), scene.still))
    await asyncio.to_thread(source.end)
    return shown


async def _settled(board: Board, pilot: Pilot[int]) -> None:
    """Until an answer is there."""
    await pilot.pause()
    await board.workers.wait_for_complete()
    await pilot.pause()


def picture_of(board: Board) -> str:
    """Its screen as it is now."""
    width, height = board.size
    console = Console(
        record=True,
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    strips = board.screen._compositor.render_update(
        full=True, screen_stack=board._background_screens, simplify=True
    )
    console.print(strips)
    svg = console.export_svg(title="tenure board", unique_id=TOLD.name)
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S)


def tour() -> str:
    return film(asyncio.run(_drawn(TOUR_SCENES)), TOLD)


def picture() -> str:
    """One of them, without motion."""
    scenes = TOUR_SCENES[: 1 + next(n for n, one in enumerate(TOUR_SCENES) if one.still)]
    *_, last = asyncio.run(_drawn(scenes))
    svg = last.svg.replace("Fira Code", "monospace")
    told = f"<title>{TOLD.title}</title>\n<desc>{TOLD.told}</desc>"
    svg = re.sub(r"(<svg [^>]*>)", rf"\1\n{told}", svg, count=1)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


if __name__ == "__main__":
    for path, draw in ((BOARD, picture), (TOUR, tour)):
        path.write_text(draw(), encoding="utf-8")
        sys.stdout.write(f"drew docs/pictures/{path.name}, {path.stat().st_size:,} bytes\n")
