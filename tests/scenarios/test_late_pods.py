"""The watch of pods is late: a node that goes is asked for its pods once more, directly.

The taint closes a node for the scheduler, and says nothing of the pods that were bound before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Final

import pytest

from tenure.errors import Unavailable
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, PODS
from tests.builders import MINUTE, SECOND, a_deployment, a_pdb, a_pod
from tests.runtime.worlds import Tapped, outcomes
from tests.scenarios.fleets import a_cluster, label_template, scale, the_claim
from tests.scenarios.signs import is_gone, is_leaving, is_tainted, replacement_of, says, warned
from tests.scenarios.test_command_stories import run_until

#: Two minutes: less than a watch may be silent before it is looked at.
LATE: Final = 120.0
#: A node that is empty is a candidate after this.
EMPTY_FOR: Final = timedelta(minutes=1)
#: Commands under way are rolled back.
CLOSED: Final = {"budgets": [{"nodes": "0"}]}


@contextmanager
def an_empty_node() -> Iterator[tuple[Tapped, str, str]]:
    """It is about to go; from now on the watch of pods is late."""
    with Tapped(*a_cluster(a_deployment(cpu="500m"), consolidateAfter="1m")) as story:
        story.run(5 * MINUTE)
        node, claim = the_claim(story)
        scale(story, 0)
        story.run(EMPTY_FOR - 5 * SECOND)
        assert says(story, claim, "Empty") is not None
        assert not is_tainted(story, node)
        story.api_tap.lag[PODS] = LATE
        yield story, node, claim


def bind(story: Tapped, node: str, name: str = "late", **annotations: str) -> None:
    """A scheduler has chosen the node, and Tenure has not heard of it."""
    pod = a_pod(name, cpu="100m", nodeName=node)
    pod["metadata"]["annotations"] = annotations
    story.apply(pod)


def is_known(story: Tapped, pod: str = "late") -> bool:
    return f"default/{pod}" in story.controller.snapshot().pods


def deleted_claims(story: Tapped) -> list[str]:
    """Those that Tenure has asked to delete."""
    return [call.what.rpartition("/")[2] for call in story.api_tap.of("DELETE", "/nodeclaims/")]


def test_a_node_is_not_empty_if_a_pod_was_bound_that_the_watch_has_not_shown() -> None:
    with an_empty_node() as (story, node, claim):
        bind(story, node)
        story.run(SECOND)
        assert not is_known(story)
        story.run(MINUTE)
        assert not is_leaving(story, claim)
        assert story.running("late") == 1
        assert "DisruptionCancelled" in story.reasons(f"NodeClaim/{claim}")
        assert not is_tainted(story, node), "the command is rolled back"
        assert deleted_claims(story) == []
        (held,) = outcomes(story, f"NodeClaim/{claim}", "Delete")
        assert held.startswith(
            f"held: Pod default/late of Node {node} has changed since it was evaluated"
        )
        story.api_tap.lag.clear()
        story.run(30 * MINUTE)
        assert not is_leaving(story, claim)
        story.checkers.assert_kept()


def test_an_empty_node_goes_although_the_watch_of_pods_is_late() -> None:
    with an_empty_node() as (story, _, claim):
        story.run(2 * MINUTE)
        assert is_gone(story, claim)


def test_its_pods_are_listed_once_and_for_this_node_alone() -> None:
    with an_empty_node() as (story, node, claim):
        story.run(2 * MINUTE)
        assert is_gone(story, claim)
        lists = [one.query for one in story.api_tap.reads if one.path == PODS.path()]
        selected = [dict(query) for query in lists if "fieldSelector" in query]
        once = {"fieldSelector": f"spec.nodeName={node}"}
        assert selected == [once, once], "quorum reads: before its claim goes, and its instance"


def test_while_its_pods_cannot_be_listed_it_stays() -> None:
    with an_empty_node() as (story, _, claim):
        down = Unavailable("the API server is away")
        story.api_tap.spoil = lambda verb, what: (
            down if (verb, what) == ("GET", PODS.path()) else None
        )
        story.run(30 * SECOND)
        assert deleted_claims(story) == []
        assert outcomes(story, f"NodeClaim/{claim}", "Delete")[0].startswith("failed: ")
        story.api_tap.spoil = lambda verb, what: None
        story.run(3 * MINUTE)
        assert is_gone(story, claim)


@pytest.mark.parametrize("protection", ["annotation", "PDB"])
def test_a_drifted_node_stays_if_a_pod_came_that_must_not_be_evicted(protection: str) -> None:
    """It is found out when its replacement is initialized."""
    with Tapped(*a_cluster(a_deployment(cpu="500m"), a_pdb("late", maxUnavailable=0))) as story:
        story.run(5 * MINUTE)
        node, claim = the_claim(story)
        label_template(story, "two")
        story.run(2 * SECOND)
        story.api_tap.lag[PODS] = LATE
        if protection == "annotation":
            bind(story, node, "kept", **{DO_NOT_DISRUPT: "true"})
        else:
            bind(story, node)
        story.run(100 * SECOND)
        assert story.cloud.launch_count == 2, "the replacement was there"
        if protection == "annotation":
            assert "DisruptionCancelled" in story.reasons(f"NodeClaim/{claim}")
            assert not is_tainted(story, node)
        else:
            assert warned(story, "PDB default/late allows 0 more disruptions")
        assert claim not in deleted_claims(story)
        story.api_tap.lag.clear()
        story.run(30 * MINUTE)
        assert not is_leaving(story, claim)
        story.checkers.assert_kept()


def test_a_replacement_that_is_left_over_stays_if_a_pod_came() -> None:
    with Tapped(*a_cluster(a_deployment(cpu="500m"))) as story:
        story.run(5 * MINUTE)
        node, claim = the_claim(story)
        label_template(story, "two")
        run_until(story, lambda: is_tainted(story, node))
        run_until(story, lambda: "nodeName" in replacement_of(story, claim)["status"])
        new = replacement_of(story, claim)
        story.api_tap.lag[PODS] = LATE
        bind(story, new["status"]["nodeName"])
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"disruption": CLOSED}})
        story.run(100 * SECOND)
        assert "ReplacementLeftOver" in story.reasons(f"NodeClaim/{new['metadata']['name']}")
        assert deleted_claims(story) == []
        assert story.running("late") == 1
        story.checkers.assert_kept()


def test_what_kubelets_say_of_pods_holds_nothing_back() -> None:
    """Their status changes all the time; what a disruption depends on does not."""
    with Tapped(*a_cluster(a_deployment(cpu="500m"))) as story:
        story.run(5 * MINUTE)
        _, claim = the_claim(story)
        pod = story.the(PODS)["metadata"]["name"]
        label_template(story, "two")
        story.run(2 * SECOND)
        story.api_tap.lag[PODS] = LATE
        turns = count()

        def flap() -> bool:
            status = "True" if next(turns) % 2 else "False"
            ready = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
            story.store.patch(PODS, "default", pod, ready, subresource="status")
            return not is_leaving(story, claim)

        story.run_while(flap, at_most=100 * SECOND, step=SECOND)
        assert outcomes(story, f"NodeClaim/{claim}", "Delete")[:1] == ["ok"]


def test_a_pod_that_is_not_known_yet_is_drained_from_a_claim_that_a_user_deletes() -> None:
    """Else its instance would end under the pod: no eviction, no grace."""
    with Tapped(*a_cluster(a_deployment(cpu="500m"))) as story:
        story.run(5 * MINUTE)
        node, claim = the_claim(story)
        story.api_tap.lag[PODS] = LATE
        bind(story, node)
        story.run(5 * SECOND)
        assert (is_known(story), story.running("late")) == (False, 1)
        story.store.delete(NODE_CLAIMS, "", claim)
        run_until(story, lambda: bool(outcomes(story, f"Node/{node}", "Terminate")))
        (held,) = outcomes(story, f"Node/{node}", "Terminate")
        assert held.startswith("held: Pod default/late was not known")
        assert is_known(story)
        story.run(10 * MINUTE)
        assert is_gone(story, claim)
        assert story.api_tap.of("EVICT", "/pods/late/eviction")
        story.checkers.assert_kept()


def test_pods_are_listed_once_before_an_instance_is_terminated() -> None:
    with Tapped(*a_cluster(a_deployment(cpu="500m"))) as story:
        story.run(5 * MINUTE)
        node, claim = the_claim(story)
        story.store.delete(NODE_CLAIMS, "", claim)
        story.run(5 * MINUTE)
        assert is_gone(story, claim)
        lists = [one.query for one in story.api_tap.reads if one.path == PODS.path()]
        selected = [dict(query) for query in lists if "fieldSelector" in query]
        assert selected == [{"fieldSelector": f"spec.nodeName={node}"}]
