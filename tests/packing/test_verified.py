"""Every packing is handed to a judge that shares no code with the packer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tests.packing.judges.verify import verify
from tests.packing.mixes import a_mix
from tests.packing.test_properties import problems, thorough


@given(problems())
@thorough
def test_every_packing_can_be_bound(problem: Problem) -> None:
    assert verify(problem, pack(problem)) == []


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_every_packing_of_every_kind_of_constraint_can_be_bound(start: int) -> None:
    for seed in range(start, start + 50):
        problem = a_mix(seed)
        assert (seed, verify(problem, pack(problem))) == (seed, [])


@given(st.integers(0, 2**48))
@settings(deadline=None)
def test_and_so_can_packings_that_were_never_tried_before(seed: int) -> None:
    problem = a_mix(seed)
    assert verify(problem, pack(problem)) == []
