"""``tenure lint``: what will surprise you, before it does."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tenure.cli.cluster.options import (
    Given,
    cluster_options,
    no_cluster,
    reached_and_seen,
    switched_on,
)
from tenure.cli.settings.help import CommandWithArguments

if TYPE_CHECKING:
    from datetime import datetime

    from tenure.cli.lint.remarks import Report

EPILOG = """\b
Examples:
  tenure lint deploy/ pools.yaml
  helm template my-app | tenure lint -
  tenure lint --kubeconfig ~/.kube/config --context staging
  tenure lint pools.yaml --format json | jq -r '.findings[].code'
  tenure lint deploy/ --format sarif --ignore PeriodDriftsNodes > lint.sarif
  tenure lint pools.yaml --beside-karpenter

\b
Without FILE a cluster is looked at, and only read: with list and get. A folder is read with all
that is in it: .yaml, .yml and .json. Every code: docs/lint.md.
Exit codes: 0 nothing as bad as --fail-on, 1 something is, 2 something cannot be read.
"""

UNREADABLE = 2
FORMATS = ("text", "json", "github", "sarif")
SEVERITIES = ("error", "warning", "info")


class Wishes(NamedTuple):
    """How to tell what was found."""

    form: str
    ignored: tuple[str, ...]
    fail_on: str
    verbose: bool


@click.command(cls=CommandWithArguments, epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE | FOLDER | -]...")
@cluster_options
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    help="Lines for people, one JSON object, annotations of a GitHub workflow, or SARIF 2.1.0.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="CODE",
    help="Leave out findings with this code; several with commas, or given again.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warning",
    help="Exit with 1 from this severity on. Without it: warning.",
)
@click.option("--verbose", "-v", is_flag=True, help="Each finding in a line of its own.")
def lint(
    files: tuple[str, ...],
    form: str,
    as_json: bool,
    ignored: tuple[str, ...],
    fail_on: str,
    verbose: bool,
    **cluster: Any,
) -> int:
    """Find what will surprise you when a node has to leave, and what is simply wrong.

    Reads manifests of pools, workloads and disruption budgets together, or a cluster: a pod
    that gets less time to stop than it asks for, a budget that can never allow an eviction, a
    protection that cannot be parsed, a field that does not exist. One line each: where, how bad,
    a stable code, the numbers, and what to do.
    """
    ignored = tuple(code.strip() for one in ignored for code in one.split(",") if code.strip())
    _check_codes(ignored)
    wishes = Wishes("json" if as_json else form, ignored, fail_on, verbose)
    return _on_files(files, cluster, wishes) if files else _on_cluster(cluster, wishes)


def _check_codes(given: tuple[str, ...]) -> None:
    from tenure.schema.findings import Code  # loaded only when called

    known = list(map(str, Code))
    for code in given:
        if code not in known:
            close = get_close_matches(code, known, n=1)
            hint = (
                f". Did you mean {close[0]}?" if close else "; --format json shows those of a file"
            )
            said = f"got {code!r}, expected a code of lint, for example {known[0]}{hint}"
            raise click.BadParameter(said, param_hint="--ignore")


def _on_files(files: tuple[str, ...], cluster: Given, wishes: Wishes) -> int:
    from tenure.cli.lint.rules import report_on
    from tenure.cli.lint.source import read_sources
    from tenure.cli.output.folded import folded
    from tenure.cli.output.said import say
    from tenure.cli.view.progress import waiting
    from tenure.runtime.clock.system import SystemClock

    beside = switched_on("beside-karpenter", cluster)
    no_cluster({**cluster, "beside_karpenter": None}, "files")
    with waiting("reading manifests"):
        sources = read_sources(files)
    for problem in folded(map(str, sources.problems), verbose=wishes.verbose):
        say(problem, err=True)
    if not sources.found and wishes.form == "text":
        return UNREADABLE
    with waiting(f"checking {len(sources.found)} objects"):
        report = report_on(sources, SystemClock().now(), beside=beside)
    code = _tell(report, wishes)
    return UNREADABLE if sources.problems else code


def _on_cluster(cluster: Given, wishes: Wishes) -> int:
    from tenure.cli.cluster.listing import CannotRead
    from tenure.cli.lint.cluster import remarks_on_cluster
    from tenure.cli.lint.remarks import Report
    from tenure.cli.output.said import say

    try:
        _, reading = reached_and_seen(cluster)
    except CannotRead as error:
        for problem in error.problems:
            say(problem, err=True)
        if wishes.form != "text":
            _tell(Report(remarks=(), objects=0, problems=error.problems), wishes)
        return UNREADABLE
    remarks, objects = remarks_on_cluster(reading.evaluated.snapshot, reading.evaluated.at)
    report = Report(remarks=remarks, objects=objects, notes=reading.notes)
    return _tell(report, wishes, reading.evaluated.at)


def _tell(report: Report, wishes: Wishes, now: datetime | None = None) -> int:
    """``now``: when a cluster was looked at."""
    from tenure.cli.lint.formats.github import workflow_commands
    from tenure.cli.lint.formats.plain import lines, to_json
    from tenure.cli.lint.formats.sarif import to_sarif
    from tenure.cli.output.folded import folded
    from tenure.cli.output.said import say
    from tenure.cli.view.instants import with_relative
    from tenure.schema.findings import Severity

    report = report.without(wishes.ignored)
    if wishes.form in ("text", "github"):
        for note in folded(report.notes, verbose=wishes.verbose):
            say(f"note: {note}", err=True)
    if wishes.form == "json":
        click.echo(to_json(report))
    elif wishes.form == "sarif":
        click.echo(to_sarif(report, version("tenure")))
    else:
        text = wishes.form == "text"
        said = lines(report, verbose=wishes.verbose) if text else workflow_commands(report)
        for line in with_relative(said, now) if now is not None else said:
            (say if text else click.echo)(line)
    return 1 if report.fails(Severity(wishes.fail_on)) else 0
