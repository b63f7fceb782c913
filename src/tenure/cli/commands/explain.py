"""``tenure explain``: why an object is as it is, what blocks it, and when that can change."""

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
from tenure.cli.completing.names import complete_subject
from tenure.cli.settings.help import CommandWithArguments

if TYPE_CHECKING:
    from tenure.cli.cluster.evaluated import EvaluatedCluster
    from tenure.cli.cluster.question import Question

EPILOG = """\b
Examples:
  tenure explain pod/web-1 -n team-a
  tenure explain claim/general-4nv74 --kubeconfig ~/.kube/config --context staging
  tenure explain pool/general --in examples/scenarios/fifty-pods.yaml --at 2m
  tenure explain node node-general-4nv74 --in SCENARIO --at 2026-01-05T08:05:00Z --json

\b
Kinds: node (no), claim (nodeclaim), pod (po), pool (nodepool, np), window (mw), policy (npp),
pdb (poddisruptionbudget).
A cluster is only read: with list and get, no Lease, and nothing is written. What only the
replica that acts can know (a launch that the cloud refused, an offering that was sold out)
is in its log and in its events.
Exit codes: 0 answered, 1 no such object, or the cluster cannot be read, 2 bad input.
"""


@click.command(cls=CommandWithArguments, epilog=EPILOG)
@click.argument(
    "what",
    nargs=-1,
    required=True,
    metavar="KIND/NAME | KIND NAME",
    shell_complete=complete_subject,
)
@cluster_options
@scenario_options
@click.option(
    "--namespace", "-n", default="", help="Of a pod or PDB. [default: the context's, else default]"
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Every verdict on its own, with every line of it."
)
@click.option(
    "--json", "as_json", is_flag=True, help="The governing verdict as JSON; the others under also."
)
def explain(
    what: tuple[str, ...],
    scenario: Path | None,
    moment: str | None,
    namespace: str,
    seed: int | None,
    verbose: bool,
    as_json: bool,
    **cluster: Any,
) -> int:
    """Say why a node, claim, pod, pool, window, policy or pdb is in its state.

    The cluster is looked at, or a scenario is played up to TIME; then the verdicts on the
    object are shown, the governing one first: the reason, what blocks it, what is being
    done, and the earliest instant at which the answer can change. Of a node or claim, by
    which rules it is, or would be, repaired; and how its drain goes, or would go if it were
    deleted now: which pod is asked and forced when, what holds it, and when the node is gone
    at the latest.
    """
    from tenure.cli.cluster.question import Question

    form = Form(as_json, verbose)
    question = Question.parse(what, namespace)
    scene = played_instead(scenario, moment, seed, cluster)
    if scene is None:
        return _on_cluster(question, cluster, form)
    return _in_scenario(question, scene, form)


def _on_cluster(question: Question, cluster: Given, form: Form) -> int:
    reached, reading = reached_and_seen(cluster, question)
    question = question.in_namespace(reached.access.namespace)
    from tenure.cli.output.said import say

    for note in reading.notes:
        say(f"note: {note}", err=True)
    return _answer(question, reading.evaluated, form, reading.last_word)


def _in_scenario(question: Question, scene: Played, form: Form) -> int:
    from tenure.cli.cluster.embedded import last_word, played

    question = question.in_namespace()
    with played(*scene) as (world, evaluated):
        return _answer(question, evaluated, form, last_word(world, str(question)))


def _answer(
    question: Question, evaluated: EvaluatedCluster, form: Form, last_word: str = ""
) -> int:
    from tenure.cli.explain.asjson import to_json
    from tenure.cli.explain.explanation import explanation
    from tenure.cli.explain.text import as_text
    from tenure.cli.output.said import say
    from tenure.cli.view.columns import terminal_width
    from tenure.cli.view.instants import with_relative
    from tenure.cli.view.progress import waiting

    with waiting(f"explaining {question}"):
        answer = explanation(question, evaluated)
    if answer is None:
        said = question.not_found(evaluated, last_word)
        say("".join(with_relative([said], evaluated.at)), err=True)
        return 1
    if form.as_json:
        click.echo(to_json(answer))
    else:
        say(as_text(answer, terminal_width(), verbose=form.verbose))
    return 0
