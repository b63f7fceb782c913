"""A key that is compared by identity."""

from __future__ import annotations

from tenure.model.values.same import Same


def test_it_equals_itself_and_no_equal_value() -> None:
    one, other = [1], [1]
    assert Same(one) == Same(one)
    assert hash(Same(one)) == hash(Same(one))
    assert Same(one) != Same(other)
    assert Same(one) != one
