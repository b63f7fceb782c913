"""A provider for the instances of Acme, Inc.: complete, and as small as one can be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Annotated

import msgspec

from tenure.errors import (
    ApiError,
    InstanceGone,
    Misconfigured,
    NotFound,
    OutOfCapacity,
    ProviderError,
    SpecError,
)
from tenure.model.api.fields import described
from tenure.model.api.meta import ApiObject, Wire
from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import Resource
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.cloud.market import Market, Offer
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.cloud.repairs import RepairAction, RepairStatement
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import format_resources, parse_resources
from tenure.ports.cloud import no_notices
from tenure.ports.provider import Option, Surroundings
from tenure.schema.structure.crd import AGE, Column, CustomKind
from tenure.schema.structure.rules import Rule

ACME_CLASSES = Resource(
    "acme.example.com", "v1", "AcmeNodeClass", "acmenodeclasses", namespaced=False
)


class AcmeNodeClassSpec(Wire, frozen=True, kw_only=True):
    network: Annotated[
        str, described("The network that instances are connected to.", required=True, maxLength=63)
    ] = ""


class AcmeNodeClass(ApiObject, frozen=True, kw_only=True):
    """How Acme makes instances."""

    spec: Annotated[
        AcmeNodeClassSpec, described("What instances of this class have.", required=True)
    ] = AcmeNodeClassSpec()


ACME_KIND = CustomKind(
    ACME_CLASSES,
    AcmeNodeClass,
    columns=(Column("Network", ".spec.network"), AGE),
    short_names=("acmenc",),
    rules={
        "spec.network": (
            Rule("self.startsWith('n-')", "must be the id of a network, for example n-1"),
        )
    },
)
ZONES = ("north", "south")
HALF_AN_HOUR = timedelta(minutes=30)
STATEMENTS = (
    RepairStatement(condition_type="Ready", status="False", toleration=HALF_AN_HOUR),
    RepairStatement(condition_type="Ready", status="Unknown", reason=".*", toleration=HALF_AN_HOUR),
    RepairStatement(
        condition_type="AcceleratorHung",
        status="True",
        reason="^Driver",
        toleration=timedelta(minutes=5),
        grace_period=timedelta(minutes=10),
        priority=10,
        action=RepairAction.REBOOT,
    ),
)


def machine_type(name: str, cpu: int, gib: int, price: float) -> InstanceType:
    said = {INSTANCE_TYPE: [name], ARCH: ["amd64"], OS: ["linux"]}
    sold = {ZONE: ZONES, CAPACITY_TYPE: ["on-demand"]}
    return InstanceType(
        name=name,
        requirements=Requirements.of(
            Requirement.of(key, "In", values) for key, values in {**said, **sold}.items()
        ),
        capacity=parse_resources({"cpu": cpu, "memory": f"{gib}Gi", "pods": 110}),
        # The kubelet takes its share.
        allocatable=parse_resources({"cpu": cpu - 0.1, "memory": f"{gib - 1}Gi", "pods": 110}),
        offerings=tuple(
            Offering(zone=zone, capacity_type="on-demand", price=round(price * 1_000_000))
            for zone in ZONES
        ),
    )


TYPES = (machine_type("anvil", 4, 16, 0.20), machine_type("rocket", 16, 64, 0.75))


class Acme:
    """Stands for Acme's API. What it runs outlives every controller."""

    def __init__(self) -> None:
        self.instances: dict[str, Instance] = {}
        #: Machine → the network that it is connected to.
        self.networks: dict[str, str] = {}
        #: Machine → the tokens with which it was restarted.
        self.restarts: dict[str, list[str]] = {}

    def start(self, token: str, instance: Instance, network: str) -> Instance:
        """The same token gives the same instance: most clouds have a field for it."""
        self.networks.setdefault(instance.provider_id, network)
        return self.instances.setdefault(token, instance)

    def restart(self, token: str, instance: Instance) -> None:
        """The same token restarts once."""
        done = self.restarts.setdefault(instance.provider_id, [])
        if token not in done:
            done.append(token)


