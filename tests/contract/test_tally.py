"""The line at the end of a run that says how much of the contract was tested where."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.contract.tally import tally


def a_report(
    backend: str, outcome: Literal["passed", "failed", "skipped"] = "passed", why: str = ""
) -> pytest.TestReport:
    longrepr = ("a file", 1, f"Skipped: {why}") if why else None
    return pytest.TestReport(
        f"test_it[on the {backend} API server]", ("", 0, ""), {}, outcome, longrepr, "call",
        sections=[], duration=0, start=0, stop=0,
    )  # fmt: skip


def test_each_backend_is_counted() -> None:
    stats = {
        "passed": [a_report("served"), a_report("store"), a_report("store"), a_report("real")],
        "skipped": [a_report("real", "skipped", "no such thing there")],
    }
    assert tally(stats) == (
        "contract suite: store 2 passed, served store 1 passed, "
        "real API server 1 passed (1 skipped: no such thing there)"
    )


def test_failures_and_errors_are_told_together() -> None:
    stats = {"failed": [a_report("store", "failed")], "error": [a_report("store", "failed")]}
    assert tally(stats) == "contract suite: store 0 passed and 2 failed"


def test_a_backend_that_cannot_be_opened_is_named() -> None:
    assert tally({"passed": [a_report("store")]}, lacking=["etcd"]) == (
        "contract suite: store 1 passed, real API server left out (`make bed` gets it)"
    )


def test_nothing_is_said_where_nothing_was_run() -> None:
    assert tally({"passed": []}, lacking=["etcd"]) == ""
