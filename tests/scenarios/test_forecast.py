"""What was foretold is what then happens: calendar instants to the second, starts within a boot time.

The forecast is made first and from one look at the cluster; only then is the cluster played on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.forecast.forecasting import forecast_of
from tenure.core.forecast.result import Forecast, MomentKind
from tenure.core.reasons import Reason
from tenure.model.api.meta import read_instant
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Simulation
from tenure.sim.world import World
from tests.builders import DAY, HOUR, MINUTE, SECOND, Manifest, a_deployment, a_node_class, a_pool
from tests.scenarios.files import SHIPPED
from tests.scenarios.fleets import SMALL, a_cluster, a_fleet, claims, label_template

MARK = "karpenter.sh/replaced-by"


def said_at(thing: Obj, type_: str) -> tuple[str, datetime] | None:
    for one in (thing.get("status") or {}).get("conditions", ()):
        if one["type"] == type_:
            at = read_instant(one["lastTransitionTime"])
            assert at is not None
            return one["status"], at
    return None


class Played:
    """What happens from now on, by what the objects in the store say."""

    def __init__(self, world: World) -> None:
        self._world, self._began = world, world.now
        self.starts: dict[str, datetime] = {}
        self.windows: dict[str, list[datetime]] = {}
        self.expired: dict[str, datetime] = {}
        for claim in world.store.list(NODE_CLAIMS):
            self._on_claim("ADDED", claim, None)
        #: Those that had begun before.
        self.before = frozenset(self.starts)
        world.store.subscribe(NODE_CLAIMS, self._on_claim)
        world.store.subscribe(MAINTENANCE_WINDOWS, self._on_window)

    def _on_claim(self, _type: object, claim: Obj | None, _old: object) -> None:
        if claim is None:
            return
        meta = claim["metadata"]
        if MARK in (meta.get("annotations") or {}) or "deletionTimestamp" in meta:
            self.starts.setdefault(meta["uid"], self._world.now)
        if (said := said_at(claim, "Expired")) is not None:
            self.expired.setdefault(meta["name"], said[1])

    def _on_window(self, _type: object, window: Obj | None, _old: object) -> None:
        said = said_at(window, "Active") if window is not None else None
        if window is None or said is None or said[1] < self._began:
            return
        known = self.windows.setdefault(window["metadata"]["name"], [])
        if said[1] not in known:
            known.append(said[1])

    def protections_ended(self) -> list[datetime]:
        entries = self._world.history.entries
        ended = [e.at for e in entries if e.reason == Reason.PROTECTION_ENDED and e.ended is None]
        return sorted(at.replace(microsecond=0) for at in ended if at > self._began)


def foretold(world: World, days: int) -> tuple[Forecast, dict[str, str]]:
    """And the UID of each claim by its name: names are given again."""
    uids = {
        one["metadata"]["name"]: one["metadata"]["uid"] for one in world.store.list(NODE_CLAIMS)
    }
    return forecast_of(scene_of(world), days * DAY, None), uids


def assert_calendar_came_true(found: Forecast, played: Played, now: datetime) -> None:
    for window in found.windows:
        expected = [at for at in window.changes if at < now]
        assert played.windows.get(window.name, []) == expected
    expiries = {one.claim: one.at for one in found.expiries if one.at < now}
    assert {name: played.expired.get(name) for name in expiries} == expiries
    ends = [one.at for one in found.moments if one.kind is MomentKind.PROTECTION and one.at < now]
    assert played.protections_ended() == ends


def assert_starts_came_true(
    found: Forecast, uids: dict[str, str], played: Played, now: datetime
) -> int:
    """Within a boot time of the pool; how many there were."""
    boot = {pool.name: pool.launch_takes for pool in found.pools}
    expected = {uids[one.claim]: one for one in found.starts if not one.generation}
    due = {uid: one for uid, one in expected.items() if one.at < now - MINUTE}
    existed = {uid: at for uid, at in played.starts.items() if uid in set(uids.values())}
    happened = {uid: at for uid, at in existed.items() if uid not in played.before}
    assert due.keys() <= happened.keys()
    assert happened.keys() <= expected.keys()
    for uid, at in happened.items():
        takes = boot[expected[uid].pool]
        assert takes is not None
        assert abs(at - expected[uid].at) <= takes, expected[uid]
    return len(happened)


def assert_came_true(world: World, run: timedelta, days: int = 2) -> tuple[Forecast, int]:
    found, uids = foretold(world, days)
    played = Played(world)
    world.run(run)
    assert_calendar_came_true(found, played, world.now)
    return found, assert_starts_came_true(found, uids, played, world.now)


# -- scenario files --------------------------------------------------------------------------


@contextmanager
def from_file(name: str, at: timedelta) -> Iterator[World]:
    simulation = Simulation(load_scenario(SHIPPED / f"{name}.yaml"))
    try:
        simulation.run_until(at)
        yield simulation.world
    finally:
        simulation.close()


def test_the_shipped_example_comes_true() -> None:
    with from_file("forecast", 10 * MINUTE) as world:
        found, started = assert_came_true(world, 43 * HOUR, days=7)
    assert started == 12
    assert len(found.expiries) == 4
    assert len([one for one in found.moments if one.kind is MomentKind.PROTECTION]) == 4
    (late,) = [pool.rotations[0] for pool in found.pools if pool.name == "batch"]
    assert (late.started, late.waiting, late.late) == (2, 4, 4)


def test_the_voluntary_scenario_comes_true_until_it_changes_the_cluster() -> None:
    with from_file("voluntary", 10 * MINUTE) as world:
        found, started = assert_came_true(world, 39 * MINUTE, days=1)
    assert started == 3
    assert found.peak.nodes == 1


# -- stories that it was not written for ----------------------------------------------------


def a_window(name: str, kind: str, actions: list[str], **spec: Any) -> Manifest:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": name},
        "spec": {"type": kind, "actions": actions, **spec},
    }


def test_drift_by_night_at_a_tenth_of_the_nodes() -> None:
    nights = a_window(
        "nights", "Allow", ["Drift"], schedules=[{"cron": "0 2 * * *", "duration": "5m"}]
    )
    with Story(*a_cluster(a_fleet(30), budgets=[{"nodes": "10%"}]), nights) as story:
        story.run(10 * MINUTE)
        label_template(story, "two")
        story.run(MINUTE)
        found, started = assert_came_true(story, 43 * HOUR)
        assert started == 30
        assert 3 <= found.peak.nodes <= 4


def test_forty_nodes_of_the_same_minute_expire() -> None:
    fleet = a_cluster(a_fleet(40), budgets=[{"nodes": "2"}], template={"expireAfter": "24h"})
    with Story(*fleet) as story:
        story.run(10 * MINUTE)
        found, started = assert_came_true(story, 24 * HOUR)
        assert started == 40
        assert (len(found.expiries), found.peak.nodes) == (40, 2)
        story.checkers.assert_kept()


def test_two_starts_an_hour() -> None:
    with Story(*a_cluster(a_fleet(10), budgets=[{"nodes": "2", "within": "1h"}])) as story:
        story.run(10 * MINUTE)
        label_template(story, "two")
        story.run(SECOND)
        _, started = assert_came_true(story, 6 * HOUR, days=1)
        assert started == 8, "two had begun before"


def test_a_freeze_by_dates_and_office_hours_of_another_zone() -> None:
    freeze = a_window(
        "freeze",
        "Block",
        ["Drift"],
        dates=[{"from": "2026-01-05T08:13:00Z", "until": "2026-01-05T10:55:00Z"}],
    )
    noon = {"cron": "0 12 * * *", "duration": "2h", "timeZone": "Europe/Berlin"}
    office = a_window("office", "Block", ["Drift", "Expiration"], schedules=[noon])
    with Story(*a_cluster(a_fleet(14), budgets=[{"nodes": "1"}]), freeze, office) as story:
        story.run(10 * MINUTE)
        label_template(story, "two")
        story.run(SECOND)
        found, started = assert_came_true(story, 7 * HOUR, days=1)
        assert started == 13, "one had begun before"
        assert {one.at.hour for one in found.starts} == {8, 10, 13}
        assert [len(one.changes) for one in found.windows] == [2, 2]


def test_empty_nodes_of_a_pool_and_drift_of_another() -> None:
    """Several pods on each node, two pools with budgets of their own."""
    general = {"budgets": [{"nodes": "25%"}], "consolidateAfter": "Never"}
    one = {"budgets": [{"nodes": "1"}], "consolidateAfter": "45m"}
    pools = [
        a_pool(requirements=[SMALL], disruption=general),
        a_pool("batch", requirements=[SMALL], disruption=one),
    ]
    batch = a_deployment("report", replicas=4, cpu="1500m")
    batch["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "batch"}
    web = a_deployment(replicas=24, cpu="700m")
    web["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "general"}
    with Story(a_node_class(), *pools, web, batch) as story:
        story.run(10 * MINUTE)
        batch["spec"]["replicas"] = 0
        story.apply(batch)
        label_template(story, "two")
        story.run(SECOND)
        found, started = assert_came_true(story, 2 * HOUR, days=1)
        assert {one.reason for one in found.starts} == {"Drifted", "Empty"}
        assert started == 9 + 4, "three had begun before"


def test_many_candidates_of_a_closed_pool_come_first_and_delay_no_others() -> None:
    pools = [
        a_pool(name, requirements=[SMALL], disruption={"budgets": [{"nodes": nodes}]})
        for name, nodes in (("closed", "0"), ("general", "2"))
    ]
    apps = [a_deployment("app", replicas=20, cpu="1500m"), a_deployment(replicas=6, cpu="1500m")]
    for app, pool in zip(apps, ("closed", "general"), strict=True):
        app["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": pool}
    with Story(a_node_class(), *pools, *apps) as story:
        story.run(10 * MINUTE)
        label_template(story, "two", "closed")
        story.run(5 * SECOND)
        label_template(story, "two")
        story.run(2 * SECOND)
        _, started = assert_came_true(story, 20 * MINUTE, days=1)
        assert started == 4, "two had begun before"


@pytest.mark.parametrize("days", [1, 14])
def test_a_cluster_at_rest_has_nothing_to_foretell_but_its_calendar(days: int) -> None:
    with Story(*a_cluster(a_fleet(2))) as story:
        story.run(10 * MINUTE)
        found, _ = foretold(story, days)
        assert (found.starts, found.moments, found.notes) == ((), (), ())


def marks(story: Story) -> tuple[bool, bool]:
    """Whether a claim says that it is replaced, and whether a Node has the taint of a command."""
    nodes = story.all(NODES)
    taints = [one["key"] for node in nodes for one in node["spec"].get("taints", ())]
    marked = any(MARK in (one["metadata"].get("annotations") or {}) for one in claims(story))
    return marked, "karpenter.sh/disrupted" in taints


def test_a_command_that_a_window_rolls_back_delays_no_start_in_the_night() -> None:
    """Also where the forecast is made between the two writes that undo it."""
    nights = a_window(
        "nights", "Allow", ["Drift"], schedules=[{"cron": "0 2 * * *", "duration": "1h"}]
    )
    with Story(*a_cluster(a_fleet(8), budgets=[{"nodes": "10%"}])) as story:
        story.run(10 * MINUTE)
        label_template(story, "two")
        story.run(4 * SECOND)
        assert marks(story) == (True, True)
        story.apply(nights)
        seen = set[tuple[bool, bool]]()
        while marks(story) != (False, False):
            seen.add(marks(story))
            found, _ = foretold(story, 2)
            (drifted,) = (one for one in found.pools[0].rotations if one.reason == "Drifted")
            assert (drifted.waiting, drifted.why) == (0, ())
            assert {one.at.hour for one in found.starts} == {2}
            story.run(timedelta(milliseconds=10))
        assert seen == {(True, True), (False, True)}
        story.run(MINUTE)
        _, started = assert_came_true(story, 20 * HOUR)
        assert started == 8
