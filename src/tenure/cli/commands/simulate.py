"""``tenure simulate``: play a scenario, print its history, say whether its expectations were met."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.cli.copying.source import source_of, source_options

if TYPE_CHECKING:
    from tenure.cli.copying.source import Source
    from tenure.sim.history import Entry
    from tenure.sim.scenario.load import Scenario
    from tenure.sim.scenario.run import Result, Simulation

EPILOG = """\b
Examples:
  tenure simulate examples/scenarios/fifty-pods.yaml
  tenure simulate examples/scenarios/fifty-pods.yaml --seed 7 --until 2d
  tenure simulate examples/scenarios/fifty-pods.yaml --list --at 2m
  tenure simulate examples/scenarios/fifty-pods.yaml --json | tail -1
  tenure new scenario
  tenure simulate --from cluster.jsonl change.yaml --for 1d

\b
The same file, seed and version print the same bytes. Durations are written as
90s, 5m, 1h30m or 2d. Exit code 1 means that an expectation failed, a step could not
be done, or a promise of Tenure's was broken; 2 means that the file is wrong.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@source_options
@click.option("--seed", type=click.IntRange(min=0), help="Another seed than the file's.")
@click.option(
    "--until",
    "--for",
    "until",
    metavar="SPAN",
    help="Run this long instead, for example 45m or 2d.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per line; the last is the result."
)
@click.option("--verbose", "-v", is_flag=True, help="Everything, every action and pod included.")
@click.option(
    "--list", "listing", is_flag=True, help="Name the objects that explain can be asked about."
)
@click.option(
    "--at", "moment", metavar="TIME", help="With --list: at 5m, or an instant. [default: end]"
)
def simulate(
    file: Path | None,
    seed: int | None,
    until: str | None,
    as_json: bool,
    verbose: bool,
    listing: bool,
    moment: str | None,
    from_file: Path | None,
    from_cluster: bool,
    kubeconfig: str,
    context: str,
) -> int:
    """Play the scenario in FILE and say whether its expectations were met.

    A scenario is a YAML file: objects (plain Kubernetes manifests), events (what
    happens when) and expect (what must hold). It runs in an embedded cluster in
    virtual time, so that a day takes seconds.

    With --from or --from-cluster it is played in a copy of that cluster, and FILE may be
    plain manifests, applied as it begins. The difference is told at the end.
    """
    from tenure.cli.view.timespans import parse_moment
    from tenure.sim.collector import rest_collector
    from tenure.sim.scenario.load import load_scenario
    from tenure.sim.scenario.read.timespans import parse_span  # loaded only when called
    from tenure.sim.scenario.run import Simulation

    if moment is not None and not listing:
        raise click.UsageError("--at goes with --list; a run goes on to --until")
    if listing and (from_file is not None or from_cluster):
        # explain cannot play a copy again: it asks a cluster, as the one of tenure up.
        raise click.UsageError(
            "--list goes with a scenario alone; tenure up with the same --from serves the copy, "
            "and kubectl and tenure explain name its objects"
        )
    source = source_of(from_file, from_cluster, kubeconfig, context)
    end: timedelta | None = (
        None if until is None else parse_span(until, "--for" if source.named else "--until")
    )
    if source.named:
        return _in_copy(source, file, seed, end, as_json=as_json, verbose=verbose)
    if file is None:
        hint = "expected a scenario, or --from with a copy of a cluster; tenure new scenario writes one"
        raise click.UsageError(f"FILE: missing, {hint}")
    scenario = load_scenario(file)
    _tell_notes(scenario)
    if moment is not None:
        end = parse_moment(moment, scenario.options.epoch, "--at", scenario.until)
    simulation = Simulation(scenario, seed=seed, until=end)
    rest_collector()
    try:
        if listing:
            return _list(simulation, file, seed, as_json=as_json, verbose=verbose)
        result = _as_json(simulation) if as_json else _as_text(simulation, verbose)
    finally:
        simulation.close()
    return 0 if result.fine else 1


def _tell_notes(scenario: Scenario) -> None:
    from tenure.cli.output.folded import folded
    from tenure.cli.output.said import say

    if notes := scenario.notes:
        # Many lines of one file have the same form.
        more = f" (and {len(notes) - 1} more like it)" if len(notes) > 1 else ""
        say(f"note: {notes[0]}{more}", err=True)
    for sentence in folded(scenario.unused):
        say(f"note: {sentence}", err=True)


