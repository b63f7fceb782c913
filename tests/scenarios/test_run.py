"""What a scenario says comes to pass, and what did not hold is told in a sentence."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.sim.scenario.findings import ExpectationState, Finding
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Result, Simulation
from tests.builders import (
    MINUTE,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
    a_requirement,
)
from tests.scenarios.files import a_story, written


@pytest.fixture
def scenario_of(tmp_path: Path) -> Any:
    """Plays stories; closes their worlds afterwards."""
    simulations: list[Simulation] = []

    def begin(until: timedelta | None = None, **changes: Any) -> Simulation:
        scenario = load_scenario(written(tmp_path, a_story(**changes)))
        simulations.append(Simulation(scenario, until=until))
        return simulations[-1]

    yield begin
    for simulation in simulations:
        simulation.close()


def only(result: Result) -> Finding:
    assert len(result.findings) == 1, result.findings
    return result.findings[0]


HELD = {
    "a count at an instant": {"at": "3m", "pods": {"app": "web", "running": 3, "pending": 0}},
    "a count at the end": {"at": "end", "nodes": {"pool": "general", "ready": {"min": 1}}},
    "a count at some time": {"by": "1m", "instances": {"running": {"min": 1}}},
    "a count after a while": {"after": "1m", "within": "2m", "claims": {"in-service": {"min": 1}}},
    "a count all the time": {"always": {"nodes": {"count": {"max": 3}}}},
    "a count from an instant on": {"always": {"pods": {"running": 3}}, "after": "2m"},
    "a count that never is": {"never": {"pods": {"count": {"min": 4}}}},
    "labels as they are written": {"at": "end", "pods": {"labels": {"app": "web"}, "count": 3}},
    "objects of any kind": {"at": "end", "objects": {"kind": "deploy", "count": 1}},
    "a condition": {"by": "2m", "condition": {"claim": {}, "type": "Initialized", "status": True}},
    "a reason": {"by": "1m", "reason": {"is": "NeededForPods", "of": "NodeClaim/general-*"}},
    "a reason never given": {"never": {"reason": "JudgementFailed"}},
    "a verdict": {"at": "4m", "verdict": {"claim": {"pool": "general"}, "reason": "InService"}},
    "a cost": {"at": "end", "cost": {"total": {"min": 0.0001, "max": 1}, "hourly": {"max": 1}}},
    "instances of a kind": {"at": "end", "instances": {"capacity-type": "spot", "count": 0}},
}


@pytest.mark.parametrize("expectation", HELD.values(), ids=HELD.keys())
def test_an_expectation_that_holds(scenario_of: Any, expectation: dict[str, Any]) -> None:
    assert only(scenario_of(expect=[expectation]).run()).held is ExpectationState.MET


FAILED = {
    "too few at an instant": (
        {"at": "10s", "pods": {"app": "web", "running": 3}},
        "3 in all, 0 running, 0 ready, 3 pending, 0 terminating, 0 finished, at 08:00:10.000",
    ),
    "too many by then": (
        {"by": "2m", "pods": {"running": {"min": 4}}},
        "3 in all, 3 running, 3 ready, 0 pending, 0 terminating, 0 finished, at 08:02:00.000",
    ),
    "not all the time": ({"always": {"nodes": {"count": 0}}}, "1 in all"),
    "once is too often": ({"never": {"nodes": {"ready": {"min": 1}}}}, "1 ready"),
    "no such object": (
        {"at": "1m", "condition": {"node": "nowhere", "type": "Ready"}},
        "no such object, at 08:01:00.000",
    ),
    "another condition": (
        {"at": "4m", "condition": {"node": {}, "type": "Ready", "status": "False"}},
        "says Ready=True because KubeletReady",
    ),
    "no such reason": ({"by": "1m", "reason": "Draining"}, "none"),
    "another verdict": (
        {"at": "4m", "verdict": {"claim": {}, "reason": "Draining"}},
        "InService (Node node-general-",
    ),
    "too expensive": ({"at": "end", "cost": {"hourly": {"max": 0}}}, "hourly 0."),
}


@pytest.mark.parametrize(("expectation", "found"), FAILED.values(), ids=FAILED.keys())
def test_an_expectation_that_fails_says_what_was_found(
    scenario_of: Any, expectation: dict[str, Any], found: str
) -> None:
    result = scenario_of(expect=[expectation]).run()
    assert only(result).held is ExpectationState.FAILED
    assert found in only(result).found
    assert not result.fine


def test_an_expectation_says_what_it_expects(scenario_of: Any) -> None:
    story = scenario_of(
        expect=[{"name": "all run", "by": "3m", "pods": {"app": "web", "running": 3}}]
    )
    assert only(story.run()).expected == "all run (by 3m): pods of app web: exactly 3 running"


def test_a_run_cut_short_fails_nothing_that_it_did_not_reach(scenario_of: Any) -> None:
    result = scenario_of(until=MINUTE / 6, expect=[{"by": "3m", "pods": {"running": 3}}]).run()
    assert only(result).held is ExpectationState.UNREACHED
    assert result.fine


def test_what_is_expected_at_an_instant_is_looked_at_before_what_happens_then(
    scenario_of: Any,
) -> None:
    story = scenario_of(
        events=[{"at": "2m", "scale": {"deployment": "web", "replicas": 0}}],
        expect=[{"at": "2m", "pods": {"running": 3}}],
    )
    assert story.run().fine


def test_what_is_expected_after_an_instant_is_looked_at_after_what_happens_then(
    scenario_of: Any,
) -> None:
    story = scenario_of(
        events=[{"at": "2m", "scale": {"deployment": "web", "replicas": 0}}],
        expect=[{"after": "2m", "within": "1m", "objects": {"kind": "pod", "count": 3}}],
    )
    assert story.run().fine  # The pods are still there; what follows is what must not be.
    story = scenario_of(
        events=[{"at": "2m", "delete": {"pool": "general"}}],
        expect=[{"always": {"objects": {"kind": "pool", "count": 0}}, "after": "2m"}],
    )
    assert story.run().fine


def events(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at": "2m", **step} for step in steps]


def test_a_step_that_cannot_be_done_fails_the_run(scenario_of: Any) -> None:
    result = scenario_of(events=events({"delete": {"node": "nowhere"}}), expect=[]).run()
    assert only(result).held is ExpectationState.FAILED
    assert only(result).found.startswith("there is no Node nowhere; there are node-general-")


def test_apply_delete_scale_and_patch_do_what_kubectl_does(scenario_of: Any) -> None:
    story = scenario_of(
        events=events(
            {"apply": [a_pod("extra"), a_deployment("late", replicas=2)]},
            {"scale": {"deployment": "web", "replicas": 1}},
            {"patch": {"deployment": "web", "merge": {"metadata": {"labels": {"seen": "yes"}}}}},
            {"delete": {"kind": "PriorityClass", "name": "system-node-critical"}},
        ),
        expect=[
            {"at": "end", "pods": {"app": "web", "running": 1}},
            {"at": "end", "pods": {"app": "late", "running": 2}},
            {"at": "end", "objects": {"kind": "Deployment", "labels": "seen=yes", "count": 1}},
            {"at": "end", "objects": {"kind": "PriorityClass", "count": 1}},
            {"at": "end", "pods": {"app": "extra", "running": 1}},
        ],
    )
    assert [f for f in story.run().findings if f.held is not ExpectationState.MET] == []


def test_the_oldest_and_the_newest_are_told_apart(scenario_of: Any) -> None:
    late = a_deployment("late", replicas=1, cpu="6", memory="20Gi")
    story = scenario_of(
        until=6 * MINUTE,
        events=[
            {"at": "2m", "apply": late},
            {"at": "4m", "delete": {"claim": {"pool": "general", "pick": "newest"}}},
        ],
    )
    story.run_until(4 * MINUTE)
    newest = max(
        story.world.store.list(NODE_CLAIMS), key=lambda c: c["metadata"]["creationTimestamp"]
    )
    story.run_until(4 * MINUTE + MINUTE / 60)
    claim = story.world.store.get(NODE_CLAIMS, "", newest["metadata"]["name"])
    assert "deletionTimestamp" in claim["metadata"]
    pods = [pod["metadata"]["name"] for pod in story.world.store.list(PODS)]
    assert any(name.startswith("late") for name in pods)


@pytest.mark.parametrize(
    ("step", "state"),
    [
        ({"cordon": {"pool": "general"}}, {"cordoned": 1}),
        ({"silence": {"index": 0}}, {"not-ready": 1}),
        ({"set-condition": {"node": {}, "type": "Ready", "status": False}}, {"not-ready": 1}),
        ({"reboot": {"node": {}, "down-for": "2m"}}, {"not-ready": 1}),
    ],
    ids=["cordon", "silence", "set-condition", "reboot"],
)
def test_a_node_can_be_made_to_suffer(
    scenario_of: Any, step: dict[str, Any], state: dict[str, int]
) -> None:
    story = scenario_of(
        events=events(step), expect=[{"after": "2m", "within": "2m", "nodes": state}]
    )
    assert story.run().fine


def test_a_silent_kubelet_comes_back(scenario_of: Any) -> None:
    story = scenario_of(
        events=[{"at": "2m", "silence": {}}, {"at": "3m30s", "resume": {}}],
        expect=[
            {"at": "3m", "nodes": {"not-ready": 1}},
            {"after": "3m30s", "within": "10s", "nodes": {"ready": 1}},
        ],
    )
    assert story.run().fine


def test_every_kubelet_of_a_zone_falls_silent_and_comes_back(scenario_of: Any) -> None:
    nodes = [a_bare_node(f"{zone}-{i}", zone) for zone in ("zone-a", "zone-b") for i in (1, 2)]
    there = {"labels": "topology.kubernetes.io/zone=zone-a", "pick": "all"}
    story = scenario_of(
        objects=nodes,
        events=[{"at": "2m", "silence": there}, {"at": "4m", "resume": there}],
        expect=[
            {"at": "3m", "nodes": {"not-ready": 2, "ready": 2}},
            {"at": "end", "nodes": {"ready": 4}},
        ],
    )
    assert story.run().fine


def a_bare_node(name: str, zone: str) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": zone}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_a_lost_instance_is_noticed_and_replaced(scenario_of: Any) -> None:
    story = scenario_of(
        until=15 * MINUTE,
        events=events({"vanish": {"node": {"pool": "general"}}}),
        expect=[{"at": "end", "pods": {"app": "web", "running": 3}}],
    )
    result = story.run()
    assert result.summary.instances_launched > 1
    assert result.fine, result.findings


def test_faults_are_exactly_what_the_newest_line_says(scenario_of: Any) -> None:
    dry: dict[str, Any] = {"cloud-dry": [{}]}
    story = scenario_of(
        faults=dry,
        events=[{"at": "1m", "faults": {}}],
        expect=[
            {"always": {"instances": {"count": 0}}, "until": "1m"},
            {"at": "end", "pods": {"running": 3}},
        ],
        until=10 * MINUTE,
    )
    assert story.run().fine


def test_a_crash_that_lasts_means_that_nothing_is_done_meanwhile(scenario_of: Any) -> None:
    story = scenario_of(
        events=[{"at": "0s", "crash": {"down-for": "2m"}}],
        expect=[
            {"always": {"claims": {"count": 0}}, "until": "2m"},
            {"at": "end", "pods": {"running": 3}},
        ],
    )
    assert story.run().fine


def test_a_restart_of_the_api_server_is_survived(scenario_of: Any) -> None:
    story = scenario_of(
        events=[{"at": "30s", "api-restart": {}}, {"at": "2m", "say": "still here"}],
        expect=[{"at": "end", "pods": {"running": 3}}],
    )
    assert story.run().fine
    assert [e.message for e in story.world.history.entries if e.subject == "Story"] == [
        "still here"
    ]


def test_a_node_that_a_user_creates_gets_a_kubelet_and_is_left_alone(scenario_of: Any) -> None:
    status = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "100"}}
    status["capacity"] = status["allocatable"]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "theirs"}, "status": status}
    story = scenario_of(
        objects=[a_node_class(), a_pool(), node, a_deployment(replicas=3)],
        expect=[{"by": "1m", "pods": {"running": 3}}, {"never": {"claims": {"count": {"min": 1}}}}],
    )
    result = story.run()
    assert result.fine, result.findings
    assert "finalizers" not in story.world.store.get(NODES, "", "theirs")["metadata"]


def test_a_broken_promise_fails_the_run(scenario_of: Any) -> None:
    story = scenario_of(expect=[])
    story.run_until(2 * MINUTE)
    instance = story.world.cloud.instances()[0]
    story.world.loop.run_until_complete(story.world.cloud.terminate(instance.provider_id))
    result = story.run()
    assert [violation.rule for violation in result.violations] == ["live termination"]
    assert not result.fine


def test_pods_that_cannot_be_made_are_heard_of_once(tmp_path: Path) -> None:
    deployment = a_deployment()
    deployment["spec"]["template"]["spec"]["priorityClassName"] = "nope"
    story = a_story(objects=[a_node_class(), a_pool(), deployment], expect=[])
    simulation = Simulation(load_scenario(written(tmp_path, story)))
    try:
        simulation.run()
        said = [e for e in simulation.world.history.entries if e.reason == "FailedCreate"]
    finally:
        simulation.close()
    (entry,) = said
    assert entry.subject.startswith("ReplicaSet/default/web-")
    assert "no PriorityClass with name nope was found" in entry.message


A_DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent"}]},
        },
    },
}


def messages(story: Simulation, verb: str) -> list[str]:
    return [e.message for e in story.world.history.entries if e.reason == verb]


def test_a_step_on_a_node_that_has_gone_is_reported_and_fails_nothing(scenario_of: Any) -> None:
    story = scenario_of(
        events=[
            {"at": "2m", "delete": {"claim": {"pool": "general"}}},
            {"at": "2m", "scale": {"deployment": "web", "replicas": 0}},
            {"at": "4m", "cordon": {"node": {"app": "web"}}},
        ],
        expect=[{"at": "end", "nodes": {"count": 0}}],
    )
    result = story.run()
    (gone, met) = result.findings
    assert gone.held is ExpectationState.GONE
    assert (gone.expected, gone.found) == ("at 4m: cordon", "the oldest Node of app web is gone")
    assert met.held is ExpectationState.MET
    assert result.fine


def test_a_step_on_an_instance_that_has_gone_is_reported_and_fails_nothing(
    scenario_of: Any,
) -> None:
    story = scenario_of(
        events=[{"at": "2m", "vanish": {"node": {}}}, {"at": "2m", "vanish": {"node": {}}}],
        expect=[],
    )
    result = story.run()
    assert only(result).held is ExpectationState.GONE
    assert "has no instance that could vanish" in only(result).found
    assert result.fine


def test_a_drain_evicts_what_the_pdb_allows_and_leaves_daemon_pods(scenario_of: Any) -> None:
    story = scenario_of(
        objects=[
            *(a_node_class(), a_pool(), a_deployment(replicas=3), A_DAEMON_SET),
            a_pdb(maxUnavailable=1),
        ],
        until=12 * MINUTE,
        events=[{"at": "3m", "drain": {"node": {"app": "web"}}}],
        expect=[
            {"at": "3m", "nodes": {"count": 1, "cordoned": 0}},
            {"after": "3m", "within": "1s", "nodes": {"cordoned": 1}},
            {"always": {"pods": {"app": "web", "ready": {"min": 2}}}, "after": "3m"},
        ],
    )
    assert story.run().fine
    first, *later = messages(story, "drain")
    assert first.startswith("cordoned; evicting 3 pods: default/web-")
    assert "needs 2 healthy pods and has 3 currently; tried every 5s" in later[0]
    assert re.fullmatch(r"drained after \dm\d+s: 3 pods evicted", later[-1])


def test_a_drain_that_a_pdb_blocks_ends_at_its_timeout(scenario_of: Any) -> None:
    story = scenario_of(
        objects=[a_node_class(), a_pool(), a_deployment(replicas=1), a_pdb(maxUnavailable=0)],
        events=[{"at": "2m", "drain": {"node": {}, "timeout": "1m"}}],
        expect=[{"at": "end", "pods": {"app": "web", "running": 1}}],
    )
    assert story.run().fine
    assert messages(story, "drain")[-1].startswith(
        "the drain ends after its timeout of 1m; pods left: default/web-"
    )


OUTAGE = {"zone": "zone-a", "for": "2m"}
ZONED = a_pool(requirements=[a_requirement("topology.kubernetes.io/zone", "zone-a")])


def test_in_an_outage_nodes_are_unknown_and_come_back(scenario_of: Any) -> None:
    story = scenario_of(
        objects=[a_node_class(), ZONED, a_deployment(replicas=1)],
        events=[{"at": "2m", "zone-outage": OUTAGE}],
        expect=[
            {"at": "3m30s", "condition": {"node": {}, "type": "Ready", "status": "Unknown"}},
            {"after": "4m", "within": "10s", "nodes": {"ready": 1, "not-ready": 0}},
        ],
    )
    result = story.run()
    assert result.fine, result.findings


def test_in_an_outage_new_nodes_come_only_when_it_has_ended(scenario_of: Any) -> None:
    story = scenario_of(
        objects=[a_node_class(), ZONED, a_deployment(replicas=1)],
        events=[{"at": "0s", "zone-outage": OUTAGE}],
        expect=[
            {"at": "1m59s", "instances": {"zone": "zone-a", "running": 1}},
            {"at": "1m59s", "nodes": {"count": 0}},
            {"after": "2m", "within": "30s", "nodes": {"ready": 1}},
        ],
    )
    result = story.run()
    assert result.fine, result.findings


def test_in_an_outage_launches_may_be_refused(scenario_of: Any) -> None:
    story = scenario_of(
        objects=[a_node_class(), ZONED, a_deployment(replicas=1)],
        until=15 * MINUTE,
        events=[{"at": "0s", "zone-outage": {**OUTAGE, "launches": "refused"}}],
        expect=[
            {"always": {"instances": {"count": 0}}, "until": "2m"},
            {"at": "end", "pods": {"running": 1}},
        ],
    )
    result = story.run()
    assert result.fine, result.findings


def test_a_kubelet_that_was_silent_before_an_outage_is_silent_after_it(scenario_of: Any) -> None:
    story = scenario_of(
        objects=[a_bare_node("a-1", "zone-a"), a_bare_node("a-2", "zone-a")],
        events=[
            {"at": "1m", "silence": {"node": "a-1"}},
            {"at": "2m", "zone-outage": {"zone": "zone-a", "for": "1m"}},
            {"at": "2m30s", "resume": {"node": "a-2"}},
        ],
        expect=[
            {"at": "2m55s", "nodes": {"not-ready": 2}},
            {"at": "end", "nodes": {"name": "a-1", "not-ready": 1}},
            {"at": "end", "nodes": {"name": "a-2", "ready": 1}},
        ],
    )
    result = story.run()
    assert result.fine, result.findings


OLD_FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a filter": ({"cordon": {"app": "web"}}, {"cordon": {"node": {"app": "web"}}}),
    "nothing": ({"silence": {}}, {"silence": {"node": {}}}),
    "a name": ({"uncordon": "node-1"}, {"uncordon": {"node": "node-1"}}),
    "all of them": ({"resume": {"pick": "all"}}, {"resume": {"node": {"pick": "all"}}}),
    "a pick": (
        {"stick-volumes": {"pick": "newest"}},
        {"stick-volumes": {"node": {"pick": "newest"}}},
    ),
    "a workload's namespace": (
        {"scale": {"deployment": "web", "namespace": "a", "replicas": 1}},
        {"scale": {"deployment": {"name": "web", "namespace": "a"}, "replicas": 1}},
    ),
}


@pytest.mark.parametrize(("old", "new"), OLD_FORMS.values(), ids=OLD_FORMS.keys())
def test_the_old_form_means_the_same_as_the_new_one(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any]
) -> None:
    first, second = (
        load_scenario(written(tmp_path, a_story(events=events(one)))).steps[0].deed
        for one in (old, new)
    )
    assert first == second


def test_the_old_form_is_noted_with_the_new_one(tmp_path: Path) -> None:
    path = written(tmp_path, a_story(events=events({"cordon": {"app": "web"}})))
    (note,) = load_scenario(path).notes
    assert note.startswith(f"{path}:")
    assert note.endswith(
        "events[0].cordon: cordon takes its node under node: cordon: {node: {app: web}}"
    )
