"""The resources of Nodes in nano-units: parsing them is worth remembering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.model.api.node import Node
from tenure.model.snapshot.derived import Derivation


def _capacity(node: Node) -> Mapping[str, int]:
    return node.capacity


def _allocatable(node: Node) -> Mapping[str, int]:
    return node.allocatable


CAPACITY: Final = Derivation("capacity", _capacity)
ALLOCATABLE: Final = Derivation("allocatable", _allocatable)
