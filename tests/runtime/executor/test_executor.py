"""When an action may leave: not twice at once, not too often, not on old news."""

from __future__ import annotations

from collections import Counter
from itertools import count, pairwise
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Create, Patch, Terminate
from tenure.core.nominated import named
from tenure.errors import Unavailable
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.pod import Pod
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.ports.outcome import Ended
from tenure.ports.transport import Response
from tenure.runtime.executor.clockblocker import depends_on_time
from tenure.sim.world import WorldOptions
from tests.builders import (
    MINUTE,
    SECOND,
    a_cluster,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
    apart,
)
from tests.runtime.worlds import Bench, Tapped, acts, outcomes


def a_patch(bench: Bench, **labels: str) -> Patch:
    metadata = bench.the_pool()["metadata"]
    version = metadata["resourceVersion"]
    body = {"metadata": {"labels": labels, "resourceVersion": version, "uid": metadata["uid"]}}
    return Patch(
        resource=NODE_POOLS,
        name="general",
        uid=metadata["uid"],
        resource_version=version,
        body=body,
    )


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def test_no_object_and_no_instance_is_acted_upon_twice_at_once() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=8))) as story:
        story.infrastructure.faults.set(api_latency=2 * SECOND, cloud_latency=5 * SECOND)
        story.at(3 * MINUTE, story.delete_claim)
        story.run(10 * MINUTE)
        assert story.running("web") == 8
        for tap in (story.api_tap, story.cloud_tap):
            at_once = {target: most for target, most in tap.most_at_once.items() if target}
            assert at_once
            assert set(at_once.values()) == {1}


def test_so_many_actions_may_be_under_way_at_once() -> None:
    with Bench(Settings(actions_max=3)) as bench:
        bench.a_leaving_node()
        evictions = bench.pods_on("leaving", 20)
        bench.run(SECOND)
        bench.infrastructure.faults.set(api_latency=2 * SECOND)
        bench.wish(*evictions)
        bench.run(MINUTE)
        evicted = {call.what for call in bench.api_tap.of("EVICT")}
        assert len(evicted) == 20
        one_event = 1  # News is written beside the actions, one at a time.
        assert bench.api_tap.most_at_once[""] == 3 + one_event


def test_an_accepted_eviction_is_not_repeated_while_the_watch_is_late() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        (eviction,) = bench.pods_on("leaving", 1)
        bench.run(SECOND)
        bench.api_tap.lag[PODS] = 45.0
        bench.wish(eviction)
        bench.run(MINUTE)
        assert len(bench.api_tap.of("EVICT")) == 1, "a read after 10 s showed that it is leaving"


def test_an_accepted_eviction_that_came_to_nothing_is_repeated_after_a_read() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        (eviction,) = bench.pods_on("leaving", 1)
        bench.run(SECOND)
        bench.api_tap.spoil = lambda verb, what: Response(status=201) if verb == "EVICT" else None
        bench.wish(eviction)
        bench.run(35 * SECOND)
        assert gaps(bench.api_tap.times("EVICT")) == pytest.approx([11, 11, 11], abs=0.2)


def test_an_accepted_deletion_is_not_repeated_while_the_watch_is_late() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        story.api_tap.lag = {NODE_CLAIMS: 30.0}
        node = story.the(NODE_CLAIMS)["status"]["nodeName"]
        story.delete_claim()
        story.run(3 * MINUTE)
        assert len(story.api_tap.of("DELETE", f"/nodes/{node}")) == 1


def test_what_another_program_undoes_is_written_five_times_a_minute() -> None:
    """Neither would ever end; it is told once."""
    with Bench() as bench:
        undone = {"metadata": {"labels": {"team": None}}}
        for _ in range(4 * 300):
            if bench.the_pool()["metadata"].get("labels", {}).get("team"):
                bench.store.patch(NODE_POOLS, "", "general", undone)
            bench.wish(a_patch(bench, team="ours"))
            bench.run(SECOND / 4)
        times = bench.api_tap.times("PATCH")
        assert len([at for at in times if at < times[0] + 59]) == 5
        assert 20 <= len(times) <= 30
        (held,) = [one for one in outcomes(bench) if "undoes it" in one]
        assert "it was written 5 times within a minute, and another program undoes it" in held


