"""How many instance types of a NodePool cannot take the pod, and why; which topology rule is in the way.

Each type is counted once, under the first of these causes in the order in which they stand here, so the
counts add up to the number of types.
"""

from __future__ import annotations

from typing import Final

from tenure.model.values.fact import Fact


def _verb(types: int, verb: str) -> str:
    """``1 lacks``, ``96 lack``."""
    return f"{types:,} {verb}{'s' if types == 1 else ''}"


class TypesOutsidePool(Fact, frozen=True):
    types: int
    #: What the NodePool itself requires.
    required: str

    def gist(self) -> object:
        return type(self), self.required

    def __str__(self) -> str:
        return f"{_verb(self.types, 'lack')} {self.required}, which the NodePool requires"


class TypesLackLabel(Fact, frozen=True):
    types: int
    wanted: str

    def gist(self) -> object:
        return type(self), self.wanted

    def __str__(self) -> str:
        return f"{_verb(self.types, 'lack')} {self.wanted}"


class TypesNotOffered(Fact, frozen=True):
    """They exist in the allowed zones and capacity types, but cannot be had now."""

    types: int

    def gist(self) -> object:
        return type(self)

    def __str__(self) -> str:
        has = "has" if self.types == 1 else "have"
        return f"{self.types:,} {has} no available offering"


class TypesUseHostPort(Fact, frozen=True):
    types: int
    port: int
    protocol: str

    def gist(self) -> object:
        return type(self), self.port, self.protocol

    def __str__(self) -> str:
        runs = _verb(self.types, "run")
        return f"{runs} a DaemonSet pod that uses host port {self.port}/{self.protocol}"


class TypesLackResource(Fact, frozen=True):
    types: int
    resource: str

    def gist(self) -> object:
        return type(self), self.resource

    def __str__(self) -> str:
        return f"{_verb(self.types, 'lack')} resource {self.resource}"


class TypesTooSmall(Fact, frozen=True):
    types: int
    resource: str
    wanted: str
    largest: str

    def gist(self) -> object:
        return type(self), self.resource, self.wanted

    def __str__(self) -> str:
        size = f"{self.resource} {self.wanted} wanted, largest {self.largest}"
        return f"{self.types:,} too small ({size})"


class TypesOverLimit(Fact, frozen=True):
    types: int
    resource: str

    def gist(self) -> object:
        return type(self), self.resource

    def __str__(self) -> str:
        return f"{_verb(self.types, 'exceed')} what spec.limits.{self.resource} leaves"


class TypesTooFew(Fact, frozen=True):
    types: int
    key: str
    min_values: int

    def gist(self) -> object:
        return type(self), self.key, self.min_values

    def __str__(self) -> str:
        few = f"too few for minValues {self.min_values} of {self.key}"
        return f"{_verb(self.types, 'fit')}, {few}"


class TypesOutOfReach(Fact, frozen=True):
    types: int

    def gist(self) -> object:
        return type(self)

    def __str__(self) -> str:
        return f"{_verb(self.types, 'fit')}, but topology constraints allow none of their domains"


class VolumesUsableIn(Fact, frozen=True):
    """Where the volumes of the pod are, or can be."""

    #: PersistentVolumeClaims, ``namespace/name``.
    claims: tuple[str, ...]
    where: str

    def __str__(self) -> str:
        many = "s" if len(self.claims) > 1 else ""
        claims = f"PersistentVolumeClaim{many} {_some(self.claims)}"
        together = " together" if many else ""
        return f"{claims} can be used{together} only in {self.where}"


# -- topology ----------------------------------------------------------------------------------------


class AffinityNowhere(Fact, frozen=True):
    """No pod is there that required pod affinity asks for."""

    #: Which pods: a selector, and their namespaces.
    pods: str
    key: str

    def __str__(self) -> str:
        asks = f"required pod affinity over {self.key} asks for {self.pods}"
        return f"{asks}, and no such pod runs or is placed"


