"""What an answer has left does not make Python's collector go through everything at once, within a turn."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from tenure.cli.page.collector import Collector

THRESHOLD = 1000


@pytest.fixture
def passes() -> Iterator[list[int]]:
    """Generations that were collected since."""
    found: list[int] = []

    def told(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    thresholds, enabled = gc.get_threshold(), gc.isenabled()
    gc.enable()
    gc.set_threshold(THRESHOLD, 10, 10)
    gc.collect()
    gc.callbacks.append(told)
    yield found
    gc.callbacks.remove(told)
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    if not enabled:
        gc.disable()


@pytest.mark.parametrize(("left", "frozen"), [(10, False), (3 * THRESHOLD, True)])
def test_much_that_is_left_is_not_gone_through(passes: list[int], left: int, frozen: bool) -> None:
    collector, before = Collector(), gc.get_freeze_count()
    collector.rest()
    kept: list[list[int]] = [[] for _ in range(left)]
    collector.go_on()
    more: list[list[int]] = [[] for _ in range(THRESHOLD // 4)]
    assert passes == []
    assert (gc.get_freeze_count() - before >= left) is frozen
    assert len(kept) + len(more) == left + THRESHOLD // 4


class Linked:
    """Garbage that only the collector finds, once nothing else refers to it."""

    def __init__(self) -> None:
        self.itself = self


def test_a_cycle_that_was_left_out_is_freed_after_half_an_hour(
    monkeypatch: pytest.MonkeyPatch, passes: list[int]
) -> None:
    clock = [100.0]
    monkeypatch.setattr("tenure.cli.page.collector.monotonic", lambda: clock[0])
    collector = Collector()
    kept: list[list[list[int]]] = []

    def answers(at: float) -> None:
        clock[0] = at
        collector.rest()
        kept.append([[] for _ in range(3 * THRESHOLD)])
        collector.go_on()

    gone = ref(Linked())
    for at in (100.0, 1000.0, 1899.0):
        answers(at)
        assert gone() is not None
    assert passes == []
    answers(1900.0)
    assert gone() is None
    assert passes == [2]
    assert gc.get_freeze_count() == 0
    answers(1901.0)
    assert passes == [2], "the next half an hour begins"


def test_where_it_is_off_it_stays_off(passes: list[int]) -> None:
    gc.disable()
    collector = Collector()
    collector.rest()
    collector.go_on()
    assert not gc.isenabled()
    assert passes == []


@pytest.mark.parametrize(("after", "long"), [(0.0, False), (4.9, False), (5.0, True)])
def test_it_goes_on_after_a_while_even_so(
    monkeypatch: pytest.MonkeyPatch, passes: list[int], after: float, long: bool
) -> None:
    instants = iter([100.0, 100.0 + after])
    monkeypatch.setattr("tenure.cli.page.collector.monotonic", lambda: next(instants))
    collector = Collector()
    collector.rest()
    assert collector.has_rested_long is long
    collector.go_on()
    assert gc.isenabled()
    assert collector.has_rested_long is False
    assert passes == []
