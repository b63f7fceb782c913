"""Events tell of changes, once; a restart raises a count instead of telling all again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self

import msgspec

from tenure.core.decision import Concern, Evict, Subject, Verdict
from tenure.core.facts import Quoted, RetriedAt
from tenure.core.provision.facts import NeededForPods
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import EvictionAgreed
from tenure.kube.client.client import Client
from tenure.model.api.meta import format_time
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, NODE_POOLS, Resource
from tenure.runtime.telemetry.events import (
    CROWD_BURST,
    REPEAT_AFTER,
    REWRITE_AFTER,
    EventRecorder,
)
from tenure.sim.world import World
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment, a_pdb
from tests.runtime.worlds import Bench, Tapped


def an_opinion(reason: Reason, message: str = "because", **subject: Any) -> Verdict:
    about = {"kind": "Pod", "name": "web-1", "namespace": "default", "uid": "u1", **subject}
    return Verdict(
        concern=Concern.DRAIN, subject=Subject(**about), reason=reason, facts=(Quoted(message),)
    )


class Newsroom:
    """A recorder at work on the store of a bench."""

    def __init__(self, bench: Bench, node_classes: Sequence[Resource] = ()) -> None:
        self.bench = bench
        settings = bench.options.settings
        client = Client(bench.transport)
        self.recorder = EventRecorder(
            client, bench.environment.clock, settings, node_classes=node_classes
        )
        self.task = bench.loop.create_task(self.recorder.run())

    def say(self, *verdicts: Verdict, then: timedelta = SECOND) -> None:
        for verdict in verdicts:
            self.recorder.decided(verdict)
        self.bench.run(then)

    def published(self) -> list[tuple[str, int]]:
        """In the order of their beginning."""
        events = self.bench.store.list(EVENTS)
        return [(event["reason"], event["count"]) for event in sorted(events, key=_begin)]

    def the_event(self) -> Any:
        (event,) = self.bench.store.list(EVENTS)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.task.cancel()
        self.bench.run(SECOND)


def _begin(event: Any) -> tuple[str, str]:
    return event["firstTimestamp"], event["reason"]


def test_an_eviction_is_news_only_once_the_api_has_agreed() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        evict = Evict(name="web-1", namespace="default", uid="u1")
        asked = msgspec.structs.replace(an_opinion(Reason.EVICTING), action=evict)
        room.say(asked, an_opinion(Reason.EVICTION_REFUSED))
        assert room.published() == [(Reason.EVICTION_REFUSED, 1)]
        room.recorder.acted(asked)
        bench.run(SECOND)
        assert sorted(room.published()) == [(Reason.EVICTING, 1), (Reason.EVICTION_REFUSED, 1)]


def test_a_node_class_of_the_provider_has_events() -> None:
    kind = Resource("acme.example.com", "v1", "AcmeNodeClass", "acmenodeclasses", False)
    about = {"kind": kind.kind, "name": "default", "namespace": ""}
    opinion = an_opinion(Reason.OBJECT_UNREADABLE, **about)
    for known, events in (((), 0), ((kind,), 1)):
        with Bench() as bench, Newsroom(bench, known) as room:
            room.say(opinion)
            found = bench.store.list(EVENTS)
            assert len(found) == events
            assert all(one["involvedObject"]["apiVersion"] == kind.api_version for one in found)


def test_a_retried_eviction_that_succeeds_is_told_as_an_eviction() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        evict = Evict(name="web-1", namespace="default", uid="u1")
        waits = an_opinion(Reason.EVICTION_WAITS, "PDB default/web allows 0 more disruptions")
        room.recorder.acted(msgspec.structs.replace(waits, action=evict))
        bench.run(SECOND)
        event = room.the_event()
        assert (event["reason"], event["type"]) == (Reason.EVICTING, "Normal")
        assert event["message"] == str(EvictionAgreed())


def test_why_a_claim_came_is_told_on_the_claim_once_it_is_there() -> None:
    with World() as world:
        for manifest in a_cluster(a_deployment(replicas=3)):
            world.apply(manifest)
        world.run(MINUTE)
        (claim,) = world.store.list(NODE_CLAIMS)
        uid = claim["metadata"]["uid"]
        told = [e for e in world.store.list(EVENTS) if e["involvedObject"]["uid"] == uid]
        assert [event["reason"] for event in told] == [Reason.NEEDED_FOR_PODS]
        assert told[0]["message"].startswith(f"{NeededForPods(3)}; cheapest fit: ")


def test_a_new_reason_is_a_new_event() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.PROTECTED, "until 12:00"))
        room.say(an_opinion(Reason.EVICTING))
        room.say(an_opinion(Reason.POD_TERMINATING))
        assert room.published() == [(Reason.PROTECTED, 1), (Reason.EVICTING, 1)], (
            "one of them is no event"
        )


def test_an_event_is_rewritten_when_its_content_changes() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.EVICTION_REFUSED, "a, b and c block"), then=REWRITE_AFTER)
        began = room.the_event()
        room.say(an_opinion(Reason.EVICTION_REFUSED, "c blocks"))
        event = room.the_event()
        assert (event["message"], event["count"]) == ("c blocks", 2)
        assert event["firstTimestamp"] == began["firstTimestamp"] < event["lastTimestamp"]


def test_content_that_changes_often_is_rewritten_once_a_minute_with_the_newest() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        for left in range(58, -1, -1):
            room.say(an_opinion(Reason.DRAINING, f"{left} pods left"))
        assert room.the_event()["message"] == "58 pods left"
        bench.run(SECOND)
        event = room.the_event()
        assert (event["message"], event["count"]) == ("0 pods left", 2), "nothing new is lost"
        bench.run(10 * MINUTE)
        assert room.the_event()["count"] == 2, "and nothing is said twice"


def test_what_no_longer_holds_is_not_written_later() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.DRAINING, "2 pods left"))
        room.say(an_opinion(Reason.DRAINING, "1 pod left"))
        room.say(an_opinion(Reason.SETTLING))
        room.say(an_opinion(Reason.DRAINING, "2 pods left", uid="u2"))
        room.say(an_opinion(Reason.DRAINING, "1 pod left", uid="u2"))
        room.recorder.ended(an_opinion(Reason.DRAINING, uid="u2"))
        bench.run(10 * MINUTE)
        assert room.published() == [(Reason.DRAINING, 1), (Reason.DRAINING, 1)]


def test_that_a_refused_eviction_is_retried_later_is_no_new_content() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        for turn in range(60):
            at = bench.environment.now() + turn * SECOND
            said = an_opinion(Reason.EVICTION_WAITS, "PDB a/b")
            facts = (*said.facts, RetriedAt(at))
            said = msgspec.structs.replace(said, facts=facts, recheck_at=at)
            room.say(said, then=10 * SECOND)
        assert room.published() == [(Reason.EVICTION_WAITS, 1)]


def test_a_deadline_that_is_brought_forward_is_new_content() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        for minutes in (30, 10):
            at = bench.environment.now() + minutes * MINUTE
            said = an_opinion(Reason.GRACE_PERIOD_EXPIRING, f"must be gone by {format_time(at)}")
            room.say(msgspec.structs.replace(said, recheck_at=at), then=REWRITE_AFTER)
        assert room.the_event()["message"] == f"must be gone by {format_time(at)}"


def test_new_events_go_before_those_that_are_rewritten() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        many = [{"uid": f"u{n}", "name": f"p{n}"} for n in range(200)]
        room.say(*(an_opinion(Reason.DRAINING, "2 left", **of) for of in many), then=MINUTE)
        news = an_opinion(Reason.PROTECTED, uid="new", name="new")
        room.say(*(an_opinion(Reason.DRAINING, "1 left", **of) for of in many), news)
        assert (Reason.PROTECTED, 1) in room.published()
        assert room.published().count((Reason.DRAINING, 2)) < 100, "50 at once and 25 a second"
        bench.run(10 * SECOND)
        assert room.published().count((Reason.DRAINING, 2)) == 200


def test_rewriting_costs_one_call_and_survives_the_end_of_the_event() -> None:
    """Kubernetes keeps events for an hour."""
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.DRAINING, "3 pods left"), then=REWRITE_AFTER)
        before = len(bench.api_tap.of("POST")), len(bench.api_tap.of("GET"))
        room.say(an_opinion(Reason.DRAINING, "2 pods left"), then=REWRITE_AFTER)
        assert (len(bench.api_tap.of("POST")), len(bench.api_tap.of("GET"))) == before
        event = room.the_event()["metadata"]
        bench.store.delete(EVENTS, event["namespace"], event["name"])
        room.say(an_opinion(Reason.DRAINING, "1 pod left"))
        assert room.the_event()["message"] == "1 pod left"


def test_what_flaps_is_repeated_after_a_while_at_the_earliest() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        for _ in range(60):
            room.say(an_opinion(Reason.EVICTING), then=0.1 * SECOND)
            room.say(an_opinion(Reason.EVICTION_REFUSED), then=9.9 * SECOND)
        assert 60 * 10 * SECOND == 2 * REPEAT_AFTER
        assert room.published() == [(Reason.EVICTING, 2), (Reason.EVICTION_REFUSED, 2)]


def test_what_ended_and_comes_back_is_news_again() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.PROTECTED))
        room.recorder.ended(an_opinion(Reason.PROTECTED))
        room.say(an_opinion(Reason.PROTECTED), then=REPEAT_AFTER)
        room.recorder.ended(an_opinion(Reason.PROTECTED))
        room.say(an_opinion(Reason.PROTECTED))
        assert room.published() == [(Reason.PROTECTED, 2)]


def test_an_event_names_its_object_as_describe_expects() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(
            an_opinion(Reason.PROTECTED),
            an_opinion(Reason.PROTECTED, kind="Node", name="n1", namespace="", uid="u2"),
        )
        by_kind = {e["involvedObject"]["kind"]: e for e in bench.store.list(EVENTS)}
        assert by_kind["Pod"]["metadata"]["namespace"] == "default"
        assert by_kind["Node"]["metadata"]["namespace"] == "default", "it has no namespace"
        assert by_kind["Node"]["involvedObject"]["uid"] == "u2"
        assert by_kind["Node"]["source"] == {"component": "tenure"}


def test_a_restart_meets_its_own_event_and_raises_its_count() -> None:
    with Bench() as bench:
        for _ in range(3):
            with Newsroom(bench) as room:
                room.say(an_opinion(Reason.PROTECTED, "again"))
        assert room.published() == [(Reason.PROTECTED, 3)]


def test_what_is_told_once_is_not_told_again_after_a_restart() -> None:
    """A node class that no provider serves, and fields that do not act: the pool's status does not tell of the first."""
    with Bench() as bench:
        for message, count in (("so", 1), ("so", 1), ("otherwise", 2)):
            with Newsroom(bench) as room:
                room.say(an_opinion(Reason.NODE_CLASS_NOT_SERVED, message))
            assert room.published() == [(Reason.NODE_CLASS_NOT_SERVED, count)]


