"""``tenure explain``: why, what blocks, and when it can change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.asjson import to_json
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.cli.main import run
from tenure.model.api.resource import EVENTS, NODE_POOLS, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import World
from tests.builders import (
    MINUTE,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
    a_requirement,
)
from tests.cli.readclusters import seen
from tests.scenarios.files import a_story, written

HAPPENS = [{"at": "3m", "delete": {"claim": {"pool": "general"}}}]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Ask about a held drain; gives exit code, stdout and stderr."""
    protected = a_pod("report")
    protected["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "10m"}
    objects = [
        a_node_class(),
        a_pool(),
        a_deployment(replicas=2),
        a_pdb(maxUnavailable=0),
        protected,
    ]
    path = written(tmp_path, a_story(objects=objects, events=HAPPENS, until="10m"))

    def tell(*words: str, at: str = "4m", more: tuple[str, ...] = ()) -> tuple[int, str, str]:
        code = run(["explain", *words, "--in", str(path), "--at", at, *more])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return tell


@pytest.fixture
def node(tmp_path: Path, ask: Any, capsys: pytest.CaptureFixture[str]) -> str:
    run(["simulate", str(tmp_path / "story.yaml"), "--json"])
    for line in capsys.readouterr().out.splitlines():
        entry = json.loads(line)
        if entry.get("reason") == "Joined":
            return str(entry["subject"].removeprefix("Node/"))
    raise AssertionError("no node joined")


def test_a_node_that_waits_names_what_blocks_it(ask: Any, node: str) -> None:
    code, out, _ = ask(f"node/{node}")
    assert code == 0
    assert "Node/" in out.splitlines()[0]
    assert out.splitlines()[0].endswith("at 2026-01-05T08:04:00Z, 4m after the start")
    assert "  verdict   FailedDraining: waiting for 3 pods, 3 blocked; pod default/report: " in out
    assert "  blocked   by Pod/default/report: karpenter.sh/do-not-disrupt" in out
    (budget,) = re.findall(r"  blocked   by PodDisruptionBudget/default/web, (.*)", out)
    assert re.fullmatch(
        r"Pod/default/web-\S+, Pod/default/web-\S+: PDB default/web can never allow an eviction .*",
        budget,
    ), "what is said of three is said once"
    assert f"NodeClaim/{node.removeprefix('node-')} (termination)" in out


def test_kind_and_name_may_be_two_words_and_short(ask: Any, node: str) -> None:
    assert ask("no", node) == ask(f"node/{node}") == ask("Nodes", node)
    claim = node.removeprefix("node-")
    assert ask("claim", claim) == ask(f"nodeclaim/{claim}")


def test_a_kind_may_have_its_group_as_kubectl_writes_it(ask: Any, node: str) -> None:
    claim = node.removeprefix("node-")
    code, out, _ = ask(f"nodeclaim.karpenter.sh/{claim}")
    assert (code, out) == ask("claim", claim)[:2]
    assert code == 0
    assert ask("nodepools.karpenter.sh", "general")[0] == 0
    assert ask(f"nodeclaim.example.com/{claim}")[0] == 2


def test_json_is_the_verdict(ask: Any) -> None:
    code, out, _ = ask("pod/report", more=("--json",))
    verdict = json.loads(out)
    assert code == 0
    assert verdict["subject"] == "Pod/default/report"
    assert verdict["reason"] == "DoNotDisrupt"
    assert verdict["message"].endswith("protects from disruption until 2026-01-05T08:10:00Z")
    assert verdict["recheckAt"] == "2026-01-05T08:10:00Z"
    assert verdict["action"] is None
    assert verdict["blockers"] == []
    assert verdict["advice"] == "Wait for its end, or remove the annotation."


def test_a_pod_that_a_budget_keeps_names_the_budget(ask: Any, tmp_path: Path) -> None:
    _, out, _ = ask("pod/report")
    waiting = ask(f"no/{out.partition('Running on ')[2].split()[0].rstrip(';')}")[1]
    name = re.findall(r"Pod/default/(web-[^\s,:]+)", waiting)[0]
    told = json.loads(ask("pod", name, at="4m3s", more=("--json", "-n", "default"))[1])
    assert told["reason"] == "FailedDraining"
    assert told["blockers"][0]["subject"] == "PodDisruptionBudget/default/web"
    assert told["blockers"][0]["fact"]["type"] == "PdbNeverAllows"


def test_a_pod_that_runs_is_explained_by_what_it_stands_on(ask: Any) -> None:
    _, _, others = ask("po", "default/missing", at="2m")
    web = next(word for word in others.replace(",", " ").split() if word.startswith("web-"))
    code, out, _ = ask("po", f"default/{web}", at="2m")
    assert code == 0
    assert "  state     Running on node-general-" in out
    assert f"  verdict   Tenure has nothing to decide about Pod/default/{web}\n" in out
    assert "  verdict   InService: " in out
    assert "Drain of" not in out, "that is asked of the node"


def test_a_node_that_stays_shows_how_its_drain_would_go(ask: Any, node: str) -> None:
    code, out, _ = ask("node", node, at="2m")
    assert code == 0
    table = out.partition("Drain of ")[2].splitlines()
    assert table[0] == f"Node/{node}, if it were deleted at 2026-01-05T08:02:00Z"
    assert table[1] == "  deadline  none: there is no terminationGracePeriod"
    assert table[2].startswith(
        "  gone      never by itself: there is no terminationGracePeriod, and 2"
    )
    assert table[4].split() == [
        *("POD", "TIER", "EVICTION"),
        *("FORCED", "STOPPED", "BY"),
        "BLOCKED",
        "BY",
    ]
    assert " ".join(table[5].split()).startswith(
        "default/report plain pods 08:10:00, in 8m - 08:10:30, in 8m30s"
    )
    assert table[6].startswith("  default/web-")
    assert table[6].endswith(
        "PDB default/web can never allow an eviction (maxUnavailable 0 of 2 pods)"
    )
    assert (
        table[8]
        == "  Times are of 2026-01-05, in UTC; eviction tried at the earliest, stopped at the latest."
    )


def test_a_terminating_node_is_said_to_be_terminating_throughout(ask: Any, node: str) -> None:
    for at in ("3m", "4m"):  # Its claim was deleted this very moment; and later.
        _, out, _ = ask("node", node, at=at)
        assert "if it were deleted" not in out
        assert f"Drain of Node/{node}, since 2026-01-05T08:03:00Z" in out
        repair = out.partition("Repair of ")[2].splitlines()[1]
        assert repair.startswith("  deleted   it is terminating: a repair that falls due only")
    assert out.count("until 2026-01-05T08:10:00Z, in 6m, until") == 0, "an instant is said once"


def test_a_claim_shows_the_drain_of_its_node_and_json_has_it_under_a_key(
    ask: Any, node: str
) -> None:
    claim = node.removeprefix("node-")
    _, text, _ = ask("claim", claim)
    assert f"Drain of Node/{node}, since 2026-01-05T08:03:00Z" in text
    (drain,) = json.loads(ask("claim", claim, more=("--json",))[1])["timetables"]
    assert drain == json.loads(ask("node", node, more=("--json",))[1])["timetables"][0]
    assert (drain["node"], drain["leaving"], drain["goneBy"]) == (node, True, None)
    report = drain["pods"][0]
    assert (report["pod"], report["askedAt"]) == ("default/report", "2026-01-05T08:10:00Z")
    assert report["heldBy"][0]["until"] == "2026-01-05T08:10:00Z"


_OTHERS_TURN: dict[str, tuple[dict[str, Any], str]] = {
    "gated": (
        {"schedulingGates": [{"name": "example.com/quota"}]},
        "it is not scheduled before its scheduling gates are removed: example.com/quota",
    ),
    "of another scheduler": (
        {"schedulerName": "slow-scheduler"},
        "its scheduler, slow-scheduler, has not said yet that no node takes it",
    ),
}


@pytest.mark.parametrize(("spec", "why"), _OTHERS_TURN.values(), ids=_OTHERS_TURN)
def test_a_pod_that_waits_for_another_names_it(
    spec: dict[str, Any], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [a_node_class(), a_pool(), a_pod("waiting", **spec)]
    path = written(tmp_path, a_story(objects=objects, until="10m"))
    assert run(["explain", "pod/waiting", "--in", str(path), "--at", "2m"]) == 0
    out = capsys.readouterr().out
    assert "  state     Pending, on no node\n" in out
    assert f"  verdict   Tenure has nothing to decide about Pod/default/waiting: {why}\n" in out


def test_a_pod_that_runs_says_how_long_it_is_protected(ask: Any) -> None:
    assert '; protected by karpenter.sh/do-not-disrupt: "10m" until 2026' in ask("pod/report")[1]


def test_instants_may_be_absolute(ask: Any) -> None:
    assert ask("pool/general", at="2026-01-05T09:02:00+01:00") == ask("np", "general", at="2m")


def test_an_object_that_is_not_there_gives_exit_code_one_and_near_names(ask: Any) -> None:
    code, out, err = ask("pod/repot")
    assert (code, out) == (1, "")
    assert err == "there is no Pod/default/repot at 4m; did you mean report?\n"


TEAMS = ("team-a", "team-b")


def in_team(name: str, namespace: str) -> dict[str, Any]:
    pod = a_pod(name)
    pod["metadata"]["namespace"] = namespace
    return pod


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lost", "; there is one in namespace team-a: add -n team-a"),
        ("twin", "; there is one in namespace team-a, team-b: add -n team-a"),
        ("los", "; did you mean lost in namespace team-a? Then add -n team-a"),
        ("zzzz", ", and no other Pod in namespace default"),
    ],
)
def test_a_pod_of_another_namespace_is_found_by_its_name(name: str, hint: str) -> None:
    teams = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}} for team in TEAMS
    ]
    pods = [in_team("lost", "team-a"), *(in_team("twin", team) for team in TEAMS)]
    with Story(*teams, *pods) as story:
        story.run(1 * MINUTE)
        said = Question(PODS, name, "default").not_found(scene_of(story))
    assert said.endswith(hint)


