"""What the guard asks before a node with pods is consolidated, by arithmetic of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api import names
from tenure.sim.check.choices import unfounded
from tests.core.build import NOW, a_claim, a_pod, ago, condition
from tests.safety.test_voluntary import OFF, asked

MARKS = {names.REPLACED_BY: "", names.DISRUPTION_REASON: "Underutilized"}


def pod(*, came: float = 600, **fields: Any) -> Any:
    return a_pod(conditions=(condition("PodScheduled", at=ago(came)),), **fields)


def said(*pods: Any, **disruption: Any) -> str:
    return str(asked(a_claim(annotations=MARKS), *pods, **disruption))


def test_a_quiet_node_whose_pods_come_back_may_go() -> None:
    assert asked(a_claim(annotations=MARKS), pod()) is None
    assert asked(a_claim(annotations=MARKS), pod(owner="DaemonSet", came=1)) is None


@pytest.mark.parametrize(
    "block", [{"consolidateAfter": "Never"}, {"consolidationPolicy": "WhenEmpty"}]
)
def test_a_pool_may_keep_it(block: dict[str, str]) -> None:
    assert "does not consolidate nodes with pods" in said(pod(), **block)


def test_a_pod_that_nothing_creates_again_keeps_it() -> None:
    assert "no controller creates it again" in said(pod(owner=""))


@pytest.mark.parametrize(("came", "kept"), [(59, True), (60, False)])
def test_a_pod_that_came_just_now_keeps_it(came: float, kept: bool) -> None:
    assert ("came to Node node-a" in said(pod(came=came), consolidateAfter="1m")) == kept


def test_the_switch_keeps_it() -> None:
    assert "switched off" in str(asked(a_claim(annotations=MARKS), pod(), settings=OFF))


# -- the checkers of the embedded cluster, who share no code with the guard -------------------


def checked(*pods: Any, **disruption: Any) -> str:
    pool = {"spec": {"disruption": {"consolidateAfter": "1m", **disruption}}}
    return unfounded({"metadata": {}}, "Underutilized", pool, pods, NOW)


def a_manifest(came: float = 600, owner: str = "ReplicaSet") -> dict[str, Any]:
    at = ago(came).strftime("%Y-%m-%dT%H:%M:%SZ")
    owners = [{"kind": owner, "controller": True}] if owner else []
    told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return {
        "metadata": {"name": "web", "ownerReferences": owners},
        "status": {"conditions": [told]},
    }


@pytest.mark.parametrize(
    ("pod_", "block", "broken"),
    [
        (a_manifest(), {}, ""),
        (a_manifest(owner=""), {}, "nothing creates pod web again"),
        (a_manifest(came=59), {}, "pod web came within consolidateAfter"),
        (
            a_manifest(),
            {"consolidationPolicy": "WhenEmpty"},
            "its NodePool does not consolidate nodes with pods",
        ),
    ],
)
def test_the_checkers_watch_the_same_promise(
    pod_: dict[str, Any], block: dict[str, str], broken: str
) -> None:
    assert checked(pod_, **block) == broken
