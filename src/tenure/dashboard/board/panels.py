"""What is shown over the table: an answer about one row, the pods that wait, the help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tenure.dashboard.board.cells import fitted
from tenure.dashboard.board.source import PodLine
from tenure.dashboard.board.tones import LOOKS, style
from tenure.dashboard.fleet.values import Frame
from tenure.dashboard.fleet.words import count, span
from tenure.model.values.printable import clean, clean_lines

HELP: Final = (
    ("↑ ↓ j k", "move the cursor; PgUp, PgDn, Home, End as well"),
    ("Enter e", "explain the row: every verdict, blocker and instant"),
    ("t", "its timeline: what was seen of it, what is foreseen"),
    ("p", "its pods"),
    ("w", "pods that wait for a node"),
    ("/", "filter by words, in any column; Esc takes it away"),
    ("s r", "sort by the next column; reverse"),
    ("1 … 9 0", "sort by that column; 0: by zone and name"),
    ("Space f", "fold or unfold the pool; all pools"),
    ("n", "all notes: what could not be read, what else to know"),
    ("q", "quit"),
)


class Panel(ModalScreen[None]):
    """Text that can be scrolled. ``Esc`` closes it."""

    CSS = """
    Panel { align: center middle; }
    Panel > VerticalScroll { width: 96%; height: 90%; border: round #888888; padding: 0 1; }
    Panel Static { width: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,e,t,p,w,n,question_mark", "dismiss", "close"),
        Binding("j,down", "down", show=False),
        Binding("k,up", "up", show=False),
        Binding("space,pagedown", "page_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("home,g", "home", show=False),
        Binding("end,G", "end", show=False),
    ]

    def __init__(self, title: str, text: Text | None = None) -> None:
        """Without a text yet: the answer is being found."""
        super().__init__()
        self._title, self._text = clean(title), text

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=True) as scroll:
            scroll.border_title = Text(self._title)
            scroll.border_subtitle = "Esc closes"
            yield Static(self._text or Text("asking …", "dim"), markup=False)

    def say(self, text: Text) -> None:
        self._text = text
        if self.is_mounted:
            self.query_one(Static).update(text)

    def on_mount(self) -> None:
        if self._text is not None:
            self.query_one(Static).update(self._text)

    @property
    def said(self) -> str:
        return self._text.plain if self._text is not None else ""

    def _scroll(self, how: Callable[[VerticalScroll], object]) -> None:
        how(self.query_one(VerticalScroll))

    def action_down(self) -> None:
        self._scroll(lambda one: one.scroll_down(animate=False))

    def action_up(self) -> None:
        self._scroll(lambda one: one.scroll_up(animate=False))

    def action_page_down(self) -> None:
        self._scroll(lambda one: one.scroll_page_down(animate=False))

    def action_page_up(self) -> None:
        self._scroll(lambda one: one.scroll_page_up(animate=False))

    def action_home(self) -> None:
        self._scroll(lambda one: one.scroll_home(animate=False))

    def action_end(self) -> None:
        self._scroll(lambda one: one.scroll_end(animate=False))


def help_text() -> Text:
    wide = max(len(keys) for keys, _ in HELP)
    lines = [Text.assemble((keys.ljust(wide), "bold"), f"  {what}") for keys, what in HELP]
    signs = [
        Text.assemble("  ", (look.sign, style(tone)), f" {look.word}")
        for tone, look in LOOKS.items()
    ]
    return Text("\n").join([*lines, Text(), Text("Signs", "bold"), *signs])


def explained(text: str) -> Text:
    """As ``tenure explain`` says it."""
    return Text(clean_lines(text))


def pods_text(pods: Sequence[PodLine]) -> Text:
    if not pods:
        return Text("no pods", "dim")
    lines = [Text(count(len(pods), "pod"), "bold")]
    for pod in pods[:1000]:
        line = Text.assemble(
            fitted(clean(f"{pod.namespace}/{pod.name}"), 36),
            f" {fitted(clean(pod.phase), 12)} {pod.cpu:>7,}m {pod.memory / (1 << 20):>8,.0f} MiB",
        )
        if pod.reason:
            line.append(f"\n    {clean(pod.reason)}: ", "bold")
            line.append(clean(pod.because))
        lines.append(line)
    return Text("\n").join(lines)


def pending_text(frame: Frame) -> Text:
    """The pods that wait, the one that waits longest first."""
    if not frame.pending:
        return Text("no pod waits for a node", "dim")
    lines = [Text(f"{count(frame.totals.pending, 'pod')} pending", "bold")]
    for pod in sorted(frame.pending, key=lambda one: (one.since, one.key)):
        waited = span(frame.at - pod.since)
        lines.append(Text(f"{clean(pod.namespace)}/{clean(pod.name)}, for {waited}"))
        lines.append(Text.assemble((f"    {clean(pod.reason)}: ", "bold"), clean(pod.because)))
    if (more := frame.totals.pending - len(frame.pending)) > 0:
        lines.append(Text(f"and {more:,} more", "dim"))
    return Text("\n").join(lines)


def notes_text(notes: Sequence[str], connection: str) -> Text:
    said = [one for one in (connection, *notes) if one]
    if not said:
        return Text("no notes", "dim")
    return Text("\n\n").join(Text(clean(one)) for one in said)
