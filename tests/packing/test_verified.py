"""Every packing is handed to a judge that shares no code with the packer."""

from __future__ import annotations

from hypothesis import given

from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tests.packing.judges.verify import verify
from tests.packing.test_properties import problems, thorough


@given(problems())
@thorough
def test_every_packing_can_be_bound(problem: Problem) -> None:
    assert verify(problem, pack(problem)) == []
