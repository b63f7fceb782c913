"""``tenure forecast``: what the next days bring, and what will not be done in time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from tenure.cli.cluster.options import (
    Given,
    Played,
    cluster_options,
    played_instead,
    reached_and_seen,
    scenario_options,
)

if TYPE_CHECKING:
    from tenure.cli.cluster.evaluated import EvaluatedCluster
    from tenure.cli.forecast.forecasting import Setting

#: When the first nodes of a scenario are up.
SETTLED: Final = "10m"

EPILOG = """\b
Examples:
  tenure forecast
  tenure forecast --days 30 --kubeconfig ~/.kube/config --context staging
  tenure forecast --html forecast.html
  tenure forecast --in examples/scenarios/forecast.yaml --json | jq '.pools[].rotations'

\b
A cluster is only read: with list and get, no Lease, and nothing is written. Nothing is played:
windows, expiries, protections and deadlines are exact; starts assume that new nodes take as
long as they usually do, and that pods and manifests stay as they are.
Exit codes: 0 forecast made, whatever is in it, 1 the cluster cannot be read, 2 bad input.
"""


class _Output:
    """In which form, and where to."""

    def __init__(self, *, as_json: bool, page: Path | None, zone: str) -> None:
        from tenure.cli.forecast.forecasting import zone_named

        if as_json and page is not None:
            raise click.UsageError("--json or --html, not both")
        self.as_json, self.page, self.zone = as_json, page, zone_named(zone)


class _Question:
    def __init__(self, days: int, drain: str | None) -> None:
        from tenure.sim.scenario.read.timespans import parse_span

        self.span = timedelta(days=days)
        self.drains_for = parse_span(drain, "--drain-takes") if drain is not None else None


@click.command(epilog=EPILOG)
@cluster_options
@scenario_options
@click.option(
    "--days",
    type=click.IntRange(1, 90),
    default=14,
    show_default=True,
    help="How far to look ahead.",
)
@click.option(
    "--drain-takes",
    "drain",
    metavar="TIME",
    help="How long the drain of a node usually takes, as in 2m. [default: --drain-min]",
)
@click.option(
    "--time-zone",
    "zone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Of the days and clocks that text and HTML show, as in Europe/Berlin.",
)
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write a timeline as one HTML file; - is the standard output.",
)
def forecast(
    scenario: Path | None,
    moment: str | None,
    seed: int | None,
    days: int,
    drain: str | None,
    zone: str,
    as_json: bool,
    page: Path | None,
    **cluster: Any,
) -> int:
    """Say what will happen to nodes in the next days, and when it may not.

    Expiries, windows that open and close, protections that end, deadlines; which nodes are
    replaced when, and how many at once; and which pools cannot replace their nodes in time.
    A scenario is played until --at, 10m after its start if that is not given; what it does
    after that is not known to the forecast.
    """
    output, question = _Output(as_json=as_json, page=page, zone=zone), _Question(days, drain)
    moment = SETTLED if scenario is not None and moment is None else moment
    scene = played_instead(scenario, moment, seed, cluster)
    if scene is None:
        return _on_cluster(cluster, question, output)
    return _in_scenario(scene, question, output)


def _on_cluster(cluster: Given, question: _Question, output: _Output) -> int:
    from tenure.cli.forecast.forecasting import Setting

    reached, reading = reached_and_seen(cluster)
    evaluated = reading.evaluated
    setting = Setting(
        where=reached.access.server,
        leader=reading.leader,
        clock=evaluated.clock,
        notes=(*_clock_note(evaluated), *reading.notes),
    )
    return _tell(evaluated, setting, question, output)


def _in_scenario(scene: Played, question: _Question, output: _Output) -> int:
    from tenure.cli.cluster.embedded import played
    from tenure.cli.forecast.forecasting import Setting

    with played(*scene) as (_, evaluated):
        setting = Setting(
            where=str(scene.scenario), also_at=evaluated.also_at, notes=_clock_note(evaluated)
        )
        return _tell(evaluated, setting, question, output)


def _clock_note(evaluated: EvaluatedCluster) -> tuple[str, ...]:
    blocker = evaluated.clock_blocker
    return (f"{blocker}; nothing starts before that",) if blocker is not None else ()


def _tell(
    evaluated: EvaluatedCluster, setting: Setting, question: _Question, output: _Output
) -> int:
    from tenure.cli.forecast.asjson import to_json
    from tenure.cli.forecast.forecasting import forecast_of
    from tenure.cli.forecast.page import as_page
    from tenure.cli.forecast.text import as_text
    from tenure.cli.output.said import say
    from tenure.cli.view.progress import waiting

    setting = msgspec.structs.replace(setting, zone=output.zone)
    with waiting("looking ahead"):
        found = forecast_of(evaluated, question.span, question.drains_for)
    if output.as_json:
        click.echo(to_json(found, setting))
    elif output.page is None:
        say(as_text(found, setting))
    elif str(output.page) == "-":
        click.echo(as_page(found, setting), nl=False)
    else:
        return _write(output.page, as_page(found, setting))
    return 0


def _write(path: Path, text: str) -> int:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        click.echo(f"{path} cannot be written: {error.strerror}", err=True)
        return 2
    click.echo(f"wrote {path}")
    return 0