def test_a_namesake_has_events_of_its_own() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.PROTECTED), an_opinion(Reason.PROTECTED, uid="u2"))
        assert room.published() == [(Reason.PROTECTED, 1), (Reason.PROTECTED, 1)]


def test_the_longest_name_still_makes_an_event() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        room.say(an_opinion(Reason.PROTECTED, name="x" * 253))
        assert room.published() == [(Reason.PROTECTED, 1)]


def test_a_flood_keeps_to_the_rate_and_each_object_is_told_of_once() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        flood = [an_opinion(Reason.PROTECTED, uid=f"u{n}", name=f"p{n}") for n in range(3000)]
        room.say(*flood, then=10 * SECOND)
        assert len(bench.api_tap.of("POST")) in range(295, 305), "50 at once and 25 a second"
        room.say(then=MINUTE)
        told = bench.api_tap.of("POST")
        assert room.recorder.dropped == 0
        assert len(told) in range(1795, 1810)
        room.recorder.ended(flood[-1])
        room.say(then=MINUTE)
        assert len(bench.api_tap.of("POST")) == 3000 - 1, "each once, and none that holds no more"


def test_a_fleet_that_is_blocked_is_told_of_slowly_and_keeps_no_other_event_waiting() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        fleet = [
            an_opinion(
                Reason.DISRUPTION_BLOCKED, kind="Node", namespace="", uid=f"u{n}", name=f"n{n}"
            )
            for n in range(5000)
        ]
        room.say(*fleet, then=10 * SECOND)
        written = len(bench.api_tap.of("POST"))
        assert written in range(CROWD_BURST, CROWD_BURST + 15), (
            "the first at once, then one a second"
        )
        assert room.recorder.dropped == 0
        room.say(an_opinion(Reason.PROTECTED))
        assert (Reason.PROTECTED, 1) in room.published(), "at once"
        other = [msgspec.structs.replace(one, facts=(Quoted("a window"),)) for one in fleet]
        room.say(*other, then=5 * MINUTE)
        calls = len(bench.api_tap.of("POST")) + len(bench.api_tap.of("PATCH"))
        assert calls - written <= 1 + 5 * 60 + 15, "whatever they say"


