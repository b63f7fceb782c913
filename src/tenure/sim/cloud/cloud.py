"""The embedded cloud: sells instances, boots them, bills them, and sometimes fails.

A launch, in the order in which the rules bite: throttled · the claim has a running instance
already → that one · the node class is missing or broken → ``Misconfigured`` · the launch
fails by chance → ``ProviderError`` · the cheapest offering that satisfies the request and
holds it, dry ones passed over → an instance · nothing left → ``OutOfCapacity`` that names
every dry offering tried.

The instance then boots, and its kubelet starts. ``terminate`` stops the kubelet at once;
the instance is *terminating* until it is shut down, and gone after that. It is billed from
the launch to the beginning of its termination. ``reboot`` switches the kubelet off for a
while, once for each operation.

Each call takes half of its latency on the way there and half on the way back, so a caller
that dies while waiting may leave an instance behind that it never heard of.

In a zone that is cut off an instance starts, and its kubelet only when the zone is back; or its
offerings cannot be had, where the outage refuses launches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Final, Protocol, TypeVar

import msgspec

from tenure.errors import (
    InstanceGone,
    Misconfigured,
    OutOfCapacity,
    ProviderError,
    Throttled,
)
from tenure.model.api.meta import ApiObject, find_condition
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, InstanceState, LaunchRequest
from tenure.model.cloud.market import Market, Offer
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.model.cloud.offering import InstanceType, Offering, OfferingKey
from tenure.model.cloud.repairs import RepairStatement
from tenure.model.values.quantity import format_resources
from tenure.providers.kwok.nodeclass import (
    KWOK_NODE_CLASSES,
    KWOKNodeClass,
    image_drift,
    pinned_image,
    registration_delay,
)
from tenure.providers.kwok.repairs import kwok_statements
from tenure.sim.actors.nodestatus import BootedInstance
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.cloud.announcements import Announcements
from tenure.sim.cloud.billing import Bill
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import FaultSwitch, drawn, strikes
from tenure.sim.virtual.outages import ZoneOutages

T = TypeVar("T")

#: Versions are counted from 1; a class that pins none takes the newest.
_IMAGE: Final = "embedded-linux"
FIRST_IMAGE: Final = f"{_IMAGE}-1"

_SECOND: Final = timedelta(seconds=1)
#: As a public cloud announces it.
INTERRUPTION_GRACE: Final = timedelta(minutes=2)


class CloudTimings(msgspec.Struct, frozen=True, kw_only=True):
    """How long the cloud takes when nothing is wrong."""

    #: There and back, for every call.
    api_latency: timedelta = timedelta(milliseconds=200)
    #: Launch → kubelet starts: at least this, and up to ``boot_spread`` more, drawn evenly.
    boot_for: timedelta = timedelta(seconds=30)
    boot_spread: timedelta = timedelta(seconds=15)
    #: Told to terminate → gone.
    shutdown_for: timedelta = timedelta(seconds=20)
    #: Told to reboot → the kubelet is back.
    reboot_for: timedelta = timedelta(seconds=60)


class CloudEvent(StrEnum):
    """What became of an instance, for those who listen."""

    LAUNCHED = "Launched"
    #: Its reboot was requested.
    REBOOTING = "Rebooting"
    #: Its termination was requested.
    TERMINATING = "Terminating"
    #: It was lost without a request.
    LOST = "Lost"
    #: The cloud does not know it any more.
    GONE = "Gone"


CloudListener = Callable[[CloudEvent, Instance], object]


class KubeletPort(Protocol):
    """What follows an instance that boots, reboots or is switched off."""

    def boot(self, booted: BootedInstance) -> None: ...

    def halt(self, node: str) -> None: ...

    def reboot(self, node: str, down_for: timedelta) -> None: ...


class SimulatedCloud:
    """Implements ``ports.cloud.Cloud``; the rest is for stories and checkers."""

    name: Final = "embedded"
    repair_statements: Final[tuple[RepairStatement, ...]] = kwok_statements()

    def __init__(
        self,
        environment: Environment,
        store: Store,
        kubelets: KubeletPort,
        market: Market,
        *,
        timings: CloudTimings | None = None,
        faults: FaultSwitch | None = None,
        outages: ZoneOutages | None = None,
        stands_in_for: Sequence[Resource] = (),
    ) -> None:
        """``stands_in_for``: node classes of other clouds, whose instances are launched here."""
        self.node_classes: tuple[Resource, ...] = (KWOK_NODE_CLASSES, *stands_in_for)
        self._environment, self._store, self._kubelets = environment, store, kubelets
        self._market = market
        self._timings = timings or CloudTimings()
        self._faults = faults or FaultSwitch()
        self._outages = outages or ZoneOutages()
        self._outages.listen(self._on_outage)
        #: Booted in a zone that is cut off, in that order.
        self._unheard: list[BootedInstance] = []
        self._random = environment.random_for("cloud")
        # Of its own, so that asking about images moves no launch of the same seed.
        self._image_random = environment.random_for("images")
        self._images = [FIRST_IMAGE]
        self._instances: dict[str, Instance] = {}
        self._running_for: dict[str, str] = {}
        self._node_names: dict[str, str] = {}
        self._reboots: dict[str, str] = {}
        self._listeners: list[CloudListener] = []
        self._reboot_calls: list[Callable[[str], object]] = []
        self.announcements = Announcements()
        # Of its own, too: listening moves no launch of the same seed.
        self._notice_random = environment.random_for("notices")
        self.bill = Bill(environment.now())
        self.launch_count = 0
        self.termination_count = 0

    # The port.

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return await self._call(lambda: self._market.types)

    async def launch(self, request: LaunchRequest) -> Instance:
        return await self._call(lambda: self._launch(request))

    async def terminate(self, provider_id: str) -> None:
        await self._call(lambda: self._terminate(provider_id))

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        for listener in self._reboot_calls:
            listener(provider_id)
        await self._call(lambda: self._reboot(provider_id, operation_id))

    async def get(self, provider_id: str) -> Instance:
        return await self._call(lambda: self._found(provider_id))

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return await self._call(
            lambda: tuple(i for i in self._instances.values() if i.cluster == cluster)
        )

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        return await self._call(
            lambda: image_drift(self._found(provider_id).image_id, self._image_for(node_class)),
            self._image_random,
        )

    async def current_image(self, node_class: NodeClass) -> str:
        return await self._call(lambda: self._image_for(node_class), self._image_random)

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        await self._call(lambda: None, self._notice_random)
        async for notice in self.announcements.stream(cluster):
            await self._call(lambda: None, self._notice_random)
            yield notice

    async def acknowledge(self, notice: Notice) -> None:
        await self._call(lambda: self.announcements.acknowledge(notice), self._notice_random)

    # Stories and checkers.

    def sell(self, types: Sequence[InstanceType]) -> None:
        """These are all there is, from now on."""
        self._market = Market(types)

    def listen_for_reboot_calls(self, listener: Callable[[str], object]) -> None:
        """With the provider id, as the call leaves: the cloud accepts it later, if at all."""
        self._reboot_calls.append(listener)

    def listen(self, listener: CloudListener) -> None:
        """Call back, inside the change, whenever an instance begins or ends."""
        self._listeners.append(listener)

    def instances(self) -> tuple[Instance, ...]:
        """Everything that exists now in launch order: terminating and foreign ones included."""
        return tuple(self._instances.values())

    def cost(self) -> int:
        """What our instances have cost so far, in micro-dollars."""
        return self.bill.total(self._environment.now())

    def node_name(self, provider_id: str) -> str:
        """What the instance's Node is or will be called; empty for a foreign instance."""
        return self._node_names.get(provider_id, "")

    def add_foreign(self, provider_id: str, *, cluster: str = "") -> Instance:
        """An instance that another program launched, untagged or another cluster's."""
        instance = Instance(
            provider_id=provider_id, cluster=cluster, launched_at=self._environment.now()
        )
        self._instances[provider_id] = instance
        return instance

    def adopt(self, instance: Instance, node_name: str) -> None:
        """An instance that ran before this cloud did: it is billed from now on."""
        self._instances[instance.provider_id] = instance
        self._running_for[instance.claim_uid] = instance.provider_id
        self._node_names[instance.provider_id] = node_name
        self.bill.start(instance.price, self._environment.now())

    def image_of(self, claim: Obj) -> str:
        """What an adopted instance is taken to run: the image that its class asks for now."""
        name, kind = dig(claim, "spec", "nodeClassRef", "name"), KWOK_NODE_CLASSES.kind
        of_ours = dig(claim, "spec", "nodeClassRef", "kind") == kind
        stored = self._store.find(KWOK_NODE_CLASSES, "", name or "") if of_ours else None
        return str(dig(stored, "spec", "image") or self.newest_image)

    def boot_adopted(self, booted: BootedInstance) -> None:
        """An adopted instance whose Node is not there yet: it comes as that of a new one does."""
        delay = self._timings.boot_for + drawn(self._timings.boot_spread, self._random)
        self._environment.after(delay, self._boot, booted)

    def vanish(self, provider_id: str) -> None:
        """The instance is lost at once, without a request."""
        instance = self._found(provider_id)
        self._tell(CloudEvent.LOST, instance)
        self._stop(instance)
        self._forget(provider_id)

    def interrupt(
        self, provider_id: str, grace: timedelta = INTERRUPTION_GRACE, *, dated: bool = True
    ) -> None:
        """The cloud wants the instance back: announced now, taken after ``grace``.

        ``dated``: whether the notice says when.
        """
        at = self._environment.now() + grace
        self._announce(NoticeKind.INTERRUPTION, provider_id, at if dated else None)
        self._environment.at(at, self._take_back, provider_id)

    @property
    def types(self) -> tuple[InstanceType, ...]:
        """Whatever is offered."""
        return tuple(self._market.types)

    def change_prices(self, price: Callable[[InstanceType, Offering], int]) -> None:
        """From now on; what runs is billed as it was bought. Tenure hears of it when it asks next."""
        types = [
            msgspec.structs.replace(
                kind,
                offerings=tuple(
                    msgspec.structs.replace(one, price=price(kind, one)) for one in kind.offerings
                ),
            )
            for kind in self._market.types
        ]
        self._market = Market(types)

    @property
    def newest_image(self) -> str:
        return self._images[-1]

    def release_image(self, image: str = "") -> str:
        """There is a newer image from now on; its version."""
        self._images.append(image or f"{_IMAGE}-{len(self._images) + 1}")
        return self._images[-1]

    def recommend_rebalance(self, provider_id: str) -> None:
        """An interruption has become likely; nothing else happens."""
        self._announce(NoticeKind.REBALANCE, provider_id)

    # How it works.

    def _announce(
        self, kind: NoticeKind, provider_id: str, deadline: datetime | None = None
    ) -> None:
        instance = self._found(provider_id)
        notice = Notice(
            kind=kind, provider_id=provider_id, at=self._environment.now(), deadline=deadline
        )
        self.announcements.announce(instance.cluster, notice)

    def _take_back(self, provider_id: str) -> None:
        instance = self._instances.get(provider_id)
        if instance is not None and instance.state is InstanceState.RUNNING:
            self.vanish(provider_id)

    def _image_for(self, node_class: NodeClass | KWOKNodeClass) -> str:
        return pinned_image(node_class) or self._images[-1]

    async def _call(self, act: Callable[[], T], random: Random | None = None) -> T:
        random = random or self._random
        latency = self._timings.api_latency
        latency += drawn(self._faults.current.cloud_latency, random)
        one_way = latency / 2 / _SECOND
        await asyncio.sleep(one_way)
        try:
            if strikes(self._faults.current.cloud_throttle_rate, random):
                raise Throttled("the embedded cloud asks to slow down: RequestLimitExceeded")
            return act()
        finally:
            await asyncio.sleep(one_way)

    def _launch(self, request: LaunchRequest) -> Instance:
        if (running := self._running_for.get(request.claim_uid)) is not None:
            return self._instances[running]
        node_class = self._node_class(request)
        delay = registration_delay(node_class)
        if strikes(self._faults.current.launch_failure_rate, self._random):
            raise ProviderError("the embedded cloud could not start the instance: InternalError")
        instance = self._start(request, self._buy(request), node_class)
        self._boot_later(instance, request, delay)
        return instance

    def _node_class(self, request: LaunchRequest) -> KWOKNodeClass:
        wanted = request.node_class
        what = f"{wanted.kind}/{wanted.name}"
        if broken := self._faults.current.node_class_broken:
            raise Misconfigured(f"{what}: {broken}")
        kinds = (k for k in self.node_classes if k.group_kind == (wanted.group, wanted.kind))
        stored = self._store.find(next(kinds, KWOK_NODE_CLASSES), "", wanted.name)
        if stored is None:
            raise Misconfigured(f"{what}: not found")
        node_class = msgspec.convert(_for_this_cloud(stored), KWOKNodeClass)
        ready = find_condition(node_class.status.conditions, "Ready")
        if ready is not None and ready.status == "False":
            raise Misconfigured(f"{what} is not Ready: {ready.message}")
        return node_class

    def _buy(self, request: LaunchRequest) -> Offer:
        faults = self._faults.current
        dry: list[OfferingKey] = []
        for offer in self._market.suitable(request.requirements, request.requests):
            if self._used_up(offer) or self._outages.refuses_launches(offer.offering.zone):
                dry.append(offer.key)
                continue
            if not faults.is_dry(offer.key) and not strikes(faults.cloud_dry_rate, self._random):
                return offer
            dry.append(offer.key)
        if not dry:
            raise OutOfCapacity("no offering satisfies the requirements and holds the requests")
        raise OutOfCapacity(f"{len(dry)} offerings would do, none can be had", offerings=dry)

    def _used_up(self, offer: Offer) -> bool:
        """Of reserved capacity: whether as many instances run as there are."""
        most = offer.offering.instances
        if most is None:
            return False
        running = (
            (one.instance_type, one.zone, one.capacity_type) for one in self._instances.values()
        )
        return sum(key == offer.key for key in running) >= most

    def _start(self, request: LaunchRequest, offer: Offer, node_class: KWOKNodeClass) -> Instance:
        now = self._environment.now()
        self.launch_count += 1
        kind, offering = offer.instance_type, offer.offering
        instance = Instance(
            provider_id=f"embedded:///{offering.zone}/i-{self.launch_count:08x}",
            cluster=request.cluster,
            claim_uid=request.claim_uid,
            claim_name=request.claim_name,
            instance_type=kind.name,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            image_id=self._image_for(node_class),
            price=offering.price,
            launched_at=now,
            labels=offer.labels,
            capacity=format_resources(kind.capacity),
            allocatable=format_resources(kind.allocatable),
        )
        self._instances[instance.provider_id] = instance
        self._running_for[request.claim_uid] = instance.provider_id
        self.bill.start(instance.price, now)
        self._tell(CloudEvent.LAUNCHED, instance)
        return instance

    def _boot_later(
        self, instance: Instance, request: LaunchRequest, registration_delay: timedelta
    ) -> None:
        # Not the claim's name: a program that mixes up the two must not get away with it.
        name = f"node-{request.claim_name}"
        if name in self._node_names.values():
            name = f"{name}-{self.launch_count:x}"
        self._node_names[instance.provider_id] = name
        if strikes(self._faults.current.never_registers_rate, self._random):
            return
        timings, faults = self._timings, self._faults.current
        delay = timings.boot_for + drawn(timings.boot_spread, self._random)
        delay += drawn(faults.boot_latency, self._random) + registration_delay
        types = self._market.types
        booted = BootedInstance(
            instance=instance,
            node_name=name,
            labels=request.labels,
            taints=request.taints,
            volume_limits=next(t.volume_limits for t in types if t.name == instance.instance_type),
        )
        self._environment.after(delay, self._boot, booted)

    def _boot(self, booted: BootedInstance) -> None:
        current = self._instances.get(booted.instance.provider_id)
        if current is None or current.state is not InstanceState.RUNNING:
            return
        if self._outages.is_out(current.zone):
            self._unheard.append(booted)
        else:
            self._kubelets.boot(booted)

    def _on_outage(self, zone: str) -> None:
        if not self._outages.is_out(zone):
            waiting, self._unheard = self._unheard, []
            for booted in waiting:
                self._boot(booted)

    def _reboot(self, provider_id: str, operation_id: str) -> None:
        instance = self._found(provider_id)
        if instance.state is InstanceState.TERMINATING:
            raise InstanceGone(f"instance {provider_id} is being ended")
        if self._reboots.get(provider_id) != operation_id:
            self._reboots[provider_id] = operation_id
            self._tell(CloudEvent.REBOOTING, instance)
            self._kubelets.reboot(self.node_name(provider_id), self._timings.reboot_for)

    def _terminate(self, provider_id: str) -> None:
        instance = self._found(provider_id)
        if instance.state is InstanceState.RUNNING:
            self._stop(instance)
            self._tell(CloudEvent.TERMINATING, instance)
            self._environment.after(self._timings.shutdown_for, self._forget, provider_id)

    def _stop(self, instance: Instance) -> None:
        """No more billing, no more kubelet; the claim may have another instance."""
        if instance.state is InstanceState.TERMINATING:
            return
        self.termination_count += 1
        provider_id = instance.provider_id
        stopping = msgspec.structs.replace(instance, state=InstanceState.TERMINATING)
        self._instances[provider_id] = stopping
        if provider_id in self._node_names:
            self.bill.stop(instance.price, self._environment.now())
            self._running_for.pop(instance.claim_uid, None)
            self._kubelets.halt(self._node_names[provider_id])

    def _forget(self, provider_id: str) -> None:
        instance = self._instances.pop(provider_id, None)
        self._node_names.pop(provider_id, None)
        self._reboots.pop(provider_id, None)
        if instance is not None:
            self._tell(CloudEvent.GONE, instance)

    def _tell(self, event: CloudEvent, instance: Instance) -> None:
        for listener in self._listeners:
            listener(event, instance)

    def _found(self, provider_id: str) -> Instance:
        instance = self._instances.get(provider_id)
        if instance is None:
            raise InstanceGone(f"there is no instance {provider_id}")
        return instance


def _for_this_cloud(node_class: Obj) -> Obj:
    """Of a class of another cloud, only whether it is Ready: its spec says nothing here."""
    if node_class["kind"] == KWOK_NODE_CLASSES.kind:
        return node_class
    return {**node_class, "spec": {}}
