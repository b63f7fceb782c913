"""Draws docs/life-of-a-node.svg: the phases of a node, and what may end its life.

The reasons of voluntary disruption are read from the program, so that the picture has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from tenure.core.gates.reasons import TRAITS
from tenure.core.gates.traits import Traits

WIDTH: Final = 1110
_STYLE: Final = """\
<style>
  svg { background: #fff }
  text { font: 14px sans-serif; fill: #1f2933 }
  .title { font-weight: bold }
  .small { font-size: 12px; fill: #52606d }
  .phase { fill: #e3ecfb; stroke: #3b5bdb }
  .service { fill: #d3f2dd; stroke: #2b8a3e }
  .leaving { fill: #ffe8cc; stroke: #d9480f }
  .cause { fill: #fff; stroke: #9aa5b1 }
  .arrow { stroke: #52606d; stroke-width: 1.5; fill: none; marker-end: url(#tip) }
</style>
<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/></marker></defs>
"""

#: Name, what it means, and how it is drawn.
_PHASES: Final = (
    ("pods wait", "a NodeClaim is created", "phase"),
    ("launched", "the instance exists", "phase"),
    ("registered", "the Node has joined", "phase"),
    ("in service", "Ready and initialized", "service"),
    ("draining", "pods leave, tier by tier", "leaving"),
    ("terminated", "instance and Node gone", "leaving"),
)
_BOX, _GAP, _TOP, _HIGH = 160, 22, 50, 54
_CAUSES_TOP: Final = 190
_LINE: Final = 21

_BY_HEALTH: Final = (
    "Repair: a condition outlasts its toleration",
    "Graceful: replacement first, then a drain",
    "Forceful: deadline now",
    "Reboot: the node stays, and returns",
    "blocked by: windows that name Repair, veto,",
    "maxUnhealthy, failure-domain breaker",
)
_FORCED: Final = (
    "time-outs: not launched, not registered,",
    "not Ready (readinessTTL),",
    "not initialized (initializationTTL)",
    "interruption: the cloud takes it back",
    "a user deletes the NodeClaim or the Node",
    "time-outs blocked by: do-not-repair, breakers",
)


def life_picture() -> str:
    chosen = [_chosen(traits) for traits in TRAITS.values() if traits.voluntary]
    columns = (
        (
            "By choice (voluntary disruption)",
            (*chosen, "blocked by: windows, budgets, PDBs, protection"),
        ),
        ("Because it is unhealthy", _BY_HEALTH),
        ("Forced", _FORCED),
    )
    longest = max(len(lines) for _, lines in columns)
    height = _CAUSES_TOP + 46 + longest * _LINE + 20
    body = [*_phases(), *_causes(columns, height - _CAUSES_TOP - 20)]
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    title = "<title>The life of a node, and what may end it</title>"
    return "\n".join((opening, title, _STYLE.rstrip(), *body, "</svg>")) + "\n"


def _chosen(traits: Traits) -> str:
    """With the action by which a window names it alone."""
    (action,) = traits.window_actions - {"Consolidation"}
    return f"{traits.reason} (window action {action})"


def _phases() -> Iterator[str]:
    yield _text(20, 28, "The life of a node", "title")
    for number, (name, meaning, kind) in enumerate(_PHASES):
        x = 20 + number * (_BOX + _GAP)
        yield f'<rect class="{kind}" x="{x}" y="{_TOP}" width="{_BOX}" height="{_HIGH}" rx="8"/>'
        yield _text(x + 10, _TOP + 22, name, "title")
        yield _text(x + 10, _TOP + 42, meaning, "small")
        if number:
            middle = _TOP + _HIGH // 2
            yield f'<path class="arrow" d="M{x - _GAP},{middle} L{x - 2},{middle}"/>'


def _causes(columns: tuple[tuple[str, tuple[str, ...]], ...], height: int) -> Iterator[str]:
    yield _text(20, _CAUSES_TOP - 20, "What may end it", "title")
    wide = (WIDTH - 40 - 2 * _GAP) // len(columns)
    leaving = 20 + 4 * (_BOX + _GAP) + _BOX // 2
    for number, (title, lines) in enumerate(columns):
        x = 20 + number * (wide + _GAP)
        yield f'<rect class="cause" x="{x}" y="{_CAUSES_TOP}" width="{wide}" height="{height}" rx="8"/>'
        yield _text(x + 12, _CAUSES_TOP + 26, title, "title")
        for row, line in enumerate(lines):
            yield _text(x + 12, _CAUSES_TOP + 52 + row * _LINE, line, "small")
        top = x + wide // 2
        bend = _CAUSES_TOP - 34
        yield f'<path class="arrow" d="M{top},{_CAUSES_TOP} L{top},{bend} L{leaving},{bend} L{leaving},{_TOP + _HIGH + 2}"/>'


def _text(x: int, y: int, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
