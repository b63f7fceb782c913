"""The price rules over claims as they would be created, and over what is launched already."""

from __future__ import annotations

import pytest

from tenure.core.disrupt.consolidation.prices import Cheaper, Offered, cheaper
from tenure.core.facts import Fact
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.consolidate.facts import (
    LIST_PART,
    OF_SPOT_PART,
    TO_SPOT_PART,
    MinValuesNotKept,
    MoreNodesSaveTooLittle,
    NoCheaperReplacement,
    SavesTooLittle,
    SpotToSpotDisabled,
    TooFewSpotTypes,
)
from tenure.packing.consolidate.question import Candidate
from tenure.packing.consolidate.rules import PriceRules
from tenure.packing.result import PlannedClaim
from tests.core.build import a_type

#: On demand 10, 20, … dollars' worth of thousands; spot is half of it.
TYPES = tuple(a_type(f"t{number:02d}", price=number * 10_000) for number in range(1, 21))


def claim(
    *names: str, terms: tuple[str, ...] = ("on-demand",), min_values: int | None = None
) -> PlannedClaim:
    wanted = Requirements.of(
        [
            Requirement.of(CAPACITY_TYPE, "In", terms),
            Requirement.of(ZONE, "In", ("zone-a", "zone-b")),
            Requirement.of(INSTANCE_TYPE, "In", names).with_min_values(min_values),
        ]
    )
    return PlannedClaim(
        pool="general",
        requirements=wanted,
        instance_types=names,
        requests={},
        pods=("web",),
        price=1,
        instance_type=names[0],
        zone="zone-a",
        capacity_type=terms[0],
        may_be_spot="spot" in terms,
    )


def rules(*, spot_to_spot: bool = False, fee_cpus: int = 0, dry: str = "") -> Offered:
    """``dry``: a capacity type of which everything is sold out."""
    sold = ((kind.name, one) for kind in TYPES for one in kind.offerings)
    return Offered(
        types={"general": {one.name: one for one in TYPES}},
        rules=PriceRules(spot_to_spot=spot_to_spot, fee_cpus=fee_cpus),
        dry=frozenset((name, one.zone, dry) for name, one in sold),
    )


def node(price: int = 100_000, type_: str = "old", term: str = "on-demand") -> Candidate:
    return Candidate(
        name="node-a",
        pool="general",
        price=price,
        instance_type=type_,
        capacity_type=term,
        capacity={"cpu": 4 * UNIT},
    )


ALL = tuple(one.name for one in TYPES)


def listed(found: Cheaper | Fact) -> list[tuple[str, ...]]:
    assert isinstance(found, Cheaper)
    return [one.instance_types for one in found.claims]


def test_only_types_that_save_enough_at_their_worst_are_listed() -> None:
    found = cheaper([claim(*ALL)], [node()], rules())
    assert listed(found) == [tuple(f"t{number:02d}" for number in range(1, 10))]
    assert isinstance(found, Cheaper)
    assert found.worst == 90_000
    (one,) = found.claims
    assert (one.price, one.instance_type) == (10_000, "t01")


@pytest.mark.parametrize(
    ("wanted", "going", "rule", "why"),
    [
        (claim("t10"), [node()], rules(), NoCheaperReplacement(100_000, 100_000, ("t10",))),
        (claim("t12"), [node()], rules(), NoCheaperReplacement(100_000, 120_000, ("t12",))),
        (claim("gone"), [node()], rules(), NoCheaperReplacement(100_000)),
        (claim("t19"), [node(195_000)], rules(), SavesTooLittle(5_000, 195_000, LIST_PART)),
        (
            claim(*ALL, terms=("spot",)),
            [node(term="spot")],
            rules(),
            SpotToSpotDisabled(),
        ),
        (
            claim(*ALL[:9], terms=("spot",)),
            [node(term="spot")],
            rules(spot_to_spot=True),
            TooFewSpotTypes(9, 15),
        ),
        (claim(*ALL, min_values=10), [node()], rules(), MinValuesNotKept()),
        (
            claim("t19", terms=("spot",)),
            [node()],
            rules(),
            SavesTooLittle(5_000, 100_000, TO_SPOT_PART),
        ),
        (
            claim(*ALL[15:], terms=("spot",)),
            [node(term="spot")],
            rules(spot_to_spot=True),
            SavesTooLittle(20_000, 100_000, OF_SPOT_PART),
        ),
    ],
)
def test_what_breaks_a_rule_is_said(
    wanted: PlannedClaim, going: list[Candidate], rule: Offered, why: Fact
) -> None:
    assert cheaper([wanted], going, rule) == why


