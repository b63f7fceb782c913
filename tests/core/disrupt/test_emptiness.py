"""Whether a node is empty: which pods count, which are expected, and what the claim says of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.core.decision import Verdict
from tenure.core.disrupt.emptiness import EmptinessDecider
from tenure.core.disrupt.facts.candidates import (
    CandidateFrom,
    NodeIsEmpty,
    PodsNominated,
    ReservedForPods,
)
from tenure.core.reasons import Reason
from tenure.model.api.meta import FOR_EVER, Condition
from tenure.model.api.names import NOMINATED_PODS, REPLACED_BY, REPLACES
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.unreadable import stand_in
from tests.core.build import (
    INITIALIZED,
    REGISTERED,
    TEN_MINUTES_AGO,
    a_claim,
    a_class,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pod,
    a_pool,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
    said,
)

SAID = condition("Empty", at=ago(60))


def pending(*, since: int = 5, **fields: Any) -> Any:
    told = condition("PodScheduled", "False", "Unschedulable", at=ago(since))
    return a_pod(node="", phase="Pending", conditions=[told], **fields)


def verdicts(*objects: Any, **fields: Any) -> list[Verdict]:
    pools = [] if any(isinstance(one, NodePool) for one in objects) else [a_pool()]
    return evaluated(EmptinessDecider(), a_class(), *pools, *objects, **fields)


def verdict_on(*objects: Any, **fields: Any) -> Verdict:
    (found,) = (one for one in verdicts(*objects, **fields) if one.subject.name == "a")
    return found


def types_of(verdict: Verdict) -> set[str]:
    return {one["type"] for one in body_of(verdict)["status"]["conditions"]}


def test_a_node_without_pods_is_empty_from_now_on() -> None:
    told = verdict_on(a_claim(), a_node())
    assert (told.reason, told.facts) == (Reason.NODE_EMPTY, (NodeIsEmpty("node-a"),))
    assert said(told)["Empty"] == ("True", "NoReschedulablePods")


def test_its_conditions_are_written_once_and_keep_their_clock() -> None:
    told = verdict_on(a_claim(conditions=said_already()), a_node())
    due = ago(60) + timedelta(seconds=15)
    assert told.facts == (NodeIsEmpty("node-a", ago(60)), CandidateFrom(due, "0s", "15s"))
    assert told.action is None


def said_already() -> list[Condition]:
    message = str(NodeIsEmpty("node-a"))
    return [
        condition("Empty", "True", "NoReschedulablePods", message, at=ago(60)),
        condition("Consolidatable", "True", "ConsolidateAfterElapsed", message, at=ago(60)),
    ]


def test_it_is_consolidatable_when_consolidate_after_is_over() -> None:
    pool = a_pool(disruption={"consolidateAfter": "70s"})
    first = verdict_on(pool, a_claim(), a_node())
    assert first.recheck_at is None, "the span begins with the write"
    empty, consolidatable = said_already()
    early = verdict_on(pool, a_claim(conditions=[empty]), a_node())
    assert (early.action, early.recheck_at) == (None, ahead(10))
    due = verdict_on(pool, a_claim(conditions=[empty]), a_node(), now=ahead(10))
    assert said(due)["Consolidatable"] == ("True", "ConsolidateAfterElapsed")
    assert due.recheck_at is None
    longer = verdict_on(pool, a_claim(conditions=[empty, consolidatable]), a_node())
    assert "Consolidatable" not in types_of(longer), "consolidateAfter was raised"


def test_it_is_consolidatable_at_once_without_consolidate_after() -> None:
    told = verdict_on(a_pool(disruption={"consolidateAfter": "0s"}), a_claim(), a_node())
    assert {"Empty", "Consolidatable"} <= types_of(told)
    occupied = verdict_on(a_claim(conditions=said_already()), a_node(), a_pod())
    assert not {"Empty", "Consolidatable"} & types_of(occupied)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod(phase="Pending"),
        a_pod(owner=""),
        a_pod(owner="Job"),
        a_pod(owner="StatefulSet", deletion_timestamp=ago(5)),
        a_pod(spec={"tolerations": ()}, protected="true"),
        stand_in(a_pod(), "spec: nonsense"),
    ],
    ids=["running", "pending", "bare", "job", "stateful", "protected", "unreadable"],
)
def test_a_pod_that_would_move_or_be_lost_counts(pod: Any) -> None:
    assert verdicts(a_claim(), a_node(), pod) == []
    told = verdict_on(a_claim(conditions=[SAID]), a_node(), pod)
    assert told.reason is Reason.NODE_NOT_EMPTY
    assert "Empty" not in types_of(told)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(owner="DaemonSet"),
        a_pod(owner="Node"),
        a_pod(phase="Succeeded"),
        a_pod(phase="Failed"),
        a_pod(deletion_timestamp=ago(5)),
        a_pod(node="node-b"),
    ],
    ids=["daemon", "mirror", "succeeded", "failed", "terminating", "elsewhere"],
)
def test_other_pods_do_not_count(pod: Any) -> None:
    assert verdict_on(a_claim(), a_node(), pod).reason is Reason.NODE_EMPTY


def test_a_nominated_pod_is_expected_until_the_scheduler_should_have_bound_it() -> None:
    claim = a_claim(
        annotations={NOMINATED_PODS: "uid-web"},
        conditions=[condition("Initialized", at=ago(10)), SAID],
    )
    node = a_node(creation_timestamp=ago(60))
    told = verdict_on(claim, node, pending(since=50))
    assert told.facts == (PodsNominated("a", ("default/web",), ahead(20)),)
    assert told.recheck_at == ahead(20)
    assert "Empty" not in types_of(told)
    late = verdict_on(claim, node, pending(since=50), now=ahead(20))
    assert late.reason is Reason.NODE_EMPTY


def test_a_nominated_pod_of_a_terminating_node_is_expected_until_it_is_evicted() -> None:
    claim = a_claim(annotations={NOMINATED_PODS: "uid-web"}, conditions=[SAID])
    other = a_leaving_claim("b"), a_leaving_node("node-b", claim="b")
    told = verdict_on(claim, a_node(), *other, a_pod(node="node-b"))
    assert told.facts == (PodsNominated("a", ("default/web",), FOR_EVER),)
    assert told.recheck_at is None
    stays = verdict_on(claim, a_node(), *other, a_pod(node="node-b", owner="DaemonSet"))
    assert stays.reason is Reason.NODE_EMPTY


def test_a_node_where_the_scheduler_preempts_pods_is_not_empty() -> None:
    """The pods that are there stop, and the pod that they stop for comes then."""
    stops = a_pod("victim", deletion_timestamp=ahead(30))
    claim, node = a_claim(conditions=[SAID]), a_node()
    told = verdict_on(claim, node, stops, pending(name="vip", nominated="node-a"))
    assert told.reason is Reason.NODE_NOT_EMPTY
    told = verdict_on(claim, node, stops, pending(name="vip", nominated="node-b"))
    assert told.reason is Reason.NODE_EMPTY


def test_a_node_that_a_pod_is_about_to_be_bound_to_is_not_empty() -> None:
    """Its volume is made meanwhile, which may take minutes. An agent of the node does not count, here either."""
    claim, node = a_claim(conditions=[SAID]), a_node()
    comes = a_pod("db-0", node="", phase="Pending", nominated="node-a")
    assert verdict_on(claim, node, comes).reason is Reason.NODE_NOT_EMPTY
    agent = a_pod("agent", node="", phase="Pending", nominated="node-a", owner="DaemonSet")
    assert verdict_on(claim, node, agent).reason is Reason.NODE_EMPTY


def test_a_pod_that_is_nominated_elsewhere_or_bound_is_not_expected() -> None:
    claim = a_claim(annotations={NOMINATED_PODS: "uid-web"})
    bound = a_pod(node="node-b")
    assert verdict_on(claim, a_node(), bound).reason is Reason.NODE_EMPTY
    assert verdict_on(a_claim(), a_node(), pending()).reason is Reason.NODE_EMPTY


@pytest.mark.parametrize(
    "replaced",
    [
        a_claim("b", annotations={REPLACED_BY: "a"}),
        a_claim("b"),
        a_leaving_claim("b", annotations={REPLACED_BY: "a"}),
    ],
    ids=["command", "about to begin", "drains"],
)
def test_a_replacement_is_reserved_as_long_as_the_other_node_is_there(replaced: Any) -> None:
    claim = a_claim(annotations={REPLACES: "uid-b"}, conditions=[SAID])
    told = verdict_on(claim, a_node(), replaced, a_node("node-b", claim="b"))
    assert told.facts == (ReservedForPods("a", "b"),)
    assert "Empty" not in types_of(told)


def test_a_replacement_of_a_claim_that_is_gone_is_a_node_like_any_other() -> None:
    claim = a_claim(annotations={REPLACES: "uid-b"})
    assert verdict_on(claim, a_node()).reason is Reason.NODE_EMPTY


@pytest.mark.parametrize(
    "pool",
    [
        a_pool(disruption={"consolidateAfter": "Never"}),
        a_pool(disruption={"consolidateAfter": "soon"}),
        a_pool(replicas=1),
        a_pool("other"),
    ],
    ids=["Never", "unreadable", "static", "gone"],
)
def test_nothing_is_said_where_nothing_reads_it(pool: NodePool) -> None:
    assert verdicts(pool, a_claim(), a_node()) == []
    told = verdict_on(pool, a_claim(conditions=[SAID]), a_node())
    assert "Empty" not in types_of(told)


@pytest.mark.parametrize("stage", [REGISTERED, INITIALIZED])
def test_a_node_is_not_empty_before_it_is_initialized(stage: int) -> None:
    assert bool(verdicts(a_claim(stage=stage), a_node())) is (stage == INITIALIZED)


def test_a_claim_that_shares_its_instance_is_not_empty() -> None:
    twin = a_claim("b", status={"provider_id": "cloud://a"})
    assert verdicts(a_claim(), twin, a_node()) == []


def test_a_node_that_is_initialized_for_long_is_empty_at_once() -> None:
    claim = a_claim(conditions=[condition("Initialized", at=TEN_MINUTES_AGO)])
    assert verdict_on(claim, a_node()).recheck_at is None
