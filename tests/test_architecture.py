"""What a reader may rely on when opening any file: rooms, direction, purity, absolute imports.

The direction of imports itself is a contract of import-linter (``make check``); here it
is run too, so that the tests alone notice, and what it cannot see is read from the text.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from docs.rooms import (
    chain_inside,
    circles,
    contracts,
    longest_chain,
    packages,
    room_graph,
    rooms_inside,
)
from tenure.model.api.meta import ApiObject
from tenure.model.snapshot.kinds import TYPES
from tenure.model.snapshot.unreadable import stand_in
from tests.folders import ROOT

SRC = ROOT / "src" / "tenure"
PURE = ("core", "packing", "model", "schema", "safety", "errors.py")
HOMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "base", "manager"}

#: Of one room, ``__init__.py`` included.
FILES_MAX = 15
#: Modules from the first to the last of a chain of imports.
CHAIN_MAX = 9

#: Reading the clock: ``datetime.now``, ``date.today`` and their relatives.
CLOCKS = {"now", "utcnow", "today", "monotonic", "perf_counter", "time_ns"}


def files_of(*parts: str) -> list[Path]:
    found = [
        path
        for part in parts
        for path in ([SRC / part] if part.endswith(".py") else sorted((SRC / part).rglob("*.py")))
    ]
    assert found, f"nothing to look at under {parts}"
    return found


def named(path: Path) -> str:
    return str(path.relative_to(SRC))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_imports_are_absolute_so_that_the_direction_can_be_checked() -> None:
    assert not [
        f"{named(path)}:{node.lineno}"
        for path in files_of(".")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]


@pytest.mark.parametrize("layer", PURE)
def test_deciding_takes_now_as_an_argument(layer: str) -> None:
    assert not [
        f"{named(path)}:{node.lineno} .{node.func.attr}()"
        for path in files_of(layer)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CLOCKS
    ]


def test_every_module_begins_with_what_it_is() -> None:
    assert not [
        named(path)
        for path in files_of(".")
        if (tree := tree_of(path)).body and not ast.get_docstring(tree)
    ]


def test_no_module_is_named_after_having_no_home() -> None:
    assert not [named(path) for path in files_of(".") if path.stem in HOMELESS]


def test_imports_point_down() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(  # noqa: S603  # our own tool, no input
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


#: Rooms that serve every provider alike.
NEUTRAL = ("model", "schema", "kube", "core", "cli", "packing", "runtime", "ports", "safety")


@pytest.mark.parametrize("path", files_of(*NEUTRAL), ids=named)
def test_no_room_but_the_providers_knows_a_provider_by_name(path: Path) -> None:
    """Kinds, schemas, options, defaults: a provider declares them (``ports/provider.py``)."""
    text = path.read_text(encoding="utf-8").lower()
    assert "kwok" not in text
    assert "kwok" not in path.name


# -- what is derived is kept in one place -----------------------------------------------------


#: Files with values of our own that keep what follows from them, and why. They are made for an
#: evaluation and end with it. No object of the cluster is among them.
CACHED_PROPERTIES = {
    "core/gates/fleet.py": "the nodes of a pool, in the groups that its budgets count",
    "core/health/domains.py": "when the state of the failure domains changes next",
    "core/health/rules.py": "the usable policies of a pool, asked for each of its Nodes",
    "model/snapshot/consolidation.py": "the move of each claim, asked for each of them",
    "packing/offers/catalogue.py": "the numbers of instance types, which a search asks for and a packing does not",
}


def hidden_memory(tree: ast.Module) -> list[int]:
    """Lines that reach into an object past its declared fields."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__setattr__"))
        or (isinstance(node, ast.Name) and node.id in ("vars", "setattr", "WeakKeyDictionary"))
    ]


@pytest.mark.parametrize(
    "written",
    ['node.__dict__["x"] = 1', "vars(node)", 'setattr(n, "x", 1)', 'object.__setattr__(n, "x", 1)'],
)
def test_a_write_into_an_object_is_noticed(written: str) -> None:
    assert hidden_memory(ast.parse(written)) == [1]
    assert hidden_memory(ast.parse("derived.of(ALLOCATABLE, node)")) == []


def test_nothing_is_written_into_an_object_past_its_fields() -> None:
    """What is derived from an object is kept in ``model/snapshot/derived.py``."""
    found = {named(path): hidden_memory(tree_of(path)) for path in files_of(".")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_only_values_of_our_own_cache_a_property() -> None:
    found = {
        named(path)
        for path in files_of(".")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Name) and node.id == "cached_property"
    }
    assert found == set(CACHED_PROPERTIES)


