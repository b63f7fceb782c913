"""One replica acts: how it comes to that, how it loses it, and how fast the next one follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import SpecError
from tenure.kube.client import Client
from tenure.kube.lease import Elector
from tenure.kube.leaserecord import new_identity
from tenure.kube.standing import Standing
from tenure.model.resource import LEASES
from tenure.model.settings import Settings
from tests.kube.doors import refused
from tests.kube.electors import EPOCH, NAMESPACE, Stage, told
from tests.kube.strangers import NAME

HOUR = timedelta(hours=1)
KEY = f"{NAMESPACE}/{NAME}"


# Getting it.


def test_the_first_one_makes_the_lease_holds_it_once_without_acting_and_leads() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(14)
        (sentence,) = a.said
        assert sentence.startswith(f"waiting: there was no Lease {KEY}; whoever acts under one")
        assert sentence.endswith("has until 2026-01-05T08:00:15Z to find out")
        assert (a.elector.state.holder, a.leads) == ("a", False)
        await asyncio.sleep(4)
        assert 15 <= a.began[0] <= 17.5
        assert a.sentence.startswith(f"leading: the Lease {KEY} is ours since 2026-01-05T08:00:1")
        assert stage.acts_of(a)

    told(story, fresh=True)


def test_the_second_one_waits_and_says_for_whom() -> None:
    async def story(stage: Stage) -> None:
        stage.replica("a")
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(60)
        assert b.elector.state.standing is Standing.WAITING
        assert b.said == [f"waiting: the Lease {KEY} is held by a since 2026-01-05T08:00:00Z"]
        assert b.elector.fence.closed() == "this replica does not hold the lease"
        assert stage.acts_of(b) == []

    told(story)


def test_the_lease_says_what_client_go_expects_and_that_it_is_tenure() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        await a.stop()
        assert (await stage.lease()).spec.holder_identity == ""
        stage.replica("b")
        await asyncio.sleep(10)
        lease = await stage.lease()
        assert lease.spec.holder_identity == "b"
        assert (lease.spec.lease_duration_seconds, lease.spec.lease_transitions) == (15, 2)
        assert lease.spec.acquire_time is not None
        assert lease.spec.renew_time is not None
        assert lease.spec.acquire_time == EPOCH + timedelta(seconds=5)
        assert lease.spec.renew_time > EPOCH + timedelta(seconds=12)
        assert lease.annotations == {"tenure.dev/identity": "b", "tenure.dev/transitions": "2"}

    told(story)


def test_a_lease_that_nobody_ever_held_is_taken_at_once() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(1)
        assert a.said == [f"leading: the Lease {KEY} is ours since 2026-01-05T08:00:00Z"]

    told(story)


@pytest.mark.parametrize("late", [0.0, 0.001], ids=["at one instant", "one after the other"])
@pytest.mark.parametrize("fresh", [False, True], ids=["a Lease is there", "none is there"])
def test_of_two_that_start_together_one_leads(late: float, fresh: bool) -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(late)
        b = stage.replica("b")
        await asyncio.sleep(30)
        assert [a.leads, b.leads].count(True) == 1

    told(story, fresh=fresh)


def test_who_made_it_without_hearing_so_finds_out_and_waits_no_less() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        a.way.lose.append("POST")
        await asyncio.sleep(20)
        assert "connection reset" in a.said[0]
        assert a.began[0] >= 15
        assert (await stage.lease()).spec.lease_transitions == 0

    told(story, fresh=True)


def test_who_lost_the_race_to_make_it_need_not_wait_when_it_is_given_back() -> None:
    async def story(stage: Stage) -> None:
        a, b = stage.replica("a"), stage.replica("b")
        await asyncio.sleep(3)
        first, second = (a, b) if a.elector.state.holder == "a" else (b, a)
        await first.stop()
        await asyncio.sleep(3)
        assert second.leads

    told(story, fresh=True)


# Losing it.


def test_a_clean_stop_hands_over_within_seconds() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(60)
        stopped_at = stage.loop.time()
        await a.stop()
        lease = await stage.lease()
        assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("", 1)
        await asyncio.sleep(3)
        assert b.began[0] - stopped_at < 2.5
        assert (a.elector.fence.closed(), a.working) == ("this replica has stopped", False)

    told(story)


def test_after_a_crash_the_other_waits_as_long_as_the_lease_holds() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(60)
        a.die()
        await asyncio.sleep(13)
        assert not b.leads
        await asyncio.sleep(7)
        assert b.leads

    told(story)


def test_one_that_was_paused_for_longer_than_the_lease_does_nothing_when_it_wakes() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(30)
        a.way.pause()
        await asyncio.sleep(60)
        assert b.leads
        woken_at = stage.loop.time()
        a.way.wake()
        await asyncio.sleep(30)
        assert stage.acts_of(a, since=woken_at) == []
        assert a.sentence.startswith(f"waiting: the Lease {KEY} is held by b since")

    told(story)


def test_time_in_which_the_machine_slept_counts_although_no_timer_saw_it() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(30)
        acts = len(stage.acts)
        a.suspended += 3600
        assert a.elector.fence.closed().startswith("the lease was last renewed at 2026-01-05T08:00")
        await asyncio.sleep(10)
        assert len(a.began) == 2, "nobody else came, and it began anew"
        assert stage.acts[acts][0] == a.began[1], "and did nothing before"

    told(story)


def test_an_api_server_that_is_down_for_twelve_seconds_ends_the_work() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(60)
        a.way.down = True
        await asyncio.sleep(11)
        assert not a.working
        assert not stage.acts_of(a, since=70)
        assert any("is out of reach: 503 ServiceUnavailable" in line for line in a.said)
        assert a.sentence.startswith("stopped: the lease was last renewed at 2026-01-05T08:0")
        await asyncio.sleep(1)
        a.way.down = False
        await asyncio.sleep(5)
        assert (a.leads, len(a.began)) == (True, 2)

    told(story)


def test_an_api_server_that_is_down_for_five_seconds_does_not_interrupt_the_work() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
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
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        a.way.latency = latency
        await asyncio.sleep(120)
        assert len(a.began) == began

    told(story)


def test_somebody_who_touches_the_lease_does_not_interrupt_the_work() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        for count in range(200):
            await asyncio.sleep(0.3)
            await stage.patch({"metadata": {"annotations": {"note": str(count)}}})
        assert len(a.began) == 1

    told(story)


@pytest.mark.parametrize("down", [False, True], ids=["who looks", "who cannot look"])
def test_who_makes_a_lease_leaves_time_to_whom_it_was_deleted_under(down: bool) -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(30)
        a.way.down = down
        await stage.delete()
        b = stage.replica("b")  # Finds none, and makes one.
        await asyncio.sleep(20)
        assert b.leads
        assert stage.acts_of(a)[-1] < b.began[0]

    told(story)


def test_a_lease_that_is_taken_from_us_is_lost_at_the_next_look() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(10)
        mark = {"tenure.dev/identity": "b", "tenure.dev/transitions": "1"}
        record = {"holderIdentity": "b", "leaseTransitions": 1}
        await stage.patch({"metadata": {"annotations": mark}, "spec": record})
        await asyncio.sleep(3)
        assert not a.working
        assert a.elector.fence.closed().startswith(f"waiting: the Lease {KEY} is held by b since")

    told(story)


def test_a_lease_that_somebody_deletes_is_made_again_and_not_taken_by_another() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(30)
        for _ in range(5):
            await stage.delete()
            await asyncio.sleep(7)
        assert (len(a.began), b.began) == (1, [])
        assert (await stage.lease()).spec.holder_identity == "a"

    told(story)


def test_a_lease_that_is_deleted_with_its_holder_is_made_when_it_would_have_been_free() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(30)
        a.die()
        await stage.delete()
        await asyncio.sleep(14)
        assert b.elector.state.holder == "a"
        await asyncio.sleep(4)
        assert b.elector.state.holder == "b"
        await asyncio.sleep(17)
        assert b.leads

    told(story)


@pytest.mark.parametrize("skew", [HOUR, -HOUR], ids=["an hour ahead", "an hour behind"])
def test_the_others_clock_does_not_matter(skew: timedelta) -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a", skew=skew)
        await asyncio.sleep(5)
        b = stage.replica("b")
        await asyncio.sleep(120)
        assert (a.leads, b.began) == (True, [])
        a.die()
        await asyncio.sleep(20)
        assert b.leads

    told(story)


def test_without_the_permission_to_look_nobody_acts_and_says_why() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        a.way.instead["GET"] = refused(403, "Forbidden")
        await asyncio.sleep(30)
        assert a.said == [f"the Lease {KEY} is out of reach: 403 Forbidden: said Forbidden"]
        assert a.began == []

    told(story)


# The work itself.


def run_to_the_end(stage: Stage, lead: Callable[[], Awaitable[None]]) -> Awaitable[None]:
    elector = Elector(
        client=stage.client,
        clock=stage.environment.clock,
        settings=Settings(),
        identity="a",
        steady=stage.loop.time,
    )
    return elector.run(lead)


def test_work_that_comes_to_its_end_gives_the_lease_back() -> None:
    async def story(stage: Stage) -> None:
        await run_to_the_end(stage, lambda: asyncio.sleep(30))
        assert stage.loop.time() == 30
        assert (await stage.lease()).spec.holder_identity == ""

    told(story)


def test_work_that_fails_gives_the_lease_back_and_fails() -> None:
    async def story(stage: Stage) -> None:
        async def fails() -> None:
            await asyncio.sleep(5)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await run_to_the_end(stage, fails)
        assert (await stage.lease()).spec.holder_identity == ""

    told(story)


def test_a_lease_that_cannot_be_given_back_does_not_hold_up_the_end() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        a.way.latency = 100
        before = stage.loop.time()
        await a.stop()
        assert stage.loop.time() - before <= 5
        assert a.said[-1].startswith(f"the Lease {KEY} was not given back: 503")

    told(story)


def test_a_lease_that_others_touch_is_given_back_all_the_same() -> None:
    async def story(stage: Stage) -> None:
        a = stage.replica("a")
        await asyncio.sleep(5)
        a.way.latency = 0.5

        async def meddle() -> None:
            await asyncio.sleep(0.7)  # Between the look and the write.
            await stage.patch({"metadata": {"annotations": {"note": "here"}}})

        meddling = asyncio.create_task(meddle())
        await a.stop()
        await meddling
        assert (await stage.lease()).spec.holder_identity == ""

    told(story)


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
    async def story(stage: Stage) -> None:
        settings = Settings(**{key: timedelta(seconds=s) for key, s in wrong.items()})  # type: ignore[arg-type]
        with pytest.raises(SpecError, match=f"^{at}: got"):
            Elector(
                client=Client(stage.door),
                clock=stage.environment.clock,
                settings=settings,
                identity="a",
            )

    told(story)


# Whatever happens.

troubles = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["down", "slow", "pause", "lose", "delete", "suspend"]),
        st.integers(1, 25),
    ),
    max_size=12,
)


@given(troubles, st.integers(0, 1000))
def test_whatever_happens_two_never_act_at_once_and_in_the_end_one_does(
    troubles: list[tuple[str, str, int]], seed: int
) -> None:
    """Each act looks at all fences: see ``Stage.acted``."""

    async def story(stage: Stage) -> None:
        skews = Random(seed)
        if seed % 2:
            await stage.empty_lease()
        replicas = {
            name: stage.replica(name, skew=skews.uniform(-1, 1) * HOUR, random=Random(seed))
            for name in "abc"
        }
        for name, trouble, seconds in troubles:
            way = replicas[name].way
            match trouble:
                case "down":
                    way.down = True
                case "slow":
                    way.latency = seconds / 5
                case "pause":
                    way.pause()
                case "lose":
                    way.lose += ["PATCH", "GET"]
                case "delete":
                    await _deleted(stage)
                case "suspend":
                    replicas[name].suspended += seconds
            await asyncio.sleep(seconds)
            way.down, way.latency, way.lose = False, 0.0, []
            way.wake()
        await asyncio.sleep(60)
        assert [one.leads for one in replicas.values()].count(True) == 1

    told(story, fresh=True)


async def _deleted(stage: Stage) -> None:
    items, _ = await stage.client.list_all(LEASES)
    if items:
        await stage.delete()
