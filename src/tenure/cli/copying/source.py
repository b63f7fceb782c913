"""Which cluster is copied: the options that ``up``, ``simulate`` and ``snapshot`` share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tenure.errors import SpecError

if TYPE_CHECKING:
    from tenure.cli.cluster.access import Reached
    from tenure.sim.copied.copy import ClusterCopy

C = TypeVar("C", bound=Callable[..., Any])


class Source(NamedTuple):
    """Where a copy comes from; nothing is copied without a file and without a cluster."""

    file: Path | None
    cluster: bool
    kubeconfig: str
    context: str

    @property
    def named(self) -> bool:
        return self.cluster or self.file is not None


def kubeconfig_options(command: C) -> C:
    command = click.option(
        "--context", default="", help="Of the kubeconfig; else its current one."
    )(command)
    return click.option(
        "--kubeconfig",
        default="",
        envvar="KUBECONFIG",
        type=click.Path(),
        metavar="FILE",
        help="Which cluster; else the pod's account, or ~/.kube/config.",
    )(command)


def source_options(command: C) -> C:
    """Adds ``--from`` and ``--from-cluster`` with the kubeconfig; see ``source_of``."""
    command = kubeconfig_options(command)
    command = click.option(
        "--from-cluster",
        is_flag=True,
        help="Begin with a copy of this cluster; nothing there is changed.",
    )(command)
    return click.option(
        "--from",
        "from_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Begin with a copy of a cluster: what tenure snapshot wrote, or a dump of kubectl's; - for standard input.",
    )(command)


def source_of(from_file: Path | None, from_cluster: bool, kubeconfig: str, context: str) -> Source:
    if from_file is not None and from_cluster:
        raise click.UsageError("--from and --from-cluster name two clusters; leave one out")
    given = context or (kubeconfig if kubeconfig != os.environ.get("KUBECONFIG", "") else "")
    if given and not from_cluster:
        raise click.UsageError("--kubeconfig and --context go with --from-cluster")
    return Source(from_file, from_cluster, kubeconfig, context)


def reached(kubeconfig: str, context: str) -> Reached:
    from tenure.cli.cluster.access import find_access

    return find_access(kubeconfig, context, os.environ)


def _named(file: Path) -> Path:
    if str(file) != "-":
        return file
    if sys.stdin is None or sys.stdin.isatty():
        expected = "objects on standard input, and a terminal is there"
        hint = "For example tenure snapshot | tenure up --from -"
        raise SpecError("--from", "-", expected, hint)
    return Path("/dev/stdin")


def copy_of(source: Source) -> ClusterCopy:
    """Raises ``CannotRead`` for a cluster, ``SpecError`` for a file."""
    from tenure.sim.copied.copy import Copying, read_copy

    if source.file is not None:
        return read_copy(_named(source.file))
    from tenure.cli.copying.listing import snapshot_lines

    copying = Copying()
    whom = reached(source.kubeconfig, source.context)
    snapshot_lines(whom, lambda obj: copying.take(whom.source, obj))
    return copying.copy()
