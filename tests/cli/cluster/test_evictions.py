"""What the API would answer to an eviction, read off the budgets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.cli.cluster.evictions import foresee_refusals
from tenure.model.api.pod import Pod
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.settings import Settings
from tenure.runtime.observe.store import ObservationStore
from tests.core.build import NOW, a_leaving_node, a_pdb, a_pod, ago, condition
from tests.snapshots import snapshot_with


def a_web_pod(name: str = "web", ready: str = "True", **fields: Any) -> Pod:
    return a_pod(name, conditions=(condition("Ready", ready),), **fields)


def always(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    spec = msgspec.structs.replace(budget.spec, unhealthy_pod_eviction_policy="AlwaysAllow")
    return msgspec.structs.replace(budget, spec=spec)


def refused(*objects: Any) -> dict[str, str]:
    """By pod UID: the sentence."""
    observations = ObservationStore()
    foresee_refusals(snapshot_with(a_leaving_node(), *objects), observations, Settings(), NOW)
    return {uid: answer.message for uid, answer in observations.pods.evictions.items()}


SPENT = a_pdb(disruptions_allowed=0, current_healthy=1, desired_healthy=1)
SHORT = a_pdb(disruptions_allowed=0, current_healthy=0, desired_healthy=1)
ALLOWED: dict[str, tuple[Any, ...]] = {
    "a pod without a budget": (a_web_pod(),),
    "a budget of others": (a_web_pod(), a_pdb("other", app="other")),
    "a budget that allows one": (a_web_pod(), a_pdb(disruptions_allowed=1)),
    "a pod that has finished": (a_web_pod(ready="False", phase="Succeeded"), SHORT),
    "a pod that never started": (a_web_pod(ready="False", phase="Pending"), SHORT),
    "a pod that is on its way out": (a_web_pod(deletion_timestamp=ago(1)), SPENT),
    "an unready pod, where enough others are healthy": (a_web_pod(ready="False"), SPENT),
    "an unready pod whose budget lets such go": (a_web_pod(ready="False"), always(SHORT)),
    "a pod of a node that stays": (a_web_pod(node="node-b"), SPENT),
}


@pytest.mark.parametrize("objects", ALLOWED.values(), ids=ALLOWED.keys())
def test_the_api_would_agree(objects: tuple[Any, ...]) -> None:
    assert refused(*objects) == {}


REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "a spent budget": (
        (a_web_pod(), SPENT),
        "PDB default/web allows 0 more disruptions, for pods that are evicted first",
    ),
    "an unready pod, where too few are healthy": (
        (a_web_pod(ready="False"), SHORT),
        "PDB default/web allows 0 more disruptions, for pods that are evicted first",
    ),
    "two budgets, however generous": (
        (
            a_web_pod(),
            a_pdb(disruptions_allowed=9),
            a_pdb("second", disruptions_allowed=9),
        ),
        "2 PDBs cover the pod, and the API evicts no such pod",
    ),
}


@pytest.mark.parametrize(("objects", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_the_api_would_refuse(objects: tuple[Any, ...], sentence: str) -> None:
    assert list(refused(*objects).values()) == [sentence]


def test_each_pod_takes_one_of_what_its_budget_allows() -> None:
    pods = [a_web_pod(f"web-{number}") for number in range(5)]
    assert len(refused(*pods, a_pdb(disruptions_allowed=2))) == 3
