"""The contract catches what a provider gets wrong, and each fault by the sentence it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest

from examples.provider.acme import ACME_CLASSES, TYPES, Acme, AcmeCloud
from tenure.errors import InstanceGone, OutOfCapacity, ProviderError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, InstanceState, LaunchRequest
from tenure.model.cloud.market import Offer
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.ports.cloud import Cloud
from tenure.ports.provider import Surroundings
from tenure.providers.contract import Bench, ClassesOnly, ProviderContract, outside

replace = msgspec.structs.replace


class Sound(AcmeCloud):
    """The example as it is."""


class LaunchesAnew(AcmeCloud):
    """Knows nothing of idempotency."""

    numbers = count()

    async def launch(self, request: LaunchRequest) -> Instance:
        token = f"{request.claim_uid}-{next(self.numbers)}"
        instance = await super().launch(replace(request, claim_uid=token))
        mended = replace(instance, claim_uid=request.claim_uid)
        self._acme.instances[token] = mended
        return mended

    async def terminate(self, provider_id: str) -> None:
        for token, instance in self._acme.instances.items():
            if instance.provider_id == provider_id:
                del self._acme.instances[token]
                return
        raise InstanceGone(provider_id)


class LooksThenLaunches(LaunchesAnew):
    """Another caller may look in between."""

    async def launch(self, request: LaunchRequest) -> Instance:
        for instance in self._acme.instances.values():
            if instance.claim_uid == request.claim_uid:
                return instance
        await asyncio.sleep(0.01)
        return await super().launch(request)


class RemembersInTheProcess(AcmeCloud):
    def __init__(self, acme: Acme, surroundings: Surroundings) -> None:
        super().__init__(Acme(), surroundings)


class TagsNothing(AcmeCloud):
    def _instance(self, request: LaunchRequest, offer: Offer) -> Instance:
        return replace(super()._instance(request, offer), claim_uid="")

    async def terminate(self, provider_id: str) -> None:
        gone = await self.get(provider_id)
        instances = self._acme.instances
        self._acme.instances = {uid: each for uid, each in instances.items() if each != gone}


class ListsEveryCluster(AcmeCloud):
    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return tuple(self._acme.instances.values())


class NeverSaysThatItIsGone(AcmeCloud):
    async def terminate(self, provider_id: str) -> None:
        try:
            await super().terminate(provider_id)
        except InstanceGone:
            return


class HandsOutWhatIsEnding(AcmeCloud):
    async def terminate(self, provider_id: str) -> None:
        instance = await self.get(provider_id)
        if instance.state is InstanceState.TERMINATING:
            await super().terminate(provider_id)
        else:
            ending = replace(instance, state=InstanceState.TERMINATING)
            self._acme.instances[instance.claim_uid] = ending


class SaysThatWhatIsEndingRuns(AcmeCloud):
    asked: set[str]

    async def terminate(self, provider_id: str) -> None:
        self.asked = getattr(self, "asked", set())
        if provider_id in self.asked:
            await super().terminate(provider_id)
        else:
            self.asked.add((await self.get(provider_id)).provider_id)


class BuysTheDearest(AcmeCloud):
    async def launch(self, request: LaunchRequest) -> Instance:
        suitable = list(self._market.suitable(request.requirements, request.requests))
        if not suitable:
            raise OutOfCapacity("nothing")
        network = await self._network(request.node_class)
        return self._acme.start(request.claim_uid, self._instance(request, suitable[-1]), network)


class RefusesInItsOwnWords(AcmeCloud):
    async def launch(self, request: LaunchRequest) -> Instance:
        try:
            return await super().launch(request)
        except ProviderError as error:
            raise ProviderError(str(error)) from error


class LeavesSomethingBehind(AcmeCloud):
    """Starts the instance, and looks at the class then."""

    async def launch(self, request: LaunchRequest) -> Instance:
        offer = next(self._market.suitable(request.requirements, request.requests), None)
        if offer is None:
            raise OutOfCapacity("nothing")
        instance = self._acme.start(request.claim_uid, self._instance(request, offer), "n-1")
        await self._network(request.node_class)
        return instance


class PromisesTooMuch(AcmeCloud):
    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return tuple(
            replace(kind, allocatable={**kind.capacity, "cpu": kind.capacity["cpu"] + 1})
            for kind in TYPES
        )


class RebootsWheneverAsked(AcmeCloud):
    """Knows nothing of operations."""

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        instance = await self.get(provider_id)
        self._acme.restarts.setdefault(instance.provider_id, []).append(operation_id)


class RebootsNothingAndSaysNothing(AcmeCloud):
    async def reboot(self, provider_id: str, operation_id: str) -> None:
        await self.get(provider_id)


class RebootsByStartingAnother(AcmeCloud):
    async def reboot(self, provider_id: str, operation_id: str) -> None:
        await super().reboot(provider_id, operation_id)
        instance = await self.get(provider_id)
        self._acme.instances[instance.claim_uid] = replace(instance, image_id=operation_id)


class RebootsAnything(AcmeCloud):
    async def reboot(self, provider_id: str, operation_id: str) -> None:
        with suppress(InstanceGone):
            await super().reboot(provider_id, operation_id)


class DriftsFromTheStart(AcmeCloud):
    """Compares with something that an instance never has."""

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        await self.get(provider_id)
        return Drift("NetworkDrift", "another network")


class NeverDrifts(AcmeCloud):
    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        await self.get(provider_id)
        return None


class ForgetsWhatItHasLaunched(AcmeCloud):
    """Calls what it does not know not drifted."""

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        with suppress(InstanceGone):
            return await super().drift(provider_id, node_class)
        return None


class StartsFromAnotherImage(AcmeCloud):
    async def current_image(self, node_class: NodeClass) -> str:
        return "acme-2"


class HasNoMoreNotices(AcmeCloud):
    """Ends the stream when there is nothing to tell."""

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        nothing: tuple[Notice, ...] = ()
        for notice in nothing:
            yield notice


class StatesTwoFallbacks(AcmeCloud):
    """Which of them is for a reason that none names?"""

    repair_statements = tuple(replace(one, reason="") for one in AcmeCloud.repair_statements)  # type: ignore[assignment]  # as many as before


FAULTS: dict[type[AcmeCloud], str] = {
    StatesTwoFallbacks: "test_what_it_states_about_unhealthy_nodes_can_be_understood",
    LaunchesAnew: "test_the_same_claim_gets_the_same_instance_again",
    LooksThenLaunches: "test_two_launches_at_once_for_one_claim_make_one_instance",
    RemembersInTheProcess: "test_an_instance_outlives_the_controller_that_launched_it",
    TagsNothing: "test_an_instance_carries_its_cluster_its_claim_and_its_labels",
    ListsEveryCluster: "test_instances_of_other_clusters_are_not_listed",
    NeverSaysThatItIsGone: "test_an_instance_that_never_was_is_gone",
    HandsOutWhatIsEnding: "test_an_instance_that_was_terminated_is_not_returned_again",
    SaysThatWhatIsEndingRuns: "test_an_instance_that_is_being_terminated_is_not_listed_as_running",
    BuysTheDearest: "test_a_launch_buys_the_cheapest_that_holds_the_requests",
    RefusesInItsOwnWords: "test_requests_that_nothing_holds_are_out_of_capacity",
    LeavesSomethingBehind: "test_a_class_that_is_not_there_is_misconfigured",
    RebootsWheneverAsked: "test_one_operation_reboots_once_however_often_it_is_asked_for",
    RebootsNothingAndSaysNothing: "test_a_reboot_is_another_boot_of_the_same_instance",
    RebootsByStartingAnother: "test_a_reboot_is_another_boot_of_the_same_instance",
    RebootsAnything: "test_what_is_not_there_cannot_be_rebooted",
    DriftsFromTheStart: "test_an_instance_that_was_just_launched_has_not_drifted",
    NeverDrifts: "test_an_instance_whose_class_asks_for_something_else_has_drifted",
    ForgetsWhatItHasLaunched: "test_what_is_not_there_has_not_drifted",
    StartsFromAnotherImage: "test_an_instance_starts_from_the_current_image",
    HasNoMoreNotices: "test_waiting_for_notices_lasts_and_can_be_ended_and_begun_again",
    PromisesTooMuch: "test_pods_are_never_promised_more_than_there_is",
}


class FaultyBench(Bench):
    look_every, looks = 0.0, 3

    def __init__(self, kind: type[AcmeCloud]) -> None:
        super().__init__()
        self._kind, self._acme = kind, Acme()
        self._classes = ClassesOnly(ACME_CLASSES, {"default": {"network": "n-1"}})

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        asyncio.run(story)

    def opened(self, cluster: str) -> AbstractAsyncContextManager[Cloud]:
        return nullcontext(self._kind(self._acme, outside(cluster, self._classes)))

    @property
    def class_ref(self) -> NodeClassRef:
        return NodeClassRef(group="acme.example.com", kind="AcmeNodeClass", name="default")

    async def node_class(self) -> NodeClass:
        return self._classes.read("default")

    async def changed_class(self) -> NodeClass:
        return replace(self._classes.read("default"), spec={"network": "n-2"})

    async def boot_of(self, instance: Instance) -> str:
        return str(self._acme.restarts.get(instance.provider_id))


def sentences() -> Iterator[tuple[str, Callable[[Bench], None]]]:
    suite = ProviderContract()
    for name in dir(suite):
        if name.startswith("test_"):
            steps = {"steps": 3} if "given_up_half_way" in name else {}
            yield name, partial(getattr(suite, name), **steps)


def broken_sentences(kind: type[AcmeCloud]) -> set[str]:
    broken = set()
    for name, holds in sentences():
        try:
            holds(FaultyBench(kind))
        except pytest.skip.Exception:
            continue
        except (Exception, pytest.fail.Exception):  # noqa: BLE001  # whatever a faulty one does
            broken.add(name)
    return broken


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_caught_by_the_sentence_it_breaks(kind: type[AcmeCloud]) -> None:
    assert FAULTS[kind] in broken_sentences(kind)


def test_a_fault_leaves_most_sentences_alone() -> None:
    """So the one that fails tells what is wrong."""
    every = [name for name, _ in sentences()]
    assert max(len(broken_sentences(kind)) for kind in FAULTS) < len(every) / 2


def test_a_sound_provider_breaks_none() -> None:
    assert broken_sentences(Sound) == set()
