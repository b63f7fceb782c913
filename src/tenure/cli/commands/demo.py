"""``tenure demo``: twenty seconds of an embedded cluster with Tenure at work in it.

On a terminal a live view, paced and steerable by keys; elsewhere plain lines, or one JSON
object per event, as fast as it goes. The story and the seed decide everything that is
told; the speed decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.live import Live

from tenure.cli.output.numbers import Between
from tenure.cli.output.said import say, say_line
from tenure.cli.view import labels as words
from tenure.cli.view.board import look
from tenure.cli.view.columns import terminal_width
from tenure.cli.view.playback import FASTEST, SLOWEST, Playback, keyboard
from tenure.cli.view.screen import Heading, screen
from tenure.cli.view.story import Story
from tenure.cli.view.summary import Chronicle, Summary, sentences
from tenure.cli.view.tail import Line, Tail
from tenure.sim.history import Entry
from tenure.sim.world import World, WorldOptions

#: The story takes about eight minutes of the cluster's time.
DEFAULT_SPEED: Final = 25.0

#: The cluster advances in these steps: fine enough to look smooth, the same at any speed.
STEP: Final = timedelta(milliseconds=500)

FOOTER: Final = "+ faster   - slower   space pause   q quit"


@click.command()
@click.option(
    "--speed",
    type=Between(SLOWEST, FASTEST),
    help=f"Cluster seconds per real second.  [default: {DEFAULT_SPEED:g} on a terminal, "
    "else as fast as it goes]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another day.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event, then a summary.")
@click.option("--plain", is_flag=True, help="Lines instead of the live view.")
def demo(speed: float | None, seed: int, as_json: bool, plain: bool) -> int:
    """Watch nodes come and go in an embedded cluster, and why.

    \b
    Nothing is needed and nothing is touched: the cluster lives in this process and its
    clock is virtual. The same seed tells the same story.

    \b
    Examples:
      tenure demo
      tenure demo --speed 30 --seed 7
      tenure demo --json | head -n 3
    """
    console = Console()
    # Not the world's own context: it raises on a broken promise, and we say it instead.
    with closing(World(WorldOptions(seed=seed))) as world:
        if as_json:
            summary = _tell_json(world, Playback(speed))
        elif plain or not console.is_terminal or console.is_dumb_terminal:
            summary = _tell_lines(world, Playback(speed))
        else:
            summary = _show(world, console, speed or DEFAULT_SPEED)
    return 1 if summary.instances_leaked or summary.promises_broken else 0


class DemoRun:
    """One run of the story, step by step."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.story = Story(world)
        self.tail = Tail()
        self.chronicle = Chronicle(world)
        world.history.listen(self.tail.hear)

    def step(self) -> list[Line]:
        """Let a little time pass; return what there is to tell about it."""
        self.story.advance()
        self.world.run(STEP)
        self.chronicle.look()
        return self.tail.take(self.world.now)


def _tell(world: World, playback: Playback, tell: Callable[[list[Line]], object]) -> Summary:
    demo_run = DemoRun(world)
    while not demo_run.story.over:
        tell(demo_run.step())
        playback.wait(STEP)
    return demo_run.chronicle.sum_up()


def _tell_json(world: World, playback: Playback) -> Summary:
    heard: list[Entry] = []
    world.history.listen(heard.append)

    def say(_: list[Line]) -> None:
        # Between two steps, so that a closed pipe is our end and not the cluster's.
        for entry in heard:
            event = {"type": "event", **msgspec.structs.asdict(entry)}
            click.echo(msgspec.json.encode(event).decode())
        heard.clear()

    summary = _tell(world, playback, say)
    click.echo(msgspec.json.encode({"type": "result", "summary": summary}).decode())
    return summary


def _tell_lines(world: World, playback: Playback) -> Summary:
    def tell(lines: list[Line]) -> None:
        for line in lines:
            say_line(line)

    summary = _tell(world, playback, tell)
    say("\n" + "\n".join(sentences(summary, _width())))
    return summary


def _width() -> int:
    return terminal_width() or 80


def _show(world: World, console: Console, speed: float) -> Summary:
    demo_run = DemoRun(world)
    with keyboard() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        playback = Playback(speed, keyboard=keys)
        while not demo_run.story.over and not playback.stopped:
            if playback.paused:
                playback.wait_for_key()
            else:
                demo_run.step()
                playback.wait(STEP)
            live.update(frame(demo_run, playback, console), refresh=True)
    summary = demo_run.chronicle.sum_up()
    say("\n".join(sentences(summary, _width())))
    return summary


def frame(demo_run: DemoRun, playback: Playback, console: Console) -> Any:
    """What the terminal shows now."""
    heading = Heading(
        title="Tenure demo",
        elapsed=words.span(demo_run.world.elapsed),
        speed=playback.described(),
        footer=FOOTER,
    )
    width, height = console.size
    return screen(look(demo_run.world), demo_run.tail.recent, heading, width=width, height=height)
