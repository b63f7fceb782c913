"""Whether a claim, Node or pool is ours, whether an instance is missing, and a claim's status."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.conditions import Wanted
from tenure.core.marks.ownership import (
    claim_status,
    class_label,
    is_missing,
    is_our_node,
    is_our_pool,
    is_ours,
)
from tests.core.build import (
    CLASS_LABEL,
    FOREIGN,
    OURS,
    SETTINGS,
    a_claim,
    a_node,
    a_pool,
    ago,
    condition,
)
from tests.snapshots import snapshot_with


def test_a_claim_is_ours_by_the_kind_of_its_class() -> None:
    assert is_ours(a_claim(), snapshot_with())
    assert not is_ours(a_claim(ref=FOREIGN), snapshot_with())
    assert class_label(OURS) == CLASS_LABEL


TWIN = a_claim("b", status={"provider_id": "cloud://a"})


@pytest.mark.parametrize(
    ("objects", "node", "ours"),
    [
        pytest.param([a_claim()], a_node(registered=False), True, id="by its claim"),
        pytest.param([a_claim(ref=FOREIGN)], a_node(), False, id="its claim is another's"),
        pytest.param([], a_node(), True, id="without a claim by its label"),
        pytest.param([], a_node(registered=False), False, id="without claim and label not"),
        pytest.param([a_claim(), TWIN], a_node(), True, id="with two claims by its label"),
    ],
)
def test_a_node_is_ours(objects: Any, node: Any, ours: bool) -> None:
    assert is_our_node(node, snapshot_with(*objects)) is ours


@pytest.mark.parametrize(
    ("launched_at", "listed_at", "missing"),
    [
        (ago(600), ago(480), True),
        (ago(600), ago(481), False),
        (ago(600), None, False),
        (None, ago(5), False),
    ],
    ids=[
        "two minutes after the launch",
        "a second too soon after the launch",
        "it is listed",
        "the time of its launch is unknown",
    ],
)
def test_an_instance_that_is_not_listed_is_missing(
    launched_at: datetime | None, listed_at: datetime | None, missing: bool
) -> None:
    claim = a_claim(conditions=[condition("Launched", at=launched_at)])
    assert is_missing(claim, listed_at, SETTINGS) is missing


def test_an_instance_that_was_never_launched_is_not_missing() -> None:
    assert not is_missing(a_claim(stage=0), ago(5), SETTINGS)


def test_what_a_claim_says_already_is_not_written() -> None:
    assert claim_status(a_claim(), Wanted("Launched", "True", "Launched")) is None


def test_status_fields_are_written_whatever_the_conditions_say() -> None:
    patch = claim_status(a_claim(), status={"nodeName": "node-a"})
    assert patch is not None
    assert patch.body["status"]["nodeName"] == "node-a"
    assert (patch.subresource, patch.resource_version) == ("status", "7")


def test_a_pool_is_ours_by_the_kind_of_its_class() -> None:
    assert is_our_pool(a_pool(), snapshot_with())
    assert not is_our_pool(a_pool(ref=FOREIGN), snapshot_with())
