"""What an answer has left does not make Python's collector go through everything at once, within a turn."""

from __future__ import annotations

import gc
from collections.abc import Iterator

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