def test_an_object_that_has_gone_is_remembered(ask: Any, tmp_path: Path) -> None:
    path = written(tmp_path, a_story(events=HAPPENS, until="10m"), "gone.yaml")
    assert run(["simulate", str(path)]) == 0
    code, _, err = ask("pod/report", at="0s")
    assert code == 0, err


def test_a_pool_whose_block_cannot_be_used_does_not_end_in_nothing_to_do() -> None:
    budget = {"nodes": "10%", "schedule": "0 8 * * *", "duration": "1h", "timeZone": "Mars/Base"}
    with World() as world:
        for manifest in (a_node_class(), a_pool(disruption={"budgets": [budget]})):
            world.apply(manifest)
        world.run(MINUTE)
        answer = explanation(Question.parse(["pool/general"]), scene_of(world))
        assert answer is not None
        out = as_text(answer)
        (event,) = world.store.list(EVENTS)
    said = "no node is disrupted voluntarily or repaired gracefully: spec.disruption.budgets[0].timeZone: got 'Mars/Base'"
    assert f"  verdict   DisruptionInvalid: {said}" in out
    assert "  advice    Fix the field that is named" in out
    assert "Nothing to do." not in out
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "DisruptionInvalid", 1)
    assert event["message"].startswith(said)


def test_a_pool_tells_how_many_nodes_its_budgets_allow_by_reason_and_until_when() -> None:
    budgets = [{"nodes": "2", "within": "1h"}, {"nodes": "0", "reasons": ["Drifted", "Empty"]}]
    with Story(a_node_class(), a_pool(disruption={"budgets": budgets}), a_deployment()) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        story.run(MINUTE)
        answer = explanation(Question.parse(["pool/general"]), seen(story)[0].evaluated)
        status = story.the(NODE_POOLS)["status"]
    assert answer is not None
    out = as_text(answer)
    others = "(Unhealthy, Expired, Rebalance, Underutilized)"
    assert "  budgets   allow 1 more Node now, may change at 2026-01-05T09:03:15Z" in out
    assert others in out
    assert "  budgets   allow 0 more Nodes now, may change at 2026-01-05T09:03:15Z" in out
    assert "  starts    1 counted by budgets with within: 2026-01-05T08:03:00Z" in out
    assert "(Deleted)" in out
    assert json.loads(to_json(answer))["disruptionsAllowed"] == status["disruptionsAllowed"]


