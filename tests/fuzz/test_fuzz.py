"""A few fixed days in every test run; ``make fuzz`` lives through new ones."""

from __future__ import annotations

import pytest

from tests.fuzz.day import live


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_troubled_day_ends_at_rest_and_breaks_no_promise(seed: int) -> None:
    outcome = live(seed)
    assert outcome.problems == ()
    assert outcome.launched > 0
    assert outcome.crashes > 0
