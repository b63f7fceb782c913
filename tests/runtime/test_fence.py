"""A replica that may not act: what it wanted is held, with the reason, and nothing leaves."""

from __future__ import annotations

from tenure.core.reasons import Reason
from tenure.errors import NotLeader
from tenure.model.api.resource import DEPLOYMENTS
from tenure.ports.cloud import Cloud
from tenure.ports.fence import OPEN
from tenure.runtime.cloud.fenced import FencedCloud
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment
from tests.runtime.worlds import Bench, Switch, Tapped, outcomes


class Hired(Tapped):
    """Its cloud is behind a fence."""

    def __init__(self) -> None:
        super().__init__(*a_cluster(a_deployment(replicas=3)))
        self.fence = Switch()
        self.cloud_api: Cloud = FencedCloud(self.cloud_tap, self.fence)
        self.crash()  # Starts anew, with that cloud.


def test_an_open_fence_changes_nothing() -> None:
    assert OPEN.closed() == ""
    with Hired() as story:
        story.run(3 * MINUTE)
        assert story.running("web") == 3


def test_nothing_is_launched_behind_a_closed_fence_and_everything_is_once_it_opens() -> None:
    with Hired() as story:
        story.run(3 * MINUTE)
        launched = len(story.cloud_tap.of("launch"))
        story.fence.why = "the lease was lost"
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 60}})
        story.run(MINUTE)
        assert len(story.cloud_tap.of("launch")) == launched
        word = outcomes(story, action="Launch")[-1].split(";")[0]
        assert word.startswith("held: nothing was sent: launch for NodeClaim general-")
        assert word.endswith(": the lease was lost")
        story.fence.why = ""
        story.run(5 * MINUTE)
        assert story.running("web") == 60


def test_a_cloud_is_not_even_asked_behind_a_closed_fence() -> None:
    with Hired() as story:
        story.fence.why = "the lease was lost"
        story.run(MINUTE)
        assert story.cloud_tap.calls == []
        assert {str(error) for error in story.errors} == {
            "instance types of default: the lease was lost"
        }


def test_pods_wait_for_instance_types_that_could_not_be_asked_for_behind_a_closed_fence() -> None:
    """The cloud was not asked: it is not known that the pool has no instance types."""
    with Hired() as story:
        story.fence.why = "the lease was lost"
        story.run(MINUTE)
        assert story.reasons("Pod/default/web-*") == [Reason.AWAITING_TYPES]
        story.fence.why = ""
        story.run(30 * SECOND)
        assert Reason.FAILED_SCHEDULING not in story.reasons("Pod/default/web-*")
        story.run(3 * MINUTE)
        assert story.running("web") == 3


def test_nothing_is_ended_behind_a_closed_fence() -> None:
    with Hired() as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        story.fence.why = "the lease was lost"
        story.run(3 * MINUTE)
        assert story.cloud_tap.of("terminate") == []
        story.fence.why = ""
        story.run(3 * MINUTE)
        assert len(story.cloud_tap.of("terminate")) >= 1


def test_the_last_look_before_a_call_asks_the_fence() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        evictions = bench.pods_on("leaving", 2)
        bench.run(SECOND)
        bench.fence.why = "the lease was lost"
        bench.wish(*evictions)
        bench.run(2 * SECOND)
        assert bench.api_tap.of("EVICT") == []
        (why,) = {outcome.split(";")[0] for outcome in outcomes(bench)}
        assert why == "held: nothing is done while we may not act: the lease was lost"
        bench.fence.why = ""
        bench.run(MINUTE)
        assert len(bench.api_tap.of("EVICT")) == 2


def test_a_write_that_the_transport_stopped_is_held_and_tried_again() -> None:
    with Bench() as bench:
        bench.a_leaving_node()
        (eviction,) = bench.pods_on("leaving", 1)
        bench.run(SECOND)
        stop = NotLeader("POST /eviction: the lease was lost")
        bench.api_tap.spoil = lambda verb, what: stop if verb == "EVICT" else None
        bench.wish(eviction)
        bench.run(10 * SECOND)
        assert len(outcomes(bench)) >= 2, "again, after a while"
        assert outcomes(bench)[0].startswith(f"held: nothing was sent: {stop}; again at 2026-")