def test_a_node_that_is_not_ready_does_not_end_in_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [a_node_class(), a_pool(), a_deployment()]
    events = [{"at": "2m", "set-condition": {"node": {}, **NOT_READY}}]
    path = written(tmp_path, a_story(objects=objects, events=events, until="5m", expect=[]))
    run(["explain", "node/none", "--in", str(path), "--at", "3m"])
    name = capsys.readouterr().err.split()[-1].rstrip("?")
    assert run(["explain", f"node/{name}", "--in", str(path), "--at", "3m"]) == 0
    out = capsys.readouterr().out
    assert "  verdict   NodeUnhealthy: Ready=False (Odd) since 2026-01-05T08:02:00Z, 1m ago" in out
    assert "Nothing to do." not in out
    assert "InService" not in out


NOT_READY = {"type": "Ready", "status": "False", "reason": "Odd"}


def of_pool(story: Story) -> str:
    answer = explanation(Question(NODE_POOLS, "general"), seen(story)[0].evaluated)
    assert answer is not None
    return as_text(answer)


def test_a_pool_tells_of_its_unhealthy_nodes_and_what_blocks_their_repair() -> None:
    repair = {
        "terminationMode": "Graceful",
        "policies": [{"conditionType": "Ready", "toleration": "1m"}],
    }
    pool = a_pool(repair=repair, disruption={"budgets": [{"nodes": "0"}]})
    with Story(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "Ready", "False", "Flood")
        story.run(3 * MINUTE)
        said = of_pool(story)
    assert "Nothing to do" not in said
    assert "DisruptionBlocked: " in said
    assert f"Node/{node} (repair)" in said


