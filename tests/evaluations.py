"""Isolation hides faults of ours from users; it must not hide them from our own tests.

A test in whose worlds an evaluation failed fails, unless it is about that
(``@pytest.mark.failing_evaluations``).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import pytest

from tenure.errors import EvaluationError
from tenure.sim.world import World

OPT_OUT: Final = "failing_evaluations"
MARKER: Final = f"{OPT_OUT}: evaluations fail on purpose"

_worlds: list[World] = []


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember every world that is made."""
    make = World.__init__

    def remembered(world: World, *args: Any, **options: Any) -> None:
        _worlds.append(world)
        make(world, *args, **options)

    monkeypatch.setattr(World, "__init__", remembered)


def failed() -> list[str]:
    errors = (error for world in _worlds for error in getattr(world, "errors", ()))
    return [str(error) for error in errors if isinstance(error, EvaluationError)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    _worlds.clear()
    with pytest.MonkeyPatch.context() as monkeypatch:
        watch(monkeypatch)
        result = yield
    found = failed() if item.get_closest_marker(OPT_OUT) is None else []
    _worlds.clear()
    assert not found, f"evaluations failed: {found}"
    return result
