"""The timeline of one node in lines: what was seen of it, now, and what is foreseen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from tenure.dashboard.board.tones import LOOKS, style
from tenure.dashboard.fleet.values import Lane, Mark, Segment
from tenure.dashboard.fleet.words import away, narrow_clock, span
from tenure.model.values.printable import clean

#: A replica remembers no more of a node.
LINES_MAX = 500


def lane_text(lane: Lane, now: datetime) -> Text:
    """By time; a mark stands before the stretch that begins with it."""
    told: list[tuple[datetime, int, Text]] = []
    told += [(mark.at, 0, _mark(mark, now)) for mark in lane.marks]
    told += [(one.begin, 1, _segment(one, now)) for one in lane.segments]
    told.sort(key=lambda one: one[:2])
    past = [line for at, _, line in told if at <= now][-LINES_MAX:]
    coming = [line for at, _, line in told if at > now][:LINES_MAX]
    here = Text(f"{narrow_clock(now, now):<11} ── now ──", "bold")
    return Text("\n").join([*past, here, *(coming or _nothing_coming())])


def _nothing_coming() -> Iterator[Text]:
    yield Text(f"{'':<11} nothing is foreseen", "dim")


def _segment(one: Segment, now: datetime) -> Text:
    look = LOOKS[one.tone]
    lasted = f"for {span((one.end or now) - one.begin)}{'' if one.end else ' so far'}"
    return Text.assemble(
        (f"{narrow_clock(one.begin, now):<11} ", "dim"),
        (f"{look.sign} {clean(one.phase)} ", style(one.tone)),
        (lasted, "dim"),
        (f"  {clean(one.reason)}" if one.reason else "", "bold"),
        f": {clean(one.because)}" if one.because else "",
    )


def _mark(mark: Mark, now: datetime) -> Text:
    foreseen = f" ({away(mark.at, now)}, foreseen)" if mark.foreseen else ""
    return Text.assemble(
        (f"{narrow_clock(mark.at, now):<11} ", "dim"),
        ("┆ ", "dim"),
        (clean(mark.what), "bold"),
        (foreseen, "dim"),
        f"  {clean(mark.because)}" if mark.because else "",
    )
