"""The pipeline beside Karpenter: one node like each that goes, and nothing while Karpenter is not known."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.core.beside.karpenter import karpenter_of
from tenure.core.beside.replacing.likeforlike import like_for_like_in
from tenure.core.disrupt.simulate import Simulation
from tenure.core.facts import Fact
from tenure.core.marks.repaired import is_stamped_by_others
from tenure.core.marks.starts import seen
from tenure.model.api.names import CREATED_BY, SET_BY_TENURE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot


class BesideKarpenter:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def preparing(self, snapshot: Snapshot) -> Iterator[None]:
        return iter(())  # It asks no node.

    def simulation(self, snapshot: Snapshot, protection_clock: str) -> Simulation:
        return like_for_like_in(snapshot, karpenter_of(snapshot, self._settings))

    def stands_still(self, snapshot: Snapshot) -> Fact | None:
        return karpenter_of(snapshot, self._settings).ends_nothing

    def counted(self, pool: NodePool, snapshot: Snapshot) -> NodePool:
        """Its status is Karpenter's, so what can be seen counts."""
        return seen(pool, snapshot)

    def has_created(self, replacement: NodeClaim) -> bool:
        """Not those of a Tenure that was in charge before: they are Karpenter's now. Nor one to which another
        program has given a deadline."""
        ours = replacement.annotations.get(CREATED_BY) == SET_BY_TENURE
        return ours and not is_stamped_by_others(replacement)
