"""Who is still waiting: one entry per class, served from the front."""

from __future__ import annotations

from tenure.packing.demand.classes import PodClass


class Waiting:
    """The pods of a class that have no place yet."""

    __slots__ = ("left", "one")

    def __init__(self, one: PodClass) -> None:
        self.one = one
        self.left = len(one.pods)

    def take(self, count: int) -> tuple[str, ...]:
        """Serve the next ``count`` pods; their UIDs."""
        assert 0 < count <= self.left
        start = len(self.one.pods) - self.left
        self.left -= count
        return tuple(pod.uid for pod in self.one.pods[start : start + count])

    def rest(self) -> tuple[str, ...]:
        """The UIDs of all that are left, still waiting."""
        return tuple(pod.uid for pod in self.one.pods[len(self.one.pods) - self.left :])
