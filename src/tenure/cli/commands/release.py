"""``tenure release``: take every lever back that Tenure has set beside Karpenter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tenure.errors import SpecError

if TYPE_CHECKING:
    from tenure.cli.replica.released import Outcome

EPILOG = """\b
Examples:
  tenure release --dry-run
  tenure release --kubeconfig ~/.kube/config --context staging

\b
Stop tenure run --beside-karpenter first: a replica that holds its Lease sets the levers again, so
nothing is released while one does. Annotations without Tenure's mark stay.
Exit codes: 0 no lever is left, 1 some are, or a replica runs, 2 bad input.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--kubeconfig", envvar="KUBECONFIG", metavar="FILE", default="", help="Which cluster."
)
@click.option("--context", metavar="NAME", default="", help="Which context of the kubeconfig.")
@click.option(
    "--beside-karpenter",
    is_flag=False,
    flag_value="true",
    default="true",
    metavar="[true]",
    help="The only mode that sets levers; as in the other commands.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be taken back, and change nothing.")
def release(kubeconfig: str, context: str, beside_karpenter: str, dry_run: bool) -> int:
    """Take back every lever that tenure run --beside-karpenter has set.

    From Nodes: karpenter.sh/do-not-disrupt and karpenter.sh/do-not-repair where Tenure's mark is beside
    them, and the marks. From NodeClaims: what Tenure remembers there, and a termination timestamp with
    Tenure's mark unless the claim is being deleted. From NodePools: which NodeClaim was repaired as a probe.

    Unless a Tenure is in charge, also what one has left: its commands with their deadlines and what it remembers,
    on NodeClaims and NodePools, and the taint tenure.dev/reserved of Nodes. Finalizers are Karpenter's own.
    """
    from tenure.cli.cluster.access import find_access  # loaded only when called
    from tenure.cli.replica.released import released

    if beside_karpenter.lower() != "true":
        expected = "true: levers are set in that mode alone"
        raise SpecError("--beside-karpenter", beside_karpenter, expected)
    outcome = released(find_access(kubeconfig, context, os.environ), dry_run=dry_run)
    return _tell(outcome, dry_run=dry_run)


def _tell(outcome: Outcome, *, dry_run: bool) -> int:
    for note in outcome.notes:
        click.echo(f"note: {note}", err=True)
    if outcome.runs:
        click.echo(f"nothing is released: {outcome.runs}; stop it first", err=True)
        return 1
    verb = "would take back from" if dry_run else "taken back from"
    failed = 0
    for one in outcome.taken:
        if one.problem:
            failed += 1
            click.echo(f"not taken back from {one.kind} {one.name}: {one.problem}", err=True)
        else:
            click.echo(f"{verb} {one.kind} {one.name}: {one.said}")
    done = len(outcome.taken) - failed
    click.echo(f"{done} {'to take back' if dry_run else 'taken back'}, {failed} failed")
    return 1 if failed else 0
