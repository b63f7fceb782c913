"""The embedded cluster as something to explain, at the instant where it stands still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from tenure.cli.cluster.evaluated import ClockBlocker, EvaluatedCluster
from tenure.cli.cluster.gone import Said, last_words
from tenure.cli.view.progress import Progress
from tenure.cli.view.timespans import parse_moment
from tenure.core.decision import Subject
from tenure.core.policy.readers import READERS
from tenure.core.poolpolicy.govern import govern
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.snapshot import Snapshot, Tables
from tenure.runtime.observe.view import WATCHED
from tenure.sim.scenario.context import clock, span
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Simulation
from tenure.sim.world import World

_REPLICA: Final = Subject("Replica", "tenure")


@contextmanager
def played(
    scenario: Path, moment: str, seed: int | None
) -> Iterator[tuple[World, EvaluatedCluster]]:
    """The scenario up to that moment, for as long as the block lasts."""
    story = load_scenario(scenario)
    end = parse_moment(moment, story.options.epoch, "--at", story.until)
    if end > story.until:
        note = f"note: the scenario ends at {span(story.until)} (until); it is played on to --at {moment}"
        click.echo(note, err=True)
    simulation = Simulation(story, seed=seed, until=end)
    try:
        progress = Progress(f"playing {scenario.name}", end)
        simulation.run_until(end, lambda: progress.show(simulation.world.elapsed))
        progress.clear()
        yield simulation.world, scene_of(simulation.world)
    finally:
        simulation.close()


def scene_of(world: World) -> EvaluatedCluster:
    """The store as it is, of which Tenure may hear a moment later."""
    tables = Tables(READERS, govern=govern)
    for resource in (*WATCHED, *world.cloud.node_classes):
        for obj in world.store.list(resource):
            tables.put(resource, decode(resource, msgspec.json.encode(obj)))
    return EvaluatedCluster(
        at=world.now,
        snapshot=Snapshot(
            tables,
            world.controller.observations.current(),
            ours=frozenset(kind.group_kind for kind in world.cloud.node_classes),
        ),
        evaluator=world.controller.evaluator,
        settings=world.options.settings,
        also_at=span(world.elapsed),
        clock_blocker=ClockBlocker(off, _REPLICA)
        if (off := world.controller.times.off())
        else None,
    )


def last_word(world: World, subject: str) -> str:
    """Why an object is gone, and what was last said of it; empty when it was never heard of."""
    entries = (e for e in world.history.entries if e.subject == subject and e.ended is None)
    return last_words([Said(clock(e.at), e.reason, e.message) for e in entries])
