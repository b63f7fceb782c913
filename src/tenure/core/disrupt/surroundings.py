"""Where the pipeline runs: in charge of nodes, or beside another program that is.

What differs is how capacity for pods is planned, where starts of disruptions are counted from, and whether
anything may be done at all. Methods, gates and commands are the same (``core.beside.replacing.surroundings`` is the other one).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from tenure.core.disrupt.simulate import Simulation, simulation_in
from tenure.core.facts import Fact
from tenure.core.provision.knownnodes import reading_nodes
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot


class Surroundings(Protocol):
    def preparing(self, snapshot: Snapshot) -> Iterator[None]:
        """In steps: derive what the simulation consists of."""
        ...

    def simulation(self, snapshot: Snapshot, protection_clock: str) -> Simulation:
        """By which it is planned where pods go."""
        ...

    def stands_still(self, snapshot: Snapshot) -> Fact | None:
        """Why commands under way stand still: nothing is written."""
        ...

    def counted(self, pool: NodePool, snapshot: Snapshot) -> NodePool:
        """The pool with the starts that its budgets count."""
        ...

    def has_created(self, replacement: NodeClaim) -> bool:
        """Whether it is ours to remove where nothing waits for it."""
        ...


class InCharge:
    """Tenure launches and terminates."""

    def preparing(self, snapshot: Snapshot) -> Iterator[None]:
        return reading_nodes(snapshot)

    def simulation(self, snapshot: Snapshot, protection_clock: str) -> Simulation:
        return simulation_in(snapshot, protection_clock)

    def stands_still(self, snapshot: Snapshot) -> Fact | None:
        return None

    def counted(self, pool: NodePool, snapshot: Snapshot) -> NodePool:
        return pool

    def has_created(self, replacement: NodeClaim) -> bool:
        return True


IN_CHARGE: Final = InCharge()
