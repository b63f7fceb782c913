"""No replica acts beside Karpenter, or takes its Lease unless an operator said so."""

from __future__ import annotations

import asyncio

import pytest

from tenure.kube.lease.status import LeaseRole
from tests.kube.karpenter import NAME
from tests.kube.leasereplicas import NAMESPACE, LeaseSetup, Replica, told
from tests.kube.transports import a_list

KEY = f"{NAMESPACE}/{NAME}"
ELSEWHERE = "karpenter"
MINUTE = 60


def holds_back(replica: Replica) -> bool:
    return replica.elector.state.role is LeaseRole.HELD_BACK


@pytest.mark.parametrize("take_over", [False, True])
def test_while_karpenter_renews_the_lease_we_do_not_act_whatever_we_were_told(
    take_over: bool,
) -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.karpenter()
        a = setup.replica("a", take_over=take_over)
        await asyncio.sleep(10 * MINUTE)
        assert a.began == []
        assert holds_back(a)
        held = f"the Lease {KEY} is held by karpenter-1, which is not Tenure,"
        assert a.warned == a.said == [f"not acting: {held} since 2026-01-05T08:00:00Z"]
        assert a.elector.state.holder == "karpenter-1"

    told(story)


@pytest.mark.parametrize("clean", [False, True], ids=["it died", "it stopped cleanly"])
def test_what_karpenter_held_last_is_left_alone_and_we_say_what_to_do(clean: bool) -> None:
    async def story(setup: LeaseSetup) -> None:
        karpenter = await setup.karpenter()
        a = setup.replica("a")
        await asyncio.sleep(60)
        await karpenter.give_back() if clean else karpenter.stop()
        await asyncio.sleep(10 * MINUTE)
        assert a.began == []
        assert holds_back(a)
        who = "something that is not Tenure" if clean else "karpenter-1, which is not Tenure,"
        assert a.sentence.startswith(
            f"not acting: the Lease {KEY} was last held by {who} until 2026-01-05T08:0"
        )
        assert a.sentence.endswith("when that is gone for good, start with --take-over")

    told(story)


@pytest.mark.parametrize(
    ("clean", "soonest", "latest"),
    [pytest.param(False, 12, 20, id="it died"), pytest.param(True, 0, 3, id="it stopped cleanly")],
)
def test_with_take_over_it_is_ours_as_soon_as_it_is_not_renewed(
    clean: bool, soonest: float, latest: float
) -> None:
    async def story(setup: LeaseSetup) -> None:
        karpenter = await setup.karpenter()
        a = setup.replica("a", take_over=True)
        await asyncio.sleep(60)
        await karpenter.give_back() if clean else karpenter.stop()
        stopped_at = setup.loop.time()
        await asyncio.sleep(20)
        assert soonest <= a.began[0] - stopped_at <= latest
        lease = await setup.lease()
        assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("a", 2)

    told(story)


def test_once_taken_over_it_is_tenures_and_needs_no_flag_any_more() -> None:
    async def story(setup: LeaseSetup) -> None:
        karpenter = await setup.karpenter()
        await karpenter.give_back()
        a = setup.replica("a", take_over=True)
        await asyncio.sleep(5)
        await a.stop()
        b = setup.replica("b")
        await asyncio.sleep(1)
        assert b.leads

    told(story)


def test_karpenter_takes_back_what_we_gave_back_and_then_it_is_its_own_again() -> None:
    """Our annotations stay in the Lease. The count of transitions tells."""

    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(5)
        await a.stop()
        karpenter = await setup.karpenter()
        b = setup.replica("b")
        await asyncio.sleep(5)
        assert (await setup.lease()).annotations["tenure.dev/identity"] == "a"
        assert holds_back(b)
        await karpenter.give_back()
        await asyncio.sleep(MINUTE)
        assert b.began == []
        assert "start with --take-over" in b.sentence

    told(story)


def test_karpenter_that_takes_the_lease_from_under_us_ends_the_work() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        await asyncio.sleep(30)
        await setup.karpenter()
        await asyncio.sleep(3)
        assert (a.working, holds_back(a)) == (False, True)
        assert (await setup.lease()).spec.holder_identity == "karpenter-1"

    told(story)


# In another namespace.


def test_while_karpenter_is_at_work_in_another_namespace_we_do_not_act() -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        karpenter = await setup.karpenter(ELSEWHERE)
        a = setup.replica("a", take_over=True)
        await asyncio.sleep(10 * MINUTE)
        assert a.began == []
        assert holds_back(a)
        held = f"the Lease {ELSEWHERE}/{NAME} is held by karpenter-1, which is not Tenure,"
        assert a.said == [f"not acting: {held} since 2026-01-05T08:00:00Z"]
        karpenter.stop()
        await asyncio.sleep(20)
        assert a.leads

    told(story)


