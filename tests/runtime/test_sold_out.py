"""What counts as sold out after an answer that names no offering."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.cloud.instance import LaunchRequest
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.runtime.executor.instances import asked_for, too_much
from tests.core.build import OURS, a_type, units

SMALL, LARGE = a_type("small", cpu="4"), a_type("large", cpu="16")


def a_request(*wanted: Requirement, **amounts: float) -> LaunchRequest:
    return LaunchRequest(
        cluster="embedded",
        claim_name="a",
        claim_uid="uid-a",
        pool="general",
        node_class=OURS,
        requirements=Requirements.of(wanted),
        requests=units(**amounts),
    )


def only(key: str, value: str) -> Requirement:
    return Requirement.of(key, "In", [value])


@pytest.mark.parametrize(
    ("request_", "names", "zones", "terms"),
    [
        pytest.param(a_request(cpu=1), 2, 2, 2, id="everything that could hold it"),
        pytest.param(a_request(cpu=8), 1, 2, 2, id="not what is too small for it"),
        pytest.param(a_request(only(INSTANCE_TYPE, "small"), cpu=1), 1, 2, 2, id="its types"),
        pytest.param(a_request(only(ZONE, "zone-b"), cpu=1), 2, 1, 2, id="its zones"),
        pytest.param(a_request(only(CAPACITY_TYPE, "spot"), cpu=1), 2, 2, 1, id="its terms"),
        pytest.param(a_request(only("kubernetes.io/arch", "arm64")), 0, 0, 0, id="its labels"),
        pytest.param(a_request(cpu=1000), 0, 0, 0, id="nothing where nothing could hold it"),
    ],
)
def test_sold_out_is(request_: LaunchRequest, names: int, zones: int, terms: int) -> None:
    found = asked_for(request_, [SMALL, LARGE])
    counted = tuple(len({key[position] for key in found}) for position in range(3))
    assert counted == (names, zones, terms)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (
            a_request(cpu=1000),
            "it requests 1k cpu, the largest instance type of KWOKNodeClass/default has 16",
        ),
        (
            a_request(only("kubernetes.io/arch", "arm64"), cpu=1),
            "none of the 2 instance types of KWOKNodeClass/default satisfies its requirements",
        ),
        (
            a_request(only(ZONE, "zone-z"), cpu=1),
            "none of the 2 instance types of KWOKNodeClass/default satisfies its requirements",
        ),
    ],
)
def test_a_claim_that_fits_nothing_is_told_why(request_: LaunchRequest, why: str) -> None:
    assert too_much(request_, [SMALL, LARGE]) == why


def test_nothing_is_said_of_types_that_are_not_known() -> None:
    asked: Any = too_much(a_request(cpu=1), [])
    assert asked == ""
