"""A fault that isolation hides from users is not hidden from the tests."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.provision import vacating as provision
from tenure.sim.scenario.dsl import Story
from tests import evaluations
from tests.builders import MINUTE, a_cluster, a_deployment


@pytest.mark.failing_evaluations
def test_an_evaluation_that_failed_in_a_world_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(_: Any) -> Any:
        raise ZeroDivisionError

    with Story(*a_cluster(a_deployment())) as story:
        story.run(MINUTE)
        assert evaluations.failed() == []
        monkeypatch.setattr(provision, "packing_steps", pack)
        story.apply(a_deployment("late", cpu="3"))
        story.run(MINUTE)
    (found,) = set(evaluations.failed())
    assert "ZeroDivisionError" in found
