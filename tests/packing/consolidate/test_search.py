"""Which moves are found, and which are not."""

from __future__ import annotations

import pytest

from tenure.model.api.names import ZONE
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.model.values.fact import Fact
from tenure.packing.consolidate.facts import (
    NoCheaperReplacement,
    PodFitsNowhereElse,
    PodRequestsUnknown,
    PodsFitNoOneNode,
    SavesTooLittle,
    ScoreTooLow,
    SpotToSpotDisabled,
    TooFewSpotTypes,
    WellUsed,
)
from tenure.packing.consolidate.question import PoolTotals, Question
from tenure.packing.facts import LabelUndefined, LimitReached, Refusal
from tests.packing.build import a_pod, a_pool, a_type, pods, uncounted
from tests.packing.consolidate.build import ask, on, plan, told, why_not
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.test_reserved import RESERVED, reserved


def test_a_node_goes_whose_pods_fit_elsewhere() -> None:
    moves = plan(ask(on("a", "m-08", *pods(6, "a")), on("b", "m-08", *pods(2, "b"))))
    assert told(moves) == [(["b"], [])]
    (move,) = moves
    assert move.placed == {"b-000": "a", "b-001": "a"}
    assert (move.saves, move.saves_at_least) == (400_000, 400_000)
    assert (move.pods, move.cost) == (2, 3.0)


def test_what_saves_most_per_disruption_goes_first() -> None:
    moves = plan(
        ask(
            on("a", "m-16", *pods(3, "a")),
            on("b", "m-08", *pods(3, "b")),
            on("c", "m-08", *pods(1, "c")),
            on("keeper", "m-16", *pods(9, "k")),
            keep=["keeper"],
        )
    )
    # Prices of 16, 8 and 8 cpus, for costs of 4, 4 and 2; of the same ratio, by name backwards.
    assert told(moves) == [(["c"], []), (["a"], []), (["b"], [])]


def test_a_node_is_replaced_by_a_cheaper_one() -> None:
    moves = plan(ask(on("a", "m-32", *pods(3))))
    assert told(moves) == [(["a"], ["m-04"])]
    assert moves[0].saves == 1_400_000
    # Those that are not cheaper are not listed.
    assert moves[0].claims[0].instance_types == ("m-04", "m-08", "m-16")


def test_several_nodes_are_replaced_by_one() -> None:
    moves = plan(ask(*(on(f"n{n}", "m-08", *pods(1, f"p{n}", cpu="5")) for n in range(3))))
    assert told(moves) == [(["n0", "n1", "n2"], ["m-16"])]
    assert moves[0].saves == moves[0].saves_at_least == 400_000


def test_one_that_is_as_good_as_its_replacement_stays() -> None:
    """Four would become one of 16 cpus and one of 8, as each of them is."""
    moves = plan(ask(*(on(f"n{n}", "m-08", *pods(1, f"p{n}", cpu="5")) for n in range(4))))
    assert told(moves) == [(["n0", "n1", "n2"], ["m-16"])]


def test_several_nodes_are_replaced_by_several() -> None:
    """Each pod is on a node of its own; two would share a larger one, and not three."""
    types = [a_type("x-10", 10), a_type("x-20", 20, price=0.9)]
    there = [on(f"n{n}", "x-10", *pods(1, f"p{n}", cpu="9"), types=types) for n in range(4)]
    moves = plan(ask(*there, pools=[a_pool(types=types)]))
    assert told(moves) == [(["n0", "n1", "n2", "n3"], ["x-20", "x-20"])]
    assert moves[0].saves == moves[0].saves_at_least == 200_000


def test_nothing_is_moved_for_the_same_price() -> None:
    question = ask(on("a", "m-08", *pods(8)), on("b", "m-04", *pods(3, "b")))
    assert plan(question) == []
    assert why_not(question, "b") == NoCheaperReplacement(200_000, 200_000, ("m-04",))


def test_a_node_that_is_full_is_not_replaced() -> None:
    question = ask(on("a", "m-32", *pods(32)))
    assert plan(question) == []
    assert why_not(question, "a") == WellUsed(1_600_000, 1_600_000)


def test_a_pod_that_no_pool_takes_keeps_its_node() -> None:
    pod = a_pod("p", nodeSelector={"example.com/team": "red"})
    question = ask(on("a", "m-08", pod))
    assert plan(question) == []
    (why,) = uncounted(_nowhere(question, "default/p"))
    assert why == Refusal(
        "general", LabelUndefined("example.com/team In [red]", "example.com/team")
    )


def _nowhere(question: Question, pod: str) -> tuple[Fact, ...]:
    why = why_not(question, "a")
    assert isinstance(why, PodFitsNowhereElse)
    assert why.pod == pod
    return why.why


