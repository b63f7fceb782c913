"""``tenure explain``: why an object is as it is, what blocks it, and when that can change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tenure.sim.world import World

EPILOG = """\b
Examples:
  tenure explain pool/general --in examples/scenarios/fifty-pods.yaml --at 2m
  tenure explain node node-general-4nv74 --in SCENARIO --at 5m1s
  tenure explain pod/web-1 -n team-a --in SCENARIO --at 2026-01-05T08:05:00Z
  tenure explain claim/general-4nv74 --in SCENARIO --at 1d --json

\b
Kinds: node (no), claim (nodeclaim), pod (po), pool (nodepool, np), window (mw).
Names that a scenario makes up are in the output of tenure simulate.
"""


@click.command(epilog=EPILOG)
@click.argument("what", nargs=-1, required=True, metavar="KIND/NAME | KIND NAME")
@click.option(
    "--in", "scenario", required=True, type=click.Path(path_type=Path), help="The scenario's file."
)
@click.option(
    "--at",
    "moment",
    required=True,
    metavar="TIME",
    help="5m1s after the start, 2d, or an RFC 3339 instant.",
)
@click.option("--namespace", "-n", default="", help="Of a pod; default is default.")
@click.option("--seed", type=click.IntRange(min=0), help="Another seed than the file's.")
@click.option(
    "--json", "as_json", is_flag=True, help="The governing verdict as JSON; the others under also."
)
def explain(
    what: tuple[str, ...],
    scenario: Path,
    moment: str,
    namespace: str,
    seed: int | None,
    as_json: bool,
) -> int:
    """Say why a node, claim, pod, pool or window is in its state at that time.

    The scenario is played up to TIME; then the verdicts on the object are shown, the
    governing one first: the reason, what blocks it, what is being done, and the
    earliest instant at which the answer can change.
    """
    from tenure.cli.explanation import Question, explanation  # loaded only when called
    from tenure.cli.explanationtext import as_text, to_json
    from tenure.cli.timespans import parse_moment
    from tenure.sim.scenario.load import load_scenario
    from tenure.sim.scenario.run import Simulation

    question = Question.parse(what, namespace)
    story = load_scenario(scenario)
    end = parse_moment(moment, story.options.epoch, "--at")
    simulation = Simulation(story, seed=seed, until=end)
    try:
        simulation.run_until(end)
        world: World = simulation.world
        answer = explanation(question, world)
        if answer is None:
            click.echo(question.not_found(world), err=True)
            return 1
        click.echo(to_json(answer) if as_json else as_text(answer, world.elapsed))
    finally:
        simulation.close()
    return 0
