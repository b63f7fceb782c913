"""The rooms of the source tree: which package may import which, as contracts and as a drawing.

A room is a package with a contract of type ``room`` in ``pyproject.toml``; a package without one
belongs to the room above it. The contract lists the rooms that its modules may import directly.
Another top-level package in the list stands for all of its rooms; a room of the same top-level
package stands for itself and what is below it.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from grimp import ImportGraph, build_graph
from importlinter import Contract, ContractCheck, fields, output

ROOT = Path(__file__).parents[1]
_PREFIX = "tenure."


class RoomContract(Contract):
    """The modules of one room import nothing but what the contract lists."""

    type_name = "room"

    room = fields.StringField()
    may_import = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        # Fields turn into values when the linter reads them, which the type checker cannot know.
        room, may_import = str(self.room), list(cast(Iterable[str], self.may_import))
        strangers = [
            f"{importer} imports {imported}"
            for importer, imported in imports_of(graph)
            if room_of(importer) == room and not _granted(imported, room, may_import)
        ]
        return ContractCheck(kept=not strangers, metadata={"strangers": strangers})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["strangers"]:
            output.print_error(line)
        output.new_line()


@cache
def contracts() -> Mapping[str, tuple[str, ...]]:
    """By room, what it may import."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: Iterable[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return {one["room"]: tuple(one["may_import"]) for one in found if one["type"] == "room"}


@cache
def room_of(module: str) -> str:
    """The room of a module, without the prefix: ``core.claim`` of ``tenure.core.claim.launch``.

    A module of the root is a room by itself: ``errors``, ``safety``.
    """
    name = module.removeprefix(_PREFIX)
    while name and name not in contracts() and "." in name:
        name = name.rpartition(".")[0]
    return name


def imports_of(graph: ImportGraph) -> list[tuple[str, str]]:
    """Direct imports between rooms."""
    return [
        (importer, imported)
        for importer in sorted(graph.modules)
        if importer.startswith(_PREFIX)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if imported.startswith(_PREFIX) and room_of(importer) != room_of(imported)
    ]


def _granted(imported: str, room: str, may_import: Iterable[str]) -> bool:
    name, own = room_of(imported), _top(room)
    return any(name == one or (one != own and name.startswith(f"{one}.")) for one in may_import)


def _top(room: str) -> str:
    return room.partition(".")[0]


def draw() -> str:
    """The rooms as a Markdown table, one for each top-level package."""
    by_top: dict[str, list[str]] = defaultdict(list)
    for room in contracts():
        by_top[_top(room)].append(room)
    lines = ["| room | within its package, may import | of other packages |", "|---|---|---|"]
    for top, rooms in by_top.items():
        for room in sorted(rooms):
            within = [one for one in contracts()[room] if _top(one) == top]
            beyond = [one for one in contracts()[room] if _top(one) != top]
            lines.append(f"| `{room}` | {_listed(within)} | {_listed(beyond)} |")
    return "\n".join(lines) + "\n"


def _listed(rooms: Iterable[str]) -> str:
    return ", ".join(f"`{room}`" for room in sorted(rooms)) or "–"


def room_graph() -> dict[str, set[str]]:
    """By room, the rooms that it imports today."""
    edges: dict[str, set[str]] = {room: set() for room in contracts()}
    for importer, imported in imports_of(build_graph("tenure")):
        edges.setdefault(room_of(importer), set()).add(room_of(imported))
        edges.setdefault(room_of(imported), set())
    return edges


def chain_inside(room: str, graph: ImportGraph) -> list[str]:
    """The longest chain of imports among the modules of one room."""
    own = {one for one in graph.modules if one.startswith(_PREFIX) and room_of(one) == room}
    edges = {one: graph.find_modules_directly_imported_by(one) & own for one in own}
    return longest_chain(edges)


def longest_chain(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """The longest path; a circle counts as one step, because its members are read together."""
    groups = _circles(edges)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    best: list[list[str]] = []
    for number, group in enumerate(groups):  # What a group imports comes before it.
        below = {group_of[one] for name in group for one in edges.get(name, ())} - {number}
        longest = max((best[one] for one in sorted(below)), key=len, default=[])
        best.append([" = ".join(sorted(group)), *longest])
    return max(best, key=len, default=[])


def _circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Names that import each other in a circle, together; imported ones first (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for one in sorted(edges.get(name, ())):
            if one not in order:
                visit(one)
            if one in stack:
                low[name] = min(low[name], low[one])
        if low[name] == order[name]:
            at = stack.index(name)
            found.append(stack[at:])
            del stack[at:]

    for name in sorted(edges):
        if name not in order:
            visit(name)
    return found