def test_limits_are_named_where_they_keep_a_node() -> None:
    """The limit was lowered since the node was launched."""
    question = ask(on("a", "m-32", *pods(3)), pools=[a_pool(limits={"cpu": "-31"})])
    assert plan(question) == []
    (why,) = _nowhere(question, "default/p-000")
    assert isinstance(why, Refusal)
    assert why.cause == LimitReached("cpu", "1", "m-02", "2")


def test_pods_that_fit_only_several_new_nodes_are_told() -> None:
    """What there is no node of 32 cpus for: they are sold out."""
    types = [a_type("m-16", 16), a_type("m-32", 32, price=1.3, available=False)]
    question = ask(on("a", "m-32", *pods(20), types=types), pools=[a_pool(types=types)])
    assert plan(question) == []
    assert why_not(question, "a") == PodsFitNoOneNode(20)


@pytest.mark.parametrize(("price", "launched"), [(0.40, ["m-02", "m-04"]), (0.23, [])])
def test_one_node_is_replaced_by_two_where_that_saves_more_than_the_fee(
    price: float, launched: list[str]
) -> None:
    """The only type that has room for all three pods is dearer than the node: two smaller ones are not."""
    types = [a_type("m-02", 2, price=0.05), a_type("m-04", 4, price=0.10)]
    types += [a_type("m-16", 16, price=0.8), a_type("old", 8, price=price, available=False)]
    question = ask(on("a", "old", *pods(3, cpu="2"), types=types), pools=[a_pool(types=types)])
    moves = plan(question)
    assert [claim.instance_type for move in moves for claim in move.claims] == launched


def test_a_destination_that_is_closed_is_left_alone() -> None:
    there = on("a", "m-08", *pods(6, "a"), closed=True), on("b", "m-02", *pods(1, "b"))
    assert plan(ask(*there, keep=["a"])) == []
    there = on("a", "m-08", *pods(6, "a")), on("b", "m-02", *pods(1, "b"))
    assert told(plan(ask(*there, keep=["a"]))) == [(["b"], [])]


def test_a_node_with_a_pod_that_cannot_be_read_stays() -> None:
    pod = a_pod("bad", "1", affinity=_unreadable())
    question = ask(on("a", "m-08"), on("b", "m-08", pod), keep=["a"])
    assert plan(question) == []
    assert why_not(question, "b") == PodRequestsUnknown("default/bad")


def _unreadable() -> dict[str, object]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "Near", "values": ["a"]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_budgets_bound_a_move() -> None:
    three = [on(f"n{n}", "m-08", *pods(1, f"p{n}", cpu="5")) for n in range(3)]
    assert plan(ask(*three, allowed={"general": 2})) == []


def test_an_empty_node_gets_pods_after_all_others() -> None:
    there = on("a", "m-04"), on("b", "m-08", *pods(6, "b")), on("c", "m-02", *pods(1, "c"))
    question = ask(*there, keep=["a", "b"], last=("a",))
    assert [move.placed for move in plan(question)] == [{"c-000": "b"}]
    question = ask(*there[::2], keep=["a"], last=("a",))
    assert [move.placed for move in plan(question)] == [{"c-000": "a"}]


def test_a_node_whose_group_did_not_hold_is_not_replaced_with_others() -> None:
    three = [on(f"n{n}", "m-08", *pods(1, f"p{n}", cpu="5")) for n in range(3)]
    assert plan(ask(*three, alone=frozenset({"n1"}))) == []


def test_what_a_candidate_has_is_free_again_under_the_limits_of_its_pool() -> None:
    """Nothing is left of the limit while the node is there."""
    full = a_pool(limits={"cpu": "0"})
    there = on("a", "m-32", *pods(2))
    assert told(plan(ask(there, pools=[full]))) == [(["a"], ["m-02"])]
    assert plan(ask(there, pools=[full], awaited=frozenset({"general"}))) == []
    assert plan(ask(on("a", "m-32", *pods(2), pool="other"), pools=[full])) == []


@pytest.mark.parametrize(("left", "count"), [("-17", 0), ("-16", 2), ("0", 2)])
def test_limits_hold_over_all_moves(left: str, count: int) -> None:
    """A limit that was lowered: 32 cpus are there, and 16 of them are needed."""
    pinned = [a_pod(f"p{zone}", "7", nodeSelector={ZONE: zone}) for zone in "ab"]
    there = [on(f"n{n}", "m-16", pod, zone="ab"[n]) for n, pod in enumerate(pinned)]
    moves = plan(ask(*there, pools=[a_pool(limits={"cpu": left})]))
    assert [claim.instance_type for move in moves for claim in move.claims] == ["m-08"] * count


def test_zones_to_be_avoided_get_no_replacement() -> None:
    (move,) = plan(ask(on("a", "m-32", *pods(3)), avoid=frozenset({"a"})))
    zones = move.claims[0].requirements.allowed(ZONE)
    assert [zone for zone in "abc" if zones.has(zone)] == ["b", "c"]


