"""``tenure lint``: what will surprise you, before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tenure.cli.cluster.options import Given, cluster_options, no_cluster, reached_and_seen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tenure.cli.lint.remarks import Remark

EPILOG = """\b
Examples:
  tenure lint deploy/ pools.yaml
  helm template my-app | tenure lint -
  tenure lint --kubeconfig ~/.kube/config --context staging
  tenure lint pools.yaml --json | jq -r '.findings[].code'
  tenure lint pools.yaml --beside-karpenter

\b
Without FILE a cluster is looked at, and only read: with list and get. A folder is read with all
that is in it: .yaml, .yml and .json. Every code: docs/lint.md.
Exit codes: 0 nothing above info, 1 errors or warnings, 2 something cannot be read.
"""

UNREADABLE = 2


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE | FOLDER | -]...")
@cluster_options
@click.option("--json", "as_json", is_flag=True, help="Every finding, as one JSON object.")
def lint(files: tuple[str, ...], as_json: bool, **cluster: Any) -> int:
    """Find what will surprise you when a node has to leave, and what is simply wrong.

    Reads manifests of pools, workloads and disruption budgets together, or a cluster: a pod
    that gets less time to stop than it asks for, a budget that can never allow an eviction, a
    protection that cannot be parsed, a field that does not exist. One line each: where, how bad,
    a stable code, the numbers, and what to do.
    """
    return _on_files(files, cluster, as_json) if files else _on_cluster(cluster, as_json)


def _on_files(files: tuple[str, ...], cluster: Given, as_json: bool) -> int:
    from tenure.cli.lint.rules import remarks_on  # loaded only when called
    from tenure.cli.lint.source import read_sources
    from tenure.runtime.clock.system import SystemClock

    beside = cluster["beside_karpenter"] == "true"
    no_cluster({**cluster, "beside_karpenter": None}, "files")
    sources = read_sources(files)
    for problem in sources.problems:
        click.echo(str(problem), err=True)
    if not sources.found:
        return UNREADABLE
    remarks = remarks_on(sources.found, SystemClock().now(), beside=beside)
    code = _tell(remarks, len(sources.found), sources.notes, as_json)
    return UNREADABLE if sources.problems else code


def _on_cluster(cluster: Given, as_json: bool) -> int:
    from tenure.cli.cluster.listing import CannotRead
    from tenure.cli.lint.cluster import remarks_on_cluster

    try:
        _, reading = reached_and_seen(cluster)
    except CannotRead as error:
        for problem in error.problems:
            click.echo(problem, err=True)
        return UNREADABLE
    remarks, objects = remarks_on_cluster(reading.evaluated.snapshot, reading.evaluated.at)
    return _tell(remarks, objects, reading.notes, as_json, reading.evaluated.at)


def _tell(
    remarks: Sequence[Remark],
    objects: int,
    notes: Sequence[str],
    as_json: bool,
    now: datetime | None = None,
) -> int:
    """``now``: when a cluster was looked at."""
    from tenure.cli.lint.remarks import lines, to_json
    from tenure.cli.view.instants import with_relative

    if as_json:
        click.echo(to_json(remarks, objects, notes))
    else:
        for note in notes:
            click.echo(f"note: {note}", err=True)
        said = lines(remarks, objects)
        for line in with_relative(said, now) if now is not None else said:
            click.echo(line)
    return 1 if any(remark.serious for remark in remarks) else 0
