"""What ``tenure explain`` foretells of a drain is what then happens, also where repair hurries it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.scheduletext import DrainOutlook
from tenure.cli.explain.text import as_text
from tenure.cli.view.instants import span
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pdb, a_pool
from tests.cli.readclusters import seen

PROTECTED = {DO_NOT_DISRUPT: "true"}
UNHEALTHY = "DiskBroken"
GRACEFUL = {"terminationMode": "Graceful"}
POLICY = {"conditionType": UNHEALTHY, "status": "True", "toleration": "2m"}
BOUNDED: dict[str, Any] = {**GRACEFUL, "policies": [{**POLICY, "terminationGracePeriod": "5m"}]}
BY_FORCE = {"terminationMode": "Forceful"}


@contextmanager
def a_drain(repair: dict[str, Any], settings: Settings | None = None) -> Iterator[Story]:
    """Its claim was deleted a minute ago, its pod is protected, and repair is due in two minutes."""
    pool = a_pool(repair={"maxUnhealthy": "100%", "policies": [POLICY], **repair})
    world = WorldOptions(settings=settings or Settings())
    web = a_deployment(replicas=1, annotations=PROTECTED)
    with Story(a_node_class(), pool, web, options=world) as story:
        story.run(5 * MINUTE)
        story.delete_claim()
        story.run(MINUTE)
        story.kubelets.set_condition(_node(story), UNHEALTHY, "True", "Test")
        story.run(SECOND)
        yield story


def _node(story: Story) -> str:
    name: str = story.the(NODES)["metadata"]["name"]
    return name


def told(story: Story) -> tuple[DrainOutlook, str]:
    answer = explanation(Question(NODES, _node(story)), seen(story)[0].evaluated)
    assert answer is not None
    (outlook,) = answer.timetables
    return outlook, as_text(answer)


def forced_and_gone(story: Story) -> tuple[datetime, datetime]:
    """When its pod is deleted despite its protection, and when the Node is gone."""
    node = _node(story)
    story.run_while(
        lambda: node in [one["metadata"]["name"] for one in story.all(NODES)],
        at_most=30 * MINUTE,
        step=SECOND,
    )
    (forced,) = story.when("Disrupted", "Pod/*")
    return forced, story.now


@pytest.mark.parametrize("later", [0, 60, 89, 91, 118])
@pytest.mark.parametrize("repair", [BOUNDED, BY_FORCE], ids=["bounded", "forceful"])
def test_a_repair_that_falls_due_brings_the_deadline_forward(
    repair: dict[str, Any], later: int
) -> None:
    with a_drain(repair) as story:
        story.run(later * SECOND)
        outlook, text = told(story)
        forced, gone = forced_and_gone(story)
    (row,), table = outlook.table.pods, outlook.table
    (coming,) = table.coming
    assert coming.since == story.options.epoch + 8 * MINUTE
    assert coming.deadline.at == story.options.epoch + (
        13 * MINUTE if repair is BOUNDED else 8 * MINUTE
    )
    assert row.forced_at is not None
    assert timedelta() <= forced - row.forced_at < SECOND
    assert table.ends_by is not None
    assert coming.deadline.at <= gone + MINUTE <= table.ends_by + MINUTE
    assert "never by itself" not in text
    assert f"deadline of {'5m' if repair is BOUNDED else '0s'} set at 08:08:00, in " in text
    assert f"falls due at 2026-01-05T08:08:00Z, in {span(119 * SECOND - later * SECOND)}: " in text


def test_once_the_deadline_is_set_nothing_more_comes() -> None:
    with a_drain(BOUNDED) as story:
        story.run(150 * SECOND)
        outlook, _ = told(story)
    assert outlook.table.coming == ()
    assert outlook.table.deadline is not None
    assert outlook.table.deadline.at == story.options.epoch + 13 * MINUTE


@pytest.mark.parametrize(("veto", "bounded"), [("true", False), ("3m", True), ("30s", True)])
def test_a_veto_is_named_and_where_it_ends_repair_brings_the_deadline_forward(
    veto: str, bounded: bool
) -> None:
    with a_drain(BOUNDED) as story:
        marked = {"name": _node(story), "annotations": {DO_NOT_REPAIR: veto}}
        story.apply({"apiVersion": "v1", "kind": "Node", "metadata": marked})
        story.run(SECOND)
        outlook, text = told(story)
        story.run(15 * MINUTE)
        forced = story.when("Disrupted", "Pod/*")
    if not bounded:
        assert outlook.table.coming == ()
        assert "repair    sets no deadline when it falls due at 2026-01-05T08:08:00Z, in " in text
        assert "while it is blocked: DiskBroken=True" in text
        assert outlook.repair.blocked
        assert DO_NOT_REPAIR in text.partition("Drain of")[2]
        assert "never by itself" in text
        assert not forced
    else:
        (coming,) = outlook.table.coming
        assert coming.since >= story.options.epoch + 8 * MINUTE
        (row,) = outlook.table.pods
        assert row.forced_at is not None
        assert timedelta() <= forced[0] - row.forced_at < SECOND


def test_repair_that_is_switched_off_is_named() -> None:
    with a_drain(BOUNDED, Settings(node_repair=False)) as story:
        outlook, text = told(story)
        story.run(15 * MINUTE)
        assert not story.when("Disrupted", "Pod/*")
    assert outlook.table.ends_by is None
    assert "while it is blocked: DiskBroken=True" in text
    assert "node repair is switched off" in text.partition("Drain of")[2]


def test_an_open_breaker_is_named() -> None:
    with a_drain({**BOUNDED, "maxUnhealthy": 0}) as story:
        outlook, text = told(story)
        story.run(15 * MINUTE)
        assert not story.when("Disrupted", "Pod/*")
    assert outlook.table.ends_by is None
    assert "while it is blocked: DiskBroken=True" in text
    assert "maxUnhealthy 0" in text.partition("Drain of")[2]


def test_a_graceful_repair_without_a_bound_sets_no_deadline() -> None:
    with a_drain(GRACEFUL) as story:
        outlook, text = told(story)
        story.run(15 * MINUTE)
        assert not story.when("Disrupted", "Pod/*")
    assert outlook.table.ends_by is None
    assert "repair    sets no deadline when it falls due at 2026-01-05T08:08:00Z, in " in text
    assert "repair due since" not in text.partition("Drain of")[2], "it is not due yet"
    assert "replaced" not in text.partition("CONDITION")[2], "it terminates already"


def test_a_pdb_that_only_paces_a_drain_does_not_block_it_for_ever() -> None:
    web = a_deployment(replicas=3)
    with Story(a_node_class(), a_pool(), web, a_pdb(maxUnavailable=1)) as story:
        story.run(5 * MINUTE)
        outlook, text = told(story)
        story.delete_claim()
        node = _node(story)
        story.run(30 * MINUTE)
        assert node not in [one["metadata"]["name"] for one in story.all(NODES)]
    assert outlook.table.ends_by is None
    assert "never" not in text.partition("Drain of")[2]
    assert "no guaranteed end: 2 pods wait for PDB default/web, which allows 1 at a time" in text


def test_an_eviction_that_a_pdb_can_never_allow_is_never() -> None:
    web = a_deployment(replicas=1)
    with Story(a_node_class(), a_pool(), web, a_pdb(maxUnavailable=0)) as story:
        story.run(5 * MINUTE)
        text = told(story)[1].partition("Drain of")[2]
    (row,) = (line.split() for line in text.splitlines() if line.startswith("  default/web-"))
    assert row[3:5] == ["never", "-"]
    assert "gone      never by itself" in text


def test_the_drain_of_a_node_that_is_being_rebooted_counts_its_repair() -> None:
    """The reboot ends with the deletion, and tolerations count from then on."""
    reboot = {"conditionType": "Hung", "status": "True", "toleration": "1m", "action": "Reboot"}
    policies = [{**reboot, "terminationGracePeriod": "1h"}, *BOUNDED["policies"]]
    pool = a_pool(repair={**BOUNDED, "maxUnhealthy": "100%", "policies": policies})
    web = a_deployment(replicas=1, annotations=PROTECTED)
    with Story(a_node_class(), pool, web) as story:
        story.run(5 * MINUTE)
        story.kubelets.set_condition(_node(story), "Hung", "True", "Test")
        story.run(2 * MINUTE)
        conditions = story.the(NODE_CLAIMS)["status"]["conditions"]
        assert ("Rebooting", "True") in [(one["type"], one["status"]) for one in conditions]
        story.kubelets.set_condition(_node(story), UNHEALTHY, "True", "Test")
        story.run(SECOND)
        outlook, text = told(story)
        story.delete_claim()
        forced, gone = forced_and_gone(story)
    (row,) = outlook.table.pods
    assert row.forced_at is not None
    assert outlook.table.ends_by is not None
    assert abs(forced - row.forced_at) <= SECOND
    assert gone <= outlook.table.ends_by + 10 * SECOND
    assert "repair    falls due at" in text


def test_of_a_node_that_reboots_no_instant_is_made_up() -> None:
    """A deletion would end the reboot; what is due then is not said as if it were due now."""
    policy = {**POLICY, "action": "Reboot"}
    pool = a_pool(repair={**GRACEFUL, "maxUnhealthy": "100%", "policies": [policy]})
    with Story(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(5 * MINUTE)
        story.kubelets.set_condition(_node(story), UNHEALTHY, "True", "Test")
        story.run(2 * MINUTE + 5 * SECOND)
        claim = story.the(NODE_CLAIMS)
        rebooting = [one for one in claim["status"]["conditions"] if one["type"] == "Rebooting"]
        assert [one["status"] for one in rebooting] == ["True"]
        outlook, text = told(story)
    drain = text.partition("Drain of")[2]
    assert outlook.repair.unset_at == story.now + 2 * MINUTE
    assert "repair    sets no deadline when it falls due at 2026-01-05T08:09:05Z, in 2m" in drain
    assert "ends the reboot" in drain
    assert "due since" not in drain
    assert "counted from" not in drain


def test_what_a_window_blocks_is_not_said_to_fall_due_later() -> None:
    window = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": "morning"},
        "spec": {"actions": ["Repair"], "schedules": [{"cron": "0 8 * * *", "duration": "1h"}]},
    }
    pool = a_pool(repair={**BOUNDED, "maxUnhealthy": "100%"})
    with Story(a_node_class(), pool, a_deployment(replicas=1), window) as story:
        story.run(5 * MINUTE)
        story.kubelets.set_condition(_node(story), UNHEALTHY, "True", "Test")
        story.run(5 * MINUTE)
        outlook, text = told(story)
    assert "repair    is blocked until 2026-01-05T09:00:00Z, in 50m: from then on" in text
    (row,) = outlook.table.pods
    assert row.stopped_by is not None
    line = next(line for line in text.splitlines() if row.pod in line and "plain pods" in line)
    assert "09:0" not in line, "it has stopped long before it would be forced"