def test_of_the_pods_of_a_scale_out_some_are_told_of_and_the_next_single_one_is() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        pods = [an_opinion(Reason.NOMINATED, uid=f"u{n}", name=f"p{n}") for n in range(2000)]
        room.say(*pods, then=5 * MINUTE)
        assert len(bench.api_tap.of("POST")) == CROWD_BURST
        assert room.recorder.dropped == 0
        room.say(an_opinion(Reason.NOMINATED, uid="u-late", name="late"))
        assert len(bench.api_tap.of("POST")) == CROWD_BURST + 1


def test_what_a_fleet_no_longer_says_is_not_written() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        fleet = [
            an_opinion(
                Reason.DISRUPTION_BLOCKED, kind="Node", namespace="", uid=f"u{n}", name=f"n{n}"
            )
            for n in range(CROWD_BURST + 50)
        ]
        room.say(*fleet)
        for verdict in fleet:
            room.recorder.ended(verdict)
        bench.run(5 * MINUTE)
        assert len(bench.api_tap.of("POST")) <= CROWD_BURST + 2
        room.say(*fleet[-10:], then=5 * MINUTE)
        assert len(bench.api_tap.of("POST")) >= CROWD_BURST + 10, "it holds again"


def test_an_event_that_cannot_be_written_stops_nothing() -> None:
    with Bench() as bench, Newsroom(bench) as room:
        bench.infrastructure.faults.set(api_error_rate=1.0)
        room.say(an_opinion(Reason.PROTECTED))
        bench.infrastructure.faults.clear()
        room.say(an_opinion(Reason.EVICTING))
        assert room.published() == [(Reason.EVICTING, 1)]