def test_a_pool_names_every_unhealthy_node_and_its_warning_leads() -> None:
    policies = [{"conditionType": "DiskBroken", "status": "True", "toleration": "1m"}]
    sizes = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["t3.small"]}]
    pool = a_pool(requirements=sizes, repair={"policies": policies})
    with Story(a_node_class(), pool, a_deployment(replicas=3, cpu="1")) as story:
        story.run(3 * MINUTE)
        nodes = [node["metadata"]["name"] for node in story.all(NODES)]
        for node in nodes:
            story.kubelets.set_condition(node, "DiskBroken", "True", "Test")
        story.run(2 * MINUTE)
        answer = explanation(Question(NODE_POOLS, "general"), seen(story)[0].evaluated)
    assert answer is not None
    assert len(nodes) == 3
    repaired = [one.subject.name for one in answer.around if one.concern == "repair"]
    assert sorted(repaired) == sorted(nodes)
    assert all(f"Node/{node}" in as_text(answer) for node in nodes)
    assert answer.verdicts[0].reason == "NodeRepairBlocked"


def test_a_pool_whose_limit_is_used_up_says_so_and_who_waits() -> None:
    with Story(a_node_class(), a_pool(limits={"cpu": "4"}), a_deployment(replicas=9)) as story:
        story.run(3 * MINUTE)
        said = of_pool(story)
        pods = [p for p in story.all(PODS) if not p["spec"].get("nodeName")]
    assert pods
    assert "  verdict   LimitReached: " in said
    assert "cpu 4 of 4; no more nodes are launched: spec.limits.cpu is used up" in said
    assert "Nothing to do" not in said
    assert all(f"Pod/default/{pod['metadata']['name']}" in said for pod in pods)