def test_a_name_that_the_scheduler_removes_is_written_once_a_second_after_ten_times() -> None:
    """It tries the pod whenever a node or a pod changes, which is many times a second in a scale-out."""
    with Bench() as bench:
        waiting = a_pod("web", nodeSelector={"example.com/none": "x"})
        waiting["metadata"]["namespace"] = "default"
        bench.store.create(PODS, waiting)
        bench.store.create(NODES, {"metadata": {"name": "new"}, "spec": {}})
        pod = bench.all(PODS)[0]["metadata"]
        for _ in range(20 * 5):
            now = bench.store.find(PODS, pod["namespace"], pod["name"])
            assert now is not None
            if now["status"].get("nominatedNodeName"):
                removed = {"status": {"nominatedNodeName": None}}
                bench.store.patch(
                    PODS, pod["namespace"], pod["name"], removed, subresource="status"
                )
            else:
                bench.wish(named(msgspec.convert(now, Pod), "new"))
            bench.run(SECOND / 10)
        times = bench.api_tap.times("PATCH", pod["name"])
        assert len([at for at in times if at < times[0] + 3]) == 10 + 1
        assert {round(gap) for gap in gaps(times[9:])} == {1}
        assert not [one for one in outcomes(bench) if "undoes it" in one]


def test_a_conflict_is_evaluated_again_on_the_newer_version_at_once() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        meddled: list[str] = []

        def meddle(verb: str, what: str) -> None:
            """Another client annotates the claim right before our first write to its status."""
            if verb == "PATCH" and what.endswith("/status") and "nodeclaims" in what:
                name = what.split("/")[-2]
                if not meddled:
                    meddled.append(name)
                    news = {"metadata": {"annotations": {"note": "mine"}}}
                    story.store.patch(NODE_CLAIMS, "", name, news)

        story.api_tap.spoil = meddle
        story.run(3 * MINUTE)
        (name,) = meddled
        first, second, *_ = acts(story, f"NodeClaim/{name}", "Patch")[1:]
        assert (first.ended, second.ended) == (Ended.DROPPED, Ended.OK)
        assert "409 Conflict" in first.outcome
        assert second.at - first.at < 0.2 * SECOND
        assert story.running("web") == 1


#: Each pod has a node of its own.
ALONE: dict[str, Any] = {"affinity": apart()}


def test_one_failing_object_pauses_alone_longer_each_time_and_visibly() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=4, **ALONE))) as story:
        broken = Unavailable("the disk is full")
        failing = ""

        def break_first(verb: str, what: str) -> Exception | None:
            nonlocal failing
            if verb == "PATCH" and "/nodeclaims/" in what:
                failing = failing or what.split("/")[5]
                return broken if failing in what else None
            return None

        story.api_tap.spoil = break_first
        story.run(10 * MINUTE)
        assert story.running("web") == 3
        said = [one for one in outcomes(story, f"NodeClaim/{failing}", "Patch") if "disk" in one]
        assert said[0].startswith("failed: 503 ServiceUnavailable: the disk is full; again at 2026")
        pauses = gaps(story.api_tap.times("PATCH", f"nodeclaims/{failing}"))
        assert pauses[0] < 2
        assert 45 <= pauses[-1] <= 61
        story.api_tap.spoil = lambda verb, what: None
        story.run(2 * MINUTE)
        assert story.running("web") == 4


def test_a_patch_without_effect_does_not_spin() -> None:
    with Bench() as bench:
        bench.run(SECOND)
        bench.wish(a_patch(bench))
        bench.run(10 * MINUTE)
        assert len(bench.api_tap.of("PATCH")) < 20
        assert outcomes(bench)[0].startswith("no effect: the server had nothing to change; again")


def test_a_fault_of_ours_or_a_providers_pauses_its_own_target_only() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=2, **ALONE))) as story:
        bad: list[str] = []

        def break_first(verb: str, what: str) -> Exception | None:
            if verb == "launch" and (not bad or what in bad):
                bad[:] = [what]
                return KeyError("zone")
            return None

        story.cloud_tap.spoil = break_first
        story.run(3 * MINUTE)
        assert story.running("web") == 1
        assert any(o.startswith("failed: KeyError: 'zone'; again at") for o in outcomes(story))


def test_what_the_guard_forbids_never_leaves() -> None:
    with Bench() as bench:
        bench.store.create(NODES, {"metadata": {"name": "stays"}, "spec": {}})
        evictions = bench.pods_on("stays", 1)
        bench.run(SECOND)
        bench.wish(*evictions)
        bench.run(MINUTE)
        assert bench.api_tap.of("EVICT") == []
        assert acts(bench)[0].ended is Ended.VETOED
        assert len(outcomes(bench)) < 10


