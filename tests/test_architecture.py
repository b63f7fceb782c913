"""What a reader may rely on when opening any file: direction, purity, no relative imports.

The direction of imports itself is a contract of import-linter (``make check``); here it
is run too, so that the tests alone notice, and what it cannot see is read from the text.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.folders import ROOT

SRC = ROOT / "src" / "tenure"
PURE = ("core", "packing", "model", "schema", "safety.py", "errors.py")
HOMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "base", "manager"}

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
NEUTRAL = ("model", "schema", "kube", "core", "cli", "packing", "runtime", "ports", "safety.py")


@pytest.mark.parametrize("path", files_of(*NEUTRAL), ids=named)
def test_no_room_but_the_providers_knows_a_provider_by_name(path: Path) -> None:
    """Kinds, schemas, options, defaults: a provider declares them (``ports/provider.py``)."""
    text = path.read_text(encoding="utf-8").lower()
    assert "kwok" not in text
    assert "kwok" not in path.name


def test_every_folder_of_tests_is_a_package() -> None:
    """Else a folder such as ``pdb`` is imported under the name of a module of Python's own."""
    tests = ROOT / "tests"
    folders = {parent for path in tests.rglob("*.py") for parent in path.parents}
    within = [folder for folder in folders if folder.is_relative_to(tests)]
    assert [folder for folder in within if not (folder / "__init__.py").exists()] == []
