"""The board: header, table, the selected row, and keys. Fed by a source that runs in a thread of its own.

Everything it shows is in the frames; what takes a question (explain, pods, timeline) is asked of the source beside the
drawing, so that the keys always answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from tenure.dashboard.board import heading
from tenure.dashboard.board.columns import heads
from tenure.dashboard.board.lanetext import lane_text
from tenure.dashboard.board.nodetable import NodeTable
from tenure.dashboard.board.panels import (
    Panel,
    explained,
    help_text,
    notes_text,
    pending_text,
    pods_text,
)
from tenure.dashboard.board.rows import FILTER_MAX, Arrangement, PoolRow, rows_of
from tenure.dashboard.board.source import Source
from tenure.dashboard.fleet.values import Frame
from tenure.errors import TenureError

KEYS = "enter explain  t timeline  p pods  w waiting  / filter  s sort"
#: Where there is room for it; help names it, too.
FOLD_KEY = "space fold"
LAST_KEYS = "? help  q quit"


class Board(App[int]):
    """Its result is an exit code."""

    class Told(Message):
        """By the source."""

        def __init__(self, what: Callable[[], object]) -> None:
            super().__init__()
            self.what = what

    ENABLE_COMMAND_PALETTE = False
    TITLE = "Tenure"
    CSS = """
    Screen { background: #101418; color: #e6e6e6; }
    #top, #heads, #details, #keys { height: auto; }
    #details { border-top: solid #555555; }
    #filter { height: 1; border: none; padding: 0; background: #202830; display: none; }
    #filter.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", priority=False),
        Binding("down,j", "move(1)"),
        Binding("up,k", "move(-1)"),
        Binding("pagedown,ctrl+f", "page(1)"),
        Binding("pageup,ctrl+b", "page(-1)"),
        Binding("home,g", "first"),
        Binding("end,G", "last"),
        Binding("enter,e", "explain"),
        Binding("t", "timeline"),
        Binding("p", "pods"),
        Binding("w", "pending"),
        Binding("n", "notes"),
        Binding("question_mark,h", "help"),
        Binding("slash", "filter"),
        Binding("escape", "unfilter"),
        Binding("s", "sort"),
        Binding("r", "reverse"),
        Binding("space", "fold"),
        Binding("f", "fold_all"),
        *(Binding(str(number), f"sort_by({number})") for number in range(10)),
    ]

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.frame: Frame | None = None
        self.chosen = Arrangement()
        self.table = NodeTable()
        self._texts = {
            name: Static(id=name, markup=False) for name in ("top", "heads", "details", "keys")
        }
        self._said: dict[str, Text] = {}
        self.error: Exception | None = None
        self._lost = ""
        self._thread: threading.Thread | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._texts["top"]
            yield self._texts["heads"]
            yield self.table
            yield self._texts["details"]
            yield Input(id="filter", placeholder="filter", max_length=FILTER_MAX, compact=True)
            yield self._texts["keys"]

    def on_mount(self) -> None:
        self.table.focus()
        self._draw_around()
        self._thread = threading.Thread(target=self._run_source, name="source", daemon=True)
        self._thread.start()

    def on_unmount(self) -> None:
        self.source.stop()

    def _run_source(self) -> None:
        try:
            self.source.run(FromThread(self))
        except Exception as error:  # noqa: BLE001  # told by the program that started the board
            FromThread(self).failed(error)

    # -- what the source says ------------------------------------------------------------

    def on_board_told(self, message: Told) -> None:
        if self.table.is_attached:  # Else the board has ended meanwhile.
            message.what()

    def show(self, frame: Frame) -> None:
        self.frame = frame
        self._arrange()

    def connection(self, problem: str) -> None:
        self._lost = problem
        self._draw_around()

    def failed(self, error: Exception) -> None:
        self.error = error
        self.exit(1)

    def _arrange(self) -> None:
        if self.frame is not None:
            rows = rows_of(self.frame, self.chosen)
            self.table.update_rows(rows, self.frame.at)
        self._draw_around()

    def on_node_table_moved(self, _: NodeTable.Moved) -> None:
        self._draw_around()

    def _draw_around(self) -> None:
        width, table = self.size.width, self.table
        frame = self.frame
        top = [heading.title(frame, self.source.title, width), heading.totals(frame, width)]
        if said := heading.banner(frame.notes if frame else (), self._lost, width):
            top.append(said)
        self._put("top", Text("\n").join(top))
        columns = heads(table.layout_of_columns, self.chosen.sort, reverse=self.chosen.reverse)
        self._put("heads", columns)
        lines = heading.details(table.selected, frame, width)
        self._put("details", Text("\n").join(lines))
        self._put("keys", self._keys(width))

    def _put(self, where: str, text: Text) -> None:
        """Only what is different is drawn."""
        if self._said.get(where) != text:
            self._said[where] = text
            self._texts[where].update(text)

    def _keys(self, width: int) -> Text:
        whole = f"{KEYS}  {FOLD_KEY}  {LAST_KEYS}"
        line = Text(whole if len(whole) <= width else f"{KEYS}  {LAST_KEYS}", "dim")
        if self.chosen.filter:
            line = Text.assemble((f"filter: {self.chosen.filter}  (Esc: all)  ", "bold"), line)
        line.truncate(width, overflow="ellipsis")
        return line

    # -- moving, sorting, folding, filtering ---------------------------------------------

    def action_move(self, by: int) -> None:
        self.table.move(by)

    def action_page(self, by: int) -> None:
        table = self.table
        table.move(by * table.page)

    def action_first(self) -> None:
        self.table.move_to(0)

    def action_last(self) -> None:
        table = self.table
        table.move_to(len(table.rows) - 1)

    def _choose(self, **changed: Any) -> None:
        self.chosen = msgspec.structs.replace(self.chosen, **changed)
        self._arrange()

    def action_sort(self) -> None:
        keys = ["", *(one.key for one in self._columns())]
        here = keys.index(self.chosen.sort) if self.chosen.sort in keys else 0
        self._choose(sort=keys[(here + 1) % len(keys)], reverse=False)

    def action_sort_by(self, number: int) -> None:
        columns = self._columns()
        if number <= len(columns):
            self._choose(sort=columns[number - 1].key if number else "", reverse=False)

    def _columns(self) -> Any:
        return self.table.layout_of_columns.columns

    def action_reverse(self) -> None:
        self._choose(reverse=not self.chosen.reverse)

    def action_fold(self) -> None:
        row = self.table.selected
        if row is None:
            return
        pool = row.pool.name if isinstance(row, PoolRow) else row.node.pool
        self._choose(folded=self.chosen.folded ^ {pool})
        self.table.move_to_key(f"NodePool/{pool}")

    def action_fold_all(self) -> None:
        pools = {node.pool for node in self.frame.nodes} if self.frame else set()
        self._choose(folded=frozenset() if self.chosen.folded else frozenset(pools))

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("open")
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._choose(filter=event.value)

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self._close_filter()

    def action_unfilter(self) -> None:
        self.query_one("#filter", Input).value = ""
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("open")
        self.table.focus()

    # -- answers -------------------------------------------------------------------------

    def action_explain(self) -> None:
        key = self._selected_key()
        if key:
            width = max(self.size.width * 96 // 100 - 6, 40)
            self._ask(key, f"explain {key}", lambda: explained(self.source.explain(key, width)))

    def action_pods(self) -> None:
        if key := self._selected_key(nodes_only=True):
            self._ask(key, f"pods on {key}", lambda: pods_text(self.source.pods(key)))

    def action_timeline(self) -> None:
        if key := self._selected_key(nodes_only=True):
            self._ask(key, f"timeline of {key}", lambda: self._timeline(key))

    def _timeline(self, key: str) -> Text:
        lane = self.source.lane(key)
        if lane is None or self.frame is None:
            return Text("nothing was seen of it yet", "dim")
        return lane_text(lane, self.frame.at)

    def action_pending(self) -> None:
        if self.frame is not None:
            self.push_screen(Panel("pods that wait for a node", pending_text(self.frame)))

    def action_notes(self) -> None:
        notes = self.frame.notes if self.frame else ()
        self.push_screen(Panel("notes", notes_text(notes, self._lost)))

    def action_help(self) -> None:
        self.push_screen(Panel("keys and signs", help_text()))

    def _selected_key(self, *, nodes_only: bool = False) -> str:
        row = self.table.selected
        if row is None or (isinstance(row, PoolRow) and (nodes_only or not row.pool.name)):
            return ""
        return row.key

    def _ask(self, key: str, title: str, answer: Callable[[], Text]) -> None:
        """Beside the drawing: an answer may take a moment."""
        panel = Panel(title)
        self.push_screen(panel)

        def found() -> None:
            try:
                text = answer()
            except TenureError as error:
                text = explained(str(error))
            self.call_from_thread(panel.say, text)

        self.run_worker(found, thread=True, exit_on_error=False)


class FromThread:
    """Tells the board from the source's thread, which never waits for the drawing; of frames only the last one counts."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._frame: Frame | None = None

    def show(self, frame: Frame) -> None:
        waits, self._frame = self._frame is not None, frame
        if not waits:
            self._tell(self._show)

    def connection(self, problem: str) -> None:
        self._tell(lambda: self._board.connection(problem))

    def failed(self, error: Exception) -> None:
        self._tell(lambda: self._board.failed(error))

    def _show(self) -> None:
        frame, self._frame = self._frame, None
        if frame is not None:
            self._board.show(frame)

    def _tell(self, what: Callable[[], object]) -> None:
        self._board.post_message(Board.Told(what))
