"""A node, its taints and its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.model.api.meta import BEGINNING, ApiObject, Condition, Wire, condition_status
from tenure.model.values.quantity import readable_amounts


class Taint(Wire, frozen=True, kw_only=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


class NodeSpec(Wire, frozen=True, kw_only=True):
    provider_id: str = msgspec.field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeSystemInfo(Wire, frozen=True, kw_only=True, gc=False):
    boot_id: str = msgspec.field(default="", name="bootID")


class NodeStatus(Wire, frozen=True, kw_only=True):
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


#: What the conditions that every node has say of a healthy one.
_HEALTHY: Final = frozenset(
    {
        ("Ready", "True"),
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
        ("NetworkUnavailable", "False"),
    }
)


class Node(ApiObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return condition_status(self.status.conditions, "Ready") == "True"

    @property
    def plainly_healthy(self) -> bool:
        """Whether it has only the conditions that every node has, each with its healthy status."""
        for condition in self.status.conditions:  # Asked for every heartbeat.
            if (condition.type, condition.status) not in _HEALTHY:
                return False
        return True

    @property
    def changed_at(self) -> datetime:
        """When one of its conditions last changed its status."""
        last = BEGINNING
        for condition in self.status.conditions:  # Asked for every heartbeat.
            at = condition.last_transition_time
            if at is not None and at > last:
                last = at
        return last

    @property
    def capacity(self) -> Mapping[str, int]:
        """In nano-units; empty when it cannot be read."""
        return readable_amounts(self.status.capacity)

    @property
    def allocatable(self) -> Mapping[str, int]:
        """In nano-units; empty when it cannot be read, so that nothing fits."""
        return readable_amounts(self.status.allocatable)

    def has_taint(self, key: str, effect: str = "") -> bool:
        return any(t.key == key and effect in ("", t.effect) for t in self.spec.taints)
