"""Single changes that would place a pod, each of which was tried."""

from __future__ import annotations

from typing import Final

from tenure.model.values.fact import Fact


class RaiseLimits(Fact, frozen=True):
    pool: str
    #: Resources and amounts: what the limit would have to be; where that is unknown, by how much more.
    limits: tuple[tuple[str, str], ...]
    by: bool = False

    def __str__(self) -> str:
        word = "by" if self.by else "to"
        raised = " and ".join(f"spec.limits.{name} {word} {amount}" for name, amount in self.limits)
        return f"raise {raised} in NodePool {self.pool}"


class TolerateTaint(Fact, frozen=True):
    taint: str

    def __str__(self) -> str:
        return f"add a toleration for taint {self.taint} to the pod"


class AllowValue(Fact, frozen=True):
    key: str
    value: str

    def __str__(self) -> str:
        return f"let the pod's node selector or affinity allow {self.key}={self.value}"


class DropRequirement(Fact, frozen=True):
    key: str

    def __str__(self) -> str:
        return f"remove {self.key} from the pod's node selector or affinity"


class AskAtMost(Fact, frozen=True):
    resource: str
    amount: str
    wanted: str

    def __str__(self) -> str:
        return f"request at most {self.amount} {self.resource} (the pod requests {self.wanted})"


class DropTerm(Fact, frozen=True):
    #: Affinity or anti-affinity.
    kind: str
    key: str
    #: Which pods it is about.
    pods: str

    def __str__(self) -> str:
        return f"remove the pod's required {self.kind} over {self.key} ({self.pods})"


class SoftenSpread(Fact, frozen=True):
    key: str

    def __str__(self) -> str:
        spread = f"topology spread over {self.key}"
        return f"give the pod's {spread} whenUnsatisfiable: ScheduleAnyway"


class DropTermOfOthers(Fact, frozen=True):
    #: Of the other workload: a pod, ``namespace/name``.
    pod: str
    key: str

    def __str__(self) -> str:
        return (
            f"remove the required anti-affinity over {self.key} of Pod {self.pod} and its workload"
        )


class FreeHostPort(Fact, frozen=True):
    port: int
    protocol: str

    def __str__(self) -> str:
        return f"remove host port {self.port}/{self.protocol} from the pod, or choose another"


class LowerMinValues(Fact, frozen=True):
    pool: str
    key: str
    wanted: int
    found: int

    def __str__(self) -> str:
        lower = f"lower minValues of {self.key} from {self.wanted} to {self.found}"
        return f"{lower} in NodePool {self.pool}"


class LabelPool(Fact, frozen=True):
    pool: str
    key: str
    value: str

    def __str__(self) -> str:
        label = f"label {self.key}={self.value}"
        return f"add {label} to spec.template.metadata.labels of NodePool {self.pool}"


class MoveVolumes(Fact, frozen=True):
    #: Where the volumes can be used.
    only: str

    def __str__(self) -> str:
        return f"use volumes that can be attached elsewhere (those of the pod ask for {self.only})"


class OfferResource(Fact, frozen=True):
    resource: str
    amount: str

    def __str__(self) -> str:
        has = f"whose instance types have {self.amount} {self.resource}"
        return f"add a NodePool {has}; no instance type has any"


class NoSingleChange(Fact, frozen=True):
    tried: int
    #: Whether there was more to try than is tried.
    more: bool = False

    def __str__(self) -> str:
        if self.more:
            return f"none of the first {self.tried:,} changes that were tried would place the pod"
        return (
            "no single change of the pod, or of one NodePool that can launch, would place the pod"
        )


Change = (
    RaiseLimits
    | TolerateTaint
    | AllowValue
    | DropRequirement
    | AskAtMost
    | DropTerm
    | SoftenSpread
    | DropTermOfOthers
    | FreeHostPort
    | LowerMinValues
    | LabelPool
    | MoveVolumes
    | OfferResource
)

_ZONE: Final = "topology.kubernetes.io/zone"
_WEB: Final = "pods with app In [web] in namespace shop"
EXAMPLES: Final[tuple[Fact, ...]] = (
    RaiseLimits("general", (("cpu", "24"),)),
    RaiseLimits("general", (("cpu", "24"), ("memory", "64Gi"))),
    RaiseLimits("general", (("cpu", "4"),), by=True),
    TolerateTaint("example.com/batch=true:NoSchedule"),
    AllowValue(_ZONE, "zone-b"),
    DropRequirement("example.com/team"),
    AskAtMost("cpu", "47.5", "64"),
    DropTerm("anti-affinity", _ZONE, _WEB),
    SoftenSpread(_ZONE),
    DropTermOfOthers("shop/shy-0", _ZONE),
    FreeHostPort(9100, "TCP"),
    LowerMinValues("general", "node.kubernetes.io/instance-type", 5, 4),
    LabelPool("general", "example.com/team", "red"),
    MoveVolumes(f"{_ZONE} In [zone-a]"),
    OfferResource("nvidia.com/gpu", "1"),
    NoSingleChange(34),
    NoSingleChange(120, more=True),
)
