"""What a pass costs where pods of very many nodes fit nowhere: counted in packings, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tenure.core.decider import Progress
from tenure.core.decision import Verdict
from tenure.core.disrupt.facts.candidates import PendingPodsFirst, PodFitsNowhere
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.reasons import Reason
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing import pack as pack_module
from tenure.packing.existing import PODS_MAX
from tenure.packing.facts import LimitReached, NoNodeFits, NoOffering
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    NOW,
    a_claim,
    a_class,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    ago,
    ahead,
    fact_of,
    types,
)
from tests.core.disrupt.test_pipeline import ANY, GRACEFUL, unhealthy_node, verdicts
from tests.snapshots import snapshot_with

REPAIR = {**GRACEFUL, "maxUnhealthy": "100%"}
SOLD_OUT = {
    ("small", zone, terms): ahead(60)
    for zone in ("zone-a", "zone-b")
    for terms in ("spot", "on-demand")
}
LARGE = {"cpu": "3", "memory": "1Gi"}
MEDIUM = {"cpu": "2", "memory": "1Gi"}


def packings(ask: Callable[[], list[Verdict]]) -> tuple[int, list[Verdict]]:
    """How many whole packings are made for the answer."""
    whole, made = pack_module._packed.__code__, 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal made
        made += event == "call" and frame.f_code is whole

    sys.setprofile(note)
    try:
        found = ask()
    finally:
        sys.setprofile(None)
    return made, found


def a_fleet(count: int, **spec: Any) -> list[Any]:
    """So many unhealthy nodes, each with a pod that fills it."""
    fleet: list[Any] = []
    for i in range(count):
        pod = a_pod(f"p{i}", node=f"node-s{i}", requests=LARGE, spec=spec)
        fleet += [a_claim(f"s{i}"), unhealthy_node(f"s{i}"), pod]
    return fleet


def refused(found: list[Verdict]) -> list[Verdict]:
    return [
        one
        for one in found
        if one.reason is Reason.DISRUPTION_BLOCKED and one.subject.kind == "NodeClaim"
    ]


@pytest.mark.parametrize(
    ("limits", "spec", "known", "cause"),
    [
        ({}, {"node_selector": {"no": "such"}}, {}, None),
        ({}, {}, {"dry_offerings": SOLD_OUT}, NoOffering),
        ({"cpu": "4"}, {}, {}, LimitReached),
    ],
    ids=["a label that no node has", "sold out", "limits"],
)
def test_very_many_nodes_whose_pods_fit_nowhere_cost_as_much_as_one(
    limits: dict[str, str], spec: dict[str, Any], known: dict[str, Any], cause: type | None
) -> None:
    pool = a_pool(disruption=ANY, repair=REPAIR, limits=limits)
    few, _ = packings(lambda: verdicts(pool, *a_fleet(2, **spec), **known))
    many, found = packings(lambda: verdicts(pool, *a_fleet(40, **spec), **known))
    assert many == few
    told = refused(found)
    assert len(told) == 40, "each is told at once"
    why = fact_of(told[0], PodFitsNowhere)
    assert any(isinstance(one, NoNodeFits) and one.nodes == 39 for one in why.why)
    causes = [getattr(one, "cause", None) for one in why.why]
    assert cause is None or any(isinstance(one, cause) for one in causes)


def test_pods_that_are_pending_for_long_are_not_packed_again_for_each_node() -> None:
    """They fit nowhere either: each plan would ask where they go first."""
    pool = a_pool(disruption=ANY, repair=REPAIR)
    pending = [
        a_pending_pod(f"w{i}", requests=LARGE, creation_timestamp=ago(600)) for i in range(3)
    ]
    made = [
        packings(lambda n=n: verdicts(pool, *pending, *a_fleet(n), dry_offerings=SOLD_OUT))[0]  # type: ignore[misc]
        for n in (2, 40)
    ]
    assert made[0] == made[1]


def test_very_many_pods_that_need_new_nodes_are_packed_once_for_all_candidates() -> None:
    """They get their nodes first, whichever node goes."""
    pool = a_pool(disruption=ANY, repair=REPAIR)
    pending = [a_pending_pod(f"w{i}") for i in range(PODS_MAX + 1)]
    made, told = [], []
    for count in (2, 40):
        fleet = a_fleet(count)
        some, found = packings(lambda fleet=fleet: verdicts(pool, *pending, *fleet))  # type: ignore[misc]
        made.append(some)
        told.append(sum(PendingPodsFirst() in one.facts for one in found))
    assert made[0] == made[1]
    assert told == [2 * 2, 2 * 40], "each is told at once, claim and Node"


def test_between_two_steps_of_a_pass_at_most_one_candidate_is_planned() -> None:
    """So a pass over very many can be suspended."""
    known = Observations(
        repair_statements=kwok_statements(), instance_types=types(), dry_offerings=SOLD_OUT
    )
    pool = a_pool(disruption=ANY, repair=REPAIR)
    snapshot = snapshot_with(a_class(), pool, *a_fleet(5), observations=known)
    decider = DisruptionDecider()
    view = decider.view(snapshot, "cluster")
    assert view is not None
    *steps, last = decider.deciding(view, Settings(), NOW, Progress())
    assert last == decider.decide(view, Settings(), NOW)
    assert len(steps) >= len(last) + 5, "one step for each verdict, and for the gates of each"


def test_where_very_many_pods_wait_to_pack_them_first_takes_steps_as_well() -> None:
    """Each of another size: they get their nodes before pods of a candidate do, and other keys do not wait for that."""
    known = Observations(repair_statements=kwok_statements(), instance_types=types())
    snapshots = (
        snapshot_with(
            a_class(),
            a_pool(disruption=ANY, repair=REPAIR),
            *a_fleet(1),
            *(a_pending_pod(f"w{i}", requests={"cpu": f"{100 + i}m"}) for i in range(pods)),
            observations=known,
        )
        for pods in (1, 1000)
    )
    taken = []
    for snapshot in snapshots:
        decider = DisruptionDecider()
        view = decider.view(snapshot, "cluster")
        assert view is not None
        *steps, last = decider.deciding(view, Settings(), NOW, Progress())
        assert any(isinstance(fact, PendingPodsFirst) for one in last or () for fact in one.facts)
        taken.append(len(steps))
    assert taken[1] > taken[0] + 30


def in_each_others_way(count: int, *without: str) -> Snapshot:
    """Two pods on each unhealthy node, and one node with room for either of them: each node takes a packing."""
    known = Observations(
        repair_statements=kwok_statements(), instance_types=types(), dry_offerings=SOLD_OUT
    )
    pool = a_pool(disruption=ANY, repair=REPAIR)
    others = [a_pod(f"q{i}", node=f"node-s{i}", requests=MEDIUM) for i in range(count)]
    others = [pod for pod in others if pod.name not in without]
    room = [a_claim("room"), a_node("room")]
    return snapshot_with(a_class(), pool, *a_fleet(count), *others, *room, observations=known)


def test_begun_anew_a_pass_plans_only_for_those_that_were_not_refused() -> None:
    """So it ends, however often the cluster changes before."""
    decider, progress = DisruptionDecider(), Progress()
    view = decider.view(in_each_others_way(6), "cluster")
    assert view is not None
    whole, found = packings(lambda: list(decider.decide(view, Settings(), NOW)))
    assert (whole, len(refused(found))) == (6, 6)
    steps = decider.deciding(view, Settings(), NOW, progress)
    while len(progress.refused) < 4:
        next(steps)
    progress.begin_anew()

    def again() -> list[Verdict]:
        *_, last = decider.deciding(view, Settings(), NOW, progress)
        return list(last or ())

    rest, found_again = packings(again)
    assert (rest, progress.remembers) == (2, True)
    assert found_again == found


def test_a_refusal_is_not_remembered_of_a_node_with_other_pods() -> None:
    decider, progress = DisruptionDecider(), Progress()
    view = decider.view(in_each_others_way(3), "cluster")
    assert view is not None
    assert list(decider.deciding(view, Settings(), NOW, progress))
    view = decider.view(in_each_others_way(3, "q1"), "cluster")
    assert view is not None
    progress.begin_anew()
    assert list(decider.deciding(view, Settings(), NOW, progress))
    told = {one.subject.name: one.reason for one in progress.said}
    assert told["s1"] is Reason.REPLACING, "what is left of them fits"
    assert told["s0"] is Reason.DISRUPTION_WAITS, "for that one"
