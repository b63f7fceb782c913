"""Whose turn it is: pods wait in one line per class, and lines that cannot move are parked.

Next comes the pod with the highest priority, then the oldest, then the one that arrived
first. When one pod of a class fits nowhere, none of its class does: its line is parked as a
whole, at no cost per pod, until something happens that may help.
"""

from __future__ import annotations

import heapq

import msgspec

from tenure.sim.actors.scheduling.classes import PodClass

#: When created, when arrived, who.
Entry = tuple[str, int, str]


class Line:
    """The waiting pods of one class."""

    def __init__(self, cls: PodClass) -> None:
        self.cls = cls
        self.active = True
        self.pods: dict[str, Entry] = {}
        self._order: list[Entry] = []
        #: Waiting pods that have not been told yet why they wait.
        self.untold: dict[str, None] = {}
        #: The pod for which the line stands in the queue's order right now.
        self.offered: Entry | None = None

    def add(self, entry: Entry) -> None:
        self.pods[entry[2]] = entry
        self.untold[entry[2]] = None
        heapq.heappush(self._order, entry)

    def discard(self, pod: str) -> None:
        self.pods.pop(pod, None)
        self.untold.pop(pod, None)

    def head(self) -> Entry | None:
        order = self._order
        while order and self.pods.get(order[0][2]) is not order[0]:
            heapq.heappop(order)
        return order[0] if order else None


class Turn(msgspec.Struct, frozen=True):
    pod: str
    line: Line


class Queue:
    def __init__(self) -> None:
        self._lines: dict[PodClass, Line] = {}
        self._line_of: dict[str, Line] = {}
        self._heads: list[tuple[int, Entry, Line]] = []
        self._arrivals = 0

    def add(self, pod: str, cls: PodClass, created: str, *, tried: bool = False) -> None:
        """Let the pod wait, unless it does so already; its class gets a new try.

        ``tried``: not if it was parked before: nothing has happened that may help.
        """
        before = self._line_of.get(pod)
        if before is not None and before.cls is cls:
            return
        told = before is not None and pod not in before.untold
        self.discard(pod)
        line = self._lines.get(cls)
        if line is None:
            line = self._lines[cls] = Line(cls)
            line.active = False
        self._arrivals += 1
        line.add((created, self._arrivals, pod))
        self._line_of[pod] = line
        if tried and before is not None and not before.active and told:
            line.untold.pop(pod)
        else:
            self.activate(line)

    def discard(self, pod: str) -> None:
        line = self._line_of.pop(pod, None)
        if line is None:
            return
        line.discard(pod)
        if not line.pods:
            line.active = False
            del self._lines[line.cls]
        elif line.active:
            self._offer(line)

    def next(self) -> Turn | None:
        """The pod to try now; it stays in the queue until it is discarded or parked."""
        while self._heads:
            _, entry, line = self._heads[0]
            if line.active and line.pods.get(entry[2]) is entry:
                return Turn(entry[2], line)
            heapq.heappop(self._heads)
            if line.offered is entry:
                line.offered = None
        return None

    def activate(self, line: Line) -> None:
        line.active = True
        self._offer(line)

    def park(self, line: Line) -> None:
        line.active = False

    def line(self, cls: PodClass) -> Line | None:
        """The waiting pods of a class, if there are any."""
        return self._lines.get(cls)

    def parked(self) -> list[Line]:
        return [line for line in self._lines.values() if not line.active]

    def _offer(self, line: Line) -> None:
        head = line.head()
        if head is not None and head is not line.offered:
            line.offered = head
            heapq.heappush(self._heads, (-line.cls.priority, head, line))
