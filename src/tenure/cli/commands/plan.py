"""``tenure plan``: a dry run. What would be done now, and why not the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.cluster.options import (
    Form,
    Given,
    Played,
    cluster_options,
    played_instead,
    reached_and_seen,
    scenario_options,
)

if TYPE_CHECKING:
    from tenure.cli.cluster.evaluated import EvaluatedCluster
    from tenure.cli.plan.text import Setting

EPILOG = """\b
Examples:
  tenure plan
  tenure plan --kubeconfig ~/.kube/config --context staging
  tenure plan --json | jq '.toDo[].action'
  tenure plan --in examples/scenarios/fifty-pods.yaml --at 2m

\b
A cluster is only read: with list and get, no Lease, and nothing is written. A replica of
Tenure need not run there; one that does is named. tenure explain says more about one object.
Exit codes: 0 planned, whatever there is to do, 1 the cluster cannot be read, 2 bad input.
"""


@click.command(epilog=EPILOG)
@cluster_options
@scenario_options
@click.option("--verbose", "-v", is_flag=True, help="Each object in a line of its own.")
@click.option("--json", "as_json", is_flag=True, help="Every verdict, as one JSON object.")
def plan(
    scenario: Path | None,
    moment: str | None,
    seed: int | None,
    verbose: bool,
    as_json: bool,
    **cluster: Any,
) -> int:
    """Say what Tenure would do now, and why not the rest. Nothing is changed.

    The cluster is listed once and evaluated as tenure run evaluates it: what it would create,
    launch, evict, end or write next; then what it would leave alone, for which reason,
    held by what, and until when.
    """
    form = Form(as_json, verbose)
    scene = played_instead(scenario, moment, seed, cluster)
    if scene is None:
        return _on_cluster(cluster, form)
    return _in_scenario(scene, form)


def _on_cluster(cluster: Given, form: Form) -> int:
    from tenure.cli.plan.text import Setting

    reached, reading = reached_and_seen(cluster)
    setting = Setting(
        where=reached.access.server,
        leader=reading.leader,
        clock=reading.evaluated.clock,
        notes=reading.notes,
    )
    return _tell(reading.evaluated, setting, form)


def _in_scenario(scene: Played, form: Form) -> int:
    from tenure.cli.cluster.embedded import played
    from tenure.cli.plan.text import Setting

    with played(*scene) as (_, evaluated):
        return _tell(evaluated, Setting(where=str(scene.scenario)), form)


def _tell(evaluated: EvaluatedCluster, setting: Setting, form: Form) -> int:
    from tenure.cli.output.said import say
    from tenure.cli.plan.planning import plan_of
    from tenure.cli.plan.text import as_text, to_json
    from tenure.cli.view.progress import waiting

    with waiting("planning"):
        made = plan_of(evaluated)
    if form.as_json:
        click.echo(to_json(made, setting))
    else:
        say(as_text(made, setting, verbose=form.verbose))
    return 0
