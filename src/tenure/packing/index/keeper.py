"""Who keeps the index over turns, and when it is built anew.

It is a cache: what is asked names all nodes, and the index follows them before it answers. So an answer
depends on nothing but the question. It is built anew where it cannot follow: other DaemonSets or
namespaces, a label that no pod asked for before, too many nodes out of order, too much learned that
may not be needed any more; and after a failure, or where a comparison found a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.index.comparing import difference, tables, teach
from tenure.packing.index.kept import KeptIndex, Namespaces
from tenure.packing.index.order import rank_of
from tenure.packing.offers.daemons import DaemonPod

#: Nodes out of order: one of so many, and never fewer than this.
DISORDER_SHARE: Final = 16
DISORDER_MIN: Final = 64
#: What is learned beyond twice as much as at first. Rollouts bring new groups, and none is forgotten.
LEARNED_MAX: Final = 1024
#: Labels that nodes are told apart by. A question about more than these is not asked of the index.
LABELS_MAX: Final = 256
#: Nodes that are read in one step of a comparison: some 10 ms.
STEP: Final = 128
#: After failures, one after the other, so many questions are not asked at the most: each would build the
#: whole index again.
SKIPPED_MAX: Final = 1023


class Keeper:
    """At most one index."""

    def __init__(self) -> None:
        self.index: KeptIndex | None = None
        #: How much it had learned after its first question.
        self._learned = -1
        self._started = False
        #: How often it was built anew, by reason.
        self.rebuilds: Final[Counter[str]] = Counter()
        #: How many nodes came, changed or went, as far as questions have said so.
        self.changes = 0
        #: How often a comparison found a difference.
        self.disagreements = 0
        #: What the last failure was; empty: none since a question was answered.
        self.error = ""
        self._failures = 0
        #: Questions that are still not asked.
        self._skipped = 0

    def take(
        self,
        nodes: Sequence[ExistingNode],
        keys: frozenset[str],
        daemons: tuple[DaemonPod, ...],
        namespaces: Namespaces | None = None,
    ) -> KeptIndex | None:
        """The index of these nodes, until it is given back; None: it is not to be asked.

        ``keys``: of labels that are asked for. Those that no node has tell no nodes apart. If the index is
        not given back, because something ``failed``, the next one is built anew.
        """
        return at_once(self.taking(nodes, keys, daemons, namespaces))

    def taking(
        self,
        nodes: Sequence[ExistingNode],
        keys: frozenset[str],
        daemons: tuple[DaemonPod, ...],
        namespaces: Namespaces | None = None,
    ) -> Steps[KeptIndex | None]:
        """The same in steps: very many nodes may have changed. Between two steps others may take it, and give it back."""
        if self._skipped:
            self._skipped -= 1
            return None
        index = self.index
        why = self._why_not(index, daemons, namespaces)
        if index is not None and not why:
            yield from self._applying(index, nodes)
            if keys & index.labels <= index.keys:
                return self._out(index)
            if len((index.keys & index.labels) | keys) > LABELS_MAX:
                return None
            why = "Labels"
        if self._started:
            self.rebuilds[why] += 1
        self._started = True
        self._learned = -1
        if index is not None:
            both = (index.keys & index.labels) | keys
            keys = both if len(both) <= LABELS_MAX else keys
        self.index = index = KeptIndex(keys=keys, daemons=daemons, namespaces=namespaces)
        yield from self._applying(index, nodes)
        return self._out(index)

    def _applying(self, index: KeptIndex, nodes: Sequence[ExistingNode]) -> Steps[None]:
        before = index.changes
        yield from index.applying(nodes)
        self.changes += index.changes - before

    def _out(self, index: KeptIndex) -> KeptIndex:
        self.index = None
        return index

    def give_back(self, index: KeptIndex) -> None:
        """As it was taken."""
        if self._learned < 0:
            self._learned = index.learned
        self.index = index
        self._failures, self.error = 0, ""

    def failed(self, error: str) -> None:
        """A question could not be answered. One failure is forgiven; then ever more questions are skipped."""
        self.index, self.error = None, error
        self._skipped = min(2**self._failures - 1, SKIPPED_MAX)
        self._failures += 1

    def _why_not(
        self,
        index: KeptIndex | None,
        daemons: tuple[DaemonPod, ...],
        namespaces: Namespaces | None,
    ) -> str:
        if index is None:
            return "Failure"
        if daemons is not index.daemons and daemons != index.daemons:
            return "DaemonSets"
        if namespaces is not index.namespaces and namespaces != index.namespaces:
            return "Namespaces"
        if index.nodes.disorder > max(DISORDER_MIN, len(index) // DISORDER_SHARE):
            return "Order"
        return "Learned" if index.learned > 2 * self._learned + LEARNED_MAX else ""

    def compare(self) -> Iterator[str]:
        """Build a second index and compare, step by step; what differs, or the empty string.

        Where they differ, the new one is kept. Between two steps, questions may be asked.
        """
        first = self.index
        if first is None or not first.settled:
            return
        fresh = KeptIndex(keys=first.keys, daemons=first.daemons, namespaces=first.namespaces)
        nodes = sorted((seat.node for seat in first.seats().values()), key=rank_of)
        for end in range(STEP, len(nodes), STEP):
            fresh.apply(nodes[:end])
            yield ""
        for table in tables(first):
            if self.index is not first or not first.settled:
                return  # Built anew meanwhile, or about to follow.
            fresh.apply(first.given)
            teach(fresh, first)
            found = difference(table, first, fresh)
            if found:
                self.disagreements += 1
                self.rebuilds["Disagreement"] += 1
                self.index = fresh
            yield found
