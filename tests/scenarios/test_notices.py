"""What the cloud announces, in virtual time: interruptions, and recommendations to leave.

Stories begin on a Monday at 08:00 UTC. All checkers are on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.model.api.meta import read_instant
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, a_deployment, a_pdb
from tests.scenarios.fleets import a_cluster, a_fleet, a_window, names
from tests.scenarios.signs import is_gone, is_leaving, is_tainted, warned
from tests.scenarios.test_windows import explained

STAMP = "karpenter.sh/nodeclaim-termination-timestamp"
MARK = "karpenter.sh/interruption"
REBALANCE = "RebalanceRecommended"
NONE = [{"nodes": "0"}]
#: Monday, 08:00 to 09:00.
FREEZE = a_window(actions=["Expiration", "Drift", "Consolidation", "Rebalance", "Repair"])
PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}


def oldest(story: Story) -> tuple[Obj, str]:
    """The oldest claim, and its instance."""
    claim = story.the(NODE_CLAIMS)
    return claim, claim["status"]["providerID"]


def stamp_of(story: Story, name: str) -> datetime | None:
    claim = story.store.find(NODE_CLAIMS, "", name)
    return read_instant((claim or {})["metadata"]["annotations"].get(STAMP) or "")


def condition_of(story: Story, name: str, type_: str) -> Obj | None:
    claim = story.store.find(NODE_CLAIMS, "", name) or {}
    return next((one for one in claim["status"]["conditions"] if one["type"] == type_), None)


def is_marked(story: Story, name: str) -> bool:
    claim = story.store.find(NODE_CLAIMS, "", name) or {}
    return MARK in (claim["metadata"].get("annotations") or {})


def pending(story: Story) -> tuple[Notice, ...]:
    return story.cloud.announcements.pending(story.options.settings.cluster_name)


def interrupt(story: Story, grace: timedelta = 2 * MINUTE, **how: Any) -> tuple[str, datetime]:
    """The claim, and when its instance goes."""
    claim, instance = oldest(story)
    story.cloud.interrupt(instance, grace, **how)
    return claim["metadata"]["name"], story.now + grace


# -- interruptions ---------------------------------------------------------------------------


@pytest.mark.parametrize("dated", [True, False])
def test_an_interrupted_node_is_drained_at_once_and_replaced(dated: bool) -> None:
    with Story(*a_cluster(a_fleet(2))) as story:
        story.run(5 * MINUTE)
        name, gone_at = interrupt(story, dated=dated)
        before = names(story)
        story.run(5 * SECOND)
        stamp = stamp_of(story, name)
        assert stamp is not None
        assert abs(stamp - gone_at) <= 3 * SECOND
        assert is_leaving(story, name)
        said = condition_of(story, name, "DisruptionReason")
        assert said is not None
        assert said["reason"] == "Interrupted"
        assert "provider embedded takes back instance" in said["message"]
        assert pending(story) == ()
        story.run(5 * SECOND)
        assert len(names(story) - before) == 1  # The replacement does not wait for the drain.
        story.run_until(gone_at)
        assert story.running("web") >= 1
        story.run(3 * MINUTE)
        assert is_gone(story, name)
        assert story.running("web") == 2
        assert warned(story, "in spite of windows and budgets")


def test_neither_windows_nor_budgets_nor_switches_nor_vetoes_hold_an_interruption() -> None:
    settings = Settings(voluntary_disruption=False, node_repair=False)
    objects = a_cluster(a_fleet(1), budgets=NONE)
    with Story(*objects, FREEZE, options=WorldOptions(settings=settings)) as story:
        story.run(5 * MINUTE)
        veto = {"karpenter.sh/do-not-disrupt": "true", "karpenter.sh/do-not-repair": "true"}
        name, _ = interrupt(story)
        for resource, of in ((NODE_CLAIMS, name), (NODES, story.the(NODES)["metadata"]["name"])):
            story.store.patch(resource, "", of, {"metadata": {"annotations": veto}})
        story.run(5 * SECOND)
        assert is_leaving(story, name)
        story.run(4 * MINUTE)
        assert is_gone(story, name)
        assert story.running("web") == 1


@pytest.mark.parametrize("kind", ["protected", "pdb"])
def test_what_blocks_a_drain_holds_until_the_deadline_finishes_it(kind: str) -> None:
    annotations = PROTECTED if kind == "protected" else None
    web = a_deployment(cpu="1500m", annotations=annotations, terminationGracePeriodSeconds=20)
    pdbs = [a_pdb(maxUnavailable=0)] if kind == "pdb" else []
    with Story(*a_cluster(web, *pdbs)) as story:
        story.run(5 * MINUTE)
        name, gone_at = interrupt(story, 4 * MINUTE)
        pod = story.the(PODS, app="web")["metadata"]["name"]
        story.run_until(gone_at - 25 * SECOND)
        assert story.store.find(PODS, "default", pod) is not None
        assert "deletionTimestamp" not in story.the(PODS, name=pod)["metadata"]
        assert len(names(story)) == 2  # Its replacement is there although the pod still is.
        story.run_until(gone_at - 15 * SECOND)
        assert story.store.find(PODS, "default", pod) is None
        story.run(3 * MINUTE)
        assert is_gone(story, name)
        assert story.running("web") == 1


def test_a_node_is_drained_although_limits_allow_no_replacement() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"limits": {"cpu": "1"}}})
        story.run(5 * SECOND)
        name, gone_at = interrupt(story)
        story.run_until(gone_at - MINUTE)
        assert story.count("pods", "pending", app="web") == 1  # It had its grace, and waits.
        story.run(3 * MINUTE)
        assert is_gone(story, name)
        assert names(story) == set()
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"limits": {"cpu": "2"}}})
        story.run(3 * MINUTE)
        assert story.running("web") == 1


def test_the_cloud_takes_the_instance_early() -> None:
    with Story(*a_cluster(a_deployment(cpu="1500m", annotations=PROTECTED))) as story:
        story.run(5 * MINUTE)
        name, _ = interrupt(story, 10 * MINUTE)
        story.run(30 * SECOND)
        story.cloud.vanish(story.the(NODE_CLAIMS, name=name)["status"]["providerID"])
        story.run(7 * MINUTE)
        assert is_gone(story, name)
        assert story.running("web") == 1


def test_repeated_notices_change_nothing_and_an_earlier_one_brings_the_deadline_forward() -> None:
    with Story(*a_cluster(a_deployment(cpu="1500m", annotations=PROTECTED))) as story:
        story.run(5 * MINUTE)
        name, gone_at = interrupt(story, 20 * MINUTE)
        story.run(30 * SECOND)
        version = story.the(NODE_CLAIMS, name=name)["metadata"]["resourceVersion"]
        _, instance = oldest(story)
        story.cloud.announcements.announce(
            story.options.settings.cluster_name,
            Notice(
                kind=NoticeKind.INTERRUPTION, provider_id=instance, at=story.now, deadline=gone_at
            ),
        )
        story.cloud.interrupt(instance, 30 * MINUTE)
        story.cloud.interrupt(instance, 30 * MINUTE, dated=False)
        story.run(30 * SECOND)
        assert pending(story) == ()
        assert story.the(NODE_CLAIMS, name=name)["metadata"]["resourceVersion"] == version
        story.cloud.interrupt(instance, 5 * MINUTE)
        soon = story.now + 5 * MINUTE
        story.run(30 * SECOND)
        stamp = stamp_of(story, name)
        assert stamp is not None
        assert abs(stamp - soon) <= SECOND


def test_an_interruption_brings_the_deadline_of_a_drain_forward_and_never_puts_it_off() -> None:
    template = {"terminationGracePeriod": "10m"}
    web = a_deployment(cpu="1500m", annotations=PROTECTED)
    with Story(*a_cluster(web, template=template)) as story:
        story.run(5 * MINUTE)
        name = story.delete_claim()
        story.run(30 * SECOND)
        by_grace = stamp_of(story, name)
        _, instance = oldest(story)
        story.cloud.interrupt(instance, HOUR)
        story.run(30 * SECOND)
        assert stamp_of(story, name) == by_grace
        assert is_marked(story, name)
        story.cloud.interrupt(instance, 3 * MINUTE)
        soon = story.now + 3 * MINUTE
        story.run(30 * SECOND)
        stamp = stamp_of(story, name)
        assert stamp is not None
        assert abs(stamp - soon) <= SECOND
        assert pending(story) == ()


def test_late_unknown_and_unreadable_notices_change_nothing() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        _, instance = oldest(story)
        late = Notice(
            kind=NoticeKind.INTERRUPTION,
            provider_id=instance,
            at=story.now - 3 * MINUTE,
            deadline=story.now - MINUTE,
        )
        replace = msgspec.structs.replace
        for one in (
            late,
            replace(late, provider_id="embedded:///nowhere/i-0", deadline=None),
            replace(late, kind=NoticeKind.REBALANCE, provider_id="embedded:///nowhere/i-0"),
            replace(late, at=late.at.replace(tzinfo=None)),
            replace(late, kind="Odd"),
            replace(late, provider_id=""),
            replace(late, kind=NoticeKind.REBALANCE, deadline="soon"),
        ):
            story.cloud.announcements.announce(story.options.settings.cluster_name, one)
        version = story.the(NODE_CLAIMS)["metadata"]["resourceVersion"]
        story.run(3 * MINUTE)
        assert story.the(NODE_CLAIMS)["metadata"]["resourceVersion"] == version
        assert pending(story) == ()
        assert sum("dropped" in str(error) for error in story.errors) == 4
        name, _ = interrupt(story)  # And those that help are heard.
        story.run(10 * SECOND)
        assert is_leaving(story, name)


def test_an_instance_that_is_announced_before_it_has_a_node_is_given_up() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run_while(lambda: not story.cloud.instances(), at_most=MINUTE, step=SECOND / 10)
        story.cloud.interrupt(story.cloud.instances()[0].provider_id, 2 * MINUTE)
        story.run(10 * SECOND)
        assert pending(story) == ()
        story.run(6 * MINUTE)
        assert story.running("web") == 1
        assert story.cloud.launch_count == 2


def test_a_notice_that_comes_while_tenure_is_down_is_heard_when_it_is_back() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        story.crash(stay_down=True)
        name, gone_at = interrupt(story)
        story.run(30 * SECOND)
        assert not is_leaving(story, name)
        story.start()
        story.run(10 * SECOND)
        assert is_leaving(story, name)
        stamp = stamp_of(story, name)
        assert stamp is not None
        assert abs(stamp - gone_at) <= SECOND


def test_by_a_wrong_clock_no_notice_is_late() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        story.infrastructure.faults.set(clock_offset=10 * MINUTE)
        story.run(MINUTE)
        name, gone_at = interrupt(story, 5 * MINUTE)
        story.run(MINUTE)
        assert not is_leaving(story, name)
        assert len(pending(story)) == 1
        story.infrastructure.faults.clear()
        story.run(MINUTE)
        assert is_leaving(story, name)
        assert pending(story) == ()
        story.run_until(gone_at + 3 * MINUTE)
        assert story.running("web") == 1


def test_a_cloud_that_throttles_is_listened_to_again() -> None:
    with Story(*a_cluster(a_fleet(2))) as story:
        story.run(5 * MINUTE)
        story.infrastructure.faults.set(cloud_throttle_rate=0.7)
        name, _ = interrupt(story, 5 * MINUTE)
        story.run(4 * MINUTE)
        assert is_gone(story, name) or is_leaving(story, name)
        story.infrastructure.faults.clear()
        story.run(10 * MINUTE)
        assert pending(story) == ()
        assert story.running("web") == 2


def test_an_interrupted_node_counts_against_budgets_and_starts() -> None:
    budgets = [{"nodes": "1", "within": "1h"}]
    with Story(*a_cluster(a_fleet(2), budgets=budgets)) as story:
        story.run(5 * MINUTE)
        uid = oldest(story)[0]["metadata"]["uid"]
        interrupt(story)
        story.run(5 * MINUTE)
        starts = story.the(NODE_POOLS)["status"]["disruptionStarts"]
        assert [(one["claim"], one["reason"]) for one in starts] == [(uid, "Interrupted")]


def test_a_fleet_that_is_taken_back_together_is_drained_together() -> None:
    with Story(*a_cluster(a_fleet(6))) as story:
        story.run(5 * MINUTE)
        before = names(story)
        for instance in story.cloud.instances():
            story.cloud.interrupt(instance.provider_id)
        story.run(10 * SECOND)
        assert all(is_leaving(story, name) for name in before)
        story.run(10 * MINUTE)
        assert not before & names(story)
        assert story.running("web") == 6


def test_it_is_explained_who_announced_it_and_until_when() -> None:
    with Story(*a_cluster(a_deployment(cpu="1500m", annotations=PROTECTED))) as story:
        story.run(5 * MINUTE)
        name, _ = interrupt(story, 4 * MINUTE)
        story.run(MINUTE)
        for resource, of in ((NODE_CLAIMS, name), (NODES, story.the(NODES)["metadata"]["name"])):
            text = explained(story, resource, of)
            assert "Interrupted: provider embedded takes back instance" in text
            assert "at 2026-01-05T08:09:00Z, in 3m (announced at 2026-01-05T08:05:00Z" in text
        assert story.running("web") == 1


def test_notices_are_counted() -> None:
    with Story(*a_cluster(a_fleet(2))) as story:
        story.run(5 * MINUTE)
        recommend(story)
        interrupt(story)
        story.run(5 * MINUTE)
        counted = story.controller.metrics.render().decode()
        for line in (
            'karpenter_interruption_received_messages_total{message_type="interruption"} 1.0',
            'karpenter_interruption_received_messages_total{message_type="rebalance"} 1.0',
            "karpenter_interruption_deleted_messages_total 2.0",
            'tenure_notices_total{message_type="interruption",outcome="taken"} 1.0',
        ):
            assert line in counted
        assert 'reason="interrupted",termination_mode="eventual"} 1.0' in counted


# -- recommendations -------------------------------------------------------------------------


def recommend(story: Story) -> str:
    claim, instance = oldest(story)
    story.cloud.recommend_rebalance(instance)
    name: str = claim["metadata"]["name"]
    return name


def test_a_recommendation_waits_for_the_window_and_then_for_its_replacement() -> None:
    with Story(*a_cluster(a_fleet(1)), FREEZE) as story:
        story.run(5 * MINUTE)
        name = recommend(story)
        story.run(54 * MINUTE)
        said = condition_of(story, name, REBALANCE)
        assert said is not None
        assert said["status"] == "True"
        assert "provider embedded recommends" in said["message"]
        assert pending(story) == ()
        assert not is_tainted(story, story.the(NODES)["metadata"]["name"])
        story.run(10 * MINUTE)
        assert is_gone(story, name)
        assert story.running("web") == 1


def test_a_recommendation_outlives_a_crash() -> None:
    with Story(*a_cluster(a_fleet(1), budgets=NONE)) as story:
        story.run(5 * MINUTE)
        name = recommend(story)
        story.run(MINUTE)
        story.crash()
        story.run(MINUTE)
        assert condition_of(story, name, REBALANCE) is not None
        story.store.patch(
            NODE_POOLS, "", "general", {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}
        )
        story.run(5 * MINUTE)
        assert is_gone(story, name)


def test_an_interruption_overtakes_the_replacement_that_a_recommendation_began() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        name = recommend(story)
        story.run_while(lambda: len(names(story)) == 1, at_most=5 * MINUTE, step=SECOND)
        interrupt(story)
        story.run(5 * SECOND)
        assert is_leaving(story, name)
        story.run(10 * MINUTE)
        assert is_gone(story, name)
        assert story.cloud.launch_count == 2  # The replacement that was there serves its pods.
        assert story.running("web") == 1
