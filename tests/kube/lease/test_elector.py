"""One replica acts: how it comes to that, and what becomes of its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import pytest

from tenure.errors import SpecError
from tenure.kube.client.client import Client
from tenure.kube.lease.elector import Elector
from tenure.kube.lease.record import micro_time, new_identity, skew_of
from tenure.kube.lease.status import LeaseRole
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.workload import Lease
from tenure.model.settings import Settings
from tests.kube.karpenter import NAME
from tests.kube.leasereplicas import EPOCH, NAMESPACE, LeaseSetup, told

HOUR = timedelta(hours=1)
KEY = f"{NAMESPACE}/{NAME}"


# Whether the work makes progress.


def test_work_that_is_stuck_loses_the_lease_to_another_and_gets_it_back_later() -> None:
    async def story(setup: LeaseSetup) -> None:
        stuck = [""]
        a = setup.replica("a", stuck=lambda: stuck[0])
        await asyncio.sleep(20)
        b = setup.replica("b")
        await asyncio.sleep(20)
        assert a.leads
        stuck[0] = "the control loop makes no progress: a turn is overdue by 31 s"
        await asyncio.sleep(6)
        assert (a.leads, a.working, b.leads) == (False, False, True)
        (warning,) = a.warned
        assert warning == f"stopped: {stuck[0]}; the Lease {KEY} is given back"
        stuck[0] = ""
        await b.stop()
        await asyncio.sleep(30)
        assert a.leads

    told(story)


def test_work_that_makes_progress_keeps_the_lease_however_long_it_takes() -> None:
    async def story(setup: LeaseSetup) -> None:
        a, b = setup.replica("a", stuck=lambda: ""), setup.replica("b")
        await asyncio.sleep(600)
        assert (len(a.began) + len(b.began)) == 1

    told(story)


# Getting it.


def test_the_first_one_makes_the_lease_holds_it_once_without_acting_and_leads() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(14)
        (sentence,) = a.said
        assert sentence.startswith(f"waiting: there was no Lease {KEY}; the holder of one")
        assert sentence.endswith("has until 2026-01-05T08:00:15Z to find out")
        assert (a.elector.state.holder, a.leads) == ("a", False)
        await asyncio.sleep(4)
        assert 15 <= a.began[0] <= 17.5
        assert a.sentence.startswith(f"leading: the Lease {KEY} is ours since 2026-01-05T08:00:1")
        assert setup.acts_of(a)

    told(story, fresh=True)


def test_the_second_one_waits_and_says_for_whom() -> None:
    async def story(setup: LeaseSetup) -> None:
        setup.replica("a")
        await asyncio.sleep(5)
        b = setup.replica("b")
        await asyncio.sleep(60)
        assert b.elector.state.role is LeaseRole.WAITING
        assert b.said == [f"waiting: the Lease {KEY} is held by a since 2026-01-05T08:00:00Z"]
        assert b.elector.fence.closed() == "this replica does not hold the lease"
        assert setup.acts_of(b) == []

    told(story)


def test_the_lease_says_what_client_go_expects_and_that_it_is_tenure() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        await a.stop()
        assert (await setup.lease()).spec.holder_identity == ""
        setup.replica("b")
        await asyncio.sleep(10)
        lease = await setup.lease()
        assert lease.spec.holder_identity == "b"
        assert (lease.spec.lease_duration_seconds, lease.spec.lease_transitions) == (15, 2)
        assert lease.spec.acquire_time is not None
        assert lease.spec.renew_time is not None
        assert lease.spec.acquire_time == EPOCH + timedelta(seconds=5)
        assert lease.spec.renew_time > EPOCH + timedelta(seconds=12)
        assert lease.annotations == {"tenure.dev/identity": "b", "tenure.dev/transitions": "2"}

    told(story)


@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["ahead", "behind"])
@pytest.mark.parametrize("fresh", [False, True], ids=["taken", "made"])
def test_the_lease_says_by_how_much_the_clock_is_off_for_as_long_as_it_is(
    off: timedelta, fresh: bool
) -> None:
    async def story(setup: LeaseSetup) -> None:
        skew = [off]
        setup.replica("a", skew=off, clock_skew=lambda: skew[0])
        await asyncio.sleep(5)
        assert skew_of(await setup.lease()) == off
        skew[0] = timedelta(0)
        await asyncio.sleep(5)
        lease = await setup.lease()
        assert skew_of(lease) == timedelta(0)
        assert set(lease.annotations) == {"tenure.dev/identity", "tenure.dev/transitions"}

    told(story, fresh=fresh)


@pytest.mark.parametrize("text", ["", "s", "an hour", "3600", "1e99s", "9" * 300 + "s"])
def test_a_skew_that_is_none_is_no_skew(text: str) -> None:
    annotations = {"tenure.dev/identity": "a", "tenure.dev/transitions": "0"}
    metadata = ObjectMeta(name=NAME, annotations={**annotations, "tenure.dev/clock-skew": text})
    assert skew_of(Lease(metadata=metadata)) == timedelta(0)


def test_a_lease_that_no_replica_ever_held_is_taken_at_once() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(1)
        assert a.said == [f"leading: the Lease {KEY} is ours since 2026-01-05T08:00:00Z"]

    told(story)


@pytest.mark.parametrize("late", [0.0, 0.001], ids=["at one instant", "one after the other"])
@pytest.mark.parametrize("fresh", [False, True], ids=["a Lease is there", "none is there"])
def test_of_two_that_start_together_one_leads(late: float, fresh: bool) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(late)
        b = setup.replica("b")
        await asyncio.sleep(30)
        assert [a.leads, b.leads].count(True) == 1

    told(story, fresh=fresh)


def test_who_made_it_without_hearing_so_finds_out_and_waits_no_less() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        a.way.lose.append("POST")
        await asyncio.sleep(20)
        assert "connection reset" in a.said[0]
        assert a.began[0] >= 15
        assert (await setup.lease()).spec.lease_transitions == 0

    told(story, fresh=True)


def test_who_lost_the_race_to_make_it_waits_no_less_if_the_other_stops_before_it_acts() -> None:
    async def story(setup: LeaseSetup) -> None:
        a, b = setup.replica("a"), setup.replica("b")
        await asyncio.sleep(3)
        first, second = (a, b) if a.elector.state.holder == "a" else (b, a)
        await first.stop()
        await asyncio.sleep(20)
        assert second.leads
        assert 15 <= second.began[0] <= 22

    told(story, fresh=True)


# The work itself.


def run_to_the_end(
    setup: LeaseSetup,
    lead: Callable[[], Awaitable[None]],
    stuck: Callable[[], str] = lambda: "",
) -> Awaitable[None]:
    elector = Elector(
        client=setup.client,
        clock=setup.environment.clock,
        settings=Settings(),
        identity="a",
        steady=setup.loop.time,
        stuck=stuck,
    )
    return elector.run(lead)


def test_work_that_comes_to_its_end_gives_the_lease_back() -> None:
    async def story(setup: LeaseSetup) -> None:
        await run_to_the_end(setup, lambda: asyncio.sleep(30))
        assert setup.loop.time() == 30
        assert (await setup.lease()).spec.holder_identity == ""

    told(story)


def test_work_that_fails_gives_the_lease_back_and_fails() -> None:
    async def story(setup: LeaseSetup) -> None:
        async def fails() -> None:
            await asyncio.sleep(5)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await run_to_the_end(setup, fails)
        assert (await setup.lease()).spec.holder_identity == ""

    told(story)


def test_work_that_cannot_be_ended_ends_the_replica() -> None:
    """Another replica leads, and what starts this one again gives it a fresh start."""

    async def story(setup: LeaseSetup) -> None:
        async def stubborn() -> None:
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)
                if setup.loop.time() > 300:
                    return

        def stuck() -> str:
            return "a turn is overdue by 31 s" if setup.loop.time() > 20 else ""

        with pytest.raises(RuntimeError, match="has not ended within 30 s"):
            await run_to_the_end(setup, stubborn, stuck=stuck)

    told(story)


def test_a_lease_that_cannot_be_given_back_does_not_hold_up_the_end() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        a.way.latency = 100
        before = setup.loop.time()
        await a.stop()
        assert setup.loop.time() - before <= 5
        assert a.said[-1].startswith(f"the Lease {KEY} was not given back: 503")

    told(story)


def test_a_lease_that_others_touch_is_given_back_all_the_same() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        a.way.latency = 0.5

        async def meddle() -> None:
            await asyncio.sleep(0.7)  # Between the look and the write.
            await setup.patch({"metadata": {"annotations": {"note": "here"}}})

        meddling = asyncio.create_task(meddle())
        await a.stop()
        await meddling
        assert (await setup.lease()).spec.holder_identity == ""

    told(story)


def test_times_are_written_as_the_api_wants_them() -> None:
    berlin = timezone(timedelta(hours=1))
    assert micro_time(datetime(2026, 1, 5, 9, tzinfo=berlin)) == "2026-01-05T08:00:00.000000Z"


def test_every_start_has_a_name_of_its_own() -> None:
    pod = {"POD_NAME": "tenure-7c9f"}
    first, second = new_identity(pod), new_identity(pod)
    assert first != second
    assert first.startswith("tenure-7c9f_")
    assert not new_identity({}).startswith("_")


@pytest.mark.parametrize(
    ("wrong", "at"),
    [
        pytest.param({"lease_renew_deadline": 11}, "lease_renew_deadline", id="too late to stop"),
        pytest.param({"lease_retry": 9}, "lease_retry", id="too seldom"),
        pytest.param(
            {"lease_renew_deadline": 20, "lease_duration": 30},
            "lease_renew_deadline",
            id="too late for Karpenter",
        ),
    ],
)
def test_durations_that_would_let_two_act_at_once_are_refused(
    wrong: dict[str, int], at: str
) -> None:
    async def story(setup: LeaseSetup) -> None:
        settings = Settings(**{key: timedelta(seconds=s) for key, s in wrong.items()})  # type: ignore[arg-type]
        with pytest.raises(SpecError, match=f"^{at}: got"):
            Elector(
                client=Client(setup.transport),
                clock=setup.environment.clock,
                settings=settings,
                identity="a",
            )

    told(story)
