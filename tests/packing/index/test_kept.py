"""The index that is kept: whatever happens, it equals one that is built anew."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tenure.model.api.names import HOSTNAME
from tenure.model.api.pod import Pod
from tenure.packing.demand.problem import Problem
from tenure.packing.existing import placing_on_existing
from tenure.packing.index import keeper as keeper_module
from tenure.packing.index import kept as kept_module
from tenure.packing.index.comparing import state, teach
from tenure.packing.index.keeper import Keeper
from tenure.packing.index.kept import CHANGES_A_STEP, KeptIndex
from tenure.packing.pack import pack
from tests.packing.build import a_daemon, a_node, a_pod
from tests.packing.demand.test_topology import WEB, avoiding, spread
from tests.packing.index.clusters import Cluster, placed_on_existing

seeds = st.integers(0, 2**48)
STEPS = ("node_comes", "node_goes", "node_changes", "pod_comes", "pod_goes", "pod_terminates")


def keeper_of(cluster: Cluster) -> Keeper:
    keeper: Keeper = cluster.derived.lasting[Keeper]
    return keeper


def kept_in(cluster: Cluster) -> KeptIndex:
    index = keeper_of(cluster).index
    assert index is not None
    return index


def rebuilt(index: KeptIndex) -> KeptIndex:
    fresh = KeptIndex(keys=index.keys, daemons=index.daemons, namespaces=index.namespaces)
    fresh.apply(index.given)
    teach(fresh, index)
    return fresh


def assert_as_a_whole_packing_says(problem: Problem) -> bool:
    """Whether the index had an answer: then it is that of the packing."""
    found = placed_on_existing(problem)
    if found is not None:
        assert found == placed_without_index(problem)
    return found is not None


def placed_without_index(problem: Problem) -> Mapping[str, str]:
    whole = pack(msgspec.structs.replace(problem, all_nodes=False))
    assert not whole.claims
    assert not whole.unplaced
    return whole.placed


class KeptOverTurns(RuleBasedStateMachine):
    """Changes and questions in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(0)

    @initialize(seed=seeds, preferences=st.booleans(), daemon=st.booleans())
    def begin(self, seed: int, preferences: bool, daemon: bool) -> None:
        self.cluster = Cluster(seed, preferences=preferences)
        self.cluster.daemons = (a_daemon("agent", "100m", "64Mi"),) if daemon else ()

    @rule(steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6))
    def change(self, steps: list[str]) -> None:
        for step in steps:
            getattr(self.cluster, step)()

    @rule(moving=st.booleans())
    def ask(self, moving: bool) -> None:
        cluster = self.cluster
        assert_as_a_whole_packing_says(
            cluster.where_its_pods_go() if moving else cluster.where_new_pods_go()
        )

    @rule(cpu=st.sampled_from(["100m", "200m"]))
    def daemon_changes(self, cpu: str) -> None:
        self.cluster.daemons = (a_daemon("agent", cpu, "64Mi"),)

    @precondition(lambda self: Keeper in self.cluster.derived.lasting)
    @invariant()
    def equals_one_that_is_built_anew(self) -> None:
        """Also after questions: what they put onto nodes was taken back."""
        keeper = keeper_of(self.cluster)
        assert not keeper.rebuilds["Failure"]
        if keeper.index is not None:
            assert state(keeper.index) == state(rebuilt(keeper.index))


KeptOverTurns.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestKeptOverTurns = KeptOverTurns.TestCase


