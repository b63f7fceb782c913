"""Pods that run on nodes, by what constraints can tell of them.

Groups are learned when a constraint first names them: then their pods are found by kind, and not by
looking at every pod again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tenure.model.api.pod import Pod
from tenure.packing.demand.terms import Group
from tenure.packing.index.reading import Avoided


class Kind(NamedTuple):
    """Pods of one kind belong to the same groups, and avoid the same."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    active: bool
    #: The groups of required anti-affinity.
    far: tuple[Group, ...]


class Running:
    """How many pods of each kind each bin has. Kinds are numbered."""

    def __init__(self) -> None:
        self._ids: dict[Kind, int] = {}
        self._kinds: list[Kind] = []
        #: By kind: how many pods each bin has.
        self._bins: list[dict[int, int]] = []
        self._avoided = Avoided()
        #: How many kinds there are no pods of.
        self.gone = 0
        #: How many pods avoid each group.
        self.avoided: Counter[Group] = Counter()

    def __getitem__(self, kind: int) -> Kind:
        return self._kinds[kind]

    def kinds(self, pods: Iterable[Pod]) -> dict[int, int]:
        """How many pods of each kind these are."""
        found: list[int] = []
        ids = self._ids
        for pod in pods:
            metadata = pod.metadata
            labels = frozenset(metadata.labels.items())
            far = () if pod.spec.affinity is None else self._avoided.by(pod, labels)
            active = metadata.deletion_timestamp is None and not pod.finished  # All pods are read.
            key = metadata.namespace, labels, active, far
            kind = ids.get(key)  # type: ignore[call-overload]  # a Kind equals its fields
            if kind is None:
                kind = self._numbered(Kind(*key))
            found.append(kind)
        return Counter(found)

    def _numbered(self, kind: Kind) -> int:
        number = self._ids[kind] = len(self._kinds)
        self._kinds.append(kind)
        self._bins.append({})
        self.gone += 1
        return number

    def add(self, number: int, kinds: Mapping[int, int]) -> None:
        """So many pods of these kinds come to the bin, or leave it."""
        for kind, count in kinds.items():
            bins = self._bins[kind]
            if not bins:
                self.gone -= 1
            new = bins[number] + count if number in bins else count
            if new:
                bins[number] = new
            else:
                del bins[number]
                if not bins:
                    self.gone += 1
            for group in self._kinds[kind].far:
                self.avoided[group] += count
                if not self.avoided[group]:
                    del self.avoided[group]

    def everywhere(self) -> Iterator[tuple[Kind, dict[int, int]]]:
        """Each kind, and the bins that have pods of it."""
        return zip(self._kinds, self._bins, strict=True)

    def state(self) -> dict[Kind, dict[int, int]]:
        return {kind: dict(bins) for kind, bins in self.everywhere() if bins}
