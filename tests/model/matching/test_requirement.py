"""One label: operators are sets of label states, and intersection is set intersection."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.errors import SpecError
from tenure.model.matching.requirement import OPERATORS, Requirement, parse_integer

KEY = "example.com/size"
#: Words, integers, an integer spelled unusually, and one beyond 64 bits.
VALUES = ["a", "b", "-1", "0", "3", "4", "5", "04", "9223372036854775808"]


@st.composite
def simple(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(OPERATORS))
    values: list[str] = []
    if operator in ("In", "NotIn"):
        values = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4))
    elif operator not in ("Exists", "DoesNotExist"):
        values = [draw(st.sampled_from(["-1", "0", "3", "4", "5"]))]
    most = len(set(values)) if operator == "In" else 3
    min_values = draw(st.none() | st.integers(min_value=1, max_value=most))
    return Requirement.of(KEY, operator, values, min_values=min_values)


#: Also what intersections lead to: contradictions, bounds with exclusions.
REQUIREMENTS = st.lists(simple(), min_size=1, max_size=3).map(
    lambda many: many[0].intersection(many[-1]).intersection(many[len(many) // 2])
)


def states(requirement: Requirement) -> set[str | None]:
    """Every state of the label that is let through; None is the absent label."""
    values: set[str | None] = {value for value in VALUES if requirement.has(value)}
    return values | {None} if requirement.allows_absent else values


@given(REQUIREMENTS, REQUIREMENTS)
def test_the_intersection_lets_through_what_both_let_through(
    left: Requirement, right: Requirement
) -> None:
    assert states(left.intersection(right)) == states(left) & states(right)


@given(REQUIREMENTS, REQUIREMENTS)
def test_intersection_is_commutative(left: Requirement, right: Requirement) -> None:
    assert left.intersection(right) == right.intersection(left)


@given(REQUIREMENTS, REQUIREMENTS, REQUIREMENTS)
def test_intersection_is_associative(a: Requirement, b: Requirement, c: Requirement) -> None:
    assert a.intersection(b).intersection(c) == a.intersection(b.intersection(c))


@given(REQUIREMENTS, REQUIREMENTS)
def test_intersecting_again_changes_nothing(left: Requirement, right: Requirement) -> None:
    both = left.intersection(right)
    assert both.intersection(left) == both
    assert both.intersection(Requirement.of(KEY, "NotIn", [])) == both


@given(REQUIREMENTS, REQUIREMENTS)
def test_the_quick_question_agrees_with_the_intersection(
    left: Requirement, right: Requirement
) -> None:
    assert left.intersects(right) == (not left.intersection(right).impossible)
    if states(left) & states(right):
        assert left.intersects(right)


@given(REQUIREMENTS)
def test_any_gives_a_value_that_is_let_through_whenever_there_is_one(
    requirement: Requirement,
) -> None:
    value = requirement.any()
    assert value == requirement.any()
    if value is None:
        assert states(requirement) <= {None}
    else:
        assert requirement.has(value)


def test_a_value_is_found_even_where_every_plain_integer_is_excluded() -> None:
    three = Requirement.of(KEY, "Gte", ["3"]).intersection(Requirement.of(KEY, "Lte", ["3"]))
    assert three.any() == "3"
    assert three.intersection(Requirement.of(KEY, "NotIn", ["3", "03"])).any() == "003"


@given(REQUIREMENTS)
def test_the_wire_form_reads_back_as_the_same_requirement(requirement: Requirement) -> None:
    # A set narrowed below its minValues is refused on the way in, as by the API.
    assume(requirement.complement or len(requirement.listed) >= (requirement.min_values or 0))
    parts = [
        Requirement.of(
            entry["key"],
            entry["operator"],
            entry.get("values", ()),
            min_values=entry.get("minValues"),
        )
        for entry in requirement.to_wire()
    ]
    first, *others = parts
    for other in others:
        first = first.intersection(other)
    assert first == requirement


@pytest.mark.parametrize(
    ("operator", "values", "let_through"),
    [
        ("In", ["a", "3"], {"a", "3"}),
        ("NotIn", ["a", "3"], {"b", "-1", "0", "4", "5", "04", "9223372036854775808", None}),
        ("Exists", [], set(VALUES)),
        ("DoesNotExist", [], {None}),
        ("Gt", ["3"], {"4", "5", "04"}),
        ("Gte", ["4"], {"4", "5", "04"}),
        ("Lt", ["3"], {"-1", "0"}),
        ("Lte", ["3"], {"-1", "0", "3"}),
    ],
)
def test_each_operator_lets_through_what_kubernetes_lets_through(
    operator: str, values: list[str], let_through: set[str | None]
) -> None:
    assert states(Requirement.of(KEY, operator, values)) == let_through


def test_a_contradiction_lets_nothing_through_not_even_the_absent_label() -> None:
    nothing = Requirement.of(KEY, "In", ["a"]).intersection(Requirement.of(KEY, "In", ["b"]))
    assert nothing.impossible
    assert not nothing.intersects(Requirement.of(KEY, "DoesNotExist"))
    assert str(nothing) == "example.com/size In []"


@pytest.mark.parametrize(
    ("operator", "bound"), [("Gt", "9223372036854775807"), ("Lt", "-9223372036854775808")]
)
def test_a_bound_beyond_every_integer_is_impossible(operator: str, bound: str) -> None:
    assert Requirement.of(KEY, operator, [bound]).impossible


def test_legacy_keys_are_called_by_their_present_name() -> None:
    legacy = Requirement.of("failure-domain.beta.kubernetes.io/zone", "In", ["a"])
    assert legacy == Requirement.label("topology.kubernetes.io/zone", "a")
    assert Requirement.label("beta.kubernetes.io/arch", "arm64").key == "kubernetes.io/arch"


@pytest.mark.parametrize(
    ("operator", "values", "min_values", "message"),
    [
        (
            "in",
            ["a"],
            None,
            (
                "spec.requirements[0].operator: got 'in', expected one of In, NotIn, Exists, "
                "DoesNotExist, Gt, Lt, Gte, Lte. Use In with a list of values."
            ),
        ),
        (
            "In",
            [],
            None,
            "spec.requirements[0].values: got [], expected at least one value for In. Use [a, b].",
        ),
        (
            "Gt",
            ["3", "4"],
            None,
            (
                "spec.requirements[0].values: got ['3', '4'], expected exactly one integer for Gt. "
                'Use ["4"].'
            ),
        ),
        (
            "Lte",
            ["many"],
            None,
            (
                "spec.requirements[0].values: got ['many'], expected exactly one integer for Lte. "
                'Use ["4"].'
            ),
        ),
        (
            "In",
            ["a", "a"],
            2,
            (
                "spec.requirements[0].minValues: got 2, expected at most 1, the number of values "
                "listed. List more values."
            ),
        ),
        (
            "Exists",
            [],
            51,
            (
                "spec.requirements[0].minValues: got 51, expected a number from 1 to 50. "
                "Use 2, or leave it out."
            ),
        ),
    ],
    ids=[
        "an unknown operator",
        "In without values",
        "two bounds",
        "a word as a bound",
        "more minValues than values",
        "too many minValues",
    ],
)
def test_a_bad_requirement_is_refused_with_field_value_and_example(
    operator: str, values: list[str], min_values: int | None, message: str
) -> None:
    with pytest.raises(SpecError) as caught:
        Requirement.of(KEY, operator, values, min_values=min_values, at="spec.requirements[0]")
    assert str(caught.value) == message


def test_the_stronger_demand_for_min_values_wins() -> None:
    two = Requirement.of(KEY, "In", ["a", "b"], min_values=2)
    three = Requirement.of(KEY, "Exists", min_values=3)
    assert two.intersection(three).min_values == 3
    assert two.with_min_values(None).intersection(three.with_min_values(1)).min_values == 1


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("In", ["b", "a"])], "example.com/size In [a, b]"),
        ([("In", list("gfedcba"))], "example.com/size In [a, b, c, d, e, and 2 others]"),
        ([("Exists", [])], "example.com/size Exists"),
        ([("DoesNotExist", [])], "example.com/size DoesNotExist"),
        ([("Gt", ["3"]), ("Lt", ["9"])], "example.com/size Exists >=4 <=8"),
        ([("NotIn", ["a", "5"]), ("Gt", ["3"])], "example.com/size NotIn [5] >=4"),
    ],
)
def test_a_requirement_reads_as_a_short_phrase(
    parts: list[tuple[str, list[str]]], text: str
) -> None:
    requirement = Requirement.of(KEY, *parts[0])
    for part in parts[1:]:
        requirement = requirement.intersection(Requirement.of(KEY, *part))
    assert str(requirement) == text


def test_the_phrase_tells_min_values() -> None:
    assert str(Requirement.of(KEY, "Exists", min_values=3)) == "example.com/size Exists minValues 3"


@pytest.mark.parametrize("text", ["", "1_000", " 1", "١", "1.0", "0x4", "9223372036854775808"])
def test_what_go_would_not_read_as_an_integer_is_none(text: str) -> None:
    assert parse_integer(text) is None
