"""How a leader comes to lose the Lease, stops in time, and how fast the next one follows."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.kube.karpenter import NAME
from tests.kube.leasereplicas import NAMESPACE, LeaseSetup, told
from tests.kube.transports import refused

HOUR = timedelta(hours=1)
KEY = f"{NAMESPACE}/{NAME}"


def test_a_clean_stop_hands_over_within_seconds() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(60)
        stopped_at = setup.loop.time()
        await a.stop()
        lease = await setup.lease()
        assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("", 1)
        await asyncio.sleep(3)
        assert b.began[0] - stopped_at < 2.5
        assert (a.elector.fence.closed(), a.working) == ("this replica has stopped", False)

    told(story)


def test_after_a_crash_the_other_waits_as_long_as_the_lease_holds() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(60)
        a.die()
        await asyncio.sleep(13)
        assert not b.leads
        await asyncio.sleep(7)
        assert b.leads

    told(story)


def test_one_that_was_paused_for_longer_than_the_lease_does_nothing_when_it_wakes() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(30)
        a.way.pause()
        await asyncio.sleep(60)
        assert b.leads
        woken_at = setup.loop.time()
        a.way.wake()
        await asyncio.sleep(30)
        assert setup.acts_of(a, since=woken_at) == []
        assert a.sentence.startswith(f"waiting: the Lease {KEY} is held by b since")

    told(story)


def test_time_in_which_the_host_was_suspended_counts_although_no_timer_saw_it() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(30)
        acts = len(setup.acts)
        a.suspended += 3600
        assert a.elector.fence.closed().startswith("the lease was last renewed at 2026-01-05T08:00")
        await asyncio.sleep(10)
        assert len(a.began) == 2, "no other came, and it began anew"
        assert setup.acts[acts][0] == a.began[1], "and did nothing before"

    told(story)


def test_an_api_server_that_is_down_for_twelve_seconds_ends_the_work() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(60)
        a.way.down = True
        await asyncio.sleep(11)
        assert not a.working
        assert not setup.acts_of(a, since=70)
        assert any("is out of reach: 503 ServiceUnavailable" in line for line in a.said)
        assert a.sentence.startswith("stopped: the lease was last renewed at 2026-01-05T08:0")
        await asyncio.sleep(1)
        a.way.down = False
        await asyncio.sleep(5)
        assert (a.leads, len(a.began)) == (True, 2)
        assert a.warned == a.said[1:-1]

    told(story)


def test_an_api_server_that_is_down_for_five_seconds_does_not_interrupt_the_work() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(60)
        a.way.down = True
        await asyncio.sleep(5)
        a.way.down = False
        await asyncio.sleep(10)
        assert len(a.began) == 1
        assert a.sentence.startswith("leading")

    told(story)


@pytest.mark.parametrize(
    ("latency", "began"),
    [
        pytest.param(1.5, 1, id="slow answers are waited for"),
        pytest.param(6.0, 0, id="answers that are too slow are none"),
    ],
)
def test_slow_answers(latency: float, began: int) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        a.way.latency = latency
        await asyncio.sleep(120)
        assert len(a.began) == began

    told(story)


def test_a_client_that_touches_the_lease_does_not_interrupt_the_work() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        for count in range(200):
            await asyncio.sleep(0.3)
            await setup.patch({"metadata": {"annotations": {"note": str(count)}}})
        assert len(a.began) == 1

    told(story)


@pytest.mark.parametrize("down", [False, True], ids=["who looks", "who cannot look"])
def test_who_makes_a_lease_leaves_time_to_whom_it_was_deleted_under(down: bool) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(30)
        a.way.down = down
        await setup.delete()
        b = setup.replica("b")  # Finds none, and makes one.
        await asyncio.sleep(20)
        assert b.leads
        assert setup.acts_of(a)[-1] < b.began[0]

    told(story)


def test_who_makes_a_lease_and_stops_before_it_acts_leaves_that_time_all_the_same() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(30)
        a.way.down = True  # It acts on, until it finds out.
        await setup.delete()
        b = setup.replica("b")  # Finds none, and makes one.
        await asyncio.sleep(1)
        await b.stop()
        c = setup.replica("c")
        await asyncio.sleep(30)
        assert c.leads
        assert setup.acts_of(a)[-1] < c.began[0]

    told(story)


def test_a_lease_that_is_taken_from_us_is_lost_at_the_next_look() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(10)
        mark = {"tenure.dev/identity": "b", "tenure.dev/transitions": "1"}
        record = {"holderIdentity": "b", "leaseTransitions": 1}
        await setup.patch({"metadata": {"annotations": mark}, "spec": record})
        await asyncio.sleep(3)
        assert not a.working
        assert a.elector.fence.closed().startswith(f"waiting: the Lease {KEY} is held by b since")

    told(story)


def test_a_lease_that_is_deleted_is_made_again_and_not_taken_by_another() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(30)
        for _ in range(5):
            await setup.delete()
            await asyncio.sleep(7)
        assert (len(a.began), b.began) == (1, [])
        assert (await setup.lease()).spec.holder_identity == "a"

    told(story)


def test_a_lease_that_is_deleted_with_its_holder_is_made_when_it_would_have_been_free() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(30)
        a.die()
        await setup.delete()
        await asyncio.sleep(14)
        assert b.elector.state.holder == "a"
        await asyncio.sleep(4)
        assert b.elector.state.holder == "b"
        await asyncio.sleep(17)
        assert b.leads

    told(story)


@pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["an hour ahead", "an hour behind"])
def test_the_others_clock_does_not_matter(skew: timedelta) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a", skew=skew)
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(120)
        assert (a.leads, b.began) == (True, [])
        a.die()
        await asyncio.sleep(20)
        assert b.leads

    told(story)


def test_a_namespace_that_is_not_there_is_named() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a", namespace="typo")
        await asyncio.sleep(30)
        (sentence,) = a.warned
        assert sentence.startswith(f"the Lease typo/{NAME} is out of reach: 404 NotFound")
        assert '"typo" not found' in sentence

    told(story)


def test_without_the_permission_to_read_no_replica_acts_and_each_says_why() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        a.way.instead["GET"] = refused(403, "Forbidden")
        await asyncio.sleep(30)
        assert a.said == [f"the Lease {KEY} is out of reach: 403 Forbidden: said Forbidden"]
        assert a.began == []

    told(story)
