"""What the cloud runs for us, and what we ask it to run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.matching.requirements import Requirements


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a provider needs to start one instance for one claim."""

    #: Name of this cluster: instances carry it, so that clusters never touch each other's.
    cluster: str
    claim_name: str
    #: Makes the launch idempotent: the same UID gives the same instance.
    claim_uid: str
    pool: str
    node_class: NodeClassRef
    #: The instance type, zone and capacity type must satisfy all of these.
    requirements: Requirements
    #: Nano-units that must fit into the type's allocatable.
    requests: Mapping[str, int]
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()


class InstanceState(StrEnum):
    RUNNING = "running"
    TERMINATING = "terminating"


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance in the cloud, as its API describes it."""

    provider_id: str
    #: Tags. An instance without them is not ours and is never touched.
    cluster: str = ""
    claim_uid: str = ""
    claim_name: str = ""
    state: InstanceState = InstanceState.RUNNING
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    image_id: str = ""
    #: Micro-dollars per hour.
    price: int = 0
    launched_at: datetime
    labels: Mapping[str, str] = {}
    #: Quantities as the API writes them.
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
