"""The loop sleeps when nothing happens, forgets what is gone, and ends when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Quoted
from tenure.core.reasons import Reason
from tenure.errors import Unavailable
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.node import Node
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.ports.outcome import Ended
from tenure.sim.world import World
from tests.builders import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    a_cluster,
    a_deployment,
)
from tests.runtime.worlds import Bench, Tapped, acts, outcomes


def turns(world: World) -> int:
    return int(world.controller.metrics.turns._value.get())


# -- sleeping -------------------------------------------------------------------------------


def test_a_quiet_day_is_slept_through() -> None:
    """Ten nodes beat 2,880 times; nothing of that is anything to evaluate."""
    with Tapped(*a_cluster(a_deployment(replicas=10, cpu="1"))) as story:
        story.run(10 * MINUTE)
        before, entries = turns(story), len(story.history.entries)
        story.run(DAY)
        assert turns(story) - before <= 5
        assert len(story.history.entries) == entries


def test_the_loop_wakes_exactly_when_a_verdict_may_change() -> None:
    protected = {DO_NOT_DISRUPT: "2h"}
    with Tapped(*a_cluster(a_deployment(replicas=1, annotations=protected))) as story:
        story.run(10 * MINUTE)
        story.delete_claim()
        story.run(30 * MINUTE)
        (verdict,) = story.controller.evaluator.about("Pod", pod_name(story), "default")[:1]
        assert verdict.reason is Reason.PROTECTED
        assert verdict.recheck_at is not None
        before = turns(story)
        story.run_until(verdict.recheck_at - SECOND)
        assert turns(story) - before <= 1
        story.run(SECOND)
        (asked,) = story.when(Reason.EVICTING)
        assert asked == verdict.recheck_at


def test_pods_that_a_slow_watch_tells_of_one_by_one_share_nodes_all_the_same() -> None:
    with Tapped(*a_cluster()) as story:
        story.run(MINUTE)
        story.api_tap.lag[PODS] = 0.3
        story.apply(a_deployment(replicas=10, cpu="300m"))
        story.run(MINUTE)
        assert len(story.store.list(NODE_CLAIMS)) == 1


def pod_name(story: Tapped) -> str:
    return next(
        str(pod["metadata"]["name"])
        for pod in story.store.list(PODS)
        if pod["spec"].get("nodeName")
    )


class Labeller:
    """Wants a label on every Node; one key, one view and one verdict per Node."""

    concern = Concern.LIFECYCLE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.nodes

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return (change.key,)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> Node | None:
        return snapshot.nodes.get(key)

    def decide(self, view: Node, settings: Settings, now: datetime) -> Sequence[Verdict]:
        version = view.metadata.resource_version
        body = {"metadata": {"labels": {"seen": "yes"}, "resourceVersion": version}}
        patch = Patch(
            resource=NODES, name=view.name, uid=view.uid, resource_version=version, body=body
        )
        verdict = Verdict(
            concern=self.concern,
            subject=Subject.of("Node", view),
            reason=Reason.REGISTERING,
            facts=(Quoted(""),),
            action=None if "seen" in view.labels else patch,
        )
        return (verdict,)


def test_a_heartbeat_between_look_and_write_costs_one_conflict_and_no_pause() -> None:
    """A change of the version alone must still reach the writer of the object."""
    with Bench() as bench:
        labels = {"karpenter.kwok.sh/kwoknodeclass": "default"}
        bench.store.create(NODES, {"metadata": {"name": "n1", "labels": labels}, "spec": {}})
        bench.run(5 * SECOND)
        bench.decider = Labeller()
        bench.crash()
        beats: list[str] = []

        def beat(verb: str, what: str) -> None:
            if verb == "PATCH" and not beats:
                beats.append(what)
                news = {"status": {"images": [{"names": ["app"], "sizeBytes": 1}]}}
                bench.store.patch(NODES, "", "n1", news, subresource="status")

        bench.api_tap.spoil = beat
        bench.run(10 * SECOND)
        conflict, again = acts(bench, "Node/n1")
        assert (conflict.ended, again.ended) == (Ended.DROPPED, Ended.OK)
        assert "409 Conflict" in conflict.outcome
        assert again.at - conflict.at < 0.2 * SECOND


# -- forgetting -----------------------------------------------------------------------------


def sizes(world: World) -> dict[str, int]:
    """How much everything that Tenure keeps in memory amounts to."""
    controller = world.controller
    evaluator, observations, executor = (
        controller.evaluator,
        controller.observations,
        controller.executor,
    )
    return {
        "entries": len(evaluator.results),
        "due": evaluator.results.rechecks,
        "in force": len(evaluator.verdicts),
        "actionable": len(evaluator.actionable()),
        "ended": len(evaluator.verdicts._ended),
        "said": len(controller.events._subjects),
        "instances": len(observations.launches.launched_instances),
        "failures": len(observations.launches.failures),
        "terminations": len(observations.instances.terminations),
        "evictions": len(observations.pods.evictions),
        "vanished": len(observations.instances.vanished)
        + len(observations.instances._vanished_claims),
        "orphans": len(observations.instances.orphans),
        "back-off": len(executor._back_off) + len(controller.instances._launches),
        "awaited": len(executor._awaited),
        "in flight": executor.in_flight,
        "quiet": len(controller.cache._quiet),
    }


def test_two_thousand_lives_later_nothing_has_grown() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=12, cpu="400m"))) as story:
        story.run(10 * MINUTE)
        story.infrastructure.faults.set(api_error_rate=0.02, cloud_throttle_rate=0.1)
        begin = sizes(story)
        lives = count_pods(story)
        for round_ in range(60):
            scale(story, 12 + 70 * (round_ % 2))
            story.run(90 * SECOND)
            if round_ % 4 == 0:
                story.delete_claim()
        scale(story, 12)
        story.infrastructure.faults.clear()
        story.run(HOUR)
        scale(
            story, 13
        )  # What is not needed any more is forgotten in a turn, and there was none lately.
        story.run(MINUTE)
        assert lives["count"] > 2000
        claims = story.count("claims")
        assert claims < 40
        for name, size in sizes(story).items():
            assert size <= begin[name] + 12 * claims + 20, name
        for name in ("evictions", "awaited", "back-off", "failures", "terminations", "in flight"):
            assert sizes(story)[name] == 0, name


def count_pods(story: Tapped) -> dict[str, int]:
    lives = {"count": 0}

    def note(type_: str, new: Any, old: Any) -> None:
        lives["count"] += type_ == "ADDED"

    story.store.subscribe(PODS, note)
    return lives


def scale(story: Tapped, replicas: int) -> None:
    story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": replicas}})


def test_an_instance_that_is_back_on_the_list_is_not_held_against_its_claim() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        claim = story.the(NODE_CLAIMS)
        observations = story.controller.observations
        subject = Subject("NodeClaim", claim["metadata"]["name"], "", claim["metadata"]["uid"])
        observations.instances.found_vanished({subject.uid: subject}, story.now)
        story.run(SECOND)
        about = story.controller.evaluator.about("NodeClaim", subject.name)
        assert Reason.INSTANCE_KNOWN in [v.reason for v in about]
        observations.instances.found_vanished({}, story.now)
        story.run(SECOND)
        about = story.controller.evaluator.about("NodeClaim", subject.name)
        assert Reason.INSTANCE_KNOWN not in [v.reason for v in about]


# -- outages and ends -----------------------------------------------------------------------


def test_an_api_that_is_away_for_an_hour_does_not_end_tenure() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=2))) as story:
        away = Unavailable("connection refused")
        story.api_tap.spoil = lambda verb, what: away
        story.run(HOUR)
        assert story.count("claims") == 0
        story.api_tap.spoil = lambda verb, what: None
        story.run(3 * MINUTE)
        assert story.running("web") == 2


def test_nothing_is_evaluated_before_everything_was_listed() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=2))) as story:
        away = Unavailable("connection refused")
        story.api_tap.spoil = lambda verb, what: away if "daemonsets" in what else None
        story.run(10 * MINUTE)
        assert turns(story) == 0
        assert story.api_tap.calls == []


def test_the_end_leaves_no_task_behind_and_claims_no_success() -> None:
    with closing(Tapped(*a_cluster(a_deployment(replicas=3)))) as world:
        world.run(0.9 * SECOND)
        world.infrastructure.faults.set(cloud_latency=60 * SECOND)
        world.run(5 * SECOND)
        assert world.controller.executor.in_flight == 1
        before = outcomes(world)
        world.crash(stay_down=True)
        assert asyncio.all_tasks(world.loop) == set()
        assert outcomes(world) == before


@pytest.mark.parametrize("part", ["informers", "inventory", "events"])
def test_a_fault_in_a_part_of_the_loop_ends_the_run_with_its_error(part: str) -> None:
    async def breaks() -> None:
        await asyncio.sleep(5)
        raise KeyError(part)

    with closing(Tapped(*a_cluster(a_deployment(replicas=1)))) as world:
        controller = world.controller
        if part == "informers":
            controller.view.informers[0].run = breaks  # type: ignore[method-assign]
        elif part == "inventory":
            controller.inventory.run_garbage = breaks  # type: ignore[method-assign]
        else:
            controller.events.run = breaks  # type: ignore[method-assign]
        with pytest.raises(ExceptionGroup) as caught:
            world.run(MINUTE)
        assert caught.group_contains(KeyError, match=part)
        world.crash(stay_down=True)
        assert asyncio.all_tasks(world.loop) == set()
