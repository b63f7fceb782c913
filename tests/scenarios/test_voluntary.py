"""Empty, expired, drifted nodes and those that the cloud recommends to leave, in virtual time.

Stories begin on a Monday at 08:00 UTC. The checkers of budgets, windows and replacements are on.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from tenure.core.gates.operations import Gate
from tenure.errors import Cause
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.model.settings import Settings
from tenure.sim.apiserver.admission.admission import Gate as Gatekeeper
from tenure.sim.apiserver.objects.refusals import invalid
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_deployment,
    a_node_class,
    a_pod,
    a_pool,
)
from tests.scenarios.fleets import (
    ANY,
    SMALL,
    Watched,
    a_cluster,
    a_fleet,
    a_window,
    claims,
    label_template,
    leaving,
    names,
    scale,
    set_pool,
    the_claim,
    uids,
)
from tests.scenarios.signs import is_gone, is_leaving, is_tainted, replacement_of, says, warned

# -- empty -----------------------------------------------------------------------------------


def test_a_cluster_that_scales_to_zero_ends_with_zero_nodes() -> None:
    with Story(*a_cluster(a_fleet(5), budgets=[{"nodes": "10%"}])) as story:
        story.run(5 * MINUTE)
        assert story.count("nodes") == 5
        scale(story, 0)
        story.run(15 * MINUTE)
        assert (story.count("nodes"), story.count("instances")) == (0, 0)
        story.checkers.assert_kept()


def test_an_empty_node_stays_for_consolidate_after_and_a_restart_forgets_nothing() -> None:
    with Story(*a_cluster(a_fleet(1), consolidateAfter="10m")) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        scale(story, 0)
        story.run(5 * MINUTE)
        story.crash()
        assert says(story, claim, "Empty") == ("True", "NoReschedulablePods")
        story.run(4 * MINUTE)
        assert not is_leaving(story, claim)
        story.run(2 * MINUTE)
        assert is_gone(story, claim)


def test_a_pod_that_comes_starts_the_clock_again() -> None:
    with Story(*a_cluster(a_fleet(1), consolidateAfter="10m")) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        scale(story, 0)
        story.run(8 * MINUTE)
        scale(story, 1)
        story.run(MINUTE)
        assert says(story, claim, "Empty") is None
        scale(story, 0)
        story.run(8 * MINUTE)
        assert not is_leaving(story, claim)
        story.run(4 * MINUTE)
        assert is_gone(story, claim)


def test_never_keeps_empty_nodes() -> None:
    with Story(*a_cluster(a_fleet(1), consolidateAfter="Never")) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        scale(story, 0)
        story.run(3 * HOUR)
        assert says(story, claim, "Empty") is None
        assert not is_leaving(story, claim)


def test_a_node_with_a_pod_that_nothing_creates_again_is_not_empty() -> None:
    with Story(*a_cluster(a_pod(cpu="1"))) as story:
        story.run(2 * HOUR)
        assert story.count("nodes") == 1
        assert story.running() == 1


def test_a_node_whose_pods_are_still_to_come_is_not_empty() -> None:
    """The scheduler is slow: its pods are nominated to the new node, and are not bound at once."""
    with Story(*a_cluster(a_fleet(3))) as story:
        story.run(30 * MINUTE)
        assert story.cloud.launch_count == 3
        assert story.running("web") == 3


@pytest.mark.parametrize("action", ["EmptyConsolidation", "Consolidation"])
def test_a_window_for_consolidation_keeps_empty_nodes(action: str) -> None:
    with Story(*a_cluster(a_fleet(1)), a_window(actions=[action])) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        scale(story, 0)
        story.run(50 * MINUTE)
        assert not is_leaving(story, claim)
        assert warned(story, f"MaintenanceWindow freeze blocks {action} of Node")
        story.run(7 * MINUTE)
        assert is_gone(story, claim)


def test_a_window_for_non_empty_consolidation_does_not() -> None:
    with Story(*a_cluster(a_fleet(1)), a_window(actions=["NonEmptyConsolidation"])) as story:
        story.run(5 * MINUTE)
        scale(story, 0)
        story.run(5 * MINUTE)
        assert story.count("nodes") == 0


def test_empty_nodes_go_within_the_budget() -> None:
    with Story(*a_cluster(a_fleet(6), budgets=[{"nodes": "2"}])) as story:
        story.run(5 * MINUTE)
        scale(story, 0)
        most = 0
        for _ in range(240):
            story.run(SECOND)
            most = max(most, len(leaving(story)))
        assert most == 2
        story.run(10 * MINUTE)
        assert story.count("nodes") == 0
        story.checkers.assert_kept()


def test_switched_off_nothing_goes_by_choice() -> None:
    off = WorldOptions(settings=Settings(voluntary_disruption=False))
    with Story(*a_cluster(a_fleet(2)), options=off) as story:
        story.run(5 * MINUTE)
        scale(story, 0)
        label_template(story, "two")
        story.run(3 * HOUR)
        assert story.count("nodes") == 2
        assert not leaving(story)
        claim = next(iter(names(story)))
        assert "VoluntaryDisruptionOff" in story.reasons(f"NodeClaim/{claim}")


# -- expired ---------------------------------------------------------------------------------


def test_forty_nodes_of_the_same_minute_expire_spread_and_within_the_budget() -> None:
    cluster = a_cluster(a_fleet(40), budgets=[{"nodes": "10%"}], template={"expireAfter": "10h"})
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        first, old_names = uids(story), names(story)
        assert len(first) == 40
        watch = Watched(story)
        while uids(story) & first and story.elapsed < 12 * HOUR:
            story.run(10 * MINUTE)
        started = {uid: at for uid, at in watch.started.items() if uid in first}
        assert len(started) == 40
        assert watch.most <= 5, "a tenth of 40 nodes and their new replacements, rounded up"
        begin, end = min(started.values()), max(started.values())
        assert begin >= 9 * HOUR, "not before the spread"
        assert end <= 10 * HOUR, "the budget is wide enough for the spread"
        quarters = Counter((at - 9 * HOUR) // (15 * MINUTE) for at in started.values())
        assert min(quarters[quarter] for quarter in range(4)) >= 5, "all over the hour"
        told = [story.reasons(f"NodeClaim/{name}") for name in old_names]
        assert all("Expired" in reasons and "Replaced" in reasons for reasons in told)
        assert story.running("web") == 40
        story.checkers.assert_kept()


def test_with_the_policy_always_the_claim_is_deleted_whatever_budgets_say() -> None:
    cluster = a_cluster(
        a_fleet(2),
        budgets=[{"nodes": "0"}],
        expirationPolicy="Always",
        template={"expireAfter": "1h"},
    )
    with Story(*cluster) as story:
        story.run(5 * MINUTE)
        first, old = names(story), uids(story)
        story.run(54 * MINUTE)
        assert not leaving(story), "there is no spread"
        story.run(2 * MINUTE)
        assert all(is_leaving(story, name) for name in first)
        story.run(10 * MINUTE)
        assert not uids(story) & old
        story.checkers.assert_kept()


def test_a_window_for_expiration_blocks_the_policy_always_as_well() -> None:
    cluster = a_cluster(a_fleet(1), expirationPolicy="Always", template={"expireAfter": "30m"})
    with Story(*cluster, a_window(actions=["Expiration"])) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        story.run(54 * MINUTE)
        assert not is_leaving(story, claim)
        story.run(5 * MINUTE)
        assert is_gone(story, claim)


# -- drifted ---------------------------------------------------------------------------------


def test_a_drifted_node_is_replaced_first() -> None:
    with Story(*a_cluster(a_fleet(1))) as story:
        story.run(5 * MINUTE)
        node, claim = the_claim(story)
        label_template(story, "two")
        story.run_while(lambda: not is_tainted(story, node), at_most=MINUTE, step=SECOND)
        new = replacement_of(story, claim)
        assert new is not None
        story.run(SECOND)
        assert says(story, claim, "DisruptionReason") == ("True", "Drifted")
        while says(story, new["metadata"]["name"], "Initialized") != ("True", "Initialized"):
            assert not is_leaving(story, claim)
            story.run(SECOND)
        story.run(5 * MINUTE)
        assert names(story) == {new["metadata"]["name"]}
        assert story.running("web") == 1
        story.checkers.assert_kept()


def test_drift_of_thirty_nodes_goes_within_a_nightly_window_at_the_budget() -> None:
    night = {"cron": "0 22 * * *", "duration": "3m"}
    window = a_window("nights", type="Allow", actions=["Drift"], schedules=[night])
    with Story(*a_cluster(a_fleet(30), budgets=[{"nodes": "10%"}]), window) as story:
        story.run(5 * MINUTE)
        first = uids(story)
        label_template(story, "two")
        watch = Watched(story)
        nights: list[int] = []
        while uids(story) & first and len(nights) < 10:
            before = uids(story) & first
            story.run_until(at_ten(story) - SECOND)
            assert uids(story) & first == before, "none outside of the window"
            assert not leaving(story)
            assert waiting_for_a_window(story, story.now + SECOND) == before
            story.run(20 * MINUTE)
            nights.append(len(before - uids(story)))
        # Three at once, about three times in the two minutes in which a new node still comes up in time.
        assert nights == [9, 9, 9, 3]
        begun = {at % (24 * HOUR) for uid, at in watch.started.items() if uid in first}
        assert min(begun) >= 14 * HOUR
        assert max(begun) < 14 * HOUR + 3 * MINUTE
        assert watch.most <= 4, "a tenth of 30 nodes and their new replacements, rounded up"
        assert story.running("web") == 30
        story.checkers.assert_kept()


def waiting_for_a_window(story: Story, opens: datetime) -> set[str]:
    """The UIDs of claims whose verdict in force names the windows, and that instant."""
    about = story.controller.evaluator.about
    return {
        claim["metadata"]["uid"]
        for claim in claims(story)
        if (verdict := about("NodeClaim", claim["metadata"]["name"])[0]).gate is Gate.WINDOW
        and verdict.recheck_at == opens
    }


def at_ten(story: Story) -> datetime:
    """The next evening."""
    today = story.now.replace(hour=22, minute=0, second=0, microsecond=0)
    return today if story.now < today else today + 24 * HOUR


def test_a_window_that_closes_during_a_drain_does_not_stop_it() -> None:
    slow = a_deployment(cpu="1500m", terminationGracePeriodSeconds=600)
    with Story(*a_cluster(slow)) as story:
        story.pace("web", stop_takes=5 * MINUTE)
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        label_template(story, "two")
        story.run_while(lambda: not is_leaving(story, claim), at_most=10 * MINUTE, step=SECOND)
        story.store.create(MAINTENANCE_WINDOWS, a_window(actions=["Drift"], schedules=[]))
        story.run(15 * MINUTE)
        assert is_gone(story, claim)


def test_no_replacement_is_launched_that_would_come_up_after_the_window() -> None:
    """A node takes about a minute; the first window has half of one left."""
    short = {"cron": "20 8 * * *", "duration": "30s"}
    long = {"cron": "40 8 * * *", "duration": "5m"}
    window = a_window("mornings", type="Allow", actions=["Drift"], schedules=[short, long])
    with Story(*a_cluster(a_fleet(1)), window) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        label_template(story, "two")
        story.run(30 * MINUTE)
        assert story.cloud.launch_count == 1
        said = [entry.message for entry in story.history.entries]
        assert any("not started: a new node of NodePool general takes" in one for one in said)
        story.run(10 * MINUTE)
        assert is_gone(story, claim)
        assert story.cloud.launch_count == 2


def test_a_drifted_node_whose_pod_loses_its_capacity_takes_pods_again() -> None:
    """New nodes do not come up: the command is rolled back, and the pool pauses."""
    with Story(*a_cluster(a_fleet(2), consolidateAfter="1m", budgets=[{"nodes": "0"}])) as story:
        story.run(5 * MINUTE)
        scale(story, 1)
        story.run(3 * MINUTE)
        label_template(story, "2")
        story.run(30 * SECOND)
        node = story.the(PODS)["spec"]["nodeName"]
        story.infrastructure.faults.set(never_registers_rate=1)
        set_pool(story, budgets=ANY)
        story.run(10 * SECOND)
        began = story.elapsed
        story.run_while(lambda: is_tainted(story, node), at_most=HOUR, step=10 * SECOND)
        assert story.elapsed - began < 30 * MINUTE
        assert story.the(PODS)["spec"]["nodeName"] == node


def test_a_command_whose_capacity_is_taken_and_never_comes_is_rolled_back() -> None:
    """It began without a replacement that could fail, and a pod came before the Node was tainted."""
    other = a_deployment("other", replicas=1, cpu="1500m")
    block = {"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}
    with Story(*a_cluster(a_fleet(1), other, **block)) as story:
        story.run(5 * MINUTE)
        label_template(story, "2")
        scale(story, 0, "other")
        story.run(MINUTE)
        story.infrastructure.faults.set(never_registers_rate=1, api_latency=2 * SECOND)
        set_pool(story, budgets=[{"nodes": "1"}])
        story.run_while(lambda: not leaving(story), at_most=MINUTE, step=SECOND / 10)
        (uid,) = leaving(story)
        scale(story, 1, "other")
        story.run(20 * SECOND)
        story.infrastructure.faults.set(api_latency=SECOND / 100)
        (node,) = {c["status"]["nodeName"] for c in claims(story) if c["metadata"]["uid"] == uid}
        assert is_tainted(story, node)
        began = story.elapsed
        story.run_while(lambda: is_tainted(story, node), at_most=HOUR, step=10 * SECOND)
        assert 14 * MINUTE < story.elapsed - began < 20 * MINUTE
        assert story.count("nodes") == 2


def begins(obj: Obj, refused: str) -> bool:
    """Whether it has what a disruption begins with."""
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    conditions, taints = status.get("conditions") or (), spec.get("taints") or ()
    found = {
        "claim": "karpenter.sh/replaced-by" in (obj["metadata"].get("annotations") or {}),
        "status": any(one["type"] == "DisruptionReason" for one in conditions),
        "node": any(one["key"] == "karpenter.sh/disrupted" for one in taints),
        "pool": "disruptionStarts" in status,
    }
    return found[refused]


@pytest.mark.parametrize("refused", ["claim", "status", "node", "pool"])
def test_a_write_that_is_refused_stops_no_other_disruption(
    monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """A policy of the cluster denies a mark of one claim or its Node, or the status of one pool."""
    denied: set[str] = set()
    known = Gatekeeper.update

    def update(self: Gatekeeper, kind: Any, obj: Obj, old: Obj) -> Any:
        if obj["metadata"]["uid"] in denied and begins(obj, refused):
            cause = Cause("FieldValueInvalid", "denied by a policy", "metadata")
            raise invalid(kind.resource, obj["metadata"]["name"], [cause])
        return known(self, kind, obj, old)

    monkeypatch.setattr(Gatekeeper, "update", update)
    objects = [a_node_class()]
    for name in ("aaa", "bbb"):
        budgets = [{"nodes": "1"}, {"nodes": "9", "within": "1h"}]
        pool = a_pool(name, requirements=[SMALL], disruption={"budgets": budgets})
        pool["spec"]["template"]["metadata"] = {"labels": {"team": name}}
        fleet = a_deployment(name, replicas=2, cpu="1500m")
        fleet["spec"]["template"]["spec"]["nodeSelector"] = {"team": name}
        objects += [pool, fleet]
    with Story(*objects) as story:
        story.run(5 * MINUTE)
        of_pool = {
            claim["metadata"]["uid"]: claim["metadata"]["labels"]["karpenter.sh/nodepool"]
            for claim in claims(story)
        }
        first = min(uid for uid, pool in of_pool.items() if pool == "aaa")
        pools = {
            pool["metadata"]["name"]: pool["metadata"]["uid"] for pool in story.all(NODE_POOLS)
        }
        node = next(
            node["metadata"]["uid"]
            for node in story.all(NODES)
            if node["metadata"]["ownerReferences"][0]["uid"] == first
        )
        denied.add({"pool": pools["aaa"], "node": node}.get(refused, first))
        for name in ("aaa", "bbb"):
            label_template(story, "2", name)
        story.run(25 * MINUTE)
        gone = sorted(pool for uid, pool in of_pool.items() if uid not in uids(story))
        assert gone == (["bbb", "bbb"] if refused == "pool" else ["aaa", "bbb", "bbb"])
        assert story.count("nodes") == 4, "no replacement runs idle"
        assert not story.count("nodes", "cordoned")
