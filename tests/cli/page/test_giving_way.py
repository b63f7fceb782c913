"""Work beside the loop lets go of the interpreter again and again, and gives its result all the same."""

from __future__ import annotations

import sys
import threading

import pytest

from tenure.cli.page import givingway
from tenure.cli.page.givingway import giving_way


def _many(number: int) -> int:
    return sum(_one(n) for n in range(number))


def _one(number: int) -> int:
    return number


def test_it_pauses_after_each_slice_however_deep_its_calls_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock of the test: each look at it is 0.1 ms, so that every third call is the end of a slice."""
    looks, pauses = [0], [0]

    def clock() -> float:
        looks[0] += 1
        return looks[0] * 0.0001

    def pause(_: float) -> None:
        pauses[0] += 1

    monkeypatch.setattr(givingway, "perf_counter", clock)
    monkeypatch.setattr(givingway, "sleep", pause)
    assert giving_way(lambda: _many(300)) == sum(range(300))
    assert pauses[0] >= 100


def test_what_it_raises_is_raised_and_the_thread_is_as_before() -> None:
    found: list[object] = []

    def broken() -> None:
        raise KeyError("x")

    def run() -> None:
        try:
            giving_way(broken)
        except KeyError as error:
            found.append((error.args, sys.getprofile()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(("x",), None)]
