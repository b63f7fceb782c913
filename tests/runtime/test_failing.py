"""An evaluation that fails as a whole: what it decides stands still, and every channel says so."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.provision import vacating as provision
from tenure.core.reasons import Reason
from tenure.errors import Forbidden
from tenure.model.api.resource import EVENTS
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.serving import failing, not_alive
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, a_cluster, a_deployment
from tests.runtime.telemetry.test_scrape import Onlooker, scraped


def fail(_: Any) -> Any:
    raise ZeroDivisionError("of no object's making")


@pytest.mark.failing_evaluations
def test_an_evaluation_that_fails_as_a_whole_is_told_everywhere_and_heals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Story(*a_cluster(a_deployment())) as story, monkeypatch.context() as broken:
        broken.setattr(provision, "packing_steps", fail)
        story.run(2 * MINUTE)
        onlooker = Onlooker(story)
        (line,) = failing(onlooker)
        assert line.startswith("evaluating provisioning/cluster fails: ")
        assert "ZeroDivisionError: of no object's making (test_failing.py:" in line
        assert list(not_alive(onlooker)) == [], "another process would fare no better"
        gauges = {labels["concern"]: value for labels, value in scraped(story)[names.FAILING.name]}
        assert (gauges["provisioning"], gauges["drain"]) == (1, 0)
        told = {(e["involvedObject"]["kind"], e["type"]) for e in events(story)}
        assert told == {("NodePool", "Warning")}
        assert any("ZeroDivisionError" in str(error) for error in story.errors)
        broken.undo()
        story.run(5 * MINUTE)
        assert story.running("web") == 1
        assert list(failing(onlooker)) == []


def test_a_right_that_the_provider_lacks_is_named_until_it_is_granted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(_: str) -> Any:
        raise Forbidden("configmaps is forbidden")

    with Story(*a_cluster(a_deployment())) as story:
        story.run(MINUTE)
        onlooker = Onlooker(story)
        with monkeypatch.context() as broken:
            broken.setattr(story.cloud, "list_instances", refused)
            story.run(5 * MINUTE)
            (line,) = failing(onlooker)
            assert line.startswith(
                "the provider's instances cannot be listed: 403 Forbidden: configmaps is forbidden; "
            )
            assert list(not_alive(onlooker)) == []
        story.run(5 * MINUTE)
        assert list(failing(onlooker)) == []


def events(story: Story) -> list[Any]:
    return [e for e in story.all(EVENTS) if e["reason"] == Reason.JUDGEMENT_FAILED]
