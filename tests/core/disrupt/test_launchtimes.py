"""How long new nodes of a pool take, by its recent launches."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.core.disrupt.launchtimes import launch_times
from tests.core.build import a_claim, a_pool, ago, condition
from tests.core.disrupt.test_voluntary import a_window
from tests.snapshots import snapshot_with


@pytest.mark.parametrize(
    ("took", "minutes"),
    [
        ([5], 5),
        ([1, 20], 20),
        ([1, 2, 20], 2),
        ([*range(1, 9), 20], 8),
        ([*range(1, 10), 20], 9),
        ([*range(1, 9), 20, 30], 20),
    ],
)
def test_the_slowest_but_one_counts(took: list[int], minutes: int) -> None:
    claims = [
        a_claim(f"c{index}", conditions=[condition("Initialized", at=ago(3600 - 60 * one))])
        for index, one in enumerate(took)
    ]
    snapshot = snapshot_with(a_pool(), a_window(actions=["Drift"]), *claims)
    assert launch_times(snapshot) == {"general": timedelta(minutes=minutes)}
