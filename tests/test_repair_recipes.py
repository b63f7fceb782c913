"""docs/repair-recipes.md: its pools are valid, and do what the page says of them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.cli.main import run
from tenure.core.pool.registrations import HEALTHY
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, Manifest, a_deployment, a_node_class
from tests.test_termination_pages import DOCS, blocks, explained

PAGE = "repair-recipes.md"


def a_recipe(name: str) -> Manifest:
    found: list[Any] = [yaml.safe_load(block) for block in blocks(PAGE, "yaml")]
    (manifest,) = (one for one in found if one["metadata"]["name"] == name)
    return dict(manifest)


def a_story(name: str, **template: Any) -> Story:
    """With one pod that may run there, and drivers that take their taint off after a minute."""
    pool = a_recipe(name)
    pool["spec"]["template"]["spec"] |= template
    tolerations = [{"key": key, "operator": "Exists"} for key in ("example.com/gpu", "os")]
    agents = InfrastructureOptions(startup_agents={"example.com/gpu-driver": MINUTE})
    options = WorldOptions(infrastructure=agents)
    return Story(a_node_class(), pool, a_deployment(tolerations=tolerations), options=options)


def the_claim(story: Story) -> str:
    uid: str = story.the(NODE_CLAIMS)["metadata"]["uid"]
    return uid


def claims(story: Story) -> set[str]:
    return {claim["metadata"]["uid"] for claim in story.all(NODE_CLAIMS)}


def becomes_unhealthy(story: Story, condition: str, reason: str) -> str:
    """The UID of its claim."""
    node = story.the(NODES)["metadata"]["name"]
    story.kubelets.set_condition(node, condition, "True", reason)
    return the_claim(story)


def test_every_pool_is_valid_and_leaves_nothing_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text("\n---\n".join(blocks(PAGE, "yaml")))
    assert run(["lint", str(tmp_path / "all.yaml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["objects"], told["findings"]) == (len(blocks(PAGE, "yaml")), [])


def test_explain_says_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explained(PAGE)) == 0
    (shown,) = blocks(PAGE, "text")
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "reason", "replaced"),
    [("gpu", "Xid79", True), ("gpu", "ThermalWarning", False)],
)
def test_a_gpu_that_is_broken_is_replaced_for_some_reasons_only(
    name: str, reason: str, replaced: bool
) -> None:
    with a_story(name) as story:
        story.run(5 * MINUTE)
        unhealthy = becomes_unhealthy(story, "GpuUnhealthy", reason)
        story.run(5 * MINUTE - SECOND)
        assert claims(story) == {unhealthy}
        story.run(10 * MINUTE)
        assert (unhealthy not in claims(story)) is replaced
        assert story.running("web") == 1


def test_a_driver_that_hangs_is_rebooted_and_the_node_stays() -> None:
    with a_story("gpu") as story:
        story.run(5 * MINUTE)
        boot = boot_id(story)
        unhealthy, node = becomes_unhealthy(story, "GpuDriverHung", "Timeout"), story.the(NODES)
        story.run_while(lambda: boot_id(story) == boot, at_most=15 * MINUTE, step=SECOND)
        story.kubelets.set_condition(node["metadata"]["name"], "GpuDriverHung", "False", "Fine")
        story.run(30 * MINUTE)
        assert boot_id(story) != boot
        assert claims(story) == {unhealthy}


def boot_id(story: Story) -> str:
    found: str = story.the(NODES)["status"]["nodeInfo"]["bootID"]
    return found


@pytest.mark.parametrize("name", ["gpu", "windows"])
def test_a_first_boot_may_take_45_minutes_whatever_the_provider_tolerates(name: str) -> None:
    with a_story(name, requirements=[]) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        first = the_claim(story)
        story.run(44 * MINUTE)
        assert first in claims(story)
        story.run(2 * MINUTE)
        assert first not in claims(story)


def test_a_startup_taint_that_stays_is_bounded_from_the_first_ready() -> None:
    with a_story("gpu") as story:
        story.infrastructure.faults.set(startup_taint_stuck_rate=1.0)
        story.run_while(lambda: not is_ready(story), at_most=10 * MINUTE, step=SECOND)
        first = the_claim(story)
        story.infrastructure.faults.clear()
        story.run(29 * MINUTE)
        assert first in claims(story)
        story.run(10 * MINUTE)
        assert first not in claims(story)


def is_ready(story: Story) -> bool:
    told = [c for node in story.all(NODES) for c in node["status"].get("conditions", ())]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in told)


def test_a_pool_that_is_left_alone_is() -> None:
    with a_story("left-alone") as story:
        story.run(5 * MINUTE)
        unhealthy = becomes_unhealthy(story, "KWOKUnhealthy", "Test")
        story.kubelets.silence(story.the(NODES)["metadata"]["name"])
        story.run(3 * HOUR)
        assert unhealthy in claims(story)


def test_repairs_keep_out_of_the_busy_hours_of_berlin() -> None:
    """A story begins on a Monday at 8:00 UTC: 9:00 in Berlin, where the budget is closed until 11."""
    with a_story("graceful") as story:
        story.run(5 * MINUTE)
        unhealthy = becomes_unhealthy(story, "KWOKUnhealthy", "Test")
        story.run(2 * HOUR - 6 * MINUTE)
        assert claims(story) == {unhealthy}
        assert "DisruptionBlocked" in story.reasons("NodeClaim/*")
        story.run(10 * MINUTE)
        assert unhealthy not in claims(story)
        assert story.running("web") == 1
        assert story.elapsed - 2 * HOUR < timedelta(minutes=15)


def test_the_condition_that_the_page_names_is_the_one_that_is_written() -> None:
    assert f"`{HEALTHY}`" in (DOCS / PAGE).read_text()