def test_spot_is_taken_where_it_is_cheaper_at_its_worst() -> None:
    found = cheaper([claim("t05", terms=("on-demand", "spot"))], [node()], rules())
    assert isinstance(found, Cheaper)
    assert found.claims[0].capacity_type == "spot"
    assert found.claims[0].requirements.allowed(CAPACITY_TYPE).values == ("spot",)


@pytest.mark.parametrize("dry", ["", "spot"])
def test_spot_nodes_do_not_become_on_demand_by_price(dry: str) -> None:
    """Dearer or sold out: when spot can be had for less again, they would go back."""
    wanted = claim("t05", terms=("on-demand", "spot"))
    found = cheaper([wanted], [node(24_000, term="spot")], rules(dry=dry))
    assert isinstance(found, NoCheaperReplacement)
    found = cheaper([wanted], [node(term="spot")], rules(dry=dry))
    assert isinstance(found, NoCheaperReplacement if dry else SpotToSpotDisabled)
    only = claim("t05", terms=("on-demand",))
    assert isinstance(cheaper([only], [node(term="spot")], rules(dry=dry)), Cheaper)


@pytest.mark.parametrize(("second", "goes"), [("t05", False), ("t04", False), ("t03", True)])
def test_more_nodes_than_before_save_more_than_their_fees(second: str, goes: bool) -> None:
    """A cpu of the node costs 25,000, and a node counts as two cpus more."""
    found = cheaper([claim("t01"), claim(second)], [node()], rules(fee_cpus=2))
    assert isinstance(found, Cheaper if goes else MoreNodesSaveTooLittle)


def test_a_spot_node_has_fifteen_types_to_choose_from() -> None:
    wanted = claim(*ALL, terms=("spot",))
    found = cheaper([wanted], [node(200_000, term="spot")], rules(spot_to_spot=True))
    assert [len(names) for names in listed(found)] == [15]


def test_fifteen_types_are_asked_for_where_spot_nodes_do_not_become_fewer() -> None:
    few = [claim(*ALL[:9], terms=("spot",))] * 2
    nodes = [node(term="spot")] * 3
    assert cheaper(few, nodes[:2], rules(spot_to_spot=True)) == TooFewSpotTypes(9, 15)
    assert isinstance(cheaper(few, nodes, rules(spot_to_spot=True)), Cheaper)


def test_several_nodes_are_not_replaced_by_one_of_them() -> None:
    """Where the type of a node that goes is listed, only below the price of that node."""
    two = [node(150_000, "t15"), node(30_000, "t03")]
    assert listed(cheaper([claim("t03", "t02")], two, rules())) == [("t02",)]
    assert listed(cheaper([claim("t04", "t02")], two, rules())) == [("t02", "t04")]


def test_what_is_to_spare_is_dealt_to_all_claims() -> None:
    found = cheaper([claim(*ALL), claim(*ALL)], [node(), node()], rules())
    assert isinstance(found, Cheaper)
    assert found.worst < 200_000
    assert listed(found) == [tuple(f"t{number:02d}" for number in range(1, 10))] * 2


@pytest.mark.parametrize(("launched", "goes"), [(99_000, True), (100_000, False)])
def test_what_is_launched_already_must_cost_less(launched: int, goes: bool) -> None:
    found = cheaper([], [node()], rules(), came=[launched])
    assert isinstance(found, Cheaper) == goes


def test_what_exists_of_a_move_leaves_the_rest_to_the_others() -> None:
    """The leader died after the first of two creations: both together stay below the price."""
    going = [node(), node()]
    first = cheaper([claim(*ALL), claim(*ALL)], going, rules())
    assert isinstance(first, Cheaper)
    again = cheaper([claim(*ALL)], going, rules(), came=[first.worst // 2])
    assert isinstance(again, Cheaper)
    assert first.worst // 2 + again.worst <= 200_000 - 200_000 // LIST_PART
