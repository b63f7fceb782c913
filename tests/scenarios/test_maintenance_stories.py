"""Drift under windows and budgets as users meet it, in virtual time.

Stories begin on a Monday at 08:00 UTC. A node takes about 45 s from its launch to Initialized.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tenure.model.api.resource import EVENTS, MAINTENANCE_WINDOWS, NODES, PODS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tests.builders import HOUR, MINUTE, SECOND, Manifest, a_deployment, a_node_class, a_pool
from tests.scenarios.fleets import (
    ANY,
    SMALL,
    Begun,
    Watched,
    a_cluster,
    a_fleet,
    a_window,
    label_template,
    names,
    of_pool,
    the_claim,
    uids,
)
from tests.scenarios.signs import blocked, is_as_before, is_gone, is_leaving, warned


def nights(duration: str) -> Manifest:
    """From 22:00 on."""
    schedule = {"cron": "0 22 * * *", "duration": duration}
    return a_window("nights", type="Allow", actions=["Drift"], schedules=[schedule])


def clock(hour: int, minute: int = 0, second: int = 0) -> datetime:
    """Of the first day."""
    return datetime.fromisoformat(f"2026-01-05T{hour:02}:{minute:02}:{second:02}Z")


def test_a_night_that_ends_during_a_drain_lets_it_end_and_starts_no_other() -> None:
    """Pods take ten minutes to stop; the night ends after five."""
    slow = a_deployment(replicas=3, cpu="1500m", terminationGracePeriodSeconds=900)
    with Story(*a_cluster(slow, budgets=[{"nodes": "1"}]), nights("5m")) as story:
        story.pace("web", stop_takes=10 * MINUTE)
        story.run(5 * MINUTE)
        first, watch = names(story), Watched(story)
        label_template(story, "two")
        story.run_until(clock(22, 5, 1))
        (leaving,) = [name for name in first if is_leaving(story, name)]
        assert not is_gone(story, leaving), "in the middle of its drain"
        story.run_until(clock(22, 30))
        assert is_gone(story, leaving)
        assert len(watch.started) == 1
        for name in first - {leaving}:
            assert "is allowed by MaintenanceWindow nights only" in blocked(story, name)
            assert "is not active before 2026-01-06T22:00:00Z" in blocked(story, name)
        story.run_until(clock(22, 30) + 24 * HOUR)
        assert len(watch.started) == 2, "one each night"
        story.checkers.assert_kept()


def test_a_bad_window_blocks_says_so_everywhere_and_lets_go_once_it_is_corrected() -> None:
    mars = {"cron": "0 22 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}
    bad = a_window("nights", actions=["Drift"], schedules=[mars])
    with Story(*a_cluster(a_fleet(1)), bad) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        label_template(story, "two")
        story.run(3 * HOUR)
        assert not is_leaving(story, claim)
        assert story.cloud.launch_count == 1
        assert warned(story, "MaintenanceWindow nights is invalid")
        assert "MaintenanceWindow nights" in blocked(story, claim)
        valid = {
            c["type"]: (c["status"], c["message"])
            for c in story.the(MAINTENANCE_WINDOWS)["status"]["conditions"]
        }["Valid"]
        assert valid[0] == "False"
        assert "Mars/Olympus" in valid[1]
        about = [
            e
            for e in story.store.list(EVENTS)
            if e["involvedObject"]["kind"] == "MaintenanceWindow"
        ]
        assert {(e["type"], e["reason"]) for e in about} == {("Warning", "WindowInvalid")}
        corrected = {"spec": {"schedules": [mars | {"timeZone": "Europe/Berlin"}]}}
        story.store.patch(MAINTENANCE_WINDOWS, "", "nights", corrected)
        story.run(5 * MINUTE)
        assert is_gone(story, claim)


def test_a_failing_image_costs_no_capacity_and_the_other_pool_rolls_on() -> None:
    """Two node classes get new images at the same time; nodes that run ``bad`` never become Ready."""

    def on_node(type_: str, node: Obj, _old: Obj | None) -> None:
        images = {one.provider_id: one.image_id for one in story.cloud.instances()}
        if type_ == "ADDED" and images[node["spec"]["providerID"]] == "bad":
            story.environment.soon(story.kubelets.silence, node["metadata"]["name"])

    def on_pod(*_: object) -> None:
        if story.running("red") < 2:
            missing.append(story.elapsed)

    def pin(name: str, image: str) -> None:
        story.store.patch(KWOK_NODE_CLASSES, "", name, {"spec": {"image": image}})

    cluster = [
        part
        for name in ("red", "blue")
        for part in (
            a_node_class(name, image="v1"),
            a_pool(
                name,
                node_class=name,
                requirements=[SMALL],
                disruption={"budgets": ANY},
                template={"readinessTTL": "2m", "taints": [{"key": name, "effect": "NoSchedule"}]},
            ),
            a_deployment(
                name, replicas=2, cpu="1500m", tolerations=[{"key": name, "operator": "Exists"}]
            ),
        )
    ]
    missing: list[timedelta] = []
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        red, blue = of_pool(story, "red"), of_pool(story, "blue")
        story.store.subscribe(NODES, on_node)
        story.store.subscribe(PODS, on_pod)
        pin("red", "bad")
        pin("blue", "v2")
        story.run(HOUR)
        assert not missing, "no workload loses capacity"
        assert set(of_pool(story, "red")) >= set(red), "they stay as they were"
        assert not set(of_pool(story, "blue")) & set(blue)
        told = {reason for name in red for reason in story.reasons(f"NodeClaim/{name}")}
        assert {"Drifted", "ReplacementFailed", "DisruptionWaits"} <= told
        # For both nodes at first, then after pauses of 1m, 2m, 4m, 8m and 16m.
        assert story.cloud.launch_count - 6 <= 8, "4 at the beginning, 2 of the other pool"
        pin("red", "v1")
        story.run(30 * MINUTE)
        assert set(of_pool(story, "red")) == set(red), "what is taken back undrifts"
        for name, claim in red.items():
            is_as_before(story, claim["status"]["nodeName"], name)
        pin("red", "v2")
        story.run(30 * MINUTE)
        assert not set(of_pool(story, "red")) & set(red), "and a good image rolls"
        story.checkers.assert_kept()


def test_drift_at_two_starts_an_hour_over_a_day_with_three_leader_changes() -> None:
    budget = {"nodes": "2", "within": "1h"}
    with Story(*a_cluster(a_fleet(12), budgets=[budget])) as story:
        story.run(5 * MINUTE)
        first, begun = uids(story), Begun(story)
        assert len(first) == 12
        label_template(story, "two")
        for until in (2 * SECOND, 31 * MINUTE, 3 * HOUR + 16 * SECOND):
            story.run(until)
            story.crash()
        story.run_until(story.options.epoch + 24 * HOUR)
        assert not uids(story) & first
        assert len(begun.at) == 12
        for one, third in zip(begun.at, begun.at[2:], strict=False):
            assert third - one >= HOUR, "never a third within any hour"
        assert begun.at[-1] - begun.at[0] <= 5 * HOUR + 10 * MINUTE, "and no slower than need be"
        assert story.running("web") == 12
        story.checkers.assert_kept()
