"""The table: draws only the lines that are seen, and of those only the ones that changed.

The cursor belongs to a row's key: it stays on its node while others come, go and change places, and the node stays
at its place of the screen. A node that is gone leaves the cursor to the row that took its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tenure.dashboard.board.columns import Layout, layout, line_of
from tenure.dashboard.board.rows import NodeRow, Row


class NodeTable(ScrollView, can_focus=True, inherit_bindings=False):
    DEFAULT_CSS = """
    NodeTable { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    class Moved(Message):
        """The cursor is on another row, or its row has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()
        self._places: dict[str, int] = {}
        self._now: datetime | None = None
        self._cursor = 0
        #: Lines as they were drawn last, by row.
        self._drawn: dict[int, Strip] = {}
        self._layout: Layout | None = None
        #: How many lines were drawn so far.
        self.drawn = 0

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    @property
    def selected(self) -> Row | None:
        return self._rows[self._cursor] if self._rows else None

    @property
    def layout_of_columns(self) -> Layout:
        if self._layout is None:
            names = [row.node.name for row in self._rows if isinstance(row, NodeRow)]
            self._layout = layout(self._width, names)
        return self._layout

    @property
    def _width(self) -> int:
        return max(self.size.width - self.styles.scrollbar_size_vertical, 20)

    def update_rows(self, rows: Sequence[Row], now: datetime) -> None:
        before, offset = self.selected, self._cursor - self.scroll_offset.y
        fits = [row.key for row in rows] == list(self._places)
        self._rows, self._now = rows, now
        self._places = {row.key: place for place, row in enumerate(rows)}
        place = self._places.get(before.key) if before is not None else None
        self._cursor = place if place is not None else min(self._cursor, max(len(rows) - 1, 0))
        shape, self._layout = self._layout, None
        if shape != self.layout_of_columns:
            self._drawn.clear()
            self.refresh()
        if not fits:
            self.virtual_size = Size(self._width, len(rows))
            if place is not None:
                self.scroll_to(y=place - offset, animate=False, force=True)
            self._keep_in_sight()
        self._redraw()
        self.post_message(self.Moved())

    def _redraw(self) -> None:
        """Of the lines in sight, those that look different now."""
        top = self.scroll_offset.y
        for y in range(top, top + self.size.height):
            if self._drawn.get(y) != (strip := self._strip(y)):
                self._drawn[y] = strip
                self.refresh_line(y)

    def render_line(self, y: int) -> Strip:
        self.drawn += 1
        place = y + self.scroll_offset.y
        strip = self._strip(place)
        if len(self._drawn) > 4 * max(self.size.height, 1):
            self._drawn.clear()
        self._drawn[place] = strip
        return strip

    def _strip(self, place: int) -> Strip:
        width = self.size.width
        if place >= len(self._rows) or self._now is None:
            return Strip.blank(width, self.rich_style)
        chosen = place == self._cursor
        line = line_of(
            self._rows[place], self.layout_of_columns, self._now, self._width, chosen=chosen
        )
        below = self.rich_style
        if chosen:
            below += Style(reverse=False, bgcolor="#303a46", bold=True)
        segments = [
            Segment(text, below + (drawn or Style()))
            for text, drawn, *_ in line.render(self.app.console, end="")
        ]
        return Strip(segments).adjust_cell_length(width, below)

    # -- the cursor --------------------------------------------------------------------

    def move(self, by: int) -> None:
        self.move_to(self._cursor + by)

    def move_to(self, place: int) -> None:
        self._cursor = min(max(place, 0), max(len(self._rows) - 1, 0))
        self._keep_in_sight()
        self._redraw()
        self.post_message(self.Moved())

    def move_to_key(self, key: str) -> None:
        if (place := self._places.get(key)) is not None:
            self.move_to(place)

    @property
    def page(self) -> int:
        return max(self.size.height - 1, 1)

    def _keep_in_sight(self) -> None:
        top, height = round(self.scroll_target_y), max(self.size.height, 1)
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, force=True)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, force=True)

    def on_resize(self, _: events.Resize) -> None:
        self._layout = None
        self._drawn.clear()
        self.virtual_size = Size(self._width, len(self._rows))
        self.call_after_refresh(self._keep_in_sight)
        self.refresh()
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y
        if place < len(self._rows):
            self.move_to(place)