class AcmeCloud:
    """Implements ``tenure.ports.cloud.Cloud``."""

    name = "acme"
    node_classes = (ACME_CLASSES,)
    repair_statements = STATEMENTS

    def __init__(self, acme: Acme, surroundings: Surroundings) -> None:
        self._acme = acme
        self._api = surroundings.api
        self._clock = surroundings.clock
        self._market = Market(TYPES)

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return TYPES

    async def launch(self, request: LaunchRequest) -> Instance:
        if (running := self._acme.instances.get(request.claim_uid)) is not None:
            return running
        network = await self._network(request.node_class)
        offer = next(self._market.suitable(request.requirements, request.requests), None)
        if offer is None:
            raise OutOfCapacity("no instance satisfies the requirements and holds the requests")
        return self._acme.start(request.claim_uid, self._instance(request, offer), network)

    async def _network(self, ref: NodeClassRef) -> str:
        try:
            found = await self._api.get(ACME_CLASSES, ref.name)
        except NotFound as error:
            raise Misconfigured(f"AcmeNodeClass/{ref.name}: not found") from error
        except ApiError as error:
            raise ProviderError(f"AcmeNodeClass/{ref.name}: {error}") from error
        if network := msgspec.json.decode(found, type=NodeClass).spec.get("network"):
            return str(network)
        raise Misconfigured(f"AcmeNodeClass/{ref.name}: spec.network is missing")

    def _instance(self, request: LaunchRequest, offer: Offer) -> Instance:
        kind, offering = offer.instance_type, offer.offering
        return Instance(
            provider_id=f"acme:///{offering.zone}/m-{request.claim_uid}",
            cluster=request.cluster,
            claim_uid=request.claim_uid,
            claim_name=request.claim_name,
            instance_type=kind.name,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            price=offering.price,
            launched_at=self._clock.now(),
            labels=offer.labels,
            capacity=format_resources(kind.capacity),
            allocatable=format_resources(kind.allocatable),
        )

    async def terminate(self, provider_id: str) -> None:
        instance = await self.get(provider_id)
        del self._acme.instances[instance.claim_uid]

    async def reboot(self, provider_id: str, operation_id: str) -> None:
        self._acme.restart(operation_id, await self.get(provider_id))

    async def get(self, provider_id: str) -> Instance:
        for instance in self._acme.instances.values():
            if instance.provider_id == provider_id:
                return instance
        raise InstanceGone(f"there is no instance {provider_id}")

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return tuple(each for each in self._acme.instances.values() if each.cluster == cluster)

    async def drift(self, provider_id: str, node_class: NodeClass) -> Drift | None:
        instance = await self.get(provider_id)
        has = self._acme.networks[instance.provider_id]
        asked = node_class.spec.get("network")
        if has == asked:
            return None
        return Drift("NetworkDrift", f"the instance is in {has}, its class asks for {asked}")

    async def current_image(self, node_class: NodeClass) -> str:
        return ""  # Acme has one image for ever.

    def notices(self, cluster: str) -> AsyncIterator[Notice]:
        return no_notices()  # Acme takes nothing back.

    async def acknowledge(self, notice: Notice) -> None:
        """Nothing was announced."""


class AcmeProvider:
    """Implements ``tenure.ports.provider.Provider``."""

    name = AcmeCloud.name
    node_classes = AcmeCloud.node_classes
    kinds = (ACME_KIND,)
    repair_statements = STATEMENTS
    options = (
        Option(
            name="acme-account",
            reason="Whose instances.",
            metavar="NUMBER",
            expected="the number of an account at Acme",
            example="4711",
            default="the account of the host that Tenure runs on",
            check=int,
        ),
    )
    namespace = ""

    def __init__(self, acme: Acme) -> None:
        self._acme = acme

    def open(self, surroundings: Surroundings) -> nullcontext[AcmeCloud]:
        account = surroundings.options.get("acme-account", "")
        if account.startswith("0"):
            raise SpecError("--acme-account", account, "an account that is not closed")
        return nullcontext(AcmeCloud(self._acme, surroundings))


ACME = AcmeProvider(Acme())
