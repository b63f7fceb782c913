"""Tests that share a control plane go to the same worker."""

from __future__ import annotations

import pytest

from tests.contract.doors import RealDoor
from tests.workers import together

STORY = "tests/real/test_life.py::test_pods_get_nodes"
REAL = f"tests/contract/test_lists.py::test_a_list[through the {RealDoor.name} door]"
STORE = "tests/contract/test_lists.py::test_a_list[through the store door]"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (STORY, "tests/real/test_bed.py::test_a_port", True),
        (REAL, "tests/contract/test_writes.py::test_it[through the real door-1]", True),
        (REAL, STORY, False),
        (STORE, REAL, False),
        (STORE, "tests/contract/test_lists.py::test_b[through the store door]", False),
    ],
    ids=["stories", "the contract", "both", "two doors", "the store"],
)
def test_what_shares_a_bed_shares_a_worker(one: str, other: str, same: bool) -> None:
    assert (together(one) == together(other)) is same
