"""``tenure simulate``: play a scenario, print its history, say whether its expectations were met."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenure.sim.history import Entry
    from tenure.sim.scenario.run import Result, Simulation

EPILOG = """\b
Examples:
  tenure simulate examples/scenarios/fifty-pods.yaml
  tenure simulate examples/scenarios/fifty-pods.yaml --seed 7 --until 2d
  tenure simulate examples/scenarios/fifty-pods.yaml --json | tail -1

\b
The same file, seed and version print the same bytes. Durations are written as
90s, 5m, 1h30m or 2d. Exit code 1 means that an expectation failed, a step could not
be done, or a promise of Tenure's was broken; 2 means that the file is wrong.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(min=0), help="Another seed than the file's.")
@click.option("--until", metavar="SPAN", help="Run this long instead, for example 45m or 2d.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per line; the last is the result."
)
@click.option("--verbose", "-v", is_flag=True, help="Everything, every action and pod included.")
def simulate(file: Path, seed: int | None, until: str | None, as_json: bool, verbose: bool) -> int:
    """Play the scenario in FILE and say whether its expectations were met.

    A scenario is a YAML file: objects (plain Kubernetes manifests), events (what
    happens when) and expect (what must hold). It runs in an embedded cluster in
    virtual time, so that a day takes seconds.
    """
    from tenure.sim.collector import rest_collector
    from tenure.sim.scenario.load import load_scenario
    from tenure.sim.scenario.read.timespans import parse_span  # loaded only when called
    from tenure.sim.scenario.run import Simulation

    end: timedelta | None = None if until is None else parse_span(until, "--until")
    scenario = load_scenario(file)
    simulation = Simulation(scenario, seed=seed, until=end)
    rest_collector()
    try:
        result = _as_json(simulation) if as_json else _as_text(simulation, verbose)
    finally:
        simulation.close()
    return 0 if result.fine else 1


class _Shown:
    """Lines that wait until time stands still: a reader that goes away must not disturb it."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self.add = self._waiting.append

    def show(self) -> None:
        for line in self._waiting:
            click.echo(line)
        self._waiting.clear()


def _as_text(simulation: Simulation, verbose: bool) -> Result:
    from tenure.cli.view.lines import Lines
    from tenure.cli.view.verdictline import result_lines

    scenario, world = simulation.scenario, simulation.world
    click.echo(
        f"{scenario.name}, seed {world.options.seed}, from {world.options.epoch:%Y-%m-%d %H:%M} UTC"
    )
    if scenario.description:
        click.echo(f"\n{click.wrap_text(scenario.description, width=96)}")
    click.echo()
    shown = _Shown()
    lines = Lines(world.options.epoch, shown.add, all_=verbose)
    world.history.listen(lines.add)
    result = simulation.run(shown.show)
    lines.flush()
    shown.show()
    for line in result_lines(result, simulation.world.elapsed):
        click.echo(line)
    return result


def _as_json(simulation: Simulation) -> Result:
    import msgspec

    shown = _Shown()

    def add(entry: Entry) -> None:
        event = {"type": "event", **msgspec.structs.asdict(entry)}
        shown.add(msgspec.json.encode(event).decode())

    simulation.world.history.listen(add)
    result = simulation.run(shown.show)
    shown.show()
    last = {"type": "result", "fine": result.fine, **msgspec.structs.asdict(result)}
    click.echo(msgspec.json.encode(last))
    return result
