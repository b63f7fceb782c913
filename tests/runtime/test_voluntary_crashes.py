"""Tenure is killed after each single call of a disruption, and it ends as if not.

Of every voluntary method, and of an interruption by the cloud: a node becomes a candidate, its
replacement is launched where it needs one, it is drained and goes. Every write and every call to the
cloud from then on is followed by a death, loses its answer, or arrives when a new leader is at work;
some are refused. Of lost answers and late calls every third is tried in each run, all of them by
``make fuzz``. Each story ends finished, and nothing is doubled or left over. Its pool has a budget
with ``within``, and an Allow window is active.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.api.resource import (
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
)
from tests.builders import MINUTE, SECOND, a_deployment, a_node_class, a_pool, a_requirement
from tests.properties.thoroughness import EXPLORES
from tests.runtime.callfaults import FaultyStory, dies, is_marked, loses, loses_the_lease, refuses
from tests.runtime.taps import Tap

Do = Callable[[FaultyStory, Tap, bool], object]

#: A window that is always active.
FREEZE = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "freeze"},
    "spec": {"actions": ["Drift"]},
}
#: Active while the stories last; they begin at 08:00.
MORNING = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "morning"},
    "spec": {
        "type": "Allow",
        "actions": ["Consolidation", "Drift", "Expiration", "Rebalance"],
        "schedules": [{"cron": "0 8 * * *", "duration": "1h"}],
    },
}
#: One at a time. A start that was recorded before a death may count although it did not happen.
PACED = [{"nodes": "1"}, {"nodes": "2", "within": "1h"}]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One method: what makes a node its candidate, and what is there in the end."""

    begin: Callable[[Voluntary], object] = lambda story: None
    #: How many calls the story has from then on; one that needs more is not covered.
    calls: int
    lasts: timedelta = 6 * MINUTE
    pods: int = 1
    #: How many instances were launched in all.
    launches: int = 2
    #: The first node stays.
    stays: bool = False
    disruption: dict[str, Any] = {}
    template: dict[str, Any] = {}


class Voluntary(FaultyStory):
    def __init__(self, case: Case, fatal: int, do: Do | None, *, paced: bool = True) -> None:
        small = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
        self.case = case
        super().__init__(
            fatal,
            None,
            a_node_class(),
            a_pool(
                requirements=[small],
                disruption={"budgets": PACED if paced else PACED[:1], **case.disruption},
                template=case.template,
            ),
            a_deployment(replicas=1, cpu="1500m"),
            *([MORNING] if paced else []),
        )
        self._armed = do

    def tell(self) -> None:
        self.play(3 * MINUTE)
        self.old = self.the(NODE_CLAIMS)["metadata"]["name"]
        self.count_of_calls, self._do = 0, self._armed
        self.case.begin(self)
        self.play(self.case.lasts)


def scale_to_zero(story: Voluntary) -> None:
    story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})


def drift(story: Voluntary) -> None:
    labels = {"metadata": {"labels": {"example.com/release": "two"}}}
    story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": labels}})


def recommend(story: Voluntary) -> None:
    story.cloud.recommend_rebalance(story.the(NODE_CLAIMS)["status"]["providerID"])


def interrupt(story: Voluntary) -> None:
    story.cloud.interrupt(story.the(NODE_CLAIMS)["status"]["providerID"])


def recommend_and_interrupt(story: Voluntary) -> None:
    """As clouds do it: the interruption comes while the replacement is still coming up."""
    recommend(story)
    story.environment.after(10 * SECOND, partial(interrupt, story))


def drift_and_freeze(story: Voluntary) -> None:
    """A window closes while the replacement comes up: the command is undone, and what was launched."""
    drift(story)
    close = partial(story.store.create, MAINTENANCE_WINDOWS, FREEZE)
    story.environment.after(10 * SECOND, close)


