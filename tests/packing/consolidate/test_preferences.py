"""Preferences of pods that move: kept while a new node could keep them, as in a packing."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.api.pod import Pod
from tenure.packing.consolidate.facts import PreferenceKept
from tenure.packing.consolidate.question import Move, Question
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_pod, a_pool, pods
from tests.packing.consolidate.build import ask, on, plan, told, why_not
from tests.packing.consolidate.test_properties import assert_nothing_is_left_behind
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.test_constraints import DB, preferring, term, zone_in
from tests.packing.test_relaxing import SOFT, all_of

APART = preferring("podAntiAffinity", (100, term(HOSTNAME, WEB)))
ANYWAY = spread(HOSTNAME, whenUnsatisfiable="ScheduleAnyway")
#: By what is preferred: how it is called.
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "apart": (APART, "preferred anti-affinity over kubernetes.io/hostname"),
    "spread": (ANYWAY, "spread over kubernetes.io/hostname (ScheduleAnyway)"),
    "zone": (preferring("nodeAffinity", (1, zone_in("b"))), "preferred node affinity"),
}


def _two(rules: dict[str, Any], **more: Any) -> Question:
    """Two nodes with a web pod each: the pod of either would fit onto the other."""
    there = [on(n, "m-02", a_pod(f"web-{n}", labels=WEB, nodeName=n, **rules)) for n in "ab"]
    return ask(*there, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_a_preference_that_a_new_node_could_keep_is_kept(kind: str) -> None:
    rules, called = KINDS[kind]
    question = _two(rules)
    assert plan(question) == []
    assert why_not(question, "b") == PreferenceKept("default/web-b", called)


@pytest.mark.parametrize("kind", KINDS)
def test_preferences_may_be_ignored(kind: str) -> None:
    assert told(plan(_two(KINDS[kind][0], preferences=False))) == [(["b"], [])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pools", [(), (a_pool(limits={"cpu": "-2"}),)])
def test_a_preference_is_given_up_where_no_new_node_can_be_had(kind: str, pools: Any) -> None:
    assert told(plan(_two(KINDS[kind][0], pools=pools))) == [(["b"], [])]


def test_what_the_node_itself_has_is_free_for_a_new_one() -> None:
    """As when the move is checked: else it would be rejected then."""
    question = _two(APART, pools=[a_pool(limits={"cpu": "0"})])
    assert plan(question) == []
    assert isinstance(why_not(question, "b"), PreferenceKept)


def test_a_preference_that_another_node_keeps_is_no_reason_to_stay() -> None:
    there = [on(n, "m-02", a_pod(f"web-{n}", labels=WEB, **APART)) for n in "ab"]
    moves = plan(ask(*there, on("free", "m-02"), keep=["free", "a"]))
    assert [move.placed for move in moves] == [{"web-b": "free"}]


def test_soft_taints_of_new_nodes_count_as_a_preference() -> None:
    """No new node is without the taint, so the pods give it up, and fit on the other node."""
    question = _two({}, pools=[a_pool(taints=(SOFT,))])
    assert told(plan(question)) == [(["b"], [])]


def test_nodes_without_preferences_find_the_room_that_no_preference_takes() -> None:
    """Else the plan would fill it with moves that are never made."""
    web = [on(f"w-{n}", "m-02", a_pod(f"web-{n}", labels=WEB, **APART)) for n in range(4)]
    moves = plan(ask(*web, on("plain", "m-08", *pods(4, "plain", cpu="1"))))
    assert told(moves) == [(["plain"], [])]


WISHES: list[dict[str, Any]] = [
    {},
    {},
    APART,
    ANYWAY,
    spread(HOSTNAME, 2, whenUnsatisfiable="ScheduleAnyway"),
    preferring("nodeAffinity", (2, zone_in("b")), (1, zone_in("a"))),
    all_of(APART, preferring("nodeAffinity", (1, zone_in("c")))),
]
#: A packing counts pods that move in their old zone until it is their turn; the search does not.
OVER_ZONES: list[dict[str, Any]] = [
    spread(ZONE, whenUnsatisfiable="ScheduleAnyway"),
    preferring("podAffinity", (1, term(ZONE, DB))),
]


@st.composite
def questions(draw: st.DrawFn, wishes: list[dict[str, Any]]) -> Question:
    random = Random(draw(st.integers(0, 2**32)))
    there = []
    for number in range(draw(st.integers(2, 7))):
        name = f"n-{number}"
        kind = random.choice(FAMILY[1:4])
        free = kind.capacity["cpu"] // 10**9
        held: list[Pod] = []
        while free > 0 and random.random() < 0.6:
            cpu = random.choice([c for c in (1, 2) if c <= free])
            labels = random.choice([WEB, WEB, DB])
            called = f"{number}-{len(held)}"
            rules = random.choice(wishes)
            held.append(a_pod(called, str(cpu), labels=labels, nodeName=name, **rules))
            free -= cpu
        there.append(on(name, kind.name, *held, zone=random.choice("abc")))
    limits = random.choice([None, None, None, {"cpu": "2"}])
    taints = random.choice([(), (), (SOFT,)])
    return ask(*there, pools=[a_pool(limits=limits, taints=taints)])


@given(questions(WISHES))
@settings(max_examples=200, deadline=None)
def test_a_packing_launches_nothing_for_a_node_that_is_deleted(question: Question) -> None:
    """It is what checks each move before it is made."""
    nodes = {node.name: node for node in question.nodes}
    for move in plan(question):
        packing = _packed(move, nodes, question)
        assert packing.unplaced == {}
        if move.claims:
            return  # Where the others go is not known.
        assert packing.claims == (), move.names
        nodes = _after(nodes, move)


@given(questions([*WISHES, *OVER_ZONES]))
@settings(max_examples=60, deadline=None)
def test_a_try_that_comes_to_nothing_leaves_nothing_behind(question: Question) -> None:
    assert_nothing_is_left_behind(question)


def _packed(move: Move, nodes: dict[str, ExistingNode], question: Question) -> Packing:
    """As if its nodes were terminating. A packing prefers nodes by name, so these have other ones."""
    by_worth = sorted(question.candidates, key=lambda one: (one.price / one.cost, one.name))
    place = {one.name: f"{number:02d}" for number, one in enumerate(by_worth)}
    moving = tuple(pod for name in move.names for pod in nodes[name].pods)
    renamed = (
        msgspec.structs.replace(node, name=place[name], closed=name in move.names)
        for name, node in nodes.items()
    )
    problem = Problem(pods=moving, nodes=tuple(renamed), templates=_freed(move, question))
    return pack(msgspec.structs.replace(problem, preferences=True))


def _freed(move: Move, question: Question) -> tuple[PoolTemplate, ...]:
    """What its nodes have is free again under the limits."""

    def freed(template: PoolTemplate) -> PoolTemplate:
        left = template.remaining
        if left is None:
            return template
        sums = {n: v + sum(c.capacity.get(n, 0) for c in move.candidates) for n, v in left.items()}
        return msgspec.structs.replace(template, remaining=sums)

    return tuple(map(freed, question.templates))


def _after(nodes: dict[str, ExistingNode], move: Move) -> dict[str, ExistingNode]:
    pods = {pod.uid: pod for name in move.names for pod in nodes[name].pods}
    after = {name: node for name, node in nodes.items() if name not in move.names}
    for uid, name in move.placed.items():
        spec = msgspec.structs.replace(pods[uid].spec, node_name=name)
        after[name] = after[name].with_pod(msgspec.structs.replace(pods[uid], spec=spec))
    return after
