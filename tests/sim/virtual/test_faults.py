"""The fault model: off by default, checked when written, switched at an instant."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tenure.errors import SpecError
from tenure.sim.virtual.faults import Faults, FaultSwitch, drawn, strikes


def test_nothing_goes_wrong_by_default_and_no_chance_is_drawn() -> None:
    faults, random = Faults(), Random(1)
    rates = [getattr(faults, name) for name in faults.__struct_fields__ if name.endswith("_rate")]
    assert len(rates) >= 8
    assert not any(strikes(rate, random) for rate in rates)
    assert drawn(faults.boot_latency, random) == timedelta(0)
    assert random.random() == Random(1).random()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"cloud_throttle_rate": 1.5}, r"faults\.cloud_throttle_rate: got 1\.5, expected a share"),
        ({"boot_latency": timedelta(seconds=-1)}, r"faults\.boot_latency: .* at least 0"),
    ],
    ids=["a rate above one", "a negative duration"],
)
def test_a_bad_value_is_named(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Faults(**fault)


def test_the_switch_changes_one_fault_and_keeps_the_others() -> None:
    switch = FaultSwitch(Faults(cloud_dry_rate=0.1))
    switch.set(never_ready_rate=0.2)
    assert switch.current == Faults(cloud_dry_rate=0.1, never_ready_rate=0.2)
    switch.clear()
    assert switch.current == Faults()


def test_the_switch_checks_what_it_is_given() -> None:
    with pytest.raises(SpecError, match="never_ready_rate"):
        FaultSwitch().set(never_ready_rate=7)


def test_a_pattern_dries_up_every_offering_it_matches() -> None:
    faults = Faults(cloud_dry=(("*", "zone-a", "spot"), ("m7i.large", "*", "*")))
    assert faults.is_dry(("c7g.large", "zone-a", "spot"))
    assert faults.is_dry(("m7i.large", "zone-b", "on-demand"))
    assert not faults.is_dry(("c7g.large", "zone-a", "on-demand"))


def test_draws_cover_the_whole_span_in_whole_microseconds() -> None:
    span = timedelta(microseconds=3)
    seen = {drawn(span, random) for random in [Random(5)] for _ in range(200)}
    assert seen == {timedelta(microseconds=n) for n in range(4)}