def test_a_pool_in_which_all_is_well_has_nothing_to_do() -> None:
    with Story(a_node_class(), a_pool(limits={"cpu": "400"}), a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        said = of_pool(story)
    assert "  verdict   PoolCurrent: " in said
    assert said.count("Nothing to do.") == 1


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        (
            a_pool(requirements=[a_requirement("node.kubernetes.io/instance-type", "none-such")]),
            "instance types of KWOKNodeClass default matches spec.template.spec.requirements",
        ),
        (
            a_pool(requirements=[a_requirement("topology.kubernetes.io/zone", "moon")]),
            "spec.template.spec.requirements",
        ),
        (a_pool(replicas=2), "spec.replicas is set"),
    ],
    ids=["no instance type", "no zone", "static"],
)
def test_a_pool_that_can_launch_nothing_says_so(pool: dict[str, Any], why: str) -> None:
    with Story(a_node_class(), pool) as story:
        story.run(MINUTE)
        said = of_pool(story)
    (line,) = (one for one in said.splitlines() if one.startswith("  launches  nothing: "))
    assert why in line
    assert "Nothing to do" not in said


def test_a_pool_of_another_provider_is_named_to_a_pod_that_fits_nowhere() -> None:
    foreign = a_pool("other")
    ref = {"group": "example.com", "kind": "OtherClass", "name": "default"}
    foreign["spec"]["template"]["spec"]["nodeClassRef"] = ref
    with Story(a_node_class(), foreign, a_deployment(replicas=1)) as story:
        story.run(MINUTE)
        pod = story.the(PODS)["metadata"]["name"]
        answer = explanation(Question(PODS, pod, "default"), seen(story)[0].evaluated)
    assert answer is not None
    assert answer.verdicts[0].reason == "FailedScheduling"
    assert answer.verdicts[0].message.endswith(
        "NodePool other launches nothing: node class OtherClass.example.com is not served here"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pod/web",), "did you mean web-"),
        (("deployment/web",), "Name one of its pods: explain pod/web lists them."),
        (("pod", "a", "b"), "expected one object, in at most two words"),
    ],
)
def test_a_question_that_cannot_be_answered_says_how_to_ask(
    ask: Any, words: tuple[str, ...], said: str
) -> None:
    code, _, err = ask(*words)
    assert code != 0
    assert said in err


def test_a_terminating_pod_is_deleted_since_it_was_asked_to_stop() -> None:
    """Its deletionTimestamp is the end of its grace period, and lies ahead."""
    slow = a_pod("slow")
    slow["metadata"]["labels"] = {"app": "slow"}
    slow["spec"]["terminationGracePeriodSeconds"] = 600
    with Story(a_node_class(), a_pool(), slow) as story:
        story.pace("slow", stop_takes=8 * MINUTE)
        story.run(3 * MINUTE)
        story.store.delete(PODS, "default", "slow")
        story.run(MINUTE)
        answer = explanation(Question(PODS, "slow", "default"), seen(story)[0].evaluated)
    assert answer is not None
    assert answer.state.startswith("being deleted since 2026-01-05T08:03:00Z; ")


def test_what_protects_a_pod_is_said_once(ask: Any) -> None:
    """Two deciders conclude it: the pod is not evicted, and its node is not chosen."""
    _, out, _ = ask("pod", "report")
    own = out.partition("\nNode/")[0]
    assert own.count("  verdict   DoNotDisrupt: ") == 1
    assert "DoNotDisruptUntil" not in own
    reasons = {
        one["reason"] for one in json.loads(ask("pod", "report", more=("--json",))[1])["also"]
    }
    assert reasons == {"DoNotDisruptUntil"}, "JSON has every verdict"
