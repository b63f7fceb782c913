"""The KWOK cloud: an instance is a Node object, which kwok then keeps alive.

* **launch**     class not found or not usable → ``Misconfigured`` · the cheapest available
                 offering that satisfies and holds the request, else ``OutOfCapacity`` · the
                 Node is created, or put into an envelope until its class's delay is over. Its
                 name follows from the claim's UID: a second launch meets the first and
                 returns it, also where it would now be refused.
* **terminate**  the envelope goes, or the Node is deleted; where a finalizer holds it, it is
                 marked as terminated. That a Node is being deleted says nothing about the
                 instance: it runs, and can be drained, until it is terminated.
* **reboot**     the Node gets another boot id, made from the operation's: asked for twice, it is
                 the same. It stays Ready meanwhile, and its pods run on.
* **ours**       is what carries our cluster's name and a claim's UID. Nothing else is touched.

Every write names what it is meant for: a create its name, the others the UID.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from tenure.errors import (
    AlreadyExists,
    ApiError,
    InstanceGone,
    Misconfigured,
    NotFound,
    OutOfCapacity,
    ProviderError,
    Throttled,
    TooManyRequests,
)
from tenure.model.api.meta import ApiObject, find_condition, format_time
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import NODES
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.market import Market, Offer
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.model.cloud.repairs import RepairStatement
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.provider import Surroundings
from tenure.providers.kwok import labels as kwok
from tenure.providers.kwok.boots import Boots
from tenure.providers.kwok.envelopes import Envelope, Envelopes
from tenure.providers.kwok.images import Images
from tenure.providers.kwok.instances import (
    KwokInstance,
    is_object_name,
    manifest,
    name_of,
    node_name,
    read_instance,
)
from tenure.providers.kwok.nodeclass import (
    KWOK_NODE_CLASSES,
    KWOKNodeClass,
    image_drift,
    registration_delay,
)
from tenure.providers.kwok.notices import LabelNotices
from tenure.providers.kwok.repairs import kwok_statements

_CLASS: Final = msgspec.json.Decoder(KWOKNodeClass)
_NO_DELAY: Final = timedelta(0)


class KwokCloud:
    """Implements ``ports.cloud.Cloud``, for as long as it is entered."""

    name: Final = "kwok"
    node_classes: Final = (KWOK_NODE_CLASSES,)
    repair_statements: Final[tuple[RepairStatement, ...]] = kwok_statements()

    def __init__(self, surroundings: Surroundings, types: tuple[InstanceType, ...]) -> None:
        self._api = surroundings.api
        self._clock = surroundings.clock
        self._cluster = surroundings.cluster
        self._market = Market(types)
        self._decided = frozenset(key for kind in types for key in kind.requirements)
        self._envelopes = Envelopes(surroundings.api, surroundings.namespace)
        self._boots = Boots(surroundings, self._envelopes)
        self._notices = LabelNotices(surroundings)
        self._images = Images(surroundings.api, surroundings.namespace)

    async def __aenter__(self) -> Self:
        self._boots.resume(self._is_ours)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._boots.close()

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return self._market.types

    # -- launch ------------------------------------------------------------------------

    async def launch(self, request: LaunchRequest) -> Instance:
        with _as_provider_error(f"launching for NodeClaim {request.claim_name}"):
            try:
                instance = await self._launch(request)
            except (ProviderError, AlreadyExists):
                found = await self._find(node_name(request))
                if found is None:
                    raise
                instance = found
            return self._running(instance, request).as_instance(self._decided)

    async def _launch(self, request: LaunchRequest) -> KwokInstance | None:
        node_class = await self._node_class(request.node_class)
        delay = registration_delay(node_class)
        offer = self._buy(request)
        image = await self._images.of(node_class)
        now = self._clock.now()
        node = manifest(request, offer, image=image, now=now)
        if delay == _NO_DELAY:
            return read_instance(await self._api.create(NODES, node))
        return await self._launch_later(node, now + delay)

    async def _launch_later(self, node: Mapping[str, Any], due_at: datetime) -> KwokInstance | None:
        # Its envelope is gone once it has registered, so the name alone does not tell.
        if (there := await self._of_node(node["metadata"]["name"])) is not None:
            return there
        envelope = await self._envelopes.put(node, due_at)
        if envelope is None:
            return None
        self._boots.expect(envelope)
        return envelope.instance

    async def _node_class(self, ref: NodeClassRef) -> KWOKNodeClass:
        what = f"{ref.kind}/{ref.name}"
        if (ref.group, ref.kind) != (KWOK_NODE_CLASSES.group, KWOK_NODE_CLASSES.kind):
            raise Misconfigured(f"{what}: the kwok provider serves {KWOK_NODE_CLASSES.kind} only")
        if not is_object_name(ref.name):
            raise Misconfigured(f"{what}: not found, and no object can have such a name")
        try:
            node_class = _CLASS.decode(await self._api.get(KWOK_NODE_CLASSES, ref.name))
        except NotFound as error:
            raise Misconfigured(f"{what}: not found") from error
        except DECODE_ERRORS as error:
            raise Misconfigured(f"{what}: {error}") from error
        ready = find_condition(node_class.status.conditions, "Ready")
        if ready is not None and ready.status == "False":
            raise Misconfigured(f"{what} is not Ready: {ready.message or 'it does not say why'}")
        return node_class

    def _buy(self, request: LaunchRequest) -> Offer:
        dry = []
        for offer in self._market.suitable(request.requirements, request.requests):
            if offer.offering.available:
                return offer
            dry.append(offer.key)
        if not dry:
            raise OutOfCapacity("no offering satisfies the requirements and holds the requests")
        raise OutOfCapacity(f"{len(dry)} offerings would do, none is available", offerings=dry)

    def _running(self, instance: KwokInstance | None, request: LaunchRequest) -> KwokInstance:
        """The instance, if it is the one that was asked for."""
        name = node_name(request)
        if instance is None or instance.annotations.get(kwok.CLAIM_UID) != request.claim_uid:
            raise ProviderError(f"Node {name} is there, and not for NodeClaim {request.claim_name}")
        if instance.terminated:
            at = instance.annotations[kwok.TERMINATED_AT]
            raise ProviderError(
                f"the instance of NodeClaim {request.claim_name} was terminated at {at}"
            )
        return instance

    # -- terminate ---------------------------------------------------------------------

    async def terminate(self, provider_id: str) -> None:
        with _as_provider_error(f"terminating instance {provider_id}"):
            name = name_of(provider_id)
            if not name:
                raise _gone(provider_id)
            await self._boots.cancel(name)
            had_envelope = await self._discard(name)
            if not await self._terminate(name) and not had_envelope:
                raise _gone(provider_id)

    async def _discard(self, name: str) -> bool:
        envelope = await self._envelopes.find(name)
        if envelope is None or not self._is_ours(envelope):
            return False
        await self._envelopes.discard(envelope)
        return True

    async def _terminate(self, name: str) -> bool:
        """Whether there was an instance to terminate."""
        instance = await self._of_node(name)
        if instance is None or not instance.is_of(self._cluster) or instance.terminated:
            return False
        mark = {
            "metadata": {
                "uid": instance.uid,
                "annotations": {kwok.TERMINATED_AT: format_time(self._clock.now())},
            }
        }
        try:
            # In this order: a mark on a Node that is not deleted would hide a leftover.
            if not instance.deleting:
                await self._api.delete(NODES, name, uid=instance.uid)
            await self._api.patch(NODES, name, mark)
        except NotFound:
            pass  # Nothing held it.
        return True

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        with _as_provider_error(f"rebooting instance {provider_id}"):
            name = name_of(provider_id)
            instance = await self._find(name) if name else None
            if instance is None or not instance.is_of(self._cluster) or instance.terminated:
                raise _gone(provider_id)
            if not instance.uid:  # The Node is there before its envelope goes.
                instance = await self._of_node(name) or instance
            if not instance.uid:
                raise ProviderError(f"{provider_id} has not registered yet")
            boot_id = f"kwok-{operation_id}"
            if instance.status.node_info.boot_id != boot_id:
                told = {
                    "metadata": {"uid": instance.uid},
                    "status": {"nodeInfo": {"bootID": boot_id}},
                }
                await self._api.patch(NODES, name, told, subresource="status")

    # -- read --------------------------------------------------------------------------

    async def get(self, provider_id: str) -> Instance:
        with _as_provider_error(f"reading instance {provider_id}"):
            name = name_of(provider_id)
            instance = await self._find(name) if name else None
        if instance is None or not instance.is_of(self._cluster) or instance.terminated:
            raise _gone(provider_id)
        return instance.as_instance(self._decided)

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        with _as_provider_error("listing instances"):
            waiting = await self._envelopes.all()
            items, _ = await self._api.list_all(NODES)
        for envelope in waiting:
            if self._is_ours(envelope):
                self._boots.expect(envelope)
        instances = {envelope.name: envelope.instance for envelope in waiting}
        instances |= {each.name: each for each in map(read_instance, items) if each is not None}
        return tuple(
            instance.as_instance(self._decided)
            for _, instance in sorted(instances.items())
            if instance.is_of(cluster) and not instance.terminated
        )

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        instance = await self.get(provider_id)
        return image_drift(instance.image_id, await self.current_image(node_class))

    async def current_image(self, node_class: NodeClass) -> str:
        with _as_provider_error(f"reading the images for KWOKNodeClass {node_class.name}"):
            return await self._images.of(node_class)

    async def notices(self, cluster: str) -> AsyncIterator[Notice]:
        with _as_provider_error("looking for notices"):
            async for notice in self._notices.stream(cluster):
                yield notice

    async def acknowledge(self, notice: Notice) -> None:
        with _as_provider_error(f"acknowledging a notice on instance {notice.provider_id}"):
            await self._notices.acknowledge(notice)

    def _is_ours(self, envelope: Envelope) -> bool:
        return envelope.instance.is_of(self._cluster)

    async def _find(self, name: str) -> KwokInstance | None:
        """The envelope first: its Node is there before it goes."""
        envelope = await self._envelopes.find(name)
        return envelope.instance if envelope is not None else await self._of_node(name)

    async def _of_node(self, name: str) -> KwokInstance | None:
        try:
            return read_instance(await self._api.get(NODES, name))
        except NotFound:
            return None


def _gone(provider_id: str) -> InstanceGone:
    return InstanceGone(f"there is no instance {provider_id}")


@contextmanager
def _as_provider_error(what: str) -> Iterator[None]:
    """Errors of the API server as those of a cloud."""
    try:
        yield
    except TooManyRequests as error:
        raise Throttled(f"{what}: {error}") from error
    except ApiError as error:
        raise ProviderError(f"{what}: {error}") from error
