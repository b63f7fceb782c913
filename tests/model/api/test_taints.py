"""Tolerations match taints as in Kubernetes."""

from __future__ import annotations

import pytest

from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod, PodSpec, Toleration
from tenure.model.api.taints import tolerates, untolerated

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="gpu", operator="Exists", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="disk", operator="Exists"), False),
        (Toleration(key="gpu", operator="Equal", value="a100"), True),
        (Toleration(key="gpu", value="a100"), True),
        (Toleration(key="gpu", value="h100"), False),
        (Toleration(key="gpu"), False),
        (Toleration(value="a100"), True),
        (Toleration(key="gpu", operator="Gt", value="a100"), False),
    ],
    ids=[
        "exists with key and effect",
        "exists with any effect",
        "exists with any key",
        "exists with any key and the same effect",
        "exists with any key and another effect",
        "exists with another key",
        "equal value",
        "no operator means equal",
        "another value",
        "a missing value is the empty value",
        "an equal value under any key",
        "an unknown operator matches nothing",
    ],
)
def test_a_toleration_matches_by_effect_then_key_then_value(
    toleration: Toleration, expected: bool
) -> None:
    assert tolerates([toleration], GPU) is expected


def test_one_matching_toleration_is_enough() -> None:
    assert tolerates([Toleration(key="gpu"), Toleration(key="gpu", operator="Exists")], GPU)
    assert not tolerates([], GPU)


def test_the_first_taint_that_nothing_tolerates_is_named() -> None:
    disk = Taint(key="disk", effect="NoExecute")
    assert untolerated([GPU, disk], [Toleration(key="gpu", operator="Exists")]) == disk
    assert untolerated([GPU, disk], [Toleration(operator="Exists")]) is None


def test_a_soft_taint_counts_only_when_asked_for() -> None:
    soft = Taint(key="old", effect="PreferNoSchedule")
    assert untolerated([soft], []) is None
    assert untolerated([soft], [], effects=("PreferNoSchedule",)) == soft


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="karpenter.sh/disrupted", operator="Exists"), True),
        (Toleration(key="karpenter.sh/disrupted", operator="Equal"), True),
        (Toleration(key="karpenter.sh/disrupted", operator="Equal", value="yes"), False),
        (Toleration(key="karpenter.sh/disrupted", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"), False),
    ],
    ids=["everything", "exists", "equal", "another value", "another effect", "another key"],
)
def test_a_pod_is_left_alone_if_it_tolerates_the_taint_of_a_leaving_node(
    toleration: Toleration, expected: bool
) -> None:
    assert Pod(spec=PodSpec(tolerations=(toleration,))).tolerates_disruption is expected
