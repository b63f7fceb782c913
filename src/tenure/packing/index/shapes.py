"""Nodes by what pods can see of them: taints, and the labels that any pod asks for.

Most nodes of a pool look alike, so pods are compared with a few shapes and not with every node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from tenure.model.api.node import Taint
from tenure.model.api.taints import HARD_EFFECTS, untolerated
from tenure.model.matching.requirements import NODE_NAME, Requirement, Requirements
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.volumes import amount_of
from tenure.packing.offers.catalogue import SOFT_EFFECTS
from tenure.packing.offers.daemons import DaemonPod, load_on_node

#: Ordinary pods ask for fewer label keys than this, all of them together.
KEYS_MAX: Final = 32


class Shape(NamedTuple):
    """Nodes of one shape accept the same pods."""

    taints: tuple[Taint, ...]
    #: The values of all labels that count.
    labels: Requirements
    #: Which of these labels may still get one of several values.
    undecided: tuple[str, ...] = ()

    def accepts(self, signature: Signature) -> bool:
        effects = SOFT_EFFECTS if signature.soft_taints else HARD_EFFECTS
        tolerated = untolerated(self.taints, signature.tolerations, effects) is None
        return tolerated and self._matches(signature.alternatives)

    def tolerated(self, signature: Signature) -> bool:
        """Whether a spread of such pods that asks about taints counts these nodes."""
        return untolerated(self.taints, signature.tolerations, HARD_EFFECTS) is None

    def matches(self, signature: Signature) -> bool:
        """Whether a spread of such pods that asks about labels counts these nodes."""
        return self._matches(signature.counted)

    def _matches(self, alternatives: Iterable[Requirements]) -> bool:
        return any(
            self.labels.is_compatible(wanted) and self._whichever(wanted) for wanted in alternatives
        )

    def _whichever(self, wanted: Requirements) -> bool:
        """Whether it suits with each value that an undecided label may get."""
        return all(
            wanted.allowed(key).has(value)
            for key in self.undecided
            for value in self.labels[key].listed
        )


class Shapes:
    """All shapes there are."""

    def __init__(self, keys: Collection[str], daemons: Sequence[DaemonPod]) -> None:
        """``keys``: of the labels that count."""
        self._by_name = NODE_NAME in keys
        self.keys = sorted(frozenset(keys) - {NODE_NAME})
        self._daemons = daemons
        self._known: dict[object, int] = {}
        self.all: list[Shape] = []
        self._loads: list[Resources] = []

    def of(self, node: ExistingNode) -> int:
        """The index of the node's shape."""
        name = node.name if self._by_name else ""
        open_ = node.undecided
        undecided = tuple((key, open_[key]) for key in self.keys if key in open_) if open_ else ()
        seen = node.taints, name, tuple(map(node.labels.get, self.keys)), undecided
        shape = self._known.get(seen)
        if shape is None:
            shape = self._known[seen] = len(self.all)
            visible = {key: node.labels[key] for key in self.keys if key in node.labels}
            if self._by_name:
                visible[NODE_NAME] = node.name
            labels = Requirements.from_labels(visible).add(
                *(Requirement.of(key, "In", sorted(values)) for key, values in undecided)
            )
            self.all.append(Shape(node.taints, labels, tuple(key for key, _ in undecided)))
            self._loads.append(load_on_node(self._daemons, node.taints, labels).requests)
        return shape

    def daemon_requests(self, shape: int) -> Resources:
        """What all daemons take of a node of this shape."""
        return self._loads[shape]


def keys_asked(signatures: Iterable[Signature], daemons: Iterable[DaemonPod]) -> set[str]:
    """The keys of all labels that these ask for."""
    wanted = [a for signature in signatures for a in signature.alternatives]
    wanted += [a for daemon in daemons for a in daemon.alternatives]
    return {key for requirements in wanted for key in requirements}


def that_differ(keys: set[str], nodes: Iterable[ExistingNode]) -> set[str]:
    """Without those that no node has, where there are many."""
    if len(keys) <= KEYS_MAX:
        return keys
    return keys & (_label_keys(nodes) | {NODE_NAME})


def _label_keys(nodes: Iterable[ExistingNode]) -> set[str]:
    """Keys by which nodes can differ at all: pods may ask for others by the thousand."""
    keys: set[str] = set()
    for node in nodes:
        keys.update(node.labels, node.undecided)
    return keys


def free_of(node: ExistingNode, expected: Resources, names: Sequence[str]) -> list[int]:
    """What is available once the daemons that belong here and are not here yet have come."""
    available = node.available
    if not expected:
        return [
            there if (there := available.get(name, 0)) > 0 else max(0, amount_of(available, name))
            for name in names
        ]
    present = node.daemon_requests
    return [
        max(0, amount_of(available, name) - max(0, expected.get(name, 0) - present.get(name, 0)))
        for name in names
    ]
