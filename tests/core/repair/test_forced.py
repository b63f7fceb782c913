"""A drain with a deadline: whom it overrules, from when on, and what it never does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.decision import DeletePod, Evict, Verdict
from tenure.core.facts import RetriedAt
from tenure.core.marks.deadline import Deadline
from tenure.core.reasons import REASONS, Reason
from tenure.core.terminate.drain import DrainDecider
from tenure.core.terminate.facts.pods import (
    CuttingGrace,
    Evicting,
    ForceDeletedAt,
    ForceDeleting,
    PdbAllowsNoMore,
    SeveralPdbs,
    TriedFirst,
)
from tenure.model.api.pod import Pod, Toleration
from tenure.model.snapshot.observations import EvictionAnswer
from tests.core.build import (
    NOW,
    a_leaving_claim,
    a_leaving_node,
    a_pdb,
    a_pod,
    about,
    ago,
    ahead,
    condition,
    evaluated,
)

DECIDER = DrainDecider()
#: Of a claim that was deleted half a minute ago.
QUARTER = {"termination_grace_period": "15m"}
DEADLINE = ahead(870)
BOUND = Deadline(DEADLINE, "terminationGracePeriod 15m")
NO = EvictionAnswer(at=ago(1), retry_at=ahead(9), message="Cannot evict pod: budget.")


def on(pod: Pod, *others: Any, now: datetime = NOW, **known: Any) -> Verdict:
    claim = a_leaving_claim(spec=QUARTER)
    verdicts = evaluated(DECIDER, claim, a_leaving_node(), pod, *others, now=now, **known)
    return about(verdicts, f"Pod/default/{pod.name}")


def graceful(seconds: int | None, **fields: Any) -> Pod:
    return a_pod(spec={"termination_grace_period_seconds": seconds}, **fields)


HELD = [
    pytest.param(graceful(600, protected="true"), {}, id="protected for ever"),
    pytest.param(graceful(600, protected="1d"), {}, id="protected by nonsense"),
    pytest.param(graceful(600), {"evictions": {"uid-web": NO}}, id="refused by a budget"),
    pytest.param(graceful(600, owner="DaemonSet"), {}, id="in a later tier"),
]


@pytest.mark.parametrize(("pod", "known"), HELD)
def test_what_protects_a_pod_protects_it_until_its_grace_has_to_begin(
    pod: Pod, known: dict[str, Any]
) -> None:
    plain = a_pod("plain", protected="true")
    before = on(pod, plain, now=ahead(269), **known)
    assert not isinstance(before.action, DeletePod)
    assert before.recheck_at is not None
    assert before.recheck_at <= ahead(270)
    assert before.facts[-1] == ForceDeletedAt(ahead(270))
    then = on(pod, plain, now=ahead(270), **known)
    assert then.reason is Reason.FORCED
    assert then.facts == (ForceDeleting("node-a", BOUND, 600),)
    assert then.action == DeletePod(
        name="web", namespace="default", uid="uid-web", grace_period_seconds=600, until=DEADLINE
    )


def test_a_grace_longer_than_the_nodes_is_cut_at_the_start() -> None:
    verdict = on(graceful(3600))
    assert verdict.reason is Reason.FORCED
    assert isinstance(verdict.action, DeletePod)
    assert verdict.action.grace_at(NOW) == 870


@pytest.mark.parametrize(
    ("now", "seconds"),
    [
        pytest.param(ahead(270), 600, id="in time: all of it"),
        pytest.param(ahead(272.5), 597, id="late: what is left"),
        pytest.param(ahead(869.5), 1, id="in the last second"),
        pytest.param(ahead(900), 1, id="after the deadline: a second, never none"),
    ],
)
def test_a_call_that_leaves_late_gives_what_is_left(now: datetime, seconds: int) -> None:
    action = on(graceful(600), now=ahead(270)).action
    assert isinstance(action, DeletePod)
    assert action.grace_at(now) == seconds


def test_a_pod_without_grace_still_gets_a_second() -> None:
    verdict = on(graceful(0, protected="true"), now=DEADLINE)
    assert isinstance(verdict.action, DeletePod)
    assert verdict.action.grace_at(DEADLINE) == 1


def test_nothing_in_its_way_it_is_evicted_as_ever() -> None:
    verdict = on(graceful(30))
    assert verdict.facts == (Evicting("node-a"),)
    assert isinstance(verdict.action, Evict)
    assert verdict.recheck_at == ahead(840)


def test_a_stop_that_outlives_the_deadline_is_cut_counted_from_its_first_request() -> None:
    pod = graceful(3600, deletion_timestamp=ahead(3500), deletion_grace_period_seconds=3600)
    verdict = on(pod)
    assert verdict.reason is Reason.FORCED
    assert verdict.facts == (CuttingGrace("node-a", BOUND, ahead(3500), 970),)
    assert verdict.action == DeletePod(
        name="web", namespace="default", uid="uid-web", grace_period_seconds=970
    )


def test_one_that_stops_in_time_is_left_to_it() -> None:
    pod = graceful(600, deletion_timestamp=DEADLINE, deletion_grace_period_seconds=600)
    verdict = on(pod)
    assert (verdict.reason, verdict.action) == (Reason.POD_TERMINATING, None)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"phase": "Succeeded"}, id="finished"),
        pytest.param({"owner": "Node"}, id="mirror"),
        pytest.param({"spec": {"tolerations": (Toleration(operator="Exists"),)}}, id="tolerating"),
    ],
)
def test_whom_a_drain_leaves_alone_no_deadline_touches(fields: dict[str, Any]) -> None:
    verdict = on(a_pod(**fields), now=ahead(900))
    assert (verdict.reason, verdict.action) == (Reason.LEFT_ALONE, None)


def test_budgets_are_counted_before_anybody_is_asked() -> None:
    """Three pods, and a budget that spares one: one is asked, the others are not, for a while."""
    pods = [a_pod(f"web-{i}", conditions=[condition("Ready")]) for i in range(3)]
    budget = a_pdb(disruptions_allowed=1, current_healthy=3, desired_healthy=2, expected_pods=3)
    objects = (a_leaving_claim(), a_leaving_node(deletion_timestamp=ago(2)), budget, *pods)
    verdicts = evaluated(DECIDER, *objects)
    assert [type(v.action).__name__ for v in verdicts] == ["Evict", "NoneType", "NoneType"]
    waiting = verdicts[1]
    assert waiting.reason is Reason.EVICTION_WAITS
    why = PdbAllowsNoMore(
        *("default/web", "minAvailable 2"),
        pods=3,
        healthy=3,
        must_be_healthy=2,
        evicted=("default/web-0",),
        uncounted=True,
    )
    assert waiting.facts == (why, RetriedAt(ahead(8)))
    assert verdicts[2].facts == (why, TriedFirst("default/web-1"))
    assert waiting.blockers[0].fact == why
    # A status may be stale: now and then the API is asked all the same, for one of them.
    later = evaluated(DECIDER, *objects, now=ahead(8))
    assert [type(v.action).__name__ for v in later] == ["Evict", "Evict", "NoneType"]


def test_a_pod_under_two_budgets_says_that_it_cannot_be_evicted() -> None:
    other = a_pdb("other", disruptions_allowed=1)
    spare = a_pdb(disruptions_allowed=1)
    node = a_leaving_node(deletion_timestamp=ago(2))
    (verdict,) = evaluated(DECIDER, a_leaving_claim(), node, a_pod(), spare, other)
    assert verdict.facts[0] == SeveralPdbs(("default/other", "default/web"))
    assert [str(b.subject) for b in verdict.blockers] == [
        "PodDisruptionBudget/default/other",
        "PodDisruptionBudget/default/web",
    ]


def test_a_grace_that_overflows_is_cut_so_that_the_pod_stops_by_the_deadline() -> None:
    # Asked to stop at noon; the API server's sum of noon and 10^14 seconds wraps to 2032.
    pod = graceful(
        10**14,
        deletion_timestamp=NOW + timedelta(seconds=200_376_420),
        deletion_grace_period_seconds=10**14,
    )
    verdict = on(pod)
    assert verdict.reason is Reason.FORCED
    assert isinstance(verdict.action, DeletePod)
    assert 869 <= verdict.action.grace_period_seconds <= 870


def test_what_is_lost_is_a_warning_and_a_deadline_alone_is_none() -> None:
    """A drain within its deadline is ordinary; a pod that is deleted in spite of its PDB is not."""
    assert REASONS[Reason.FORCED].event == "Warning"
    assert REASONS[Reason.GRACE_PERIOD_EXPIRING].event == "Normal"
