"""Tenure is killed after each single call of a command that replaces three nodes by two.

Every write and every call to the cloud, from the first replacement on, is followed by a death, loses
its answer, or arrives when a new leader is at work. Or the next leader has forgotten which nodes were
to be merged: what is in the cluster goes on, or is undone. Users and faults come in between. Each story
ends with every pod running, and without marks, taints or instances that are left over; no node goes
before its replacements are there, or before all nodes of its group may (``sim/check``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from tenure.core.decider import AnyDecider
from tenure.core.policy.deciders import deciders
from tenure.model.api.names import DISRUPTED_TAINT, DO_NOT_DISRUPT
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.model.settings import Settings
from tenure.sim.apiserver.objects.tree import Obj
from tests.builders import MINUTE, SECOND
from tests.core.disrupt.merged import FORGETFUL, MERGES
from tests.properties.thoroughness import EXPLORES
from tests.runtime.callfaults import FaultyStory, dies, is_marked, loses, loses_the_lease, refuses
from tests.runtime.taps import Tap
from tests.scenarios.halves import half_empty_nodes, merge, scale_down

Do = Callable[[FaultyStory, Tap, bool], object]

FREEZE = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "freeze"},
    "spec": {"actions": ["Drift"]},
}
#: Starts that were recorded before a death may count although they did not happen.
PACED = [{"nodes": "3"}, {"nodes": "9", "within": "1h"}]
AFTER = 20 * SECOND


class Case(msgspec.Struct, frozen=True, kw_only=True):
    #: What happens while the replacements come up.
    meanwhile: Callable[[Merging], object] = lambda story: None
    #: How many calls the story has; one that needs more is not covered.
    calls: int
    #: How many nodes there may be in the end.
    nodes: tuple[int, ...] = (2,)
    #: All of the first nodes stay.
    stays: bool = False
    lasts: timedelta = 8 * MINUTE


class Merging(FaultyStory):
    def __init__(self, case: Case, fatal: int, do: Do | None, *, forgets: bool = False) -> None:
        self.case, self._forgets, self._starts = case, forgets, 0
        super().__init__(fatal, None, *half_empty_nodes(budgets=PACED))
        self._armed = do

    def choose(self, settings: Settings) -> Sequence[AnyDecider]:
        """``forgets``: a new leader does not know what was to be merged."""
        self._starts += 1
        return deciders(settings, FORGETFUL if self._forgets and self._starts > 2 else MERGES)

    def tell(self) -> None:
        scale_down(self)
        self.count_of_calls, self._do = 0, self._armed
        self.old = merge(self)
        self.environment.after(AFTER, partial(self.case.meanwhile, self))
        self.play(self.case.lasts)


def the_node(story: Merging, name: str) -> Obj | None:
    claim = story.store.find(NODE_CLAIMS, "", name)
    nodes = story.store.list(NODES)
    found = claim["status"].get("nodeName") if claim is not None else None
    return next((node for node in nodes if node["metadata"]["name"] == found), None)


def freeze(story: Merging) -> None:
    story.store.create(MAINTENANCE_WINDOWS, FREEZE)


def delete_a_claim(story: Merging) -> None:
    if story.store.find(NODE_CLAIMS, "", story.old[1]) is not None:
        story.store.delete(NODE_CLAIMS, "", story.old[1])


def delete_a_replacement(story: Merging) -> None:
    news = [one["metadata"]["name"] for one in story.store.list(NODE_CLAIMS)]
    for name in [name for name in news if name not in story.old][:1]:
        story.store.delete(NODE_CLAIMS, "", name)


def lose_a_replacement(story: Merging) -> None:
    claims = story.store.list(NODE_CLAIMS)
    for claim in [one for one in claims if one["metadata"]["name"] not in story.old][:1]:
        if (provider_id := claim.get("status", {}).get("providerID")) is not None:
            story.cloud.vanish(provider_id)


def lose_a_node(story: Merging) -> None:
    claim = story.store.find(NODE_CLAIMS, "", story.old[1])
    if claim is not None:
        story.cloud.vanish(claim["status"]["providerID"])


def delete_a_node(story: Merging) -> None:
    if (node := the_node(story, story.old[1])) is not None:
        story.store.delete(NODES, "", node["metadata"]["name"])


def protect_a_pod(story: Merging) -> None:
    node = the_node(story, story.old[1])
    name = node["metadata"]["name"] if node is not None else None
    for pod in story.store.list(PODS):
        if name is not None and pod["spec"].get("nodeName") == name:
            says = {"metadata": {"annotations": {DO_NOT_DISRUPT: "true"}}}
            story.store.patch(PODS, "default", pod["metadata"]["name"], says)


CASES = {
    "merged": Case(calls=86),
    "a window closes": Case(meanwhile=freeze, calls=84, nodes=(3,), stays=True),
    "a pod is protected": Case(meanwhile=protect_a_pod, calls=80, nodes=(3,), stays=True),
    "a claim is deleted": Case(meanwhile=delete_a_claim, calls=86, nodes=(2, 3)),
    "a Node is deleted": Case(meanwhile=delete_a_node, calls=86, nodes=(2, 3)),
    "a Node is lost": Case(meanwhile=lose_a_node, calls=84, nodes=(2, 3)),
    "a replacement is deleted": Case(meanwhile=delete_a_replacement, calls=150),
    "a replacement is lost": Case(meanwhile=lose_a_replacement, calls=150, lasts=25 * MINUTE),
}


def ends_well(story: Merging, nodes: tuple[int, ...]) -> None:
    assert story.running("web") == 3
    claims = story.store.list(NODE_CLAIMS)
    assert len(claims) in nodes, "none is doubled or left over"
    names = {claim["metadata"]["name"] for claim in claims}
    if story.case.stays:
        assert names == set(story.old)
    elif nodes == (2,):
        assert not names & set(story.old)
    assert not [claim for claim in claims if "deletionTimestamp" in claim["metadata"]]
    instances = sorted(one.claim_uid for one in story.cloud.instances())
    assert instances == sorted(claim["metadata"]["uid"] for claim in claims), "none leaked"
    taints = [t["key"] for n in story.store.list(NODES) for t in n["spec"].get("taints", ())]
    assert DISRUPTED_TAINT not in taints
    assert not [claim for claim in claims if is_marked(claim, claims)], "no mark is left over"
    starts: Any = story.the(NODE_POOLS)["status"].get("disruptionStarts", [])
    assert len([start for start in starts if start["reason"] != "Deleted"]) <= 9
    story.checkers.assert_kept()


def some(every: int, which: int = 0, *, merged: bool = True) -> list[tuple[str, int]]:
    """Of each story one call in so many; all of them in ``make fuzz``."""
    return [
        (name, fatal)
        for number, name in enumerate(CASES)
        for fatal in range(1, CASES[name].calls + 1)
        if EXPLORES or (fatal + number) % every == which or (merged and name == "merged")
    ]


@pytest.mark.parametrize("name", CASES)
def test_the_story_ends_well_when_nothing_goes_wrong(name: str) -> None:
    with closing(Merging(CASES[name], 0, None)) as story:
        story.tell()
        ends_well(story, story.case.nodes)
        assert story.case.calls * 3 // 4 < story.count_of_calls <= story.case.calls
        if name == "merged":
            assert story.cloud.launch_count == 5


@pytest.mark.parametrize(("name", "fatal"), some(6))
def test_tenure_dies_after_the_call(name: str, fatal: int) -> None:
    with closing(Merging(CASES[name], fatal, dies)) as story:
        story.tell()
        ends_well(story, story.case.nodes)
        if name == "merged":
            assert story.cloud.launch_count == 5, "nothing was launched twice"


@pytest.mark.parametrize(("name", "fatal"), some(12, 1))
def test_the_call_arrives_when_a_new_leader_is_at_work(name: str, fatal: int) -> None:
    with closing(Merging(CASES[name], fatal, loses_the_lease)) as story:
        story.tell()
        ends_well(story, story.case.nodes)


@pytest.mark.parametrize(("name", "fatal"), some(15, 2, merged=False))
def test_the_answer_to_the_call_is_lost(name: str, fatal: int) -> None:
    with closing(Merging(CASES[name], fatal, loses)) as story:
        story.tell()
        ends_well(story, story.case.nodes)


@pytest.mark.parametrize(("name", "fatal"), some(15, 3, merged=False))
def test_the_call_is_refused(name: str, fatal: int) -> None:
    with closing(Merging(CASES[name], fatal, refuses)) as story:
        story.tell()
        ends_well(story, story.case.nodes)


@pytest.mark.parametrize("fatal", range(1, CASES["merged"].calls + 1, 1 if EXPLORES else 2))
def test_the_next_leader_has_forgotten_what_was_to_be_merged(fatal: int) -> None:
    """What is committed on one claim is committed on all, or on none: three nodes stay, or two come."""
    with closing(Merging(CASES["merged"], fatal, dies, forgets=True)) as story:
        story.tell()
        ends_well(story, (2, 3))
