"""``tenure release``: take every lever back that Tenure has set beside Karpenter."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
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
    "--kubeconfig",
    envvar="KUBECONFIG",
    type=click.Path(),
    metavar="FILE",
    default="",
    help="Which cluster.",
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
@click.option("--verbose", "-v", is_flag=True, help="Each object in a line of its own.")
def release(
    kubeconfig: str, context: str, beside_karpenter: str, dry_run: bool, verbose: bool
) -> int:
    """Take back every lever that tenure run --beside-karpenter has set.

    From Nodes: karpenter.sh/do-not-disrupt and karpenter.sh/do-not-repair where Tenure's mark is beside
    them, and the marks. From NodeClaims: what Tenure remembers there, and a termination timestamp with
    Tenure's mark unless the claim is being deleted. From NodePools: which NodeClaim was repaired as a probe.

    Unless a Tenure is in charge, also what one has left: its commands with their deadlines and what it remembers,
    on NodeClaims and NodePools, and the taint tenure.dev/reserved of Nodes. Finalizers are Karpenter's own.
    """
    from tenure.cli.cluster.access import find_access  # loaded only when called
    from tenure.cli.replica.released import released
    from tenure.cli.view.progress import waiting

    if beside_karpenter.lower() != "true":
        expected = "true: levers are set in that mode alone"
        raise SpecError("--beside-karpenter", beside_karpenter, expected)
    with waiting("looking for levers" if dry_run else "taking levers back"):
        outcome = released(find_access(kubeconfig, context, os.environ), dry_run=dry_run)
    return _tell(outcome, dry_run=dry_run, verbose=verbose)


def _tell(outcome: Outcome, *, dry_run: bool, verbose: bool) -> int:
    from tenure.cli.output.said import say

    for note in outcome.notes:
        say(f"note: {note}", err=True)
    if outcome.runs:
        say(
            f"nothing is released: {outcome.runs}. Stop it first; one that was killed holds its Lease for 15 s",
            err=True,
        )
        return 1
    failed = [one for one in outcome.taken if one.problem]
    done = [one for one in outcome.taken if not one.problem]
    say(f"{len(done)} {'to take back' if dry_run else 'taken back'}, {len(failed)} failed")
    verb = "would take back from" if dry_run else "taken back from"
    for who, said in _alike(((one.kind, one.name, one.said) for one in done), verbose):
        say(f"{verb} {who}: {said}")
    for who, problem in _alike(((one.kind, one.name, one.problem) for one in failed), verbose):
        say(f"not taken back from {who}: {problem}", err=True)
    return 1 if failed else 0


def _alike(said: Iterable[tuple[str, str, str]], verbose: bool) -> Iterator[tuple[str, str]]:
    """Objects with the same sentence together: an upgrade takes levers back from a whole fleet."""
    from tenure.cli.output.folded import APART, some

    groups: dict[tuple[str, str], list[str]] = {}
    for kind, name, sentence in said:
        groups.setdefault((kind, sentence), []).append(name)
    for (kind, sentence), names in groups.items():
        if verbose or len(names) <= APART:
            yield from ((f"{kind} {name}", sentence) for name in names)
        else:
            yield f"{len(names)} {kind}s ({some(names)})", sentence