@pytest.mark.parametrize("seed", range(8))
def test_the_index_answers_what_a_packing_would(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And most of what can be answered at all."""
    monkeypatch.setattr(keeper_module, "DISORDER_MIN", 6)
    random, cluster = Random(seed), Cluster(seed, nodes=8, preferences=bool(seed % 2))
    answered = 0
    for _ in range(30):
        getattr(cluster, random.choice(STEPS))()
        answered += assert_as_a_whole_packing_says(cluster.where_its_pods_go())
    assert answered >= 6
    assert state(kept_in(cluster)) == state(rebuilt(kept_in(cluster)))


@pytest.mark.parametrize("seed", range(8))
def test_questions_that_are_asked_in_turns_have_the_same_answers(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each follows the nodes of its own question, one in each step, while the others do so, too."""
    monkeypatch.setattr(kept_module, "CHANGES_A_STEP", 1)
    random, cluster = Random(seed), Cluster(seed, nodes=8)
    answered = 0
    for _ in range(10):
        asked = []
        for _ in range(3):
            for _ in range(4):
                getattr(cluster, random.choice(STEPS))()
            asked.append(cluster.where_its_pods_go())
        under_way = {number: placing_on_existing(one) for number, one in enumerate(asked)}
        answers = {}
        while under_way:
            number = random.choice(list(under_way))
            try:
                next(under_way[number])
            except StopIteration as end:
                answers[number] = end.value
                del under_way[number]
        for number, placed in answers.items():
            if placed is not None:
                answered += 1
                assert placed == placed_without_index(asked[number])
    assert answered >= 2
    assert not keeper_of(cluster).rebuilds["Failure"]
    assert state(kept_in(cluster)) == state(rebuilt(kept_in(cluster)))


def test_an_index_of_very_many_nodes_is_built_in_steps() -> None:
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {f"n-{n:03d}": a_node(f"n-{n:03d}") for n in range(3 * CHANGES_A_STEP)}
    problem = cluster.problem((a_pod("new"),))
    seen = [len(kept_in(cluster)) for _ in placing_on_existing(problem)]
    assert seen == [CHANGES_A_STEP, 2 * CHANGES_A_STEP, 3 * CHANGES_A_STEP]
    assert placed_on_existing(problem) == {"new": "n-000"}


def test_what_was_read_before_a_question_was_given_up_is_not_read_again() -> None:
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {f"n-{n:03d}": a_node(f"n-{n:03d}") for n in range(2 * CHANGES_A_STEP)}
    question = placing_on_existing(cluster.problem((a_pod("new"),)))
    next(question)
    question.close()
    assert placed_on_existing(cluster.problem((a_pod("new"),))) == {"new": "n-000"}
    assert kept_in(cluster).changes == 2 * CHANGES_A_STEP
    assert not keeper_of(cluster).rebuilds


def test_a_question_leaves_nothing_behind() -> None:
    cluster = Cluster(7, nodes=10)
    problems = [cluster.where_its_pods_go() for _ in range(20)]
    for problem in filter(lambda each: each.pods, problems):
        placed_on_existing(problem)  # What it is about is learned.
        before = state(kept_in(cluster))
        placed_on_existing(problem)
        assert state(kept_in(cluster)) == before


def test_only_nodes_that_are_other_objects_are_read() -> None:
    cluster = Cluster(3, nodes=12)
    pod = a_pod("new")
    placed_on_existing(cluster.problem((pod,)))
    index = kept_in(cluster)
    before = index.changes
    cluster.pod_comes()
    placed_on_existing(cluster.problem((pod,)))
    assert kept_in(cluster) is index
    assert index.changes - before == 1


def test_a_node_that_comes_late_has_its_place_in_the_order() -> None:
    """First fit is by name, whichever node came first."""
    index = KeptIndex()
    late, first, last = a_node("b"), a_node("a"), a_node("c", initialized=False)
    index.apply((first, last))
    index.apply((first, last, late))
    assert index.nodes.in_order() == ["a", "b", "c"]
    assert index.nodes.disorder == 1
    index.apply((late, last))
    assert index.nodes.in_order() == ["b", "c"]


def test_groups_are_counted_when_a_question_is_first_about_them() -> None:
    nodes = [
        a_node(f"n-{n}", holding=[a_pod(f"w{n}", labels=WEB)], labels={HOSTNAME: f"n-{n}"})
        for n in range(3)
    ]
    cluster = Cluster(0, nodes=0)
    cluster.nodes = {node.name: node for node in (*nodes, a_node("n-9"))}
    assert placed_on_existing(cluster.problem((a_pod("plain"),))) == {"plain": "n-0"}
    alone = a_pod("alone", labels=WEB, **avoiding())
    assert placed_on_existing(cluster.problem((alone,))) == {"alone": "n-9"}
    level = a_pod("level", labels=WEB, **spread(HOSTNAME))
    assert placed_on_existing(cluster.problem((level,))) == {"level": "n-9"}


@pytest.mark.parametrize("moving", [False, True])
def test_pods_that_follow_others_onto_a_closed_node_are_left_to_the_packing(moving: bool) -> None:
    """Whether they may go anywhere else depends on whether those others move, too."""
    own = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": WEB}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}
    old = a_pod("old", labels=WEB, nodeName="a", affinity=beside)
    cluster = Cluster(0, nodes=0)
    cluster.nodes = {"a": a_node("a", closed=True, holding=[old]), "b": a_node("b")}
    pod = old if moving else a_pod("new", labels=WEB, affinity=beside)
    assert placed_on_existing(cluster.problem((pod,))) is None
    cluster.nodes["b"] = cluster.nodes["b"].with_pod(a_pod("open", labels=WEB))
    assert placed_on_existing(cluster.problem((pod,))) == {pod.uid: "b"}


def test_after_a_failure_it_is_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(5)
    placed_on_existing(cluster.where_new_pods_go())
    cluster.pod_comes()
    with monkeypatch.context() as broken:
        broken.delattr(KeptIndex, "_read")
        assert placed_on_existing(cluster.where_new_pods_go()) is None
    assert_as_a_whole_packing_says(cluster.where_new_pods_go())
    assert keeper_of(cluster).rebuilds["Failure"] == 1
    assert state(kept_in(cluster)) == state(rebuilt(kept_in(cluster)))


def test_a_failure_that_repeats_does_not_build_it_for_every_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(5)
    placed_on_existing(cluster.where_new_pods_go())
    cluster.pod_comes()
    with monkeypatch.context() as broken:
        broken.delattr(KeptIndex, "_read")
        for _ in range(1_000):
            assert placed_on_existing(cluster.where_new_pods_go()) is None
    keeper = keeper_of(cluster)
    assert keeper.rebuilds["Failure"] <= 10
    assert "_read" in keeper.error
    for _ in range(keeper_module.SKIPPED_MAX + 1):
        placed_on_existing(cluster.where_new_pods_go())
    assert not keeper.error, "it is asked again some time"


def test_two_nodes_of_one_name_do_not_build_it_for_every_question() -> None:
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {"a": a_node("n"), "b": a_node("n")}
    for _ in range(100):
        assert placed_on_existing(cluster.problem((a_pod("new"),))) is None
    keeper = keeper_of(cluster)
    assert keeper.rebuilds["Failure"] <= 7
    assert keeper.error == "two nodes have the same name"


def _asking_for(prefix: str, count: int) -> Pod:
    return a_pod(f"pod-{prefix}", nodeSelector={f"{prefix}-{n}": "x" for n in range(count)})


@pytest.mark.parametrize("labelled", [1, 20])
def test_questions_about_other_labels_do_not_take_turns_in_building_it(labelled: int) -> None:
    """40 labels in all, of which nodes have some."""
    cluster = Cluster(1, nodes=0)
    labels = {f"{prefix}-{n}": "x" for prefix in "ab" for n in range(labelled)}
    cluster.nodes = {"n": a_node("n", labels=labels)}
    for _ in range(5):
        for prefix in "ab":
            assert_as_a_whole_packing_says(cluster.problem((_asking_for(prefix, 20),)))
    assert keeper_of(cluster).rebuilds == {"Labels": 1}


def test_more_labels_than_it_has_room_for_are_left_to_the_packing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeper_module, "LABELS_MAX", 3)
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {"n": a_node("n", labels={f"{p}-{n}": "x" for p in "ab" for n in range(2)})}
    for _ in range(3):
        assert assert_as_a_whole_packing_says(cluster.problem((_asking_for("a", 2),)))
        assert not assert_as_a_whole_packing_says(cluster.problem((_asking_for("b", 2),)))
    assert keeper_of(cluster).rebuilds == {}


