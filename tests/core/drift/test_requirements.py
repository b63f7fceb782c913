"""Requirements are compared with labels as Karpenter 1.15 does it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tenure.core.drift.requirements import unmet
from tenure.model.api.nodeclaim import Requirement
from tenure.model.matching.requirements import Requirements
from tests.folders import DATA

#: What ``areRequirementsDrifted`` of its module says of random pools and claims.
GOLDEN = [
    json.loads(line)
    for line in (DATA / "karpenter-requirements-drift.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("drifted", [True, False])
def test_requirements_drift_as_in_karpenter(drifted: bool) -> None:
    cases: list[dict[str, Any]] = [case for case in GOLDEN if case["drifted"] is drifted]
    assert len(cases) > 100
    for case in cases:
        written = msgspec.convert(case["requirements"], tuple[Requirement, ...])
        found = list(unmet(Requirements.from_wire(written), case["labels"]))
        assert bool(found) is drifted, case
