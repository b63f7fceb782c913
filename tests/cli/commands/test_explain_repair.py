"""``tenure explain node|claim``: by which rules a node is repaired, and what would hold that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenure.cli.cluster.question import Question
from tenure.cli.explain.asjson import to_json
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.model.api.names import DO_NOT_REPAIR, REPLACEMENT_FAILED
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pool
from tests.cli.readclusters import seen


def a_story(**pool: Any) -> Story:
    return Story(a_node_class(), a_pool(**pool), a_deployment(replicas=1))


def explained(story: Story, *, as_json: bool = False) -> str:
    name = story.the(NODES)["metadata"]["name"]
    evaluated = seen(story)[0].evaluated
    answer = explanation(Question(NODES, name), evaluated)
    assert answer is not None
    return to_json(answer) if as_json else as_text(answer)


def section(text: str) -> list[str]:
    lines = text.partition("Repair of ")[2].partition("\n\nDrain of ")[0].splitlines()
    return [" ".join(line.split()) for line in lines]


def test_a_well_node_shows_what_would_be_done_about_each_condition() -> None:
    with a_story() as story:
        story.run(3 * MINUTE)
        assert section(explained(story))[1:] == [
            "breaker 0 of 1 Node unhealthy, at most 1 (maxUnhealthy 20%, rounded up)",
            (
                "budget budget 10% of NodePool general allows 1 of 1 Node, and none is being disrupted "
                "(applies to graceful repair)"
            ),
            "",
            "CONDITION UNHEALTHY IF NOW TOLERATED THEN BY",
            (
                "Ready False or Unknown True 10m replaced gracefully, then terminated at once "
                "provider policy: toleration 10m"
            ),
            (
                "KWOKRebootRequired True - 30s rebooted, drained for 1m at the most "
                "provider policy: toleration 30s"
            ),
            (
                "KWOKUnhealthy True - 30s replaced gracefully, drained within 45s "
                "provider policy: toleration 30s"
            ),
            "For each condition the first row that matches applies. Times are of 2026-01-05, in UTC.",
        ]


def test_an_unhealthy_node_shows_since_when_and_until_when_and_by_which_policy() -> None:
    repair = {
        "maxUnhealthy": 1,
        "policies": [
            {"conditionType": "Ready", "toleration": "45m"},
            {"conditionType": "Ready", "reason": "^Flood", "toleration": "10m"},
        ],
    }
    with a_story(repair=repair) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "Ready", "False", "FloodInTheCellar")
        story.run(30 * SECOND)
        text = explained(story)
    assert (
        "  verdict   NodeUnhealthy: Ready=False (FloodInTheCellar) since 2026-01-05T08:03:00Z"
        in text
    )
    told = section(text)
    assert "breaker 1 of 1 Node unhealthy, at most 1 (maxUnhealthy 1)" in told
    ready = [line for line in told if line.startswith("Ready ")]
    assert ready == [
        (
            "Ready False or Unknown (^Flood) False since 08:03:00, 30s ago 10m "
            "replaced forcefully at 08:13:00, in 9m30s pool policy for Ready (^Flood): "
            "toleration 10m"
        ),
        (
            "Ready False or Unknown False 45m replaced forcefully "
            "pool policy for Ready: toleration 45m"
        ),
    ]


def test_a_condition_that_no_policy_names_is_said_not_to_be_repaired() -> None:
    with a_story() as story:
        story.run(3 * MINUTE)
        name = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(name, "GpuBroken", "True", "Xid79")
        story.run(SECOND)
        said = "no rule GpuBroken=True: no policy names this condition, so it is never repaired"
        assert said in section(explained(story))


def test_a_veto_and_a_first_boot_are_said() -> None:
    with a_story(template={"readinessTTL": "45m"}) as story:
        story.infrastructure.faults.set(never_ready_rate=1.0)
        story.run_while(lambda: not story.all(NODES), at_most=5 * MINUTE, step=SECOND)
        node = story.the(NODES)
        story.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": node["metadata"]["name"],
                    "annotations": {DO_NOT_REPAIR: "true"},
                },
            }
        )
        story.run(MINUTE)
        told = section(explained(story))
    assert any(
        line.startswith("new until its first Ready, readinessTTL 45m overrides every policy")
        for line in told
    )
    name = node["metadata"]["name"]
    assert f'veto {DO_NOT_REPAIR}: "true" on Node {name} vetoes repair' in told
    assert not [line for line in told if line.startswith("budget")], "it needs none yet"


def test_json_has_the_same_and_a_claim_shows_its_node() -> None:
    with a_story(repair={"defaultTolerationDuration": "Never"}) as story:
        story.run(3 * MINUTE)
        (outlook,) = json.loads(explained(story, as_json=True))["repairs"]
        assert outlook["conditions"][0] == {
            "type": "Ready",
            "unhealthyIf": ["False", "Unknown"],
            "reason": "",
            "status": "True",
            "since": None,
            "toleration": None,
            "dueAt": None,
            "then": "nothing",
            "blockedBy": None,
            "blockedBecause": None,
            "policy": "pool default: toleration Never",
        }
        claim = story.the(NODE_CLAIMS)["metadata"]["name"]
        answer = explanation(Question(NODE_CLAIMS, claim), seen(story)[0].evaluated)
        assert answer is not None
        assert json.loads(to_json(answer))["repairs"] == [outlook]


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param({"conditionType": "GpuBroken", "toleration": "5m"}, id="without a status"),
        pytest.param(
            {"conditionType": "Ready", "toleration": "5m", "reason": "("}, id="no expression"
        ),
    ],
)
def test_a_policy_that_is_left_out_is_named_and_the_others_hold(policy: dict[str, str]) -> None:
    with a_story(repair={"policies": [policy]}) as story:
        story.run(3 * MINUTE)
        told = section(explained(story))
    assert told[1].startswith("left out a policy of the pool cannot be used: spec.repair.pol")
    assert not any(line.startswith("off ") for line in told)


def test_the_breaker_is_told_in_numbers_of_nodes() -> None:
    """20% of 4 Nodes is one: the message says so."""
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname"}
    spread |= {
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = a_deployment(replicas=4)
    web["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
    with Story(a_node_class(), a_pool(), web) as story:
        story.run(3 * MINUTE)
        nodes = sorted(one["metadata"]["name"] for one in story.all(NODES))
        assert len(nodes) == 4
        for node, said in (
            (nodes[0], "1 of 4 Nodes unhealthy, at most 1"),
            (nodes[1], "2 of 4 Nodes"),
        ):
            story.kubelets.set_condition(node, "Ready", "False", "Flood")
            story.run(5 * SECOND)
            answer = explanation(Question(NODES, nodes[0]), seen(story)[0].evaluated)
            assert answer is not None
            told = as_text(answer)
            assert said in told
        assert "at most 1 (maxUnhealthy 20%, rounded up); no Node is repaired" in told


# -- what blocks a repair is not promised ----------------------------------------------------

BROKEN = {
    "maxUnhealthy": 1,
    "policies": [{"conditionType": "DiskBroken", "status": "True", "toleration": "10m"}],
}


def row_of_broken_disk(
    *, veto: str = "", max_unhealthy: int = 1, settings: Settings | None = None
) -> tuple[str, str]:
    """The row of an unhealthy condition that is due in ten minutes, and the whole answer."""
    pool = a_pool(repair={**BROKEN, "maxUnhealthy": max_unhealthy})
    options = WorldOptions(settings=settings or Settings())
    with Story(a_node_class(), pool, a_deployment(replicas=1), options=options) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "DiskBroken", "True", "Test")
        if veto:
            marked = {"name": node, "annotations": {DO_NOT_REPAIR: veto}}
            story.apply({"apiVersion": "v1", "kind": "Node", "metadata": marked})
        story.run(30 * SECOND)
        text = explained(story)
    (row,) = (line for line in section(text) if line.startswith("DiskBroken"))
    return row, text


def test_a_repair_that_nothing_blocks_is_said_with_its_instant() -> None:
    assert "10m replaced forcefully at 08:13:00, in 9m30s pool policy" in (row_of_broken_disk()[0])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"veto": "true"}, "karpenter.sh/do-not-repair vetoes it"),
        ({"veto": "20m"}, "karpenter.sh/do-not-repair vetoes it"),
        ({"settings": Settings(node_repair=False)}, "node repair is switched off"),
        ({"max_unhealthy": 0}, "too many Nodes of the NodePool are unhealthy"),
    ],
    ids=["veto", "veto until after it is due", "switched off", "breaker"],
)
def test_a_repair_that_a_gate_blocks_is_not_promised(more: dict[str, Any], why: str) -> None:
    row, text = row_of_broken_disk(**more)
    assert f"10m blocked: {why}; otherwise replaced forcefully at 08:13:00, in 9m30s" in row
    assert "it is repaired" not in text


def test_every_gate_that_blocks_is_told_with_what_it_says() -> None:
    """Also one that this module has no word for."""
    off = row_of_broken_disk(settings=Settings(node_repair=False))[1]
    assert "off node repair is switched off (--node-repair or feature gate NodeRepair)" in section(
        off
    )
    failed = {REPLACEMENT_FAILED: "1 2026-01-05T08:03:20Z"}
    with a_story() as story:
        story.run(3 * MINUTE)
        claim = story.the(NODE_CLAIMS)
        story.apply(
            {
                "apiVersion": claim["apiVersion"],
                "kind": "NodeClaim",
                "metadata": {"name": claim["metadata"]["name"], "annotations": failed},
            }
        )
        story.run(30 * SECOND)
        told = section(explained(story))
    (pause,) = (line for line in told if line.startswith("pause "))
    assert "replaces no node before 2026-01-05T08:0" in pause
    assert pause.endswith("(applies to graceful repair)")


def test_a_veto_that_ends_before_the_repair_is_due_does_not_block_it() -> None:
    assert "10m replaced forcefully at 08:13:00" in row_of_broken_disk(veto="5m")[0]


def test_a_repair_that_is_due_and_that_a_budget_blocks_is_not_promised_in_the_past() -> None:
    policy = {"conditionType": "DiskBroken", "status": "True", "toleration": "1m"}
    pool = a_pool(
        repair={"terminationMode": "Graceful", "maxUnhealthy": "100%", "policies": [policy]},
        disruption={"budgets": [{"nodes": "0"}]},
    )
    with Story(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.kubelets.set_condition(node, "DiskBroken", "True", "Test")
        story.run(2 * MINUTE)
        text = explained(story)
    (row,) = (line for line in section(text) if line.startswith("DiskBroken"))
    assert (
        "blocked: a budget of the NodePool allows no more; otherwise replaced gracefully, due since 08:04:00, 1m ago"
        in row
    )