CASES = {
    "Empty": Case(begin=scale_to_zero, calls=24, pods=0, launches=1),
    "Drifted": Case(begin=drift, calls=40),
    "Rebalance": Case(begin=recommend, calls=42),
    "Interrupted": Case(begin=interrupt, calls=40),
    "Interrupted meanwhile": Case(begin=recommend_and_interrupt, calls=46),
    "Expired": Case(calls=40, lasts=12 * MINUTE, template={"expireAfter": "10m"}),
    "Always": Case(
        calls=40,
        lasts=12 * MINUTE,
        template={"expireAfter": "10m"},
        disruption={"expirationPolicy": "Always"},
    ),
    "rolled back": Case(begin=drift_and_freeze, calls=46, stays=True),
}

EVERY = [(name, fatal) for name, case in CASES.items() for fatal in range(1, case.calls + 1)]
SOME = [(name, fatal) for name, fatal in EVERY if fatal % 5 == 1]


def third(which: int) -> list[tuple[str, int]]:
    """Another third of the calls in each case; all of them in ``make fuzz``."""
    return [
        (name, fatal)
        for number, name in enumerate(CASES)
        for fatal in range(1, CASES[name].calls + 1)
        if EXPLORES or (fatal + number) % 3 == which
    ]


def ends_well(story: Voluntary) -> None:
    case = story.case
    assert story.running("web") == case.pods
    claims = story.store.list(NODE_CLAIMS)
    names = {claim["metadata"]["name"] for claim in claims}
    assert len(names) == case.pods, "nothing is doubled or left over"
    assert (story.old in names) is case.stays
    assert not [claim for claim in claims if "deletionTimestamp" in claim["metadata"]]
    instances = sorted(one.claim_uid for one in story.cloud.instances())
    assert instances == sorted(claim["metadata"]["uid"] for claim in claims), "none leaked"
    taints = [t["key"] for n in story.store.list(NODES) for t in n["spec"].get("taints", ())]
    assert DISRUPTED_TAINT not in taints
    assert not [claim for claim in claims if is_marked(claim, claims)], "no mark is left over"
    starts = story.the(NODE_POOLS)["status"].get("disruptionStarts", [])
    assert len([start for start in starts if start["reason"] != "Deleted"]) <= 2
    assert story.cloud.launch_count <= case.launches
    cluster = story.options.settings.cluster_name
    assert story.cloud.announcements.pending(cluster) == (), "every notice is acknowledged"
    story.checkers.assert_kept()


@pytest.mark.parametrize("paced", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_story_ends_well_when_nothing_goes_wrong(name: str, paced: bool) -> None:
    case = CASES[name]
    with closing(Voluntary(case, 0, None, paced=paced)) as story:
        story.tell()
        ends_well(story)
        assert case.calls // 2 < story.count_of_calls <= case.calls


@pytest.mark.parametrize(("name", "fatal"), EVERY)
def test_tenure_dies_after_the_call(name: str, fatal: int) -> None:
    with closing(Voluntary(CASES[name], fatal, dies)) as story:
        story.tell()
        ends_well(story)


@pytest.mark.parametrize(("name", "fatal"), third(0))
def test_the_answer_to_the_call_is_lost(name: str, fatal: int) -> None:
    with closing(Voluntary(CASES[name], fatal, loses)) as story:
        story.tell()
        ends_well(story)


@pytest.mark.parametrize(("name", "fatal"), third(1))
def test_the_call_arrives_when_a_new_leader_is_at_work(name: str, fatal: int) -> None:
    with closing(Voluntary(CASES[name], fatal, loses_the_lease)) as story:
        story.tell()
        ends_well(story)


@pytest.mark.parametrize("do", [dies, refuses])
@pytest.mark.parametrize(("name", "fatal"), SOME)
def test_without_velocity_and_windows_it_ends_well_too(name: str, fatal: int, do: Do) -> None:
    with closing(Voluntary(CASES[name], fatal, do, paced=False)) as story:
        story.tell()
        ends_well(story)