def test_spread_pods_stay_within_their_skew() -> None:
    web = [a_pod(f"w{n}", "1", labels=WEB, **spread(ZONE)) for n in range(2)]
    there = on("a", "m-08", web[0], zone="a"), on("b", "m-32", web[1], zone="b")
    moves = plan(ask(*there))
    # Both in one zone would be a skew of 2: the replacement is in zone b, as the pod was.
    assert told(moves) == [(["b"], ["m-02"]), (["a"], ["m-02"])]
    assert [move.claims[0].zone for move in moves] == ["b", "a"]


# -- the policy of a pool ----------------------------------------------------------------------


@pytest.mark.parametrize(("cost", "count"), [(10.0, 1), (4.0, 0)])
def test_balanced_weighs_the_saving_against_what_it_disturbs(cost: float, count: int) -> None:
    """b is an eighth of the price; with a cost of 3 of 10 or of 4 in all."""
    totals = {"general": PoolTotals(price=2 * MICRO_DOLLARS, cost=cost)}
    there = on("a", "m-32", *pods(6, "a")), on("b", "m-08", *pods(2, "b"))
    question = ask(*there, keep=["a"], balanced=totals)
    assert len(plan(question)) == count
    if not count:
        assert isinstance(why_not(question, "b"), ScoreTooLow)


# -- spot --------------------------------------------------------------------------------------


def _types(count: int, spot: float = 0.01) -> list:  # type: ignore[type-arg]
    """One large type, and so many small ones."""
    small = [a_type(f"s-{n:02d}", 4, price=0.2, spot=spot) for n in range(count)]
    return [a_type("big", 32, price=1.6, spot=0.6), *small]


def test_a_replacement_of_an_on_demand_node_is_pinned_to_spot() -> None:
    types = _types(2)
    moves = plan(ask(on("a", "big", *pods(3), types=types), pools=[a_pool(types=types)]))
    assert [claim.capacity_type for claim in moves[0].claims] == ["spot"]
    wanted = moves[0].claims[0].requirements["karpenter.sh/capacity-type"]
    assert wanted.listed == frozenset({"spot"})


def test_a_spot_node_is_replaced_by_spot_only_where_that_is_switched_on() -> None:
    types = _types(20)
    there = on("a", "big", *pods(3), types=types, term="spot")
    assert plan(ask(there, pools=[a_pool(types=types)])) == []
    assert why_not(ask(there, pools=[a_pool(types=types)]), "a") == SpotToSpotDisabled()
    moves = plan(ask(there, pools=[a_pool(types=types)], spot_to_spot=True))
    assert len(moves[0].claims[0].instance_types) == 15


def test_one_spot_node_needs_fifteen_cheaper_types() -> None:
    types = _types(14)
    there = on("a", "big", *pods(3), types=types, term="spot")
    question = ask(there, pools=[a_pool(types=types)], spot_to_spot=True)
    assert plan(question) == []
    assert why_not(question, "a") == TooFewSpotTypes(14, 15)


@pytest.mark.parametrize(("spot", "count"), [(0.59, 0), (0.10, 1)])
def test_spot_prices_that_move_within_the_fee_move_nothing(spot: float, count: int) -> None:
    types = [a_type(f"x-{n:02d}", 16, price=1.6, spot=spot) for n in range(20)]
    types.append(a_type("now", 16, price=1.6, spot=0.6))
    there = on("a", "now", *pods(14), types=types, term="spot")
    question = ask(there, pools=[a_pool(types=types)], spot_to_spot=True)
    assert len(plan(question)) == count
    if not count:
        assert isinstance(why_not(question, "a"), SavesTooLittle)


def test_a_type_that_is_removed_is_no_replacement_of_several() -> None:
    """Three nodes of a type become one of that type only below the price of one."""
    types = [a_type("m", 16)]
    there = [on(f"n{n}", "m", *pods(1, f"p{n}", cpu="9"), types=types) for n in range(3)]
    assert plan(ask(*there, pools=[a_pool(types=types)])) == []


@pytest.mark.parametrize("left", [0, 1, 2, 3])
def test_no_more_nodes_move_to_reserved_capacity_than_there_is(left: int) -> None:
    """Three full nodes; a reserved instance of the same type costs next to nothing."""
    types = (reserved(a_type("x-10", 10), left, price=1),)
    there = [on(f"n{n}", "x-10", *pods(1, f"p{n}", cpu="9"), types=types) for n in range(3)]
    moves = plan(ask(*there, pools=[a_pool(types=types)]))
    claims = [claim for move in moves for claim in move.claims]
    assert [claim.capacity_type for claim in claims] == [RESERVED] * left
    assert sum(len(move.names) for move in moves) == left
