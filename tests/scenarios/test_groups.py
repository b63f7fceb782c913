"""Nodes that are replaced together, told in virtual time with the production loop."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tenure.cli.cluster.embedded import scene_of
from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.explain.text import as_text
from tenure.core.decider import AnyDecider
from tenure.core.policy.deciders import deciders
from tenure.core.reasons import Reason
from tenure.model.api.resource import (
    EVENTS,
    NODE_CLAIMS,
    POD_DISRUPTION_BUDGETS,
)
from tenure.model.settings import Settings
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, Manifest, a_pdb, a_pool, a_requirement
from tests.core.disrupt.merged import MERGES
from tests.scenarios.halves import half_empty_nodes, merge, scale_down
from tests.scenarios.signs import is_gone, is_leaving


class Merging(Story):
    def choose(self, settings: Settings) -> Sequence[AnyDecider]:
        return deciders(settings, MERGES)


def two_pools() -> list[Manifest]:
    """The first node is of the pool ``other``, which may have one; the next two are of ``general``."""
    small = a_requirement("node.kubernetes.io/instance-type", "c7i.large")
    rules = {"budgets": [{"nodes": "100%"}], "consolidateAfter": "Never"}
    limits = {"cpu": "2"}
    other = a_pool("other", requirements=[small], disruption=rules, weight=10, limits=limits)
    return [*half_empty_nodes(), other]


def begin(story: Story) -> tuple[list[str], list[str]]:
    """The claims that are merged, and their replacements."""
    scale_down(story)
    old = merge(story)
    assert len(old) == 3
    story.run(20 * SECOND)
    claims = {claim["metadata"]["name"] for claim in story.store.list(NODE_CLAIMS)}
    return old, sorted(claims - set(old))


def pool_of(story: Story, claim: str) -> str:
    labels = story.store.get(NODE_CLAIMS, "", claim)["metadata"]["labels"]
    return str(labels["karpenter.sh/nodepool"])


def pauses(story: Story) -> set[str]:
    """Pools of claims that say that their replacement has failed."""
    failed = "karpenter.sh/replacement-failed"
    claims = story.store.list(NODE_CLAIMS)
    return {
        pool_of(story, one["metadata"]["name"])
        for one in claims
        if failed in one["metadata"].get("annotations", {})
    }


@pytest.mark.parametrize("manifests", [half_empty_nodes(), two_pools()], ids=["one pool", "two"])
def test_three_nodes_are_replaced_by_two(manifests: list[Manifest]) -> None:
    with Merging(*manifests) as story:
        old, new = begin(story)
        assert len(new) == 2
        leaving: list[list[bool]] = []
        for _ in range(60):
            story.run(2 * SECOND)
            leaving.append([is_leaving(story, name) for name in old])
        assert [True, True, True] in leaving
        assert not [one for one in leaving if any(one) and not all(one)], "together, or none"
        story.run(3 * MINUTE)
        assert all(is_gone(story, name) for name in old)
        assert story.running("web") == 3
        assert sorted(one["metadata"]["name"] for one in story.store.list(NODE_CLAIMS)) == new


def test_each_of_them_names_the_others_and_what_it_waits_for() -> None:
    with Merging(*half_empty_nodes()) as story:
        old, new = begin(story)
        for name in old:
            said = story.controller.evaluator.about("NodeClaim", name)
            (waits,) = [one for one in said if one.reason is Reason.REPLACING]
            others = ", ".join(one for one in old if one != name)
            assert f"replaced together with NodeClaims {others}" in waits.message
            assert f"waiting until replacement NodeClaims {', '.join(new)} are" in waits.message
        events = [one for one in story.store.list(EVENTS) if one["reason"] == "Replacing"]
        about = {one["involvedObject"]["name"] for one in events}
        assert set(old) <= about
        assert any("replaced together with" in one["message"] for one in events)


def test_explain_names_the_others() -> None:
    with Merging(*half_empty_nodes()) as story:
        old, new = begin(story)
        answer = explanation(Question(NODE_CLAIMS, old[0]), scene_of(story))
        assert answer is not None
        told = as_text(answer)
        for name in (*old[1:], *new):
            assert name in told


def test_a_failed_replacement_pauses_the_pools_of_all() -> None:
    with Merging(*two_pools()) as story:
        old, new = begin(story)
        assert {pool_of(story, name) for name in old} == {"general", "other"}
        story.store.delete(NODE_CLAIMS, "", new[0])
        story.run(10 * SECOND)
        assert pauses(story) == {"general", "other"}
        assert not any(is_leaving(story, name) for name in old)
        story.run(10 * MINUTE)
        assert all(is_gone(story, name) for name in old), "it was tried again"
        assert len(story.store.list(NODE_CLAIMS)) == 2


def test_a_pdb_that_forbids_the_eviction_of_one_makes_all_wait() -> None:
    with Merging(*half_empty_nodes()) as story:
        old, _ = begin(story)
        story.run(10 * SECOND)
        story.apply(a_pdb(minAvailable=3))
        story.run(3 * MINUTE)
        assert not any(is_leaving(story, name) for name in old)
        reasons = {
            one.reason
            for name in old
            for one in story.controller.evaluator.about("NodeClaim", name)
        }
        assert Reason.DISRUPTION_BLOCKED in reasons
        story.store.delete(POD_DISRUPTION_BUDGETS, "default", "web")
        story.run(3 * MINUTE)
        assert all(is_gone(story, name) for name in old)
