"""The rooms of the source tree: which package may import which, as contracts and as a drawing.

A room is a package with a contract of type ``room`` in ``pyproject.toml``; a package without one
belongs to the room above it. The contract lists the rooms that its modules may import directly.
Another top-level package in the list stands for all of its rooms; a room of the same top-level
package stands for itself and what is below it.
"""

from __future__ import annotations

import textwrap
import tomllib
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
    return {one["room"]: tuple(one["may_import"]) for one in _written() if one["type"] == "room"}


@cache
def _written() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


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
    """The layers with their rooms, then what each room may import, as Markdown."""
    return f"```text\n{_layers()}```\n\n{_table()}"


def _layers() -> str:
    """Imports point down; inside of a line they point to the right of ``▸``."""
    tops = [layer.split(" | ") for layer in _layered("layers")]
    lines = []
    for top in (one.removeprefix(_PREFIX) for layer in tops for one in layer):
        lines += _drawn(top, _inside(top))
        nested = [one for one in packages() if one.startswith(f"{top}.")]
        lines += [
            line for one in nested for line in _drawn(f" {one.partition('.')[2]}", _inside(one))
        ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _inside(package: str) -> str:
    """Its rooms in their order, or by name where they have none."""
    order = _layered(package)
    below = (room for room in contracts() if room.rpartition(".")[0] == package)
    return " ▸ ".join(order) or ", ".join(sorted(one.rpartition(".")[2] for one in below))


def _drawn(name: str, inside: str) -> list[str]:
    return textwrap.wrap(
        f"{name:<11}{inside}",
        98,
        subsequent_indent=" " * 11,
        break_on_hyphens=False,
    )


def _layered(id_: str) -> list[str]:
    """The layers of a contract, the highest first; empty if there is none of that name."""
    found = [one for one in _written() if one["id"] == id_ and one["type"] == "layers"]
    return [layer.replace(f"{_PREFIX}{id_}.", "") for one in found for layer in one["layers"]]


def _table() -> str:
    lines = ["| room | may import, of its package | of other packages |", "|---|---|---|"]
    for room, may in contracts().items():
        within = [one for one in may if _top(one) == _top(room)]
        beyond = [one for one in may if _top(one) != _top(room)]
        lines.append(f"| `{room}` | {_listed(within)} | {_listed(beyond)} |")
    return "\n".join(lines) + "\n"


def measured() -> str:
    """Each room with its files, as Markdown; no lines, or every change would make it stale."""
    lines = ["| room | files | may import |", "|---|---|---|"]
    for room, may in contracts().items():
        folder = ROOT / "src" / "tenure" / room.replace(".", "/")
        files = sorted(folder.glob("*.py")) or [folder.with_suffix(".py")]
        lines.append(f"| `{room}` | {len(files)} | {_listed(may)} |")
    return "\n".join(lines) + "\n"


def _listed(rooms: Iterable[str]) -> str:
    return ", ".join(f"`{room}`" for room in rooms) or "–"


def room_graph() -> dict[str, set[str]]:
    """By room, the rooms that it imports today."""
    edges: dict[str, set[str]] = {room: set() for room in contracts()}
    for importer, imported in imports_of(build_graph("tenure")):
        edges.setdefault(room_of(importer), set()).add(room_of(imported))
        edges.setdefault(room_of(imported), set())
    return edges


def packages() -> list[str]:
    """Those that are divided into rooms: ``core``, ``sim``, ``sim.actors``."""
    found = {room.rpartition(".")[0] for room in contracts()}
    return sorted(one for one in found if one in contracts())


def rooms_inside(package: str, edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Which rooms directly below a package import which; one stands for those below it as well.

    The modules of the package itself are one room more.
    """

    def child(room: str) -> str:
        below = room.removeprefix(package).removeprefix(".").partition(".")[0]
        return f"{package}.{below}" if below else package

    inside = [room for room in edges if room == package or room.startswith(f"{package}.")]
    found: dict[str, set[str]] = {child(room): set() for room in inside}
    for room in inside:
        found[child(room)] |= {child(one) for one in edges[room] if one in inside} - {child(room)}
    return found


def chain_inside(room: str, graph: ImportGraph) -> list[str]:
    """The longest chain of imports among the modules of one room."""
    own = {one for one in graph.modules if one.startswith(_PREFIX) and room_of(one) == room}
    edges = {one: graph.find_modules_directly_imported_by(one) & own for one in own}
    return longest_chain(edges)


def longest_chain(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """The longest path; a circle counts as one step, because its members are read together."""
    groups = circles(edges)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    best: list[list[str]] = []
    for number, group in enumerate(groups):  # What a group imports comes before it.
        below = {group_of[one] for name in group for one in edges.get(name, ())} - {number}
        longest = max((best[one] for one in sorted(below)), key=len, default=[])
        best.append([" = ".join(sorted(group)), *longest])
    return max(best, key=len, default=[])


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
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
