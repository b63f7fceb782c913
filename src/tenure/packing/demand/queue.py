"""Who is still waiting: one entry per class, served from the front."""

from __future__ import annotations

from collections.abc import Collection

from tenure.packing.demand.classes import PodClass


class Waiting:
    """The pods of a class that have no place yet."""

    __slots__ = ("_uids", "left", "one")

    def __init__(self, one: PodClass, last: Collection[str] = ()) -> None:
        """``last``: UIDs of pods that are served after the others."""
        self.one = one
        uids = [pod.metadata.uid for pod in one.pods]
        if last:
            uids.sort(key=lambda uid: uid in last)
        self._uids = uids
        self.left = len(uids)

    def take(self, count: int) -> list[str]:
        """Serve the next ``count`` pods; their UIDs."""
        assert 0 < count <= self.left
        start = len(self._uids) - self.left
        self.left -= count
        return self._uids[start : start + count]

    def skip(self) -> None:
        """Put the next pod at the end of those that are left."""
        start = len(self._uids) - self.left
        self._uids.append(self._uids.pop(start))

    @property
    def next(self) -> str:
        return self._uids[len(self._uids) - self.left]

    def rest(self) -> list[str]:
        """The UIDs of all that are left, still waiting."""
        return self._uids[len(self._uids) - self.left :]
