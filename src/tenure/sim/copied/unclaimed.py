"""Nodes of a copied cluster that no claim owns, those of node groups for example: they cost something, too.

The embedded cloud did not launch them and never ends them. They are billed for as long as their Nodes are there.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenure.model.api.resource import NODES
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.watch import ADDED, DELETED
from tenure.sim.world import World


class UnclaimedNodes:
    def __init__(self, world: World, prices: Mapping[str, int]) -> None:
        """``prices``: by the name of the Node, in micro-dollars per hour; 0: not known."""
        self._world = world
        self._prices = prices
        self._billed: set[str] = set()
        for name in prices:
            self._begin(name)
        world.store.subscribe(NODES, self._on_node)

    def _on_node(self, type_: str, node: Obj, _: Obj | None) -> None:
        name = node["metadata"]["name"]
        if type_ == DELETED and name in self._billed:
            self._billed.remove(name)
            self._world.cloud.bill.stop(self._prices[name], self._world.now)
        elif type_ == ADDED and name in self._prices and name not in self._billed:
            self._begin(name)

    def _begin(self, name: str) -> None:
        self._billed.add(name)
        self._world.cloud.bill.start(self._prices[name], self._world.now)
