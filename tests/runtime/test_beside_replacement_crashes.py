"""Beside Karpenter, Tenure is killed after each single write of a replacement, and it ends as if not.

A node expires by a policy, or is unhealthy; its replacement is created, and Karpenter (which is played) launches it.
Every write from then on is followed by a death, loses its answer, or arrives when a new leader is at work. Each
story ends finished: one node, no mark of ours, nothing doubled or left over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.marks.repaired import MARKS_BESIDE
from tenure.kube.client.client import Client
from tenure.model.api import resource as r
from tenure.runtime.release import Release, release_levers
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.transport import InProcessTransport
from tests.builders import MINUTE, SECOND, a_deployment
from tests.properties.thoroughness import EXPLORES
from tests.runtime.callfaults import FaultyStory, dies, loses, loses_the_lease, refuses
from tests.runtime.taps import Tap
from tests.scenarios.karpenterplayed import Accompanied
from tests.scenarios.test_beside_replacement import (
    a_cluster,
    break_node,
    claims,
    marks_of,
    repaired,
)

Do = Callable[[FaultyStory, Tap, bool], object]

#: From ten seconds after the replacement is created on nothing expires.
FREEZE = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "freeze"},
    "spec": {"actions": ["Expiration"]},
}


class Case(msgspec.Struct, frozen=True, kw_only=True):
    manifests: list[dict[str, Any]]
    begin: Callable[[Accompanied], object] = lambda story: None
    before: timedelta
    lasts: timedelta = 6 * MINUTE
    #: How many writes the story has.
    calls: int
    #: The first node stays.
    stays: bool = False
    launches: int = 2


def freeze_soon(story: Accompanied) -> None:
    def close() -> None:
        if len(claims(story)) < 2:
            story.environment.after(1 * SECOND, close)
        else:
            story.environment.after(10 * SECOND, story.apply, FREEZE)

    close()


CASES = {
    "Expired": Case(manifests=a_cluster(), before=26 * MINUTE, calls=12),
    "Unhealthy": Case(
        manifests=repaired(terminationGracePeriod="5m"),
        begin=break_node,
        before=3 * MINUTE,
        calls=12,
    ),
    "rolled back": Case(
        manifests=a_cluster(), begin=freeze_soon, before=26 * MINUTE, calls=14, stays=True
    ),
}
EVERY = [(name, fatal) for name, case in CASES.items() for fatal in range(1, case.calls + 1)]


def third(which: int) -> list[tuple[str, int]]:
    return [
        (name, fatal)
        for number, name in enumerate(CASES)
        for fatal in range(1, CASES[name].calls + 1)
        if EXPLORES or (fatal + number) % 3 == which
    ]


def tell(name: str, fatal: int, do: Do | None) -> int:
    """How many calls it took."""
    case = CASES[name]
    with closing(Accompanied(*case.manifests, fatal=fatal)) as story:
        story.play(case.before)
        (old,) = claims(story)
        story.count_of_calls, story._do = 0, do
        case.begin(story)
        story.play(case.lasts)
        ends_well(story, case, old)
        return story.count_of_calls


def ends_well(story: Accompanied, case: Case, old: str) -> None:
    found = story.all(r.NODE_CLAIMS)
    assert story.running("web") == 1
    assert len(found) == 1, "nothing is doubled or left over"
    assert (old in claims(story)) is case.stays
    assert "deletionTimestamp" not in found[0]["metadata"]
    left = {"tenure.dev/expired-at"} if case.stays else set()
    assert marks_of(story) == left, "no mark is left over"
    assert story.cloud.launch_count <= case.launches
    assert len(story.cloud.instances()) == 1, "none leaked"
    story.checkers.assert_kept()


@pytest.mark.parametrize("name", CASES)
def test_the_story_ends_well_when_nothing_goes_wrong(name: str) -> None:
    calls = tell(name, 0, None)
    assert CASES[name].calls // 2 < calls <= CASES[name].calls


@pytest.mark.parametrize(("name", "fatal"), EVERY)
def test_tenure_dies_after_the_call(name: str, fatal: int) -> None:
    tell(name, fatal, dies)


@pytest.mark.parametrize(("name", "fatal"), third(0))
def test_the_answer_to_the_call_is_lost(name: str, fatal: int) -> None:
    tell(name, fatal, loses)


@pytest.mark.parametrize(("name", "fatal"), third(1))
def test_the_call_arrives_when_a_new_leader_is_at_work(name: str, fatal: int) -> None:
    tell(name, fatal, loses_the_lease)


@pytest.mark.parametrize(("name", "fatal"), third(2))
def test_the_call_is_refused_once(name: str, fatal: int) -> None:
    tell(name, fatal, refuses)


@pytest.mark.parametrize(("name", "fatal"), third(0))
def test_after_a_death_release_leaves_no_mark_and_takes_no_node_with_pods(
    name: str, fatal: int
) -> None:
    """``tenure release``, twice, and once more when Karpenter has gone on; the deadline of a claim that leaves stays."""
    case = CASES[name]
    with closing(Accompanied(*case.manifests, fatal=fatal)) as story:
        story.play(case.before)
        story.count_of_calls, story._do = 0, dies
        case.begin(story)
        story.run_while(lambda: not story.happened, at_most=case.lasts, step=1 * SECOND)
        story.crash(stay_down=True)
        story.api_tap.thaw()
        story.cloud_tap.thaw()
        client = Client(InProcessTransport(Api(story.store)))
        released(story, client)
        leaving = [c for c in story.all(r.NODE_CLAIMS) if "deletionTimestamp" in c["metadata"]]
        assert marks_of(story) <= (set(MARKS_BESIDE) if leaving else set())
        assert released(story, client) == []
        story.run(5 * MINUTE)
        assert released(story, client) == []
        assert marks_of(story) == set()
        assert story.running("web") == 1
        assert len(story.cloud.instances()) == len(claims(story))


def released(story: Accompanied, client: Client) -> list[Release]:
    return story.loop.run_until_complete(release_levers(client))


def test_karpenter_is_gone_for_an_hour_while_a_replacement_is_awaited() -> None:
    """Nothing is forced: the node stays, and the command goes on when Karpenter is back."""
    with closing(Accompanied(*a_cluster())) as story:
        story.play(26 * MINUTE)
        (old,) = claims(story)
        story.stop_karpenter()
        story.play(20 * MINUTE)
        assert old in claims(story)
        assert story.running("web") == 1
        story.start_karpenter()
        story.play(60 * MINUTE)
        assert old not in claims(story)
        assert marks_of(story) == set()
        story.checkers.assert_kept()


def test_a_pod_that_comes_to_a_node_without_pods_gets_a_replacement_first() -> None:
    """Between the command and its end: a new pod lands there, and Karpenter has not closed the Node."""
    with closing(Accompanied(*a_cluster())) as story:
        story.play(5 * MINUTE)
        story.store.patch(r.DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        story.play(20 * MINUTE)
        (old,) = claims(story)
        story.apply(a_deployment("late", replicas=1, cpu="1500m"))
        story.play(20 * MINUTE)
        assert old not in claims(story)
        assert story.running("late") == 1
        story.checkers.assert_kept()
