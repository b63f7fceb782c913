"""``tenure plan``: what would be done now, why not the rest, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.cli.main import run
from tenure.cli.plan.planning import Plan, plan_of
from tenure.cli.plan.text import Setting, as_text
from tenure.core.decision import Blocker, Concern, Subject, Terminate, Verdict
from tenure.core.disrupt.facts.candidates import NodeDrifted
from tenure.core.facts import Joined, Quoted, RetriedAt
from tenure.core.gates.operations import Gate
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowBlocks
from tenure.model.api.meta import BEGINNING
from tenure.model.api.resource import NODE_CLAIMS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pdb, a_pod, a_pool
from tests.cli.readclusters import seen
from tests.folders import ROOT
from tests.scenarios.files import a_story, written

Told = Any


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Plan a small story: three pods, one that fits nowhere, and a held drain from 3m on."""
    objects = [
        a_node_class(),
        a_pool(),
        a_deployment(replicas=3),
        a_pdb(maxUnavailable=0),
        a_pod("huge", cpu="900"),
    ]
    events = [{"at": "3m", "delete": {"claim": {"pool": "general"}}}]
    path = written(tmp_path, a_story(objects=objects, events=events, until="10m", expect=[]))

    def told(at: str, *more: str) -> str:
        assert run(["plan", "--in", str(path), "--at", at, *more]) == 0
        return capsys.readouterr().out

    return told


def test_what_waits_is_told_with_its_reason(plan: Told) -> None:
    lines = plan("2m").splitlines()
    assert lines[0].startswith(
        "Plan: nothing to do now; 1 DrainNotGraceful, 1 FailedScheduling not now; "
    )
    assert lines[1].startswith("  at        2026-01-05T08:02:00Z, 2m after the start, for ")
    assert lines[1].endswith("; nothing was changed")
    assert "Not now: 2" in lines
    assert (
        "  FailedScheduling: The pod fits no existing node, and no node that a pool may launch."
        in lines
    )
    assert any(line.startswith("    Pod/default/huge: ") for line in lines)
    assert any(
        line.startswith("  DrainNotGraceful: If the claim's node were drained") for line in lines
    )
    assert lines[-1] == "Settled: 1 Node, 1 NodePool", "the claim is told of above"


def test_what_is_settled_has_its_reasons_on_demand(plan: Told) -> None:
    *_, settled = plan("2m", "--verbose").splitlines()
    assert "1 Node InService" in settled


def test_what_is_held_is_told_with_who_holds_it_and_until_when(plan: Told) -> None:
    out = plan("4m3s")
    assert "  FailedDraining: " in out
    assert "      blocked by PodDisruptionBudget/default/web, Pod/default/web-" in out


def test_json_has_every_verdict_once(plan: Told) -> None:
    told = json.loads(plan("4m3s", "--json"))
    assert told["at"] == "2026-01-05T08:04:03Z"
    verdicts = told["toDo"] + told["notNow"]
    names = [(verdict["concern"], verdict["subject"]) for verdict in verdicts]
    assert len(names) == len(set(names))
    assert all(verdict["action"] for verdict in told["toDo"])
    assert not any(verdict["action"] for verdict in told["notNow"])
    assert {verdict["reason"] for verdict in verdicts} >= {"FailedDraining", "FailedScheduling"}
    assert sum(told["settled"].values()) > 0
    assert told["notes"] == []


def test_thousands_that_wait_for_the_same_are_one_line_and_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [a_node_class(), a_pool(), a_deployment(replicas=300, cpu="900")]
    path = written(tmp_path, a_story(objects=objects, until="1m", expect=[]))
    assert run(["plan", "--in", str(path), "--at", "20s"]) == 0
    out = capsys.readouterr().out
    assert "Not now: 300" in out
    (line,) = (one for one in out.splitlines() if one.startswith("    300 Pods (default/web-"))
    assert line.partition(": ")[0].endswith(" and 297 more)")
    assert line.count("default/web-") == 3