@pytest.mark.parametrize("type_", sorted(TYPES.values(), key=str), ids=lambda type_: type_.__name__)
def test_an_object_has_room_for_what_the_api_says_and_for_nothing_else(
    type_: type[ApiObject],
) -> None:
    item = type_()
    assert not hasattr(item, "__dict__")
    assert not hasattr(stand_in(item, "cannot be read"), "__dict__")


def test_every_folder_of_tests_is_a_package() -> None:
    """Else a folder such as ``pdb`` is imported under the name of a module of Python's own."""
    tests = ROOT / "tests"
    folders = {parent for path in tests.rglob("*.py") for parent in path.parents}
    within = [folder for folder in folders if folder.is_relative_to(tests)]
    assert [folder for folder in within if not (folder / "__init__.py").exists()] == []


# -- rooms ------------------------------------------------------------------------------------


def rooms() -> list[str]:
    """Every package, as its contract names it."""
    packages = (path.parent.relative_to(SRC) for path in SRC.rglob("__init__.py"))
    return sorted(".".join(one.parts) for one in packages if one.parts)


def docstring_of(room: str) -> str:
    return ast.get_docstring(tree_of(SRC.joinpath(*room.split("."), "__init__.py"))) or ""


@pytest.mark.parametrize("room", rooms())
def test_a_package_says_what_it_does_what_it_may_import_and_where_to_start(room: str) -> None:
    said = docstring_of(room)
    assert re.search(r"^Start reading: .*\.py", said, re.M), f"{room}: add 'Start reading: …'"
    for file in re.findall(r"[\w/]+\.py", said.partition("Start reading:")[2]):
        assert SRC.joinpath(*room.split("."), file).exists(), file


@pytest.mark.parametrize("room", sorted({*rooms()} & {*contracts()}))
def test_a_package_may_import_what_its_contract_allows(room: str) -> None:
    found = re.search(r"^May import: (.*?)\.\n", docstring_of(room) + "\n", re.M | re.S)
    assert found is not None, f"{room}: add 'May import: …'"
    listed = [] if found[1] == "nothing of Tenure" else re.split(r",\s+", found[1])
    assert listed == list(contracts()[room]), f"{room}: pyproject.toml says otherwise"


def test_a_contract_is_about_a_room_and_grants_rooms() -> None:
    known = {*rooms(), "errors"}
    assert not [room for room in contracts() if room not in known]
    assert not [(room, one) for room, may in contracts().items() for one in may if one not in known]


def test_a_contract_grants_nothing_that_is_forbidden_to_provisioning() -> None:
    assert "core.repair" not in contracts()["core.provision"]


@pytest.mark.parametrize("room", rooms())
def test_a_room_is_small_enough_to_be_read_at_a_sitting(room: str) -> None:
    files = list(SRC.joinpath(*room.split(".")).glob("*.py"))
    assert len(files) <= FILES_MAX, f"{room} has {len(files)} files: split it"


def test_no_chain_of_imports_inside_of_a_room_is_too_long() -> None:
    graph = grimp.build_graph("tenure")
    chains = {room: chain_inside(room, graph) for room in contracts()}
    assert {room: one for room, one in chains.items() if len(one) > CHAIN_MAX} == {}
    assert max(map(len, chains.values())) > 2, "it measures something"


def test_no_chain_of_imports_between_the_rooms_of_a_package_is_too_long() -> None:
    edges = room_graph()
    for package in packages():
        chain = longest_chain(rooms_inside(package, edges))
        assert len(chain) <= CHAIN_MAX, chain


def test_rooms_do_not_import_each_other_in_circles() -> None:
    edges = room_graph()
    for package in packages():
        groups = circles(rooms_inside(package, edges))
        assert [group for group in groups if len(group) > 1] == [], package


def test_a_circle_of_rooms_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"], ["a"]]


def test_a_room_inside_of_a_package_stands_for_those_below_it() -> None:
    edges = {"a": {"a.b"}, "a.b": set(), "a.b.c": {"a.d", "e"}, "a.d": set(), "e": {"a"}}
    assert rooms_inside("a", edges) == {"a": {"a.b"}, "a.b": {"a.d"}, "a.d": set()}
    assert rooms_inside("a.b", edges) == {"a.b": set(), "a.b.c": set()}


def test_the_longest_chain_counts_a_circle_once() -> None:
    assert longest_chain({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [
        "a",
        "b = c",
        "d",
    ]
