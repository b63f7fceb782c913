"""What holds Tenure itself never counts as a failure of the cloud, and ends nothing."""

from __future__ import annotations

from datetime import timedelta

from tenure.errors import ProviderError, RebootNotSupported
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, PODS
from tests.builders import HOUR, MINUTE, SECOND, a_job
from tests.scenarios.test_bad_objects import events, mended, rewritten, unreadable
from tests.scenarios.test_rebooting import Rebooted, ends_well


def test_a_pod_that_cannot_be_read_blocks_a_reboot_and_its_verdict_says_so() -> None:
    with Rebooted() as story:
        story.settle()
        rewritten(story, PODS, unreadable, app="held")
        story.commit("1m0s")
        story.run(30 * MINUTE)
        assert story.says("Rebooting") == ("True", "RebootRequested")
        assert not story.cloud_tap.of("reboot")
        assert "RebootFailed" not in story.events()
        said = [one for one in events(story, "BlockedByUnreadable") if "NodeClaim" in one]
        assert "Pod default/held-" in said[0]
        rewritten(story, PODS, mended, app="held")
        story.until("Rebooting", "False")
        story.run(MINUTE)
        # Its pods had a new Node meanwhile: none is placed beside one that cannot be read.
        assert story.says("Rebooting") == ("False", "RebootSucceeded")
        assert story.node["metadata"]["uid"] == story.first_node["metadata"]["uid"]
        assert story.running() == 4


def test_a_finished_pod_that_cannot_be_read_blocks_no_reboot() -> None:
    with Rebooted() as story:
        story.settle()
        story.apply(a_job("sum"))
        story.pace("sum", run_takes=5 * SECOND)
        story.run(30 * SECOND)
        assert story.the(PODS, app="sum")["status"]["phase"] == "Succeeded"
        rewritten(story, PODS, unreadable, app="sum")
        story.commit("1m0s")
        story.run(10 * MINUTE)
        assert story.says("Rebooting") == ("False", "RebootSucceeded")


def test_a_clock_that_is_wrong_fails_no_reboot() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit("1m0s")
        story.run(50 * SECOND)
        story.infrastructure.faults.set(clock_offset=HOUR)
        story.run(8 * MINUTE)
        assert not story.cloud_tap.of("reboot")
        story.infrastructure.faults.set(clock_offset=timedelta(0))
        story.run(10 * MINUTE)
        ends_well(story)
        assert "RebootFailed" not in story.events()


def test_what_delays_tenure_between_two_calls_does_not_count_either() -> None:
    with Rebooted() as story:
        story.settle()
        failing = ProviderError("throttled")
        story.cloud_tap.spoil = lambda verb, _: failing if verb == "reboot" else None
        story.commit("0s")
        story.run(3 * MINUTE)
        story.infrastructure.faults.set(clock_offset=HOUR)
        story.run(10 * MINUTE)
        story.infrastructure.faults.set(clock_offset=timedelta(0))
        story.run(4 * MINUTE)
        assert story.says("Rebooting") == ("True", "RebootRequested")
        story.cloud_tap.spoil = lambda *_: None
        story.run(10 * MINUTE)
        ends_well(story)


def test_a_new_leader_asks_the_cloud_however_long_there_was_none() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit("1m0s")
        story.run(55 * SECOND)
        story.run_while(
            lambda: story.says("RebootIssued")[0] == "", at_most=MINUTE, step=SECOND / 50
        )
        assert story.says("RebootIssued") == ("Unknown", "Drained")
        assert not story.cloud_tap.of("reboot"), "dies before the call"
        story.crash(stay_down=True)
        story.run(6 * MINUTE)
        story.start()
        story.run(10 * MINUTE)
        ends_well(story)


def test_after_a_failed_reboot_pods_have_its_bound_however_late_the_claim_is_deleted() -> None:
    """The deletion waits here because the clocks disagree; it may as well for a leader."""
    with Rebooted() as story:
        story.settle()
        story.pace("held", stop_takes=25 * SECOND)
        refused = RebootNotSupported("no such rack")
        story.cloud_tap.spoil = lambda verb, _: refused if verb == "reboot" else None
        story.commit("1m0s")
        story.run(59 * SECOND)
        story.run_while(
            lambda: story.says("Rebooting")[0] == "True", at_most=MINUTE, step=SECOND / 50
        )
        story.infrastructure.faults.set(clock_offset=HOUR)
        assert "deletionTimestamp" not in story.claim["metadata"]
        story.run(8 * MINUTE)
        assert "deletionTimestamp" not in story.claim["metadata"]
        story.infrastructure.faults.set(clock_offset=timedelta(0))
        story.run(5 * MINUTE)
        (forced, *_), (ended, *_) = story.when("Disrupted"), story.when("InstanceTerminating")
        assert ended - forced >= 25 * SECOND


def test_the_deletion_of_a_claim_ends_its_reboot_whatever_its_pool() -> None:
    with Rebooted() as story:
        story.settle()
        story.commit("10m0s")
        story.run(10 * SECOND)
        rewritten(story, NODE_POOLS, unreadable)
        gone = story.delete_claim()
        story.run(MINUTE)
        (claim,) = [one for one in story.all(NODE_CLAIMS) if one["metadata"]["name"] == gone]
        (told,) = [one for one in claim["status"]["conditions"] if one["type"] == "Rebooting"]
        assert (told["status"], told["reason"]) == ("False", "RebootCancelled")
