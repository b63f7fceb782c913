"""Maintenance windows and repair, in virtual time. Stories begin on a Monday at 08:00 UTC.

``KWOKUnhealthy`` is tolerated for 30 s; the node stays Ready all the time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.model.api.names import DISRUPTED_TAINT, PROVISIONER_NAME
from tenure.model.api.resource import EVENTS, MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES, Resource
from tenure.sim.scenario.dsl import Story
from tests.builders import HOUR, MINUTE, SECOND, Manifest, a_deployment
from tests.runtime.observe.test_view import Forbidding
from tests.scenarios.fleets import a_window
from tests.scenarios.signs import is_gone, is_leaving, is_tainted, replacement_of, warned
from tests.scenarios.test_replacing import DUE, a_cluster, becomes_unhealthy

CONDITION = "KWOKUnhealthy"


def repaired(mode: str) -> dict[str, Any]:
    policy = {"conditionType": CONDITION, "status": "True", "toleration": "30s"}
    return {"repair": {"maxUnhealthy": "100%", "terminationMode": mode, "policies": [policy]}}


@pytest.mark.parametrize("mode", ["Graceful", "Forceful"])
def test_a_block_window_keeps_repair_from_starting_until_it_closes(mode: str) -> None:
    with Story(*a_cluster(a_deployment(), **repaired(mode)), a_window()) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.run(54 * MINUTE)
        assert not is_leaving(story, claim)
        assert not is_tainted(story, node)
        assert story.cloud.launch_count == 1, "no replacement waits for the window"
        assert warned(story, "MaintenanceWindow freeze blocks Repair of Node")
        assert "Replacing" not in story.reasons(f"NodeClaim/{claim}")
        story.run(6 * MINUTE)
        assert is_gone(story, claim)
        assert story.running("web") == 1


def test_outside_of_an_allow_window_repair_waits_until_it_opens() -> None:
    night = {"cron": "0 22 * * *", "duration": "1h"}
    window = a_window("nights", type="Allow", schedules=[night])
    with Story(*a_cluster(a_deployment()), window) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(13 * HOUR)
        assert not is_leaving(story, claim)
        assert warned(story, "is not active before 2026-01-05T22:00:00Z")
        story.run(HOUR)
        assert is_gone(story, claim)


def test_a_window_written_for_provisioners_blocks_the_repair_of_the_pool_of_that_name() -> None:
    def selecting(pool: str) -> Manifest:
        expression = {"key": PROVISIONER_NAME, "operator": "In", "values": [pool]}
        return a_window(pool, selector={"matchExpressions": [expression]})

    for pool, blocked in (("general", True), ("other", False)):
        with Story(*a_cluster(a_deployment()), selecting(pool)) as story:
            story.run(5 * MINUTE)
            _, claim = becomes_unhealthy(story)
            story.run(5 * MINUTE)
            assert is_gone(story, claim) is not blocked
            window = story.store.get(MAINTENANCE_WINDOWS, "", pool)
            assert (window["status"]["nodesMatched"] > 0) is blocked


def test_a_window_for_other_actions_or_other_nodes_blocks_no_repair() -> None:
    others = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["db"]}]}
    windows = a_window("drift", actions=["Drift"]), a_window("db", selector=others)
    with Story(*a_cluster(a_deployment()), *windows) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(5 * MINUTE)
        assert is_gone(story, claim)


def test_a_window_that_closes_before_the_node_terminates_rolls_the_command_back() -> None:
    with Story(*a_cluster(a_deployment())) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.run(DUE + 2 * SECOND)
        assert replacement_of(story, claim) is not None
        assert is_tainted(story, node)
        story.store.create(MAINTENANCE_WINDOWS, a_window())
        story.run(10 * MINUTE)
        assert not is_leaving(story, claim)
        assert not is_tainted(story, node)
        assert "DisruptionCancelled" in story.reasons(f"NodeClaim/{claim}")
        kept = [c["metadata"]["name"] for c in story.all(NODE_CLAIMS)]
        assert kept == [claim], "its replacement is left over, and removed"
        story.run(50 * MINUTE)
        assert is_gone(story, claim)


def test_a_command_that_waits_says_when_a_window_will_roll_it_back() -> None:
    """The window is closed from 09:00 to 10:00: known long before it is so."""
    hour = [{"cron": "0 9 * * *", "duration": "1h"}]
    with Story(*a_cluster(a_deployment()), a_window(schedules=hour)) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(DUE + 2 * SECOND)
        new = replacement_of(story, claim)
        (said,) = {
            entry.message
            for entry in story.history.entries
            if entry.subject == f"NodeClaim/{claim}"
            if entry.message.startswith("waiting until replacement")
        }
        assert (
            f"NodeClaim {new['metadata']['name']} is initialized (disruption reason Unhealthy)"
            in said
        )
        assert "rolled back at 2026-01-05T09:00:00Z if that takes longer: " in said
        assert "MaintenanceWindow freeze blocks Repair" in said


def test_a_window_that_closes_during_a_drain_does_not_stop_it() -> None:
    with Story(*a_cluster(a_deployment(terminationGracePeriodSeconds=40))) as story:
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        while not is_leaving(story, claim):
            story.run(SECOND)
        story.store.create(MAINTENANCE_WINDOWS, a_window())
        story.run(5 * MINUTE)
        assert is_gone(story, claim)
        assert "DisruptionBlocked" not in story.reasons(f"NodeClaim/{claim}"), "nothing is blocked"
        assert not warned(story, "terminating already"), "by its own repair"


def test_a_blocked_repair_is_an_event_on_the_node_as_well() -> None:
    with Story(*a_cluster(a_deployment()), a_window()) as story:
        story.run(5 * MINUTE)
        node, claim = becomes_unhealthy(story)
        story.run(5 * MINUTE)
        blocked = [e for e in story.store.list(EVENTS) if e["reason"] == "DisruptionBlocked"]
        named = {(e["involvedObject"]["kind"], e["involvedObject"]["name"]) for e in blocked}
        assert named == {("Node", node), ("NodeClaim", claim)}


def test_a_window_does_not_stop_a_deletion_by_a_user() -> None:
    with Story(*a_cluster(a_deployment()), a_window(schedules=[])) as story:
        story.run(5 * MINUTE)
        claim = story.delete_claim()
        story.run(5 * MINUTE)
        assert is_gone(story, claim)


def test_a_window_that_cannot_be_understood_blocks_repair_only_if_it_names_it() -> None:
    broken: dict[str, Any] = {
        "schedules": [{"cron": "0 0 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}]
    }
    for actions, blocks in ((["Repair"], True), (["Drift"], False)):
        with Story(*a_cluster(a_deployment())) as story:
            story.store.create(MAINTENANCE_WINDOWS, a_window(actions=actions, **broken))
            story.run(5 * MINUTE)
            _, claim = becomes_unhealthy(story)
            story.run(timedelta(minutes=20))
            assert is_gone(story, claim) is not blocks


def test_the_status_shows_whether_it_is_active_and_when_that_changes() -> None:
    with Story(*a_cluster(a_deployment()), a_window()) as story:
        story.run(5 * MINUTE)
        status = story.the(MAINTENANCE_WINDOWS)["status"]
        assert (status["nodesMatched"], status["nextChange"]) == (1, "2026-01-05T09:00:00Z")
        assert {c["type"]: c["status"] for c in status["conditions"]} == {
            "Valid": "True",
            "Active": "True",
        }
        story.run(HOUR)
        status = story.the(MAINTENANCE_WINDOWS)["status"]
        assert status["nextChange"] == "2026-01-06T08:00:00Z"
        assert {c["type"]: c["status"] for c in status["conditions"]}["Active"] == "False"
        assert story.the(NODES)["spec"].get("taints") in (None, []), DISRUPTED_TAINT


@pytest.mark.parametrize("mode", ["Graceful", "Forceful"])
def test_without_the_right_to_list_windows_no_command_begins(mode: str) -> None:
    """What a window might block waits; launches and forceful repairs go on."""
    with Story(*a_cluster(a_deployment(), **repaired(mode))) as story:
        forbidding = Forbidding(story.transport, MAINTENANCE_WINDOWS)
        story.transport = forbidding
        story.crash()
        story.run(5 * MINUTE)
        assert story.running("web") == 1
        assert "WindowsUnlisted" in story.reasons("NodePool/general")
        assert story.controller.view.outdated == ""
        _, claim = becomes_unhealthy(story)
        story.run(DUE + 5 * MINUTE)
        if mode == "Forceful":
            assert is_gone(story, claim)
            return
        assert "DisruptionBlocked" in story.reasons(f"NodeClaim/{claim}")
        assert warned(story, "MaintenanceWindows cannot be listed: ")
        assert story.cloud.launch_count == 1
        forbidding.forbids = False
        story.run(5 * MINUTE)
        assert is_gone(story, claim)
        assert story.reasons("NodePool/general")[-1] != "WindowsUnlisted"


@pytest.mark.parametrize("mode", ["Graceful", "Forceful"])
@pytest.mark.parametrize("type_", ["Block", "Allow"])
def test_a_window_may_be_missed_by_the_clock_difference_that_is_tolerated(
    type_: str, mode: str
) -> None:
    """9 s ahead of the end of a Block window, or of the begin of an Allow window, at 09:00."""
    allows: dict[str, Any] = {
        "type": "Allow",
        "schedules": [{"cron": "0 9 * * *", "duration": "1h"}],
    }
    window = a_window(**(allows if type_ == "Allow" else {}))
    with Story(*a_cluster(a_deployment(), **repaired(mode)), window) as story:
        story.infrastructure.faults.set(clock_offset=9 * SECOND)
        story.run(5 * MINUTE)
        _, claim = becomes_unhealthy(story)
        story.run(54 * MINUTE + 45 * SECOND)
        assert "Replacing" not in story.reasons(f"NodeClaim/{claim}")
        story.run(10 * SECOND)
        assert {"Replacing", "NodeRepair"} & set(story.reasons(f"NodeClaim/{claim}"))
        assert story.checkers.violations == []


def test_a_clock_that_is_behind_may_act_inside_a_window_by_that_much() -> None:
    late = {"cron": "30 8 * * *", "duration": "1h"}
    with Story(
        *a_cluster(a_deployment(), **repaired("Forceful")), a_window(schedules=[late])
    ) as story:
        story.infrastructure.faults.set(clock_offset=-9 * SECOND)
        story.run(29 * MINUTE + 25 * SECOND)
        _, claim = becomes_unhealthy(story)
        story.run(MINUTE)
        assert "NodeRepair" in story.reasons(f"NodeClaim/{claim}"), (
            "due at 08:30:04, by the true time"
        )
        assert story.checkers.violations == []


def explained(story: Story, resource: Resource, name: str) -> str:
    answer = explanation(Question(resource, name), scene_of(story))
    assert answer is not None
    return as_text(answer)


@pytest.mark.parametrize("type_", ["Block", "Allow"])
def test_a_window_is_explained_with_the_claims_that_wait_for_it(type_: str) -> None:
    allows: dict[str, Any] = {
        "type": "Allow",
        "schedules": [{"cron": "0 9 * * *", "duration": "1h"}],
    }
    window = a_window(**(allows if type_ == "Allow" else {}))
    with Story(*a_cluster(a_deployment(), **repaired("Graceful")), window) as story:
        story.run(5 * MINUTE)
        assert "NodeClaim/" not in explained(story, MAINTENANCE_WINDOWS, "freeze")
        _, claim = becomes_unhealthy(story)
        story.run(MINUTE)
        text = explained(story, MAINTENANCE_WINDOWS, "freeze")
        assert f"NodeClaim/{claim} (repair)\n  verdict   DisruptionBlocked: " in text


def test_what_is_said_of_a_node_and_its_claim_is_explained_once() -> None:
    with Story(*a_cluster(a_deployment(), **repaired("Graceful")), a_window()) as story:
        story.run(5 * MINUTE)
        node, _ = becomes_unhealthy(story)
        story.run(MINUTE)
        assert explained(story, NODES, node).count("  verdict   DisruptionBlocked: ") == 1
