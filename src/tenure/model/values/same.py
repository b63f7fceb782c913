"""A value as a key, compared by identity: for values that take long to compare, or cannot be hashed."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Same(Generic[V]):
    """It equals only itself. It holds the value, so that no other can have the same identity."""

    __slots__ = ("value",)

    def __init__(self, value: V) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
