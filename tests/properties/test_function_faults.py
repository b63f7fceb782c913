"""A fault in a function, and in no object: its keys fail loudly, and nothing else happens."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Concern
from tenure.core.policy.deciders import UNMOVED, decide_all, deciders
from tenure.core.provision import vacating as provision
from tenure.core.reasons import Reason
from tenure.core.unreadable.decider import UnreadableDecider
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import NODEPOOL
from tenure.model.snapshot.observations import Observations
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.evaluate.facts import EvaluationFails, KeysUnknown
from tenure.runtime.evaluate.isolation import ALIKE_MAX
from tests.core.build import (
    a_claim,
    a_class,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pending_pod,
    a_pod,
    a_pool,
    a_type,
    a_window,
    ago,
    meta,
    types,
)
from tests.properties.deciderchecks import SETTINGS
from tests.properties.drawn.basics import NOW
from tests.snapshots import snapshot_with

#: More of everything than may fail at one line without being a fault of ours.
MANY = ALIKE_MAX + 2
CONCERNS = [d.concern for d in deciders() if not isinstance(d, UnreadableDecider)]


def a_cluster() -> list[ApiObject]:
    found: list[ApiObject] = [a_class()]
    for n in range(MANY):
        pool = {NODEPOOL: f"pool-{n}"}
        found += [
            a_pool(f"pool-{n}"),
            a_pdb(f"web-{n}"),
            msgspec.structs.replace(a_window(), metadata=meta(f"window-{n}")),
            a_claim(f"stays-{n}", labels=pool),
            a_node(f"node-stays-{n}", claim=f"stays-{n}", labels=pool),
            a_pod(f"runs-{n}", node=f"node-stays-{n}", namespace=f"ns-{n}"),
            a_leaving_claim(f"leaves-{n}", labels=pool),
            a_leaving_node(f"node-leaves-{n}", claim=f"leaves-{n}", labels=pool),
            a_pod(f"goes-{n}", node=f"node-leaves-{n}", namespace=f"ns-{n}"),
            a_pending_pod(f"waits-{n}", since=ago(120), namespace=f"ns-{n}"),
        ]
    return found


def evaluated(snapshot: Snapshot, all_deciders: Any) -> Evaluator:
    evaluator = Evaluator(all_deciders, SETTINGS, unmoved=UNMOVED)
    evaluator.evaluate(snapshot, (), (), NOW)
    return evaluator


def a_snapshot() -> Snapshot:
    known = Observations(instance_types=types(a_type()))
    return snapshot_with(*a_cluster(), observations=known)


def fail(*_: object) -> Any:
    raise ZeroDivisionError("of no object's making")


@pytest.mark.parametrize("part", ["keys", "view", "decide"])
@pytest.mark.parametrize("concern", CONCERNS)
def test_a_fault_in_a_function_of_a_decider_is_blamed_on_no_object(
    concern: Concern, part: str
) -> None:
    snapshot, all_deciders = a_snapshot(), deciders()
    (broken,) = (d for d in all_deciders if d.concern is concern)
    keys = set(broken.keys(snapshot))
    decided = [key for key in keys if broken.view(snapshot, key) is not None]
    expected = {"keys": 1, "view": len(keys), "decide": len(decided)}
    for name in (part, "deciding") if part == "decide" else (part,):
        if hasattr(broken, name):
            setattr(broken, name, fail)
    evaluator = evaluated(snapshot, all_deciders)
    assert snapshot.unreadable() == {}
    failing = evaluator.failing()
    assert [verdict.concern for verdict in failing] == [concern] * expected[part]
    errors = [
        fact.error
        for v in failing
        for fact in v.facts
        if isinstance(fact, EvaluationFails | KeysUnknown)
    ]
    assert len(errors) == len(failing)
    assert all(error.startswith("ZeroDivisionError: of no object's making (") for error in errors)
    if concern in (Concern.LIFECYCLE, Concern.NODE, Concern.POOL, Concern.PROVISIONING):
        told = {v.subject.kind for v in evaluator.in_force() if v.reason is Reason.JUDGEMENT_FAILED}
        assert told == {"Evaluation", "NodePool"}
    others = [d for d in all_deciders if d.concern is not concern]
    full = [v for d in others for v in decide_all(d, snapshot, SETTINGS, NOW)]
    found = [v for v in evaluator.in_force() if v.concern is not concern]
    assert sorted(map(repr, found)) == sorted(map(repr, full)), "others go on"


@pytest.mark.parametrize("pods", [1, 40])
def test_a_fault_in_packing_is_blamed_on_no_pod(pods: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = []

    def packing(problem: Any) -> Any:
        pods = problem.pods
        packed.append(len(pods))
        return 1 // (len(pods) - len(pods))

    monkeypatch.setattr(provision, "packing_steps", packing)
    known = Observations(instance_types=types(a_type()))
    waiting = [a_pending_pod(f"waits-{n}", since=ago(120)) for n in range(pods)]
    snapshot = snapshot_with(a_class(), a_pool(), *waiting, observations=known)
    evaluator = evaluated(snapshot, deciders())
    assert snapshot.unreadable() == {}
    assert packed == [pods]
    (failed,) = evaluator.failing()
    assert failed.concern is Concern.PROVISIONING
    about = {str(v.subject) for v in evaluator.in_force() if v.reason is Reason.JUDGEMENT_FAILED}
    assert about == {"Evaluation/provisioning/cluster", "NodePool/general"}


def test_a_fault_in_a_function_that_is_asked_of_every_pod_is_blamed_on_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def packing(problem: Any) -> Any:
        for pod in problem.pods:
            fail(pod)

    monkeypatch.setattr(provision, "packing_steps", packing)
    snapshot = a_snapshot()
    evaluator = evaluated(snapshot, deciders())
    assert snapshot.unreadable() == {}
    assert [v.concern for v in evaluator.failing()] == [Concern.PROVISIONING]
