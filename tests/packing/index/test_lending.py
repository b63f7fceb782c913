"""A packing on a copy of the index that is kept: the plan of one that reads the nodes anew."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterator
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derived
from tenure.packing import asking as asking_module
from tenure.packing import attempt as attempt_module
from tenure.packing.demand.problem import Problem
from tenure.packing.index.comparing import state, teach
from tenure.packing.index.keeper import Keeper
from tenure.packing.index.kept import KeptIndex
from tenure.packing.pack import pack, packing
from tests.packing.build import a_node, a_pod, a_pool
from tests.packing.demand.test_topology import WEB, avoiding, spread
from tests.packing.mixes import TYPES, a_mix


def questions(seed: int, count: int = 4) -> Iterator[Problem]:
    """Clusters of random nodes, one after the other, with one index; pods that wait, and pods that move."""
    random, derived = Random(seed), Derived()
    for number in range(count):
        mix = a_mix(seed * 31 + number)
        nodes, pods = list(mix.nodes), list(mix.pods)
        if nodes and random.random() < 0.5:
            place = random.randrange(len(nodes))
            node = nodes[place]
            there = tuple(_on(node.name, pod) for pod in node.pods)
            closed = random.random() < 0.8
            nodes[place] = msgspec.structs.replace(node, closed=closed, pods=there)
            pods += [pod for pod in there if random.random() < 0.8]
        names = [*(node.name for node in nodes), "gone"]
        yield msgspec.structs.replace(
            mix,
            pods=tuple(pods),
            nodes=tuple(nodes),
            all_nodes=True,
            derived=derived,
            nominated={pod.uid: random.choice(names) for pod in pods if random.random() < 0.1},
            no_claim=frozenset(pod.uid for pod in pods if random.random() < 0.05),
            apart=frozenset(pod.uid for pod in pods if random.random() < 0.05),
        )


def _on(node: str, pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def read_anew(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, all_nodes=False)


def assert_is_as_built_anew(index: KeptIndex) -> None:
    fresh = KeptIndex(keys=index.keys, daemons=index.daemons, namespaces=index.namespaces)
    fresh.apply(index.given)
    teach(fresh, index)
    assert state(index) == state(fresh)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**48))
def test_the_plan_is_that_of_nodes_that_are_read_anew(seed: int) -> None:
    for problem in questions(seed):
        assert pack(problem) == pack(read_anew(problem))
    keeper: Keeper | None = problem.derived.lasting.get(Keeper)
    if keeper is not None:
        assert not keeper.rebuilds["Failure"], keeper.error
        if keeper.index is not None:
            assert_is_as_built_anew(keeper.index)


def calls(problem: Problem) -> int:
    with cProfile.Profile() as profile:
        assert pack(problem).claims
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("pods", [1, 600])
def test_a_plan_for_new_nodes_reads_no_node_twice(pods: int) -> None:
    """Five times as many nodes: less than four calls more for each, where reading it takes a hundred."""
    counted = []
    for count in (100, 500):
        nodes = tuple(
            a_node(f"n-{n:03d}", holding=[a_pod(f"on-{n}", labels=WEB, **avoiding())])
            for n in range(count)
        )
        problem = Problem(
            pods=tuple(a_pod(f"new-{n}", "8", labels=WEB, **spread(ZONE)) for n in range(pods)),
            nodes=nodes,
            all_nodes=True,
            templates=(a_pool("first", TYPES),),
            derived=Derived(),
        )
        pack(problem)
        counted.append(calls(problem))
    assert counted[1] - counted[0] < 4 * 400


def test_groups_that_running_pods_avoid_are_no_reason_to_read_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster has hundreds of Deployments whose pods avoid each other."""
    monkeypatch.setattr(asking_module, "GROUPS_MAX", 3)
    nodes = tuple(
        a_node(
            f"n-{n:02d}",
            holding=[a_pod(f"on-{n}", labels={"app": f"a{n}"}, **avoiding({"app": f"a{n}"}))],
        )
        for n in range(20)
    )
    problem = Problem(
        pods=(a_pod("new", "8"),),
        nodes=nodes,
        all_nodes=True,
        templates=(a_pool("first", TYPES),),
        derived=Derived(),
    )
    monkeypatch.delattr(attempt_module, "reading_nodes")
    assert len(pack(problem).claims) == 1


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**48))
def test_plans_that_are_made_in_turns_are_the_same(seed: int) -> None:
    """Each has its copy: what one plans is not seen by the other."""
    random, under_way, plans = Random(seed), {}, {}
    asked = dict(enumerate(questions(seed, count=3)))
    under_way = {number: packing(problem) for number, problem in asked.items()}
    while under_way:
        number = random.choice(sorted(under_way))
        try:
            next(under_way[number])
        except StopIteration as end:
            plans[number] = end.value
            del under_way[number]
    assert plans == {number: pack(read_anew(problem)) for number, problem in asked.items()}
