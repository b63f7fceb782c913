"""A copy of a cluster in which a scenario, or a change, is about to be played."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from tenure.sim.collector import rest_collector
from tenure.sim.copied.copy import ClusterCopy
from tenure.sim.copied.difference import Observed
from tenure.sim.copied.load import load, options_for
from tenure.sim.scenario.load import Scenario, load_scenario
from tenure.sim.scenario.run import Simulation
from tenure.sim.scenario.worldoptions import with_seed
from tenure.sim.world import World, WorldOptions

#: How long a change is watched when nothing says so.
A_DAY: Final = timedelta(days=1)


def prepared(
    copy: ClusterCopy, file: Path | None, seed: int | None, until: timedelta | None
) -> tuple[Simulation, Observed, tuple[str, ...]]:
    """The simulation, what watches it, and what is not as it was in the cluster.

    ``file``: a scenario, or manifests; without one the cluster is left to itself.
    """
    scenario = _unchanged(copy) if file is None else load_scenario(file, copy)
    options = options_for(copy, with_seed(scenario.options, seed))
    scenario = msgspec.structs.replace(scenario, options=options)
    world = World(options)
    notes = load(copy, world)
    observed = Observed(world)
    plain = not scenario.steps and not scenario.expectations
    end = until if until is not None or not plain else A_DAY
    simulation = Simulation(scenario, until=end, world=world)
    rest_collector()
    return simulation, observed, notes


def _unchanged(copy: ClusterCopy) -> Scenario:
    return Scenario(
        name="unchanged",
        description="The cluster as it is, left to itself.",
        until=A_DAY,
        options=WorldOptions(epoch=copy.at),
        objects=(),
        steps=(),
        expectations=(),
    )
