"""Draws docs/demo.svg: the demo's screen as a film, from a real run.

    python -m docs.picture

A picture every twenty seconds of the cluster, as many in a second of the film as in one of the demo. Readers who want
no motion see one of them: its most interesting moment. Nothing is fetched for it, and it runs no script.

The picture is not held to be current by a check: it changes with every change of timing.
Draw it again when the screen or the story changes.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from tenure.cli.commands.demo import DEFAULT_SPEED, DemoRun, frame
from tenure.cli.view.board import Board, look
from tenure.cli.view.playback import Playback
from tenure.sim.world import World

PICTURE: Final = Path(__file__).with_name("demo.svg")
WIDTH, HEIGHT = 104, 26
EVERY: Final = timedelta(seconds=20)
#: Of the film: how long a picture stays, and the last one.
STAYS: Final = EVERY.total_seconds() / DEFAULT_SPEED
LAST_STAYS: Final = 4.0
TITLE: Final = "tenure demo: a changed template rolls through a pool"
TOLD: Final = (
    "The screen of the demo. Nodes are launched for pending pods. A changed template makes them drift. In the "
    "maintenance window they are replaced, one at a time, each replacement first, and every line says why."
)


#: What is drawn behind text: a selected row, for example.
_BACKGROUND: Final = re.compile(
    r'<rect fill="(?P<fill>#[0-9a-f]+)" [^>]*shape-rendering="crispEdges"/>'
)
_GROUND: Final = '<rect fill="{}" width="100%" height="100%"/>'


class Film(NamedTuple):
    """What a film is called, and how long its pictures stay, in seconds."""

    #: Of its classes.
    name: str
    title: str
    told: str
    stays: float
    last_stays: float


DEMO: Final = Film("tenure-demo", TITLE, TOLD, STAYS, LAST_STAYS)


class Picture(NamedTuple):
    svg: str
    #: Whether it shows the moment that readers without motion see.
    chosen: bool


def chosen_moment(board: Board) -> bool:
    """The first drifted node is drained, its replacement is in service, the others wait for the budget."""
    phases = [row.node.phase for row in board.rows]
    return "draining" in phases and "drifted" in phases


def pictures() -> Iterator[Picture]:
    """From the beginning of the story to its end."""
    with World() as world:
        demo_run, due, chosen = DemoRun(world), timedelta(), False
        while not demo_run.story.over:
            demo_run.step()
            now_chosen = not chosen and chosen_moment(look(world))
            if world.elapsed < due and not now_chosen:
                continue
            chosen, due = chosen or now_chosen, world.elapsed + EVERY
            yield Picture(_drawn(demo_run), now_chosen)
        yield Picture(_drawn(demo_run), chosen=False)


def _drawn(demo_run: DemoRun) -> str:
    console = Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        height=HEIGHT,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(frame(demo_run, Playback(DEFAULT_SPEED), console))
    return console.export_svg(title="tenure demo", unique_id=DEMO.name)


def film(shown: Sequence[Picture], about: Film = DEMO) -> str:
    """One picture after the other, in the frame of the first."""
    rules: dict[str, str] = {}
    ground = _ground_of(shown)
    parts = [_part(index, one, rules, about.name, ground) for index, one in enumerate(shown)]
    head, _, rest = shown[0].svg.partition("<style>")
    _, _, rest = rest.partition("</style>")
    around, _, _ = rest.partition(f'<g class="{about.name}-matrix">')
    around = re.sub(r"<clipPath id=\"\S+-line-\d+\">.*?</clipPath>\s*", "", around, flags=re.S)
    around = _BACKGROUND.sub("", around).rstrip() + (_GROUND.format(ground) if ground else "")
    head = head.replace("<svg ", '<svg xml:space="preserve" role="img" ', 1).rstrip()
    told = f"<title>{about.title}</title>\n<desc>{about.told}</desc>"
    body = "\n".join(parts)
    svg = f"{head}\n{told}\n<style>\n{_style(shown, rules, about)}</style>{around}\n{body}\n</g></svg>\n"
    return "".join(f"{line.rstrip(' ')}\n" for line in svg.split("\n") if line.strip(" "))


def _part(index: int, picture: Picture, rules: dict[str, str], name: str, ground: str) -> str:
    """The text of one screen, and what is behind it; ``rules`` is given the classes that it needs, by what they say.

    What is of the colour ``ground`` is behind all screens already.
    """
    own = dict(re.findall(rf"\.({name}-r\d+) {{ (.*?) }}", picture.svg))
    behind = (one[0] for one in _BACKGROUND.finditer(picture.svg) if one["fill"] != ground)
    for rule in own.values():
        rules.setdefault(rule, f"c{len(rules)}")
    _, _, text = picture.svg.partition(f'<g class="{name}-matrix">')
    text, _, _ = text.partition("</g>")
    text = re.sub(r' clip-path="url\(#\S+\)"', "", text)
    text = re.sub(r'<text class="[^"]*" x="1268.8" [^>]*>\s*</text>', "", text)  # Ends of lines.
    text = re.sub(rf'"({name}-r\d+)"', lambda found: f'"{rules[own[found[1]]]}"', text)
    still = " still" if picture.chosen else ""
    drawn = "".join(behind) + text.strip().replace("&#160;", chr(160))
    return f'<g class="frame f{index}{still}">{drawn}</g>'


def _ground_of(shown: Sequence[Picture]) -> str:
    """The colour behind most of the text; empty: nothing is drawn behind it."""
    fills = Counter(one["fill"] for one in _BACKGROUND.finditer(shown[0].svg))
    return fills.most_common(1)[0][0] if fills else ""


def _style(shown: Sequence[Picture], rules: dict[str, str], about: Film) -> str:
    stays = about.stays
    whole = stays * (len(shown) - 1) + about.last_stays
    lines = [
        ".frame { font: 20px monospace; visibility: hidden }",
        f".{about.name}-title {{ font: bold 18px sans-serif }}",
        *(f".{class_} {{ {rule} }}" for rule, class_ in rules.items()),
        "@media (prefers-reduced-motion: reduce) { .still { visibility: visible } }",
        "@media (prefers-reduced-motion: no-preference) {",
    ]
    for index in range(len(shown)):
        begins = 100 * index * stays / whole
        ends = 100 * (index + 1) * stays / whole if index + 1 < len(shown) else 100
        hidden = "0% { visibility: hidden } " if index else ""
        lines.append(
            f"@keyframes k{index} {{ {hidden}{begins:.2f}% {{ visibility: visible }} "
            f"{ends:.2f}% {{ visibility: hidden }} }}"
        )
        lines.append(f".f{index} {{ animation: k{index} {whole:.1f}s step-end infinite }}")
    return "\n".join([*lines, "}", ""])


def draw() -> str:
    shown = list(pictures())
    if not any(one.chosen for one in shown):
        raise SystemExit("the moment to draw never came: mend chosen_moment")
    return film(shown)


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"drew docs/{PICTURE.name}")
