"""Of the instance types of a NodePool: how many cannot take the pod, and why.

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
)
