"""Draws docs/demo.svg: the demo's screen at its most interesting moment, from a real run.

    python -m docs.picture

The picture is not held to be current by a check: it changes with every change of timing.
Draw it again when the screen or the story changes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from tenure.cli.commands.demo import DEFAULT_SPEED, DemoRun, frame
from tenure.cli.view.board import Board, look
from tenure.cli.view.playback import Playback
from tenure.sim.world import World

PICTURE = Path(__file__).with_name("demo.svg")
WIDTH, HEIGHT = 104, 26


def chosen_moment(board: Board) -> bool:
    """The first drifted node is drained, its replacement is in service, the others wait for the budget."""
    phases = [row.phase for row in board.rows]
    return "draining" in phases and "drifted" in phases


def draw(moment: Callable[[Board], bool] = chosen_moment) -> str:
    console = Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        height=HEIGHT,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    with World() as world:
        demo_run = DemoRun(world)
        while not moment(look(world)):
            if demo_run.story.over:
                raise SystemExit("the moment to draw never came: mend chosen_moment")
            demo_run.step()
        console.print(frame(demo_run, Playback(DEFAULT_SPEED), console))
    svg = console.export_svg(title="tenure demo", unique_id="tenure-demo")
    # Nothing has to be fetched for it: the font is the reader's own.
    # Spaces at the ends of a piece of text count.
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"drew docs/{PICTURE.name}")
