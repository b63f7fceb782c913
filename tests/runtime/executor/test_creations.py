"""What is being created counts against the limits of a pool before it can be seen."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.decision import Create
from tenure.model.api.names import REPLACES
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.observations import Observations
from tenure.runtime.executor.creations import Creations
from tests.core.build import a_claim, a_node, a_pool, types
from tests.snapshots import snapshot_with


def create(name: str, replaces: str = "") -> Create:
    """A claim of 4 CPU."""
    claim = a_claim(name, stage=0, annotations={REPLACES: replaces} if replaces else {})
    reason = "Drifted" if replaces else ""
    body = msgspec.to_builtins(claim)
    return Create(resource=NODE_CLAIMS, name=name, body=body, disrupts_for=reason)


def over(creations: Creations, target: str, action: Create, cpu: str) -> str:
    known: list[Any] = [a_pool(limits={"cpu": cpu})]
    for name in ("a", "b"):
        known += [a_claim(name), a_node(f"node-{name}", claim=name)]
    snapshot = snapshot_with(*known, observations=Observations(instance_types=types()))
    return creations.over_limits(target, action, snapshot)


def test_a_replacement_counts_what_is_created_for_pods_in_the_same_turn_and_that_does_not_count_it() -> (
    None
):
    creations, new, pods = Creations(), create("new", replaces="uid-a"), create("pods")
    creations.start("new", new)
    assert over(creations, "new", new, "8") == ""
    creations.start("pods", pods)
    changed = "the cpu that the limits of NodePool general leave has"
    assert over(creations, "new", new, "8") == changed
    assert over(creations, "new", new, "12") == ""
    assert over(creations, "pods", pods, "8") == "", "provisioning knows what there is"


def test_of_two_replacements_one_is_created() -> None:
    creations = Creations()
    first, second = create("first", replaces="uid-a"), create("second", replaces="uid-b")
    for action in (first, second):
        creations.start(action.name, action)
    assert over(creations, "first", first, "8") == ""
    assert over(creations, "second", second, "8") != ""
    creations.ended("first")
    assert over(creations, "second", second, "8") == ""
