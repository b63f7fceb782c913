"""What holds of every plan: the price rules, where pods fit, and that nothing is left behind."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.consolidation import fleets
from benchmarks.scheduling import workloads
from benchmarks.scheduling.bound import price_bound
from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.packing.consolidate.question import Move, Question
from tenure.packing.consolidate.search import Search
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_pod, a_pool, a_type
from tests.packing.consolidate.build import ask, on, plan, unbound
from tests.packing.demand.test_topology import WEB, avoiding, spread
from tests.packing.judges.verify import verify

RULES: list[dict[str, Any]] = [{}, {}, {}, spread(ZONE), spread(HOSTNAME, 2), avoiding()]


def _dearer_in_b(kind: InstanceType) -> InstanceType:
    """By a tenth: so the worst launch price is not the cheapest."""
    offerings = (
        msgspec.structs.replace(one, price=one.price * 11 // 10) if one.zone == "b" else one
        for one in kind.offerings
    )
    return msgspec.structs.replace(kind, offerings=tuple(offerings))


TYPES = tuple(
    map(
        _dearer_in_b,
        (*FAMILY, *(a_type(f"s-{cpu:02d}", cpu, spot=cpu * 0.02) for cpu in (4, 8, 16))),
    )
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    random = Random(draw(st.integers(0, 2**32)))
    there = []
    for number in range(draw(st.integers(2, 8))):
        kind = random.choice(TYPES[1:])
        free = kind.capacity["cpu"] // 10**9
        pods: list[Pod] = []
        while free > 0 and random.random() < 0.7:
            rules = random.choice(RULES)
            cpu = random.choice([c for c in (1, 2, 4) if c <= free])
            labels = WEB if rules or random.random() < 0.2 else {}
            name = f"{number}-{len(pods)}"
            pods.append(a_pod(name, str(cpu), labels=labels, nodeName=f"n-{number}", **rules))
            free -= cpu
        term = random.choice(sorted({one.capacity_type for one in kind.offerings}))
        zone = random.choice("abc")
        there.append(on(f"n-{number}", kind.name, *pods, zone=zone, term=term, types=TYPES))
    limits = random.choice([None, None, {"cpu": "20"}])
    return ask(
        *there,
        pools=[a_pool(types=TYPES, limits=limits)],
        keep=[f"n-{n}" for n in range(len(there)) if random.random() < 0.2],
        spot_to_spot=random.random() < 0.5,
    )


@given(questions())
@settings(max_examples=80, deadline=None)
def test_a_try_that_comes_to_nothing_leaves_nothing_behind(question: Question) -> None:
    assert_nothing_is_left_behind(question)


def assert_nothing_is_left_behind(question: Question) -> None:
    search = Search(question)
    for _ in search.reading:
        pass
    before = search.index.state()
    for move in search.moves():
        after = search.index.state()
        if move is None:  # Only rules that were asked for the first time may be there now.
            rules = {rule: after["rules"].get(rule) for rule in before["rules"]}
            assert {**after, "rules": rules} == before
        before = after


@given(questions())
@settings(max_examples=80, deadline=None)
def test_no_move_costs_more_whichever_types_are_launched(question: Question) -> None:
    prices = {
        (kind.name, one.zone, one.capacity_type): one.price
        for kind in TYPES
        for one in kind.offerings
    }
    gone: set[str] = set()
    for move in plan(question):
        assert not gone & set(move.names), "a node goes once"
        gone |= set(move.names)
        dearest = 0
        for claim in move.claims:
            (term,) = claim.requirements["karpenter.sh/capacity-type"].listed
            zones = claim.requirements.allowed(ZONE)
            dearest += max(
                price
                for (name, zone, other), price in prices.items()
                if name in claim.instance_types and zones.has(zone) and other == term
            )
        assert dearest < move.price
        assert dearest == move.worst
        assert move.saves >= move.saves_at_least > 0


@given(questions())
@settings(max_examples=80, deadline=None)
def test_pods_go_where_the_scheduler_would_bind_them(question: Question) -> None:
    nodes, templates = {node.name: node for node in question.nodes}, question.templates
    for move in plan(question):
        pods = tuple(unbound(pod) for name in move.names for pod in nodes.pop(name).pods)
        assert {pod.uid for pod in pods} == {*move.placed, *_claimed(move)}
        templates = tuple(_freed(each, move) for each in templates)
        problem = Problem(pods=pods, nodes=tuple(nodes.values()), templates=templates)
        packing = Packing(placed=move.placed, claims=move.claims, unplaced={})
        assert verify(problem, packing) == []
        if move.claims:
            break  # The judge does not know nodes that are only planned.
        nodes = _after(nodes, move, {pod.uid: pod for pod in pods})


@given(questions())
@settings(max_examples=80, deadline=None)
def test_every_candidate_goes_or_is_told_why_not(question: Question) -> None:
    search = Search(question)
    gone = {name for move in search.moves() if move is not None for name in move.names}
    assert not gone & search.why.keys()
    assert gone | search.why.keys() == {one.name for one in question.candidates}


def _freed(template: PoolTemplate, move: Move) -> PoolTemplate:
    """What the candidates have is free again under the limits."""
    if template.remaining is None:
        return template
    going = [one.capacity for one in move.candidates if one.pool == template.pool]
    left = {
        name: amount + sum(each.get(name, 0) for each in going)
        for name, amount in template.remaining.items()
    }
    return msgspec.structs.replace(template, remaining=left)


def _claimed(move: Move) -> set[str]:
    return {uid for claim in move.claims for uid in claim.pods}


def _after(
    nodes: dict[str, ExistingNode], move: Move, pods: dict[str, Any]
) -> dict[str, ExistingNode]:
    after = dict(nodes)
    for uid, name in move.placed.items():
        after[name] = after[name].with_pod(pods[uid])
    return after


def test_a_plan_comes_close_to_the_bound() -> None:
    types = fleets.one_price_per_cpu()
    pods = workloads.easy(4_000)
    question = fleets.half_empty(types, 200, pods)
    price = sum(one.price for one in question.candidates) - sum(m.saves for m in plan(question))
    assert price <= 1.15 * price_bound(pods, types)


def test_the_order_of_the_question_does_not_matter() -> None:
    question = fleets.half_empty(fleets.one_price_per_cpu(), 60, workloads.easy(1_200))
    shuffled = Question(
        nodes=question.nodes[::-1],
        candidates=question.candidates[::-1],
        templates=question.templates,
    )
    names = [move.names for move in plan(question)]
    assert names
    assert [move.names for move in plan(shuffled)] == names