def test_a_label_that_the_first_node_brings_counts_from_then_on() -> None:
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {"a": a_node("a")}
    picky = a_pod("picky", nodeSelector={"disk": "fast"})
    placed_on_existing(cluster.problem((a_pod("plain"),)))
    assert placed_on_existing(cluster.problem((picky,))) is None
    cluster.nodes["b"] = a_node("b", labels={"disk": "fast"})
    assert placed_on_existing(cluster.problem((picky,))) == {"picky": "b"}


def test_nodes_that_plans_close_and_open_again_are_no_changes() -> None:
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {f"n-{n}": a_node(f"n-{n}") for n in range(3)}
    pod = a_pod("new")
    placed_on_existing(cluster.problem((pod,)))
    before = keeper_of(cluster).changes
    open_ = cluster.nodes["n-0"]
    for _ in range(10):
        cluster.nodes["n-0"] = msgspec.structs.replace(open_, closed=True)
        assert placed_on_existing(cluster.problem((pod,))) == {"new": "n-1"}
        cluster.nodes["n-0"] = open_
        assert placed_on_existing(cluster.problem((pod,))) == {"new": "n-0"}
    assert keeper_of(cluster).changes == before


def test_a_label_that_comes_with_another_reason_to_build_it_anew_counts() -> None:
    cluster = Cluster(1, nodes=0)
    cluster.nodes = {"a": a_node("a")}
    picky = a_pod("picky", nodeSelector={"disk": "fast"})
    placed_on_existing(cluster.problem((picky,)))
    cluster.daemons = (a_daemon("agent", "100m", "64Mi"),)
    cluster.nodes["b"] = a_node("b", labels={"disk": "fast"})
    assert placed_on_existing(cluster.problem((picky,))) == {"picky": "b"}
    assert keeper_of(cluster).rebuilds == {"DaemonSets": 1}
