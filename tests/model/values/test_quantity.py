"""Quantities read and print as in Kubernetes; resources add up without rounding."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import SpecError
from tenure.model.values.quantity import (
    MOST,
    UNIT,
    add,
    fits,
    format_quantity,
    format_resources,
    maximum,
    parse_quantity,
    parse_resources,
    subtract,
    total,
)
from tests.folders import DATA

#: What k8s.io/apimachinery v0.36.3 answers for 600 texts, by hand and from a seed.
GOLDEN = [
    json.loads(line)
    for line in (DATA / "quantities.jsonl").read_text(encoding="utf-8").splitlines()
]
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]),
    st.integers(min_value=-(10**20), max_value=10**20),
)


def outcome(vector: dict[str, Any]) -> Any:
    try:
        return parse_quantity(vector["text"])
    except SpecError:
        return "error"


def test_every_text_means_what_it_means_in_kubernetes() -> None:
    assert len(GOLDEN) == 600
    expected = ["error" if "error" in vector else vector["nano"] for vector in GOLDEN]
    assert [outcome(vector) for vector in GOLDEN] == expected


def test_every_quantity_prints_as_kubernetes_prints_it() -> None:
    # From 1000E on Kubernetes has no suffix and silently prints a smaller number.
    readable = [v for v in GOLDEN if "error" not in v and abs(v["nano"]) < 10**21 * UNIT]
    assert len(readable) > 450
    for vector in readable:
        assert format_quantity(vector["nano"]) == vector["decimal"]
        assert format_quantity(vector["nano"], binary=True) == vector["binary"]


@given(st.integers(min_value=-(2**63 - 1) * UNIT, max_value=(2**63 - 1) * UNIT), st.booleans())
def test_what_is_printed_reads_back_as_the_same_quantity(nano: int, binary: bool) -> None:
    assert parse_quantity(format_quantity(nano, binary=binary)) == nano


@pytest.mark.parametrize(
    ("text", "printed"),
    [("1.5Gi", "1536Mi"), ("2048Mi", "2Gi"), ("0.5Ki", "512"), ("1000Ki", "1000Ki")],
)
def test_a_binary_quantity_gets_the_largest_suffix_without_a_fraction(
    text: str, printed: str
) -> None:
    assert format_quantity(parse_quantity(text), binary=True) == printed


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1K", "Use 1k (thousands) or 1Ki (1024s)."),
        ("2GB", "Use 2G or 2Gi."),
        ("2GiB", "Use 2Gi."),
        ("512mi", "Use 512Mi."),
        ("1 Gi", "Use 1Gi."),
        (" 1", "Use 1."),
        ("NaN", "Suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei."),
        ("1_000", "Suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei."),
    ],
)
def test_the_hint_is_what_the_writer_meant(text: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_quantity(text, "spec.limits[cpu]")
    assert caught.value.hint == hint
    assert str(caught.value).startswith(f"spec.limits[cpu]: got {text!r}, expected a Kubernetes")


@pytest.mark.parametrize(
    "text",
    ["m", "Ki", ".", "+", "9" * 200],
    ids=lambda text: f"{text[:12]} is refused",
)
def test_what_kubernetes_reads_by_accident_or_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["1e100", "1e200", "1e999999999999", "9" * 100])
def test_an_amount_beyond_all_nodes_is_the_most_there_is(text: str) -> None:
    assert parse_quantity(text) == MOST == -parse_quantity(f"-{text}")


@pytest.mark.parametrize("text", ["0.1n", "1e-10", "1e-999999999999"])
def test_less_than_a_nano_unit_is_rounded_up_to_one(text: str) -> None:
    assert parse_quantity(text) == 1


def test_numbers_of_yaml_are_read_like_their_text() -> None:
    assert parse_resources({"cpu": 500, "memory": "1Gi", "gpu": 0.5, "tiny": 1e-05}) == {
        "cpu": 500 * UNIT,
        "memory": 2**30 * UNIT,
        "gpu": UNIT // 2,
        "tiny": 10_000,
    }


@pytest.mark.parametrize("amount", [True, float("nan"), float("inf"), "lots"])
def test_a_bad_amount_is_named_with_its_resource(amount: str | float) -> None:
    with pytest.raises(SpecError) as caught:
        parse_resources({"cpu": 1, "memory": amount}, "spec.limits")
    assert caught.value.at == "spec.limits[memory]"


def test_resources_print_memory_and_storage_in_binary_and_the_rest_in_decimal() -> None:
    amounts = {"cpu": "3920m", "memory": "1536Mi", "pods": "110", "hugepages-2Mi": "4Mi"}
    assert format_resources(parse_resources(amounts)) == amounts


@given(AMOUNTS, AMOUNTS)
def test_taking_away_what_was_added_leaves_what_was_there(
    left: dict[str, int], right: dict[str, int]
) -> None:
    back = subtract(add(left, right), right)
    assert {name: back[name] for name in left} == left
    assert all(back[name] == 0 for name in back.keys() - left.keys())


@given(st.lists(AMOUNTS, max_size=4))
def test_the_total_is_the_repeated_sum(many: list[dict[str, int]]) -> None:
    expected: dict[str, int] = {}
    for resources in many:
        expected = add(expected, resources)
    assert total(many) == expected


@given(AMOUNTS, AMOUNTS)
def test_the_maximum_covers_both(left: dict[str, int], right: dict[str, int]) -> None:
    both = maximum(left, right)
    assert fits(left, both)
    assert fits(right, both)
    assert all(both[name] in (left.get(name), right.get(name)) for name in both)


def test_what_is_missing_counts_as_zero() -> None:
    assert not fits({"nvidia.com/gpu": 1}, {"cpu": UNIT})
    assert fits({"nvidia.com/gpu": 0}, {"cpu": UNIT})


def test_a_request_fits_although_another_resource_is_overdrawn() -> None:
    assert fits({"cpu": UNIT, "pods": 0}, {"cpu": UNIT, "pods": -UNIT})
    assert not fits({"cpu": UNIT + 1}, {"cpu": UNIT})


def test_arithmetic_leaves_its_operands_alone() -> None:
    left, right = {"cpu": 1}, {"cpu": 2, "pods": 3}
    assert (add(left, right), subtract(left, right), maximum(left, right)) == (
        {"cpu": 3, "pods": 3},
        {"cpu": -1, "pods": -3},
        {"cpu": 2, "pods": 3},
    )
    assert (left, right) == ({"cpu": 1}, {"cpu": 2, "pods": 3})