class AffinityElsewhere(Fact, frozen=True):
    """Such pods are there, but in domains where no node can be had for the pod."""

    pods: str
    key: str
    values: tuple[str, ...]

    def gist(self) -> object:
        return type(self), self.pods, self.key

    def __str__(self) -> str:
        where = _some(self.values)
        return (
            f"required pod affinity asks for {self.pods}: they are only in {self.key} {where}, "
            "where no node has room and none can be launched for the pod"
        )


class AffinityOnFullNodes(Fact, frozen=True):
    """Affinity over the hostname: a new node has none of these pods."""

    pods: str
    nodes: tuple[str, ...]

    def gist(self) -> object:
        return type(self), self.pods

    def __str__(self) -> str:
        many = len(self.nodes) != 1
        return (
            f"required pod affinity over the hostname asks for {self.pods}: "
            f"Node{'s' if many else ''} {_some(self.nodes)} {'have' if many else 'has'} them, "
            "and no room for the pod"
        )


class AntiAffinityEverywhere(Fact, frozen=True):
    pods: str
    key: str
    #: Where such pods are, of the domains that the pod could use.
    values: tuple[str, ...]

    def gist(self) -> object:
        return type(self), self.pods, self.key

    def __str__(self) -> str:
        return (
            f"required pod anti-affinity avoids {self.pods}: "
            f"every {self.key} that the pod could use has one ({_some(self.values)})"
        )


class SharedNodeTooSmall(Fact, frozen=True):
    """Pods that must be on one node are too large together."""

    pods: str
    count: int
    resource: str
    wanted: str
    largest: str

    def gist(self) -> object:
        return type(self), self.pods, self.resource

    def __str__(self) -> str:
        return (
            f"required pod affinity over the hostname puts {self.pods} onto one node: {self.count:,} "
            f"pods want {self.wanted} {self.resource} together, the largest node has {self.largest}"
        )


def _some(values: tuple[str, ...]) -> str:
    more = len(values) - VALUES_SHOWN
    rest = f" and {more:,} more" if more > 0 else ""
    return f"{', '.join(values[:VALUES_SHOWN])}{rest}"


#: Of values and names that a sentence lists.
VALUES_SHOWN: Final = 5

TypeCount = (
    TypesOutsidePool
    | TypesLackLabel
    | TypesNotOffered
    | TypesUseHostPort
    | TypesLackResource
    | TypesTooSmall
    | TypesOverLimit
    | TypesTooFew
    | TypesOutOfReach
)

EXAMPLES: Final[tuple[Fact, ...]] = (
    TypesOutsidePool(40, "kubernetes.io/arch In [amd64]"),
    TypesLackLabel(1, "kubernetes.io/arch In [riscv]"),
    TypesLackLabel(96, "zone us-x-1c"),
    TypesNotOffered(1),
    TypesNotOffered(12),
    TypesUseHostPort(3, 9100, "TCP"),
    TypesLackResource(144, "nvidia.com/gpu"),
    TypesTooSmall(48, "cpu", "64", "48"),
    TypesOverLimit(12, "cpu"),
    TypesTooFew(4, "node.kubernetes.io/instance-type", 5),
    TypesOutOfReach(5),
    VolumesUsableIn(("shop/data-0",), "topology.kubernetes.io/zone In [zone-b]"),
    VolumesUsableIn(("shop/data-0", "shop/logs-0"), "topology.kubernetes.io/zone In [zone-b]"),
    AffinityNowhere("pods with app In [db] in namespace shop", "topology.kubernetes.io/zone"),
    AffinityElsewhere(
        "pods with app In [db] in namespace shop", "topology.kubernetes.io/zone", ("zone-d",)
    ),
    AffinityOnFullNodes("pods with app In [db] in namespace shop", ("node-1",)),
    AntiAffinityEverywhere(
        "pods with app In [web] in namespace shop",
        "topology.kubernetes.io/zone",
        ("zone-a", "zone-b"),
    ),
    SharedNodeTooSmall("pods with app In [web] in namespace shop", 12, "cpu", "96", "48"),
)
