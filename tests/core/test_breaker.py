"""How many sick nodes a pool may have before repair stops."""

from __future__ import annotations

import pytest

from tenure.core.breaker import Breaker


@pytest.mark.parametrize(
    ("total", "repaired_with"),
    [(1, {1}), (3, {1}), (5, {1}), (10, {1, 2}), (40, {1, 2, 3})],
)
def test_by_default_a_fifth_may_be_sick_rounded_up(total: int, repaired_with: set[int]) -> None:
    assert {n for n in (1, 2, 3) if not Breaker(n, total, "20%").tripped} == repaired_with


@pytest.mark.parametrize(
    ("limit", "sick", "tripped"),
    [
        ("0", 1, True),
        (0, 1, True),
        ("0%", 1, True),
        ("100%", 10, False),
        (3, 3, False),
        ("3", 4, True),
        ("nonsense", 1, True),
        pytest.param("9" * 5000, 10, False, id="more digits than int() reads"),
    ],
)
def test_a_limit_may_be_a_number_or_a_share(limit: str | int, sick: int, tripped: bool) -> None:
    assert Breaker(sick, 10, limit).tripped is tripped


def test_it_says_its_numbers() -> None:
    assert str(Breaker(3, 10, "20%")) == (
        "3 nodes are sick of 10, and nothing is repaired above 2 (maxUnhealthy 20%)"
    )
