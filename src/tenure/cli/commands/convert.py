"""``tenure convert``: Provisioners of older releases as NodePools."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  tenure convert provisioners.yaml > nodepools.yaml
  kubectl get provisioners -o yaml | tenure convert -
  tenure convert provisioners/ --node-class karpenter.k8s.aws/EC2NodeClass/default
  tenure convert provisioners.yaml | tenure lint -

\b
NodePools go to the standard output, the report to the standard error. Read it: docs/convert.md
has every code. Exit codes: 0 all is in the NodePools, 1 something is not, and the report names it,
2 something cannot be read or converted.
"""

UNREADABLE = 2


@click.command(epilog=EPILOG)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(), metavar="(FILE | FOLDER | -)..."
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="YAML documents, or one JSON object of kind List.",
)
@click.option(
    "--node-class",
    metavar="GROUP/KIND/NAME",
    help="The node class of every NodePool, instead of what the Provisioners refer to.",
)
def convert(files: tuple[str, ...], output: str, node_class: str | None) -> int:
    """Turn Provisioners (v1alpha5, and the proposed v1beta1) into NodePools.

    Nothing is dropped in silence: what has no successor, or has it in another object, is reported
    with its file and line. No cluster is needed, and nothing is written but the output.
    """
    from tenure.cli.convert.files import convert_all, node_class_in  # loaded only when called
    from tenure.cli.convert.report import lines
    from tenure.cli.convert.written import as_json, as_yaml
    from tenure.cli.lint.source import read_sources
    from tenure.cli.output.folded import folded
    from tenure.cli.output.said import say

    chosen = None if node_class is None else node_class_in(node_class)
    sources = read_sources(files)
    for problem in folded(map(str, sources.problems)):
        say(problem, err=True)
    for note in folded(sources.notes):
        say(f"note: {note}", err=True)
    if not sources.found:
        return UNREADABLE
    converted = convert_all(sources, chosen)
    click.echo((as_json if output == "json" else as_yaml)(converted.pools), nl=False)
    for line in lines(converted.report, converted.provisioners, len(converted.pools)):
        say(line, err=True)
    if not converted.provisioners:
        wanted = "a Provisioner of karpenter.sh/v1alpha5 or karpenter.sh/v1beta1"
        say(f"FILE: got {' '.join(files)!r}, expected {wanted}. See docs/convert.md.", err=True)
    if sources.problems or converted.invalid or not converted.pools:
        return UNREADABLE
    return 0 if converted.complete and not sources.notes else 1