def _list(
    simulation: Simulation, file: Path, seed: int | None, *, as_json: bool, verbose: bool
) -> int:
    """What is there at that moment, by names that ``explain`` takes."""
    import msgspec

    from tenure.cli.cluster.embedded import scene_of
    from tenure.cli.explain.listed import Played, listed, named_objects
    from tenure.cli.output.said import say
    from tenure.cli.view.columns import terminal_width
    from tenure.cli.view.progress import Progress
    from tenure.sim.scenario.context import span

    progress = Progress(f"playing {file.name}", simulation.until)
    simulation.run_until(simulation.until, lambda: progress.show(simulation.world.elapsed))
    progress.clear()
    evaluated = scene_of(simulation.world)
    played = Played(file, span(simulation.until), seed)
    objects = named_objects(evaluated, played)
    if as_json:
        for one in objects:
            click.echo(msgspec.json.encode({"type": "object", **msgspec.structs.asdict(one)}))
    else:
        say("\n".join(listed(objects, evaluated, terminal_width(), verbose=verbose)))
    return 0


def _in_copy(
    source: Source,
    file: Path | None,
    seed: int | None,
    end: timedelta | None,
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    import msgspec

    from tenure.cli.copying.differencetext import difference_json, difference_lines
    from tenure.cli.copying.played import prepared
    from tenure.cli.copying.source import copy_of
    from tenure.cli.output.said import say
    from tenure.cli.view.progress import waiting

    with waiting("copying the cluster") as wait:
        copy = copy_of(source)
        wait.now("filling the embedded cluster")
        simulation, observed, notes = prepared(copy, file, seed, end)
    _tell_notes(simulation.scenario)
    for sentence in notes:
        say(f"note: {sentence}", err=True)
    try:
        result = _as_json(simulation) if as_json else _as_text(simulation, verbose)
        found = observed.difference()
    finally:
        simulation.close()
    if as_json:
        click.echo(msgspec.json.encode(difference_json(found)))
    else:
        say("\n".join(difference_lines(found)))
    return 0 if result.fine else 1


class _Shown:
    """Lines that wait until time stands still: a reader that goes away must not disturb it."""

    def __init__(self, simulation: Simulation) -> None:
        from tenure.cli.view.colour import wanted
        from tenure.cli.view.progress import Progress

        self._colour = wanted()
        self._waiting: list[str] = []
        self.add = self._waiting.append
        self._world = simulation.world
        self._progress = Progress(f"playing {simulation.scenario.name}", simulation.until)

    def pause(self) -> None:
        """Between two slices of time."""
        self.show()
        self._progress.show(self._world.elapsed)

    def show(self) -> None:
        self._progress.clear()
        for line in self._waiting:
            click.echo(line, color=self._colour)
        self._waiting.clear()


def _as_text(simulation: Simulation, verbose: bool) -> Result:
    from tenure.cli.view.colour import text_in_colour, wanted
    from tenure.cli.view.columns import terminal_width
    from tenure.cli.view.lines import Lines
    from tenure.cli.view.verdictline import result_lines

    scenario, world = simulation.scenario, simulation.world
    click.echo(
        f"{scenario.name}, seed {world.options.seed}, from {world.options.epoch:%Y-%m-%d %H:%M} UTC"
    )
    if scenario.description:
        widest = min(96, terminal_width() or 96)
        click.echo(f"\n{click.wrap_text(scenario.description, width=widest)}")
    click.echo()
    shown = _Shown(simulation)
    lines = Lines(
        world.options.epoch,
        lambda line: shown.add(text_in_colour(line)),
        all_=verbose,
        width=terminal_width(),
    )
    world.history.listen(lines.add)
    result = simulation.run(shown.pause)
    lines.flush()
    shown.show()
    for line in result_lines(result, simulation.world.elapsed, terminal_width()):
        click.echo(line, color=wanted())
    return result


def _as_json(simulation: Simulation) -> Result:
    import msgspec

    shown = _Shown(simulation)

    def add(entry: Entry) -> None:
        event = {"type": "event", **msgspec.structs.asdict(entry)}
        shown.add(msgspec.json.encode(event).decode())

    simulation.world.history.listen(add)
    result = simulation.run(shown.pause)
    shown.show()
    last = {"type": "result", "fine": result.fine, **msgspec.structs.asdict(result)}
    click.echo(msgspec.json.encode(last))
    return result