def test_karpenter_that_comes_later_in_another_namespace_makes_us_stop_and_let_go() -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        a = setup.replica("a")
        await asyncio.sleep(MINUTE)
        came_at = setup.loop.time()
        karpenter = await setup.karpenter(ELSEWHERE)
        await asyncio.sleep(10 * MINUTE)
        assert setup.acts_of(a)[-1] - came_at < 2.5
        assert holds_back(a)
        assert a.elector.fence.closed() == a.sentence
        assert (await setup.lease()).spec.holder_identity == ""
        await karpenter.give_back()
        await asyncio.sleep(3)
        assert (a.leads, len(a.began)) == (True, 2)

    told(story)


def test_a_lease_that_karpenter_left_behind_in_another_namespace_only_costs_one_wait() -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        (await setup.karpenter(ELSEWHERE)).stop()
        a = setup.replica("a")
        await asyncio.sleep(14)
        assert holds_back(a), "it may be renewed: it was not watched yet"
        await asyncio.sleep(5)
        assert a.leads

    told(story)


def test_karpenters_lease_that_is_deleted_under_it_in_another_namespace_counts_on() -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        karpenter = await setup.karpenter(ELSEWHERE)
        a = setup.replica("a")
        await asyncio.sleep(MINUTE)
        karpenter.stop()
        await setup.delete(ELSEWHERE)
        await asyncio.sleep(14)
        assert holds_back(a)
        await asyncio.sleep(5)
        assert a.leads

    told(story)


@pytest.mark.parametrize("deleted", [False, True])
def test_no_lease_of_another_namespace_holds_us_for_as_long_as_it_says(deleted: bool) -> None:
    """A user who may write Leases in one namespace may write any duration."""

    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        karpenter = await setup.karpenter(ELSEWHERE)
        karpenter.stop()
        await karpenter.write({"leaseDurationSeconds": 2**31 - 1})
        a = setup.replica("a")
        await asyncio.sleep(MINUTE)
        assert holds_back(a)
        if deleted:
            await setup.delete(ELSEWHERE)
        await asyncio.sleep(3.9 * MINUTE)
        assert holds_back(a)
        await asyncio.sleep(1.2 * MINUTE if deleted else 20)
        assert a.leads

    told(story)


@pytest.mark.parametrize("late", [0.0, 0.001, 1.0, 30.0])
def test_of_two_tenures_in_different_namespaces_one_acts(late: float) -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        a = setup.replica("a")
        await asyncio.sleep(late)
        b = setup.replica("b", namespace=ELSEWHERE)
        await asyncio.sleep(2 * MINUTE)
        assert [a.leads, b.leads].count(True) == 1

    told(story, fresh=True)


def test_a_replica_that_lost_the_lease_it_made_waits_no_less_for_that() -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace(ELSEWHERE)
        a = setup.replica("a")
        await asyncio.sleep(3)
        karpenter = await setup.karpenter(ELSEWHERE)
        await asyncio.sleep(3)
        assert (holds_back(a), (await setup.lease()).spec.holder_identity) == (True, "")
        await karpenter.give_back()
        await asyncio.sleep(20)
        assert a.began[0] >= 15

    told(story, fresh=True)


# What cannot be read.


def test_a_lease_that_cannot_be_read_may_be_anybodys() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        a.way.instead["GET"] = a_list(
            {
                "metadata": {"name": NAME, "namespace": ELSEWHERE},
                "spec": {"holderIdentity": "x", "renewTime": "yesterday"},
            }
        )
        await asyncio.sleep(MINUTE)
        assert a.began == []
        assert a.said == [f"not acting: the Lease {ELSEWHERE}/{NAME} cannot be read"]
        assert holds_back(a)

    told(story)


def test_a_lease_of_ours_that_cannot_be_read_is_out_of_reach() -> None:
    async def story(setup: LeaseSetup) -> None:
        a = setup.replica("a")
        a.way.instead["GET"] = a_list(
            {
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "spec": {"holderIdentity": "x", "renewTime": "yesterday"},
            }
        )
        await asyncio.sleep(10 * MINUTE)
        assert a.began == []
        why = f"the Lease {KEY} cannot be read"
        assert a.said == [f"the Lease {KEY} is out of reach: 503 ServiceUnavailable: {why}"]

    told(story)
