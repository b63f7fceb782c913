"""A Tenure in charge and one beside Karpenter on one cluster: the one beside stands back, and both say so."""

from __future__ import annotations

import asyncio

from tenure.kube.lease.secondtenure import PERIOD, SecondTenure
from tenure.kube.lease.status import LeaseRole
from tenure.model.settings import Settings
from tests.kube.karpenter import NAME
from tests.kube.leasereplicas import NAMESPACE, LeaseSetup, Replica, told
from tests.kube.transports import refused

ROUND = 3
#: What a crashed holder keeps its Lease for, and a round.
EXPIRED = 15 + ROUND
MINUTE = 60


def stands_back(replica: Replica) -> bool:
    return replica.elector.state.role is LeaseRole.HELD_BACK and not replica.working


def test_the_one_beside_karpenter_does_not_begin_where_a_tenure_is_in_charge() -> None:
    async def story(setup: LeaseSetup) -> None:
        setup.replica("full")
        await asyncio.sleep(ROUND)
        beside = setup.replica("beside", beside=True)
        await asyncio.sleep(10 * MINUTE)
        assert (beside.began, stands_back(beside)) == ([], True)
        (said,) = beside.warned
        assert said.startswith(f"not acting: the Lease {NAMESPACE}/{NAME} is held by full since ")
        assert said.endswith("there is no Karpenter to run beside; stop one of the two")

    told(story)


def test_the_one_beside_karpenter_stops_within_a_round_when_a_tenure_takes_charge() -> None:
    async def story(setup: LeaseSetup) -> None:
        beside = setup.replica("beside", beside=True)
        await asyncio.sleep(MINUTE)
        assert beside.working
        full = setup.replica("full")
        await asyncio.sleep(ROUND)
        assert (full.working, stands_back(beside)) == (True, True)
        since = setup.loop.time()
        await asyncio.sleep(10 * MINUTE)
        assert not setup.acts_of(beside, since)

    told(story)


def test_in_another_namespace_it_counts_as_well() -> None:
    async def story(setup: LeaseSetup) -> None:
        await setup.namespace("elsewhere")
        setup.replica("full", namespace="elsewhere")
        await asyncio.sleep(2 * EXPIRED)
        beside = setup.replica("beside", beside=True)
        await asyncio.sleep(MINUTE)
        assert stands_back(beside)
        assert f"elsewhere/{NAME}" in beside.sentence

    told(story)


def test_the_one_beside_karpenter_goes_on_when_the_other_is_gone() -> None:
    async def story(setup: LeaseSetup) -> None:
        full, beside = setup.replica("full"), setup.replica("beside", beside=True)
        await asyncio.sleep(MINUTE)
        assert stands_back(beside)
        await full.stop()
        await asyncio.sleep(EXPIRED)
        assert beside.working
        crashed = setup.replica("crashed")
        await asyncio.sleep(MINUTE)
        assert stands_back(beside)
        crashed.die()
        await asyncio.sleep(2 * EXPIRED)
        assert beside.working

    told(story)


def test_karpenter_in_charge_and_a_tenure_that_waits_for_its_lease_hold_nothing_back() -> None:
    """The step between accompany and take over."""

    async def story(setup: LeaseSetup) -> None:
        await setup.karpenter()
        full, beside = setup.replica("full", take_over=True), setup.replica("beside", beside=True)
        await asyncio.sleep(10 * MINUTE)
        assert (full.began, beside.working, beside.warned) == ([], True, [])

    told(story)


def test_where_the_role_does_not_let_it_look_it_acts_and_says_that_it_does_not_know() -> None:
    async def story(setup: LeaseSetup) -> None:
        beside = setup.replica("beside", beside=True)
        beside.way.listed[NAME] = refused(403, "Forbidden")
        await asyncio.sleep(MINUTE)
        assert beside.working
        (said,) = beside.warned
        assert said.startswith("whether a second Tenure runs is not known: 403 Forbidden")

    told(story)


def test_the_one_in_charge_says_once_that_another_runs_beside_karpenter_and_when_it_stops() -> None:
    async def story(setup: LeaseSetup) -> None:
        beside = setup.replica("beside", beside=True)
        await asyncio.sleep(EXPIRED)
        assert beside.working
        warned, said = list[str](), list[str]()
        watch = SecondTenure(
            setup.client, Settings(), steady=setup.loop.time, warn=warned.append, say=said.append
        )
        task = setup.loop.create_task(watch.watch())
        await asyncio.sleep(4 * PERIOD.total_seconds())
        (sentence,) = warned
        assert "held by beside since " in sentence
        assert sentence.endswith("does not act while this one is in charge; stop one of the two")
        await beside.stop()
        await asyncio.sleep(4 * PERIOD.total_seconds())
        assert (watch.sentence, len(warned)) == ("", 1)
        assert said == [f"no second Tenure runs any more; before: {sentence}"]
        task.cancel()

    told(story)
