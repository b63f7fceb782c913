"""Deciders broken on purpose: guard and checkers catch each of them, one without the other.

Without the mutation the same story runs clean and reaches its aim.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from tenure.ports.outcome import Ended
from tenure.runtime.executor import executor
from tenure.sim.check.rules import RULES
from tenure.sim.world import World
from tests.mutations.beside import BESIDE
from tests.mutations.scenes import Scene
from tests.mutations.table import MUTATIONS as WITHOUT
from tests.mutations.table import Mutation

MUTATIONS = (*WITHOUT, *BESIDE)
SCENES: list[tuple[Scene, type[World]]] = list(
    dict.fromkeys((one.scene, one.world) for one in MUTATIONS)
)


def found(point: str) -> tuple[Any, str]:
    """The owner of the point, and the attribute's name."""
    module_name, _, path = point.partition(":")
    *owners, name = path.split(".")
    owner: Any = import_module(module_name)
    for step in owners:
        owner = getattr(owner, step, None)
    assert hasattr(owner, name), f"{point} has moved: follow it in tests/mutations/table.py"
    return owner, name


#: The checkers share no code with what they watch; only here a name keeps the original.
SPARED = "tenure.sim.check"


def mutate(
    patch: pytest.MonkeyPatch, point: str, breaks: Callable[[Any, World], Any], world: World
) -> None:
    """Broken wherever it is used, by the guard and by ``safety``, too."""
    owner, name = found(point)
    original = getattr(owner, name)
    broken = breaks(original, world)
    patch.setattr(owner, name, broken)
    if isinstance(owner, type):
        return
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("tenure.") or module_name.startswith(SPARED):
            continue
        for alias, value in list(vars(module).items()):
            if value is original:
                patch.setattr(module, alias, broken)
            elif isinstance(value, dict):  # A table of functions, such as that of the gates.
                for key in [key for key, held in value.items() if held is original]:
                    patch.setitem(value, key, broken)


def _broken(patch: pytest.MonkeyPatch, mutation: Mutation) -> World:
    """The world after its story was told with a broken decider."""
    world = mutation.world()
    try:
        mutate(patch, mutation.point, mutation.breaks, world)
        if mutation.beside is not None:
            mutate(patch, *mutation.beside, world)
        mutation.scene(world)
    finally:
        world.close()
    return world


def vetoes(world: World) -> list[str]:
    return [e.outcome for e in world.history.entries if e.ended is Ended.VETOED]


@pytest.mark.parametrize(("scene", "kind"), SCENES, ids=lambda one: one.__name__)
def test_without_a_mutation_the_story_runs_clean(scene: Scene, kind: type[World]) -> None:
    with kind() as world:  # Fails where a checker reports something.
        assert scene(world)
        assert vetoes(world) == []


def test_there_are_more_than_ten_and_each_is_caught() -> None:
    assert len(MUTATIONS) > 10
    for one in MUTATIONS:
        assert one.guard or one.checker, one.name
        assert one.checker == "" or one.checker in RULES


@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m.guard], ids=lambda m: m.name)
def test_the_guard_refuses_it(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    world = _broken(monkeypatch, mutation)
    assert any(mutation.guard in one for one in vetoes(world)), vetoes(world)
    world.checkers.assert_kept()  # So nothing came of it.


@pytest.mark.parametrize("mutation", [m for m in MUTATIONS if m.checker], ids=lambda m: m.name)
def test_without_the_guard_a_checker_reports_it(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "veto", lambda *args: None)
    world = _broken(monkeypatch, mutation)
    rules = {violation.rule for violation in world.checkers.violations}
    assert mutation.checker in rules, world.checkers.violations