def test_what_is_to_be_done_is_told_by_its_action(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, a_story(until="1m", expect=[]))
    for tenth in range(10, 60):  # Each step is a moment's: one of these instants has one.
        assert run(["plan", "--in", str(path), "--at", f"{tenth / 10}s", "--json"]) == 0
        to_do = json.loads(capsys.readouterr().out)["toDo"]
        if any(verdict["reason"] == "Launching" for verdict in to_do):
            break
    actions = [verdict["action"] for verdict in to_do if verdict["reason"] == "Launching"]
    assert actions[0].startswith("Launch an instance for general-")
    assert run(["plan", "--in", str(path), "--at", f"{tenth / 10}s"]) == 0
    assert f"    {actions[0]}: " in capsys.readouterr().out


def test_the_page_on_plans_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "plan.md").read_text()
    example = page.partition("$ .venv/bin/tenure plan ")[2].partition("```")[0]
    command, _, shown = example.partition("\n")
    assert run(["plan", *command.split()]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [
        line for line in shown.splitlines() if line.strip() != "…" and line not in printed
    ] == []


@pytest.fixture
def repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Plan a node that is unhealthy from 3m on, and is replaced gracefully."""
    objects = [a_node_class(), a_pool(), a_deployment(replicas=3)]
    unhealthy = {
        "node": {"pool": "general"},
        "type": "KWOKUnhealthy",
        "status": "True",
        "reason": "Odd",
    }
    events = [{"at": "3m", "set-condition": unhealthy}]
    path = written(tmp_path, a_story(objects=objects, events=events, until="20m", expect=[]))

    def told(at: str) -> str:
        assert run(["plan", "--in", str(path), "--at", at]) == 0
        return capsys.readouterr().out

    return told


def test_nothing_is_promised_that_an_event_may_change() -> None:
    """A node goes as soon as its replacement is initialized, long before that times out."""
    waits = Verdict(
        concern=Concern.REPLACEMENT,
        subject=Subject("NodeClaim", "a"),
        reason=Reason.REPLACING,
        facts=(Quoted("waiting until replacement NodeClaim b is initialized"),),
        recheck_at=datetime(2026, 1, 5, 20, 30, 18, tzinfo=UTC),
    )
    plan = Plan(
        at=datetime(2026, 1, 5, 20, 20, 18, tzinfo=UTC),
        also_at="",
        to_do=(),
        not_now=(waits,),
        settled={},
        settled_by_kind={},
        settled_objects={},
        claims={},
        next_at=waits.recheck_at,
    )
    lines = as_text(plan, Setting(where="here")).splitlines()
    assert (
        f"    NodeClaim/a: {waits.message}; evaluated again at 2026-01-05T20:30:18Z, in 10m"
        in lines
    )
    assert lines[0].endswith("; changes at 2026-01-05T20:30:18Z, in 10m, or when the cluster does")


@pytest.mark.parametrize(
    ("reason", "gate", "known"),
    [
        (Reason.NOMINATED, "", False),
        (Reason.DISRUPTION_BLOCKED, Gate.PODS, False),
        (Reason.DISRUPTION_BLOCKED, Gate.PODS, True),
        (Reason.REPLACING, "", True),
    ],
)
def test_an_instant_at_which_nothing_need_happen_is_not_told(
    reason: Reason, gate: str, known: bool
) -> None:
    """A window of other nodes begins then, or the packing is looked at again."""
    at = datetime(2026, 1, 6, 10, tzinfo=UTC)
    blocker = Blocker(subject=Subject("Pod", "a"), fact=Quoted("protected"), until=at)
    verdict = Verdict(
        concern=Concern.DISRUPTION,
        subject=Subject("NodeClaim", "a"),
        reason=reason,
        facts=(Quoted("so it is"),),
        blockers=(blocker,) if gate and known else (),
        recheck_at=at,
        gate=gate,
    )
    assert ("2026-01-06T10:00:00Z" in as_text(a_plan(verdict), Setting(where="here"))) == known


def test_what_a_node_and_its_claim_have_in_common_is_told_once(repaired: Told) -> None:
    out = repaired("3m10s")
    (line,) = (line for line in out.splitlines() if "KWOKUnhealthy=True (Odd) since" in line)
    who = line.partition(": ")[0].split(", ")
    assert [one.split("/")[0].strip() for one in who] == ["NodeClaim", "Node"]
    assert "Not now: 2" in out, "the node, and its pool that is evaluated for it"
    settled = out.partition("Settled: ")[2].splitlines()[0].split(", ")
    assert settled == ["nothing"], "an unhealthy Node, its claim and its pool are not"


def a_plan(*not_now: Verdict) -> Plan:
    return Plan(
        at=datetime(2026, 1, 5, 20, 20, 18, tzinfo=UTC),
        also_at="",
        to_do=(),
        not_now=not_now,
        settled={},
        settled_by_kind={},
        settled_objects={},
        claims={},
        next_at=None,
    )


def a_verdict(
    subject: Subject, concern: Concern, reason: Reason, message: str = "so it is", **more: Any
) -> Verdict:
    facts = (Quoted(message),)
    return Verdict(concern=concern, subject=subject, reason=reason, facts=facts, **more)


def test_what_is_told_of_is_not_settled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pool with an unhealthy Node is watched; that its status is current settles nothing."""
    objects = [a_node_class(), a_pool(), a_deployment(replicas=1)]
    unhealthy = {
        "node": {"pool": "general"},
        "type": "KWOKUnhealthy",
        "status": "True",
        "reason": "Odd",
    }
    story = a_story(
        objects=objects, events=[{"at": "3m", "set-condition": unhealthy}], until="9m", expect=[]
    )
    path = written(tmp_path, story)
    assert run(["plan", "--in", str(path), "--at", "3m10s"]) == 0
    out = capsys.readouterr().out
    assert "    NodePool/general: " in out.partition("Settled: ")[0]
    assert "NodePool" not in out.partition("Settled: ")[2]


def test_a_blocker_that_the_message_tells_of_is_not_told_again() -> None:
    pod, budget = (
        Subject("Pod", "web-1", "default"),
        Subject("PodDisruptionBudget", "web", "default"),
    )
    told, untold = Quoted("the PDB allows nothing"), Quoted("something else")
    blockers = tuple(Blocker(subject=budget, fact=fact) for fact in (told, untold))
    waits = a_verdict(*(pod, Concern.DRAIN, Reason.EVICTION_WAITS), message="", blockers=blockers)
    for facts in ((told, RetriedAt(BEGINNING)), (Joined((told, RetriedAt(BEGINNING))),)):
        said = as_text(a_plan(msgspec.structs.replace(waits, facts=facts)), Setting(where="here"))
        assert said.count("the PDB allows nothing") == 1, "alone, or as a part of another fact"
        assert "blocked by PodDisruptionBudget/default/web: something else" in said


def test_what_two_deciders_say_of_an_object_is_one_line() -> None:
    pod, says = Subject("Pod", "web", "default"), "protected by an annotation"
    both = [
        a_verdict(pod, Concern.REBOOT, Reason.PROTECTED, message=says),
        a_verdict(pod, Concern.PROTECTION, Reason.PROTECTED_UNTIL, message=says),
    ]
    out = as_text(a_plan(*both), Setting(where="here"))
    assert out.count(says) == 1
    assert "  DoNotDisrupt: " in out


def test_verdicts_that_differ_only_in_their_object_are_one_line_with_their_blockers() -> None:
    verdicts = [
        a_verdict(
            Subject("Node", name),
            Concern.DRAIN,
            Reason.EVICTION_REFUSED,
            blockers=(Blocker(subject=Subject("Pod", by), fact=Quoted("slow")),),
        )
        for name, by in (("a", "x"), ("b", "x"), ("c", "y"))
    ]
    out = as_text(a_plan(*verdicts), Setting(where="here"))
    assert "Not now: 3" in out
    assert (
        "    Node/a, Node/b: so it is\n      blocked by Pod/x: slow\n    Node/c: so it is\n" in out
    )


def a_drifted_node(name: str, since: datetime, until: datetime) -> list[Verdict]:
    """Of the Node and its claim, and the condition that made the claim a candidate."""
    node, claim = Subject("Node", f"node-{name}"), Subject("NodeClaim", name)
    why = "another image"
    facts = (
        NodeDrifted(node.name, since, why),
        WindowBlocks("freeze", ("Drift",), node.name, until),
    )
    blocked = [
        Verdict(
            concern=Concern.DISRUPTION,
            subject=one,
            reason=Reason.DISRUPTION_BLOCKED,
            facts=facts,
            recheck_at=until,
        )
        for one in (node, claim)
    ]
    return [*blocked, a_verdict(claim, Concern.DRIFT, Reason.DRIFTED, message=why)]


def test_nodes_that_wait_for_the_same_are_one_line_although_each_message_names_its_node() -> None:
    now = datetime(2026, 1, 5, 20, 20, 18, tzinfo=UTC)
    soon, late = now + MINUTE, now + 9 * MINUTE
    names = ("a", "b", "c", "d")
    plan = a_plan(
        *(
            one
            for number, name in enumerate(names)
            for one in a_drifted_node(name, now - number * SECOND, soon)
        ),
        *a_drifted_node("later", now, late),
    )
    claims = {f"node-{name}": name for name in (*names, "later")}
    out = as_text(msgspec.structs.replace(plan, claims=claims), Setting(where="here"))
    told = [line for line in out.splitlines() if "has drifted since" in line]
    assert [line.partition(": ")[0].strip() for line in told] == [
        "4 Nodes (node-a, node-b, node-c and 1 more), for example",
        "NodeClaim/later, Node/node-later",
    ], "one that has to wait longer has a line of its own"
    assert (
        told[0].partition(": ")[2].startswith("Node node-a has drifted since 2026-01-05T20:20:18Z")
    )
    assert "  Drifted: " not in out, "the line says that and what differs"


def test_objects_are_counted_and_a_booting_claim_is_told_once() -> None:
    claims = [Subject("NodeClaim", name) for name in ("a", "b")]
    verdicts = [
        *(
            a_verdict(one, Concern.REPAIR, Reason.BOOTING, message=f"{one.name} has until 20:30")
            for one in claims
        ),
        *(
            a_verdict(one, Concern.LIFECYCLE, Reason.NODE_NOT_FOUND, message=f"no Node {one.name}")
            for one in claims
        ),
    ]
    lines = as_text(a_plan(*verdicts), Setting(where="here")).splitlines()
    assert "Not now: 2" in lines
    assert "    NodeClaim/a: no Node a; a has until 20:30" in lines
    assert not any("Booting: " in line for line in lines)


def test_an_instant_beyond_the_end_of_the_scenario_is_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, a_story(until="1m", expect=[]))
    assert run(["plan", "--in", str(path), "--at", "2m"]) == 0
    note = "note: the scenario ends at 1m (until); it is played on to --at 2m\n"
    assert capsys.readouterr().err == note
    assert run(["plan", "--in", str(path), "--at", "1m"]) == 0
    assert capsys.readouterr().err == ""


def test_an_instance_that_is_terminating_is_not_to_be_terminated_again() -> None:
    """The one who looks does not know what the cloud was asked for; the claim says it."""
    with Story(a_node_class(), a_pool(), a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        name = story.delete_claim()
        found = []
        for _ in range(120):
            story.run(SECOND)
            claims = [one for one in story.all(NODE_CLAIMS) if one["metadata"]["name"] == name]
            if any(
                ENDING in map(itemgetter("type"), one["status"]["conditions"]) for one in claims
            ):
                found.append(plan_of(seen(story)[0].evaluated))
    assert found, "the instance takes its time"
    for plan in found:
        assert not any(isinstance(one.action, Terminate) for one in plan.to_do)
        assert any(one.reason is Reason.INSTANCE_TERMINATING for one in plan.not_now)


ENDING = "InstanceTerminating"
