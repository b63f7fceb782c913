"""What-ifs on the index: the right answer, and nothing left behind."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.demand.steps import NODES_A_STEP
from tenure.packing.index.whatif import WhatIf
from tenure.packing.result import Packing
from tests.packing.build import a_node, a_pod
from tests.packing.demand.test_topology import WEB, avoiding, spread
from tests.packing.judges.verify import verify

RULES: list[dict[str, Any]] = [{}, {}, spread(ZONE), spread(HOSTNAME, 2), avoiding(), {"port": 80}]


def delete(index: WhatIf, name: str, *, keep: bool = False) -> dict[str, str] | None:
    """By UID, where the pods of the node go; None where not all of them fit."""
    trial = index.take_out((name,), all_or_none=True)
    if trial is None:
        return None
    found = None if trial.left else index.where(trial)
    if found is None or not keep:
        index.undo(trial)
    else:
        index.keep(trial)
    return found


@st.composite
def fleets(draw: st.DrawFn) -> tuple[ExistingNode, ...]:
    random = Random(draw(st.integers(0, 2**32)))
    nodes = []
    for number in range(draw(st.integers(2, 7))):
        there = []
        for place in range(random.randint(0, 4)):
            rules = random.choice(RULES)
            labels = WEB if rules or random.random() < 0.3 else {}
            fields = {"cpu": random.choice(["250m", "1", "2"]), "labels": labels, **rules}
            there.append(a_pod(f"{number}-{place}", nodeName=f"n-{number}", **fields))
        labels = {ZONE: random.choice("abc"), HOSTNAME: f"n-{number}"}
        nodes.append(a_node(f"n-{number}", "8", labels=labels, holding=there))
    return tuple(nodes)


@given(fleets())
@settings(max_examples=60, deadline=None)
def test_a_question_leaves_nothing_behind(nodes: tuple[ExistingNode, ...]) -> None:
    index = WhatIf(nodes)
    for node in nodes:
        delete(index, node.name)  # What is looked up for the first time is kept.
    before = index.state()
    for node in nodes:
        delete(index, node.name)
        assert index.state() == before


@given(fleets())
@settings(max_examples=60, deadline=None)
def test_pods_go_where_the_scheduler_would_bind_them(nodes: tuple[ExistingNode, ...]) -> None:
    index = WhatIf(nodes)
    for node in nodes:
        found = delete(index, node.name)
        if found is None:
            continue
        assert set(found) == {pod.uid for pod in node.pods}
        unbound = [_unbound(pod) for pod in node.pods]
        rest = tuple(other for other in nodes if other is not node)
        problem = Problem(pods=tuple(unbound), nodes=rest)
        assert verify(problem, Packing(placed=found, claims=(), unplaced={})) == []


@given(fleets())
@settings(max_examples=40, deadline=None)
def test_what_is_kept_is_the_same_as_an_index_of_what_is_there_then(
    nodes: tuple[ExistingNode, ...],
) -> None:
    index = WhatIf(nodes)
    for name in [node.name for node in nodes[: len(nodes) // 2]]:
        found = delete(index, name, keep=True)
        if found is None:
            continue
        nodes = _after(nodes, name, found)
    rebuilt = WhatIf(nodes)
    for node in nodes:
        kept, fresh = delete(index, node.name), delete(rebuilt, node.name)
        assert (kept is None) == (fresh is None), node.name


def _unbound(pod: Any) -> Any:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))


def _after(
    nodes: tuple[ExistingNode, ...], name: str, found: dict[str, str]
) -> tuple[ExistingNode, ...]:
    (gone,) = (node for node in nodes if node.name == name)
    left = []
    for node in nodes:
        if node is gone:
            continue
        for pod in gone.pods:
            if found[pod.uid] == node.name:
                node = node.with_pod(pod)  # noqa: PLW2901
        left.append(node)
    return tuple(left)


def test_pods_of_a_node_that_goes_fill_the_first_that_take_them() -> None:
    pods = [a_pod(f"p{n}", "2") for n in range(3)]
    nodes = (a_node("a", "4"), a_node("b", "4"), a_node("c", "8", holding=pods))
    index = WhatIf(nodes)
    assert delete(index, "c") == {"p0": "a", "p1": "a", "p2": "b"}
    assert delete(index, "a", keep=True) == {}
    assert delete(index, "c") is None


def test_a_domain_without_a_node_is_forgotten_when_its_pods_are_taken_back() -> None:
    """Else the zone would count as the emptiest one, and no pod could go anywhere else."""
    web = a_pod("web", labels=WEB, **spread(ZONE))
    nodes = tuple(a_node(f"n-{zone}", labels={ZONE: zone}, holding=()) for zone in "ab")
    index = WhatIf((*nodes, a_node("n-c", labels={ZONE: "a"}, holding=[web])))
    domains, one = index.nodes.domains, index.classes[0]
    before = domains.allowances(one, ZONE)
    domains.put(one, {ZONE: "new"})
    assert domains.allowances(one, ZONE) != before
    domains.put(one, {ZONE: "new"}, count=-1)
    assert domains.allowances(one, ZONE) == before


def test_a_node_with_a_pod_that_cannot_be_read_stays() -> None:
    odd = a_pod(
        "odd",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Near"}]}]
                }
            }
        },
    )
    index = WhatIf((a_node("a", "8"), a_node("b", "8", holding=[odd])))
    assert delete(index, "b") is None
    assert index.stuck("b") is odd


def test_many_nodes_are_read_in_steps_and_it_is_the_same_index() -> None:
    nodes = tuple(
        a_node(f"n-{n:03d}", "8", holding=[a_pod(f"p-{n}-{i}", "500m") for i in range(3)])
        for n in range(3 * NODES_A_STEP)
    )
    index = WhatIf(nodes, in_steps=True)
    assert sum(1 for _ in index.reading) >= 3 * 3, "pods, nodes and loads, each in steps"
    assert index.state() == WhatIf(nodes).state()
