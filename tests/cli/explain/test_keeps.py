"""What keeps a node: frame, ``explain`` and calendar have one answer, and each blocker can be explained in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.page import answers
from tenure.core.reasons import Reason
from tenure.dashboard.fleet.frame import FrameMaker, Inputs
from tenure.dashboard.fleet.values import NodeView, Tone
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_pdb
from tests.scenarios.fleets import a_cluster, a_fleet, a_window, label_template

NIGHT = {"cron": "0 2 * * *", "duration": "2h"}
PDB, WINDOW = "PodDisruptionBudget/default/web", "MaintenanceWindow/nights"


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """A node that has drifted: a window opens at night, and a PDB never allows an eviction."""
    night = a_window("nights", type="Allow", actions=["Drift"], schedules=[NIGHT])
    with Story(*a_cluster(a_fleet(1)), night, a_pdb(maxUnavailable=0)) as found:
        found.run(5 * MINUTE)
        label_template(found, "two")
        found.run(5 * MINUTE)
        yield found


def why(story: Story, subject: str) -> Any:
    return msgspec.json.decode(answers.why(scene_of(story), subject))


def the_node(story: Story) -> NodeView:
    controller = story.controller
    inputs = Inputs(at=story.now, snapshot=controller.snapshot(), verdicts=controller.evaluator)
    (view,) = FrameMaker().frame(inputs).nodes
    return view


def ends(blockers: Any) -> list[tuple[str, str | None, bool]]:
    return [(one["subject"], one["until"], one["lasting"]) for one in blockers]


def test_board_page_explain_and_calendar_name_the_same_and_what_lasts_longest_first(
    story: Story,
) -> None:
    expected = [(PDB, None, True), (WINDOW, "2026-01-06T02:00:00Z", False)]
    node = the_node(story)
    assert ends(msgspec.to_builtins(node.blockers)) == expected
    assert "PDB default/web can never allow an eviction" in node.because
    assert (node.next, node.next_at) == (f"blocked until {PDB} is changed", None)
    said = why(story, node.key)
    assert (said["reason"], said["message"]) == (node.reason, node.because)
    assert ends(said["blockers"]) == expected
    calendar = msgspec.json.decode(answers.calendar(scene_of(story), "here", ()))
    (rotation,) = calendar["pools"][0]["rotations"]
    assert rotation["never"] == 1
    assert "PDB default/web can never allow an eviction" in rotation["why"][0]["message"]


def test_a_drifted_node_that_is_unhealthy_is_shown_as_unhealthy_and_says_both() -> None:
    night = a_window("nights", type="Allow", actions=["Drift"], schedules=[NIGHT])
    with Story(*a_cluster(a_fleet(1)), night) as story:
        story.run(5 * MINUTE)
        label_template(story, "two")
        story.run(5 * MINUTE)
        assert the_node(story).phase == "drifted"
        story.kubelets.set_condition(the_node(story).node, "KWOKUnhealthy", "True", "Leak")
        story.run(20 * SECOND)
        node = the_node(story)
        said = why(story, node.key)
    assert (node.phase, node.tone, node.reason) == ("unhealthy", Tone.UNHEALTHY, Reason.UNHEALTHY)
    assert node.because.startswith("KWOKUnhealthy=True (Leak)")
    assert "has drifted since" in node.because
    assert [one.subject for one in node.blockers] == [WINDOW]
    assert said["reason"] == Reason.UNHEALTHY
    assert said["also"][0]["reason"] == Reason.DISRUPTION_BLOCKED


@pytest.mark.parametrize("subject", [PDB, WINDOW])
def test_each_blocker_says_whom_it_keeps_until_when_and_what_to_change(
    story: Story, subject: str
) -> None:
    node = the_node(story)
    said = why(story, subject)
    (kept,) = said["around"]
    assert (kept["subject"], kept["reason"]) == (node.key, Reason.DISRUPTION_BLOCKED)
    assert subject in [one["subject"] for one in kept["blockers"]]
    advice = said["advice"] or kept["advice"]
    assert advice
    assert advice in said["text"]


def test_a_pdb_names_the_nodes_that_it_keeps_from_consolidation() -> None:
    pdb = a_pdb(maxUnavailable=0)
    with Story(*a_cluster(a_fleet(1)), pdb) as story:
        story.run(5 * MINUTE)
        node = the_node(story)
        said = why(story, PDB)
    (kept,) = said["around"]
    assert (kept["subject"], kept["reason"]) == (node.key, Reason.UNCONSOLIDATABLE)
    assert [(one["subject"], one["until"]) for one in kept["blockers"]] == [(PDB, None)]


def test_a_pdb_says_what_it_allows_and_what_to_change(story: Story) -> None:
    said = why(story, PDB)
    assert (
        said["state"]
        == "maxUnavailable 0 of 1 pod, 1 healthy, 1 must be: it allows 0 evictions now"
    )
    assert said["advice"] == (
        "Raise maxUnavailable of PodDisruptionBudget default/web. "
        "terminationGracePeriod of the NodePool bounds the drain of new NodeClaims."
    )
    assert f"  advice    {said['advice']}" in said["text"]
    assert said["message"].endswith(": a PDB allows or refuses evictions; what it blocks is below")


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        (
            {"minAvailable": 1},
            "Lower minAvailable of PodDisruptionBudget default/web, or run more pods. ",
        ),
        ({"minAvailable": "100%"}, "Lower minAvailable of PodDisruptionBudget default/web. "),
        ({"maxUnavailable": "0%"}, "Raise maxUnavailable of PodDisruptionBudget default/web. "),
    ],
)
def test_advice_on_a_pdb_is_about_what_it_sets(setting: dict[str, Any], advice: str) -> None:
    with Story(*a_cluster(a_fleet(1)), a_pdb(**setting)) as story:
        story.run(5 * MINUTE)
        assert why(story, PDB)["advice"].startswith(advice)


def test_a_pdb_that_blocks_nothing_says_so() -> None:
    with Story(*a_cluster(a_fleet(1)), a_pdb(app="none", maxUnavailable=0)) as story:
        story.run(5 * MINUTE)
        said = why(story, "PodDisruptionBudget/default/none")
    assert said["around"] == []
    assert said["message"].endswith(": a PDB allows or refuses evictions; it blocks nothing now")