def test_nothing_is_taken_away_while_a_watch_says_nothing() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        evictions = bench.pods_on("leaving", 1)
        bench.run(SECOND)
        bench.api_tap.lag[PODS] = None
        bench.apply(a_pod("unheard-of"))
        bench.run(5 * MINUTE)
        bench.wish(*evictions)
        bench.run(MINUTE)
        assert bench.api_tap.of("EVICT") == []
        assert outcomes(bench)[0].startswith(
            "held: nothing is taken away while nothing is heard of pods; again at"
        )
        bench.api_tap.lag.clear()
        bench.run(5 * MINUTE)
        assert len(bench.api_tap.of("EVICT")) == 1


def test_a_quiet_watch_that_has_missed_nothing_holds_nothing_back() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        evictions = bench.pods_on("leaving", 1)
        bench.run(SECOND)
        bench.api_tap.lag[PODS] = None
        bench.run(20 * MINUTE)
        bench.wish(*evictions)
        bench.run(MINUTE)
        assert len(bench.api_tap.of("EVICT")) == 1
        assert bench.errors == []


def test_a_thousand_evictions_keep_to_their_rate() -> None:
    with Bench(Settings(actions_max=2000)) as bench:
        bench.a_leaving_node()
        evictions = bench.pods_on("leaving", 1000)
        bench.run(SECOND)
        bench.wish(*evictions)
        bench.run(20 * SECOND)
        times = bench.api_tap.times("EVICT")
        assert len(times) == 1000
        for number, at in enumerate(times):
            earlier = [one for one in times[:number] if one > at - 1]
            assert len(earlier) < 300, "a burst of 200, and 100 in the second"
        assert 7.9 < times[-1] - times[0] < 8.5


def test_the_guard_is_asked_after_the_wait_not_before() -> None:
    """A pod that is replaced while its eviction waits for its turn is left alone."""
    with Bench(Settings(eviction_rate=0.1, eviction_burst=1)) as bench:
        bench.a_leaving_node()
        first, second = bench.pods_on("leaving", 2)
        bench.run(SECOND)
        bench.wish(first, second)
        bench.run(2 * SECOND)
        bench.store.delete(PODS, "default", second.name, 0)
        bench.run(20 * SECOND)
        assert len(bench.api_tap.of("EVICT")) == 1
        assert any("is gone or another one" in outcome for outcome in outcomes(bench))


def test_a_refused_pod_is_asked_after_one_second_at_first_and_ten_at_last() -> None:
    with Bench(None, a_pdb("web", minAvailable=1)) as bench:
        times = refused_evictions(bench)
        assert 0.75 <= gaps(times)[0] <= 1.1
        assert all(7.4 <= gap <= 10.1 for gap in gaps(times)[5:])
        assert outcomes(bench, "Pod/", "Evict")[-1].startswith("refused: Cannot evict pod")


def refused_evictions(bench: Bench) -> list[float]:
    """Ask a ready pod of ``web`` to leave for two minutes."""
    bench.a_leaving_node()
    evictions = bench.pods_on("leaving", 1, app="web")
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    bench.store.patch(PODS, "default", "pod-0", {"status": ready}, subresource="status")
    bench.run(SECOND)
    bench.wish(*evictions)
    bench.run(2 * MINUTE)
    return bench.api_tap.times("EVICT")


def test_several_budgets_over_one_pod_are_an_answer_not_a_failure() -> None:
    second = a_pdb("web", minAvailable=1)
    second["metadata"] = {"name": "other"}
    with Bench(None, a_pdb("web", minAvailable=1), second) as bench:
        times = refused_evictions(bench)
        assert len(times) > 5
        last = outcomes(bench, "Pod/", "Evict")[-1]
        assert last.startswith("refused: This pod has more than one PodDisruptionBudget")


def test_a_server_that_is_busy_is_no_budget_that_refuses() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        (eviction,) = bench.pods_on("leaving", 1)
        bench.run(SECOND)
        busy = Response(status=429, body=b"Too many requests", headers={"Retry-After": "20"})
        bench.api_tap.spoil = lambda verb, what: busy if verb == "EVICT" else None
        bench.wish(eviction)
        bench.run(50 * SECOND)
        assert gaps(bench.api_tap.times("EVICT")) == pytest.approx([20, 20], abs=0.1)
        assert outcomes(bench)[0].startswith("failed: 429 TooManyRequests: Too many requests")
        assert bench.controller.observations.pods.evictions == {}