def test_a_drain_that_a_budget_holds_for_hours_is_no_storm() -> None:
    manifests = a_cluster(a_deployment(replicas=2), a_pdb("web", minAvailable=2))
    with Tapped(*manifests) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        before = len(story.api_tap.of("PATCH", "events"))
        story.run(60 * MINUTE)
        assert len(story.api_tap.of("EVICT")) > 350, "one of two pods is asked every ten seconds"
        assert len(story.api_tap.of("PATCH", "events")) - before <= 2 * 2 * 13


def test_a_restart_of_a_busy_cluster_writes_each_event_at_most_once_more() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=20, cpu="1"))) as story:
        story.run(3 * MINUTE)
        known = {e["metadata"]["name"] for e in story.store.list(EVENTS)}
        story.crash()
        story.run(3 * MINUTE)
        assert {e["metadata"]["name"] for e in story.store.list(EVENTS)} == known
        assert max(e["count"] for e in story.store.list(EVENTS)) <= 2


def told_of(world: World, kind: str) -> list[tuple[str, str, str]]:
    events = sorted(world.store.list(EVENTS), key=_begin)
    return [
        (event["type"], event["reason"], event["message"])
        for event in events
        if event["involvedObject"]["kind"] == kind
    ]


def leave(world: World) -> None:
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])


def test_a_drain_that_a_pdb_slows_down_is_no_warning() -> None:
    with World() as world:
        for manifest in a_cluster(
            a_deployment(replicas=4, cpu="250m"), a_pdb("web", maxUnavailable=1)
        ):
            world.apply(manifest)
        world.run(3 * MINUTE)
        leave(world)
        world.run(15 * MINUTE)
        nodes, pods = told_of(world, "Node"), told_of(world, "Pod")
    assert not [told for told in (*nodes, *pods) if told[0] == "Warning"]
    waits = [message for _, reason, message in pods if reason == Reason.EVICTION_WAITS]
    assert len(waits) == 3, "all but the first"
    said = ("PDB default/web allows 0 more disruptions: ", "the last eviction was refused: The ")
    assert all(message.startswith(said) for message in waits)
    (drain,) = [message for _, reason, message in nodes if reason == Reason.DRAINING]
    assert int(drain.split()[2]) < 4, "it names those that block later, too"


def test_a_drain_that_waits_for_a_budget_warns_after_two_minutes() -> None:
    with World() as world:
        for manifest in a_cluster(a_deployment(replicas=2), a_pdb("web", minAvailable=1)):
            world.apply(manifest)
        world.run(3 * MINUTE)
        # Its pods would fit nowhere else, so the budget never gets its healthy pod back.
        world.infrastructure.faults.set(never_ready_rate=1.0)
        leave(world)
        world.run(1.5 * MINUTE)
        assert Reason.EVICTION_REFUSED not in [reason for _, reason, _ in told_of(world, "Node")]
        world.run(2 * MINUTE)
        (warning,) = [told for told in told_of(world, "Node") if told[0] == "Warning"]
    assert warning[1] == Reason.EVICTION_REFUSED
    assert warning[2].startswith("waiting for 1 pod, 1 blocked; pod default/web-")
    assert "PDB default/web allows 0 more disruptions: 1 must be healthy" in warning[2]


def test_a_replacement_has_the_events_of_karpenter() -> None:
    labels = {"metadata": {"labels": {"example.com/release": "two"}}}
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        old = story.the(NODE_CLAIMS)
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": labels}})
        story.run(5 * MINUTE)
        new = story.the(NODE_CLAIMS)
        told = {(e["involvedObject"]["name"], e["reason"]) for e in story.store.list(EVENTS)}
        assert (new["metadata"]["name"], "DisruptionLaunching") in told
        for name in (old["metadata"]["name"], old["status"]["nodeName"]):
            assert {(name, "Replacing"), (name, "DisruptionTerminating")} <= told
