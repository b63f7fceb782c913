"""The cloud of a cluster that ``tenure up`` serves, as another process sees it.

The process that serves the cluster tells of its node classes, types and instances on a path of its own, so
that plans name the right ones: those of a copied cluster, or of a scenario. An older one does not; then the
types of a cluster that nothing has changed count, and its instances are not known. Without this, the provider of
real clusters would be asked, would know none of the instances, and they would count as lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import msgspec

from tenure.errors import InstanceGone, ProviderError
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType
from tenure.model.cloud.repairs import RepairStatement
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.cloud import Cloud
from tenure.ports.provider import Option, Surroundings
from tenure.ports.transport import Request, Transport
from tenure.providers.kwok.nodeclass import KWOK_KIND, KWOK_NODE_CLASSES
from tenure.providers.kwok.repairs import kwok_statements
from tenure.sim.cloud.catalogue import instance_types, select

LEADER: Final = "tenure up, which serves this cluster"
_ONLY_THERE: Final = "only tenure up, which serves this cluster, knows them"
#: Where the process that serves the cluster tells of its cloud.
PATH: Final = "/embedded/cloud"


class CloudState(msgspec.Struct, frozen=True, kw_only=True):
    """What a look from outside needs to know."""

    node_classes: tuple[Resource, ...]
    types: tuple[InstanceType, ...]
    instances: tuple[Instance, ...]


def _written(value: Any) -> Any:
    if isinstance(value, Requirements):
        return list(value.values())
    raise NotImplementedError(type(value).__name__)


def _read(type_: type, value: Any) -> Any:
    if type_ is Requirements:
        found = msgspec.convert(value, tuple[Requirement, ...])
        return Requirements({one.key: one for one in found})
    raise NotImplementedError(type_.__name__)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_written)
_DECODER: Final = msgspec.json.Decoder(CloudState, dec_hook=_read)


def as_json(state: CloudState) -> bytes:
    return _ENCODER.encode(state)


async def state_at(transport: Transport) -> CloudState | None:
    """As the process that serves the cluster tells it; None where it does not."""
    answer = await transport.request(Request(method="GET", path=PATH))
    if answer.status != 200:
        return None
    try:
        return _DECODER.decode(answer.body)
    except DECODE_ERRORS:
        return None  # Of another version.


class EmbeddedCloud:
    name: Final = "embedded"
    repair_statements: Final[tuple[RepairStatement, ...]] = kwok_statements()
    kinds: Final = (KWOK_KIND,)
    options: Final[tuple[Option, ...]] = ()
    namespace: Final = ""

    def __init__(self, state: CloudState | None = None) -> None:
        self._state = state
        self.node_classes = state.node_classes if state is not None else (KWOK_NODE_CLASSES,)

    @asynccontextmanager
    async def open(self, surroundings: Surroundings) -> AsyncIterator[Cloud]:
        yield self

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        """Without a word from there: of a cluster that nothing has changed."""
        return self._state.types if self._state is not None else instance_types(select(), seed=0)

    async def launch(self, request: LaunchRequest) -> Instance:
        _refuse()

    async def terminate(self, provider_id: str) -> None:
        _refuse()

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        _refuse()

    async def get(self, provider_id: str) -> Instance:
        for one in await self.list_instances(""):
            if one.provider_id == provider_id:
                return one
        raise InstanceGone(f"there is no instance {provider_id}")

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        """All of them: nothing but this cluster has instances there."""
        if self._state is None:
            _refuse()
        return self._state.instances

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        _refuse()

    async def current_image(self, node_class: NodeClass) -> str:
        _refuse()

    def notices(self, cluster: str) -> AsyncIterator[Notice]:
        _refuse()

    async def acknowledge(self, notice: Notice) -> None:
        _refuse()


def _refuse() -> NoReturn:
    raise ProviderError(_ONLY_THERE)