def test_a_write_whose_answer_is_lost_is_found_out_and_not_repeated() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=3))) as story:
        lost: list[str] = []

        def lose_once(verb: str, what: str) -> bool:
            fresh = verb != "GET" and "events" not in what and (what, verb) not in seen
            seen.add((what, verb))
            lost.extend([what] if fresh else [])
            return fresh

        seen: set[tuple[str, str]] = set()
        story.api_tap.lose = lose_once
        story.run(5 * MINUTE)
        assert len(lost) >= 3
        assert story.running("web") == 3
        assert story.count("claims") == story.count("instances") == 1


def test_a_created_claim_is_known_even_if_answer_and_watch_are_late() -> None:
    """Otherwise its pods would get a second one as soon as another pod joins them."""
    with Tapped(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(0.5 * SECOND)
        story.api_tap.lag[NODE_CLAIMS] = 20.0
        lost: list[str] = []

        def lose_first(verb: str, what: str) -> bool:
            if lost or verb != "POST" or not what.endswith("nodeclaims"):
                return False
            lost.append(what)
            return True

        story.api_tap.lose = lose_first
        story.run(5 * SECOND)
        assert story.controller.snapshot().claims
        assert outcomes(story, "NodeClaim/", "Create")[1].startswith("dropped: 409 AlreadyExists")


def test_claims_that_are_created_one_after_the_other_are_not_planned_twice() -> None:
    """The first that is seen could take any of the pods, whose own claims are still on their way."""
    with Tapped(*a_cluster(a_deployment(replicas=6, affinity=apart()))) as story:
        creations = count()

        def slow(verb: str, target: str) -> float:
            """The later it was asked for, the sooner it is done."""
            return 3 - 0.4 * next(creations) if verb == "POST" and "/nodeclaims/" in target else 0

        story.api_tap.slow = slow
        story.run(3 * MINUTE)
        assert len(story.api_tap.of("POST", "/nodeclaims")) == 6
        assert len(story.store.list(NODE_CLAIMS)) == 6
        assert [
            entry for entry in acts(story, action="Create") if entry.ended is not Ended.OK
        ] == []


def test_what_sets_a_deadline_depends_on_the_clock_as_what_takes_away_does() -> None:
    def stamp(value: str | None) -> Patch:
        annotations = {TERMINATION_TIMESTAMP: value}
        return Patch(
            resource=NODE_CLAIMS,
            name="a",
            uid="a",
            resource_version="1",
            body={"metadata": {"annotations": annotations}},
        )

    assert depends_on_time(stamp(""))
    assert not depends_on_time(stamp(None)), "a stamp that is taken off takes nothing away"
    assert depends_on_time(Terminate(provider_id="i-1", claim_uid="a"))


def test_what_begins_a_disruption_depends_on_the_clock_because_it_could_not_end() -> None:
    needed = Create(resource=NODE_CLAIMS, name="a", body={})
    assert not depends_on_time(needed), "pods wait for it"
    assert depends_on_time(msgspec.structs.replace(needed, disrupts_for="Drifted"))
    committed = Patch(resource=NODE_CLAIMS, name="a", uid="a", resource_version="1", body={})
    assert not depends_on_time(committed)
    assert depends_on_time(msgspec.structs.replace(committed, begins=True))


def test_what_was_done_is_not_sent_again_while_its_decider_waits_to_be_evaluated() -> None:
    """Empty nodes go while pods get nodes of their own, whose claims take long to be created."""
    pool = a_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})
    few = a_deployment("few", replicas=20, affinity=apart("few"))
    many = a_deployment("many", replicas=0, affinity=apart("many"), cpu="3")
    options = WorldOptions(settings=Settings(actions_max=6))
    with Tapped(a_node_class(), pool, few, many, options=options) as story:
        story.run(5 * MINUTE)
        assert story.running("few") == 20
        story.api_tap.slow = lambda verb, target: (
            4.0 if verb == "POST" and "/nodeclaims/" in target else 0.2
        )
        for name, replicas in (("few", 0), ("many", 20)):
            story.store.patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": replicas}})
        story.run(5 * MINUTE)
        assert story.running("many") == 20
        for verb in ("DELETE", "POST"):
            sent = Counter(
                c.what + c.body.get("metadata", {}).get("name", "")
                for c in story.api_tap.of(verb, "/nodeclaims")
            )
            assert len(sent) >= 20
            assert {what: times for what, times in sent.items() if times > 1} == {}
