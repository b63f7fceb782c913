"""Tests that share a control plane go to the same worker."""

from __future__ import annotations

import pytest

from tests.bed import PROCESS_STORY
from tests.contract.backends import RealBackend
from tests.folders import ROOT
from tests.workers import (
    COMINGS,
    CONTRACT,
    DEADLINES,
    FIRST,
    HELD,
    PACED,
    PROCESSES,
    STORIES,
    next_of,
    together,
)

REAL_TESTS = ROOT / "tests" / "real"
STORY = "tests/real/test_life.py::test_pods_get_nodes"
REAL = f"tests/contract/test_lists.py::test_a_list[on the {RealBackend.name} API server]"
STORE = "tests/contract/test_lists.py::test_a_list[on the store API server]"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (STORY, "tests/real/test_bed.py::test_a_port", True),
        (REAL, "tests/contract/test_writes.py::test_it[on the real API server-1]", True),
        (STORY, "tests/real/test_crashes.py::test_a_kill", False),
        (
            "tests/real/test_replicas.py::test_a_pause",
            "tests/real/test_crashes.py::test_a_kill",
            True,
        ),
        (REAL, STORY, False),
        (STORY, "tests/real/beside/test_alone.py::test_drift", False),
        (
            "tests/real/beside/test_account.py::test_the_role",
            "tests/real/beside/test_alone.py::test_drift",
            True,
        ),
        (
            "tests/real/beside/test_levers.py::test_a_stamp",
            "tests/real/beside/test_pacing.py::test_a_budget",
            True,
        ),
        (
            "tests/real/beside/test_levers.py::test_a_stamp",
            "tests/real/beside/test_windows.py::test_a_freeze",
            False,
        ),
        (STORE, REAL, False),
        (STORE, "tests/contract/test_lists.py::test_b[on the store API server]", False),
    ],
    ids=[
        "stories",
        "the contract",
        "a process",
        "processes",
        "both",
        "with Karpenter or without",
        "beside Karpenter",
        "paced",
        "paced and held",
        "two backends",
        "the store",
    ],
)
def test_what_shares_a_bed_shares_a_worker(one: str, other: str, same: bool) -> None:
    assert (together(one) == together(other)) is same


def test_every_group_that_goes_first_has_tests() -> None:
    stories = [f"{path.relative_to(ROOT)}::test_it" for path in REAL_TESTS.rglob("test_*.py")]
    assert set(map(together, [*stories, REAL])) == set(FIRST)


def test_the_longest_group_goes_before_those_with_more_tests() -> None:
    assert next_of([STORE, CONTRACT, "held", "processes"]) == "held"
    assert next_of([STORE, "any other"]) == STORE


@pytest.mark.parametrize(
    "group", [COMINGS, DEADLINES, HELD, PACED], ids=["comings", "deadlines", "held", "paced"]
)
def test_the_stories_of_a_group_are_there(group: tuple[str, ...]) -> None:
    assert all((REAL_TESTS.parents[1] / name.removesuffix("::")).exists() for name in group)


def test_the_stories_of_processes_are_those_that_are_marked() -> None:
    marked = [
        f"{STORIES}{path.name}::"
        for path in REAL_TESTS.glob("test_*.py")
        if PROCESS_STORY in path.read_text()
    ]
    assert sorted(marked) == sorted(PROCESSES)
