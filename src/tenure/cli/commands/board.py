"""``tenure board``: the nodes of a cluster, live in the terminal; what happens to each, why, and what comes next."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.cluster.options import (
    Given,
    chosen_cluster,
    cluster_options,
    no_cluster,
    reached_and_seen,
)
from tenure.cli.output.numbers import Between
from tenure.cli.settings.help import CommandWithArguments

if TYPE_CHECKING:
    from tenure.dashboard.board.source import Source
    from tenure.dashboard.fleet.values import Frame

EPILOG = """\b
Examples:
  tenure board
  tenure board --kubeconfig ~/.kube/config --context staging
  tenure board --beside-karpenter
  tenure board --scenario examples/scenarios/fifty-pods.yaml --speed 10
  tenure board --web
  tenure board --once | grep draining
  tenure board -o json | jq '.nodes[] | select(.tone == "unhealthy").name'

\b
Keys: enter explain, t timeline, p pods, w waiting pods, / filter, s sort, space fold, ? help, q quit.
A cluster is only read: with list, watch and get, no Lease, and nothing is written. Colours
repeat what signs say; NO_COLOR takes them away.
Exit codes: 0 fine, 1 the cluster cannot be read, 2 bad input.
"""


@click.command(cls=CommandWithArguments, epilog=EPILOG)
@cluster_options
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Play this scenario instead of looking at a cluster.",
)
@click.option(
    "--speed",
    type=Between(0.1, 3600.0),
    help="Of the scenario: cluster seconds per real second.  [default: 25]",
)
@click.option("--seed", type=click.IntRange(min=0), help="Another seed than the scenario's.")
@click.option("--once", is_flag=True, help="Print one frame as text, and end. A pipe gets that.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    help="Print one frame in this form, and end.",
)
@click.option("--web", is_flag=True, help="Serve the web page on this machine instead.")
@click.option(
    "--ui-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Of the page, on 127.0.0.1.  [default: a free one]",
)
def board(
    scenario: Path | None,
    speed: float | None,
    seed: int | None,
    once: bool,
    output: str | None,
    web: bool,
    ui_port: int,
    **cluster: Any,
) -> int:
    """Watch the nodes of a cluster: what happens to each, why, and what comes next.

    Nodes by pool and zone, with phase and reason, the next change and when, requested CPU and
    memory, pods and price; evaluated as tenure run evaluates them. One key explains the
    selected node, one shows its timeline, one its pods.
    """
    if scenario is not None:
        no_cluster(cluster)
    elif speed is not None or seed is not None:
        flag = "--speed" if speed is not None else "--seed"
        raise click.UsageError(f"{flag} goes with --scenario; a cluster has its own pace")
    if web:
        if scenario is not None:
            raise click.UsageError(
                "--web looks at a cluster; tenure up --scenario serves the page of a scenario"
            )
        return _serve(cluster, ui_port)
    if once or output is not None or not _on_terminal():
        return _print(_one_frame(scenario, seed, cluster), as_json=output == "json")
    return _show(_source(scenario, speed, seed, cluster))


def _on_terminal() -> bool:
    import os

    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"


def _source(scenario: Path | None, speed: float | None, seed: int | None, given: Given) -> Source:
    if scenario is not None:
        from tenure.cli.board.playing import SPEED, PlayedScenario

        return PlayedScenario(scenario, speed or SPEED, seed)
    from tenure.cli.board.live import LiveCluster

    return LiveCluster(chosen_cluster(given))


def _show(source: Source) -> int:
    from tenure.dashboard.board.app import Board

    shown = Board(source)
    code = shown.run()
    if shown.error is not None:
        raise shown.error
    return code or 0


def _serve(given: Given, port: int) -> int:
    """Until Ctrl-C."""
    from tenure.cli.board.live import LiveCluster
    from tenure.cli.board.webpage import LookPage
    from tenure.dashboard.web.files import built_page

    page = LookPage(built_page(), port, lambda address: click.echo(f"The page: {address}"))
    source = LiveCluster(chosen_cluster(given), page)
    try:
        source.run(_Quiet())
    except OSError as error:
        raise click.UsageError(
            f"port {port} on 127.0.0.1 cannot be used: {error.strerror}"
        ) from error
    except KeyboardInterrupt:
        source.stop()
    return 0


class _Quiet:
    """The page shows the frames; only what is wrong with the connection is said here."""

    def __init__(self) -> None:
        self._lost = False

    def show(self, frame: Frame) -> None:
        return

    def connection(self, problem: str) -> None:
        if bool(problem) != self._lost:
            self._lost = bool(problem)
            click.echo(f"tenure: {problem or 'the connection is back'}", err=True)

    def failed(self, error: Exception) -> None:
        raise error


def _one_frame(scenario: Path | None, seed: int | None, given: Given) -> Frame:
    """A scenario at its end; a cluster as it is now."""
    from tenure.dashboard.fleet.frame import frame_of
    from tenure.runtime.evaluate.evaluator import Evaluator

    if scenario is not None:
        from tenure.cli.board.playing import last_frame

        return last_frame(scenario, seed)
    _, reading = reached_and_seen(given)
    evaluated = reading.evaluated
    verdicts = evaluated.evaluator
    assert isinstance(verdicts, Evaluator)  # No copy: it was evaluated just now.
    return frame_of(
        evaluated.snapshot,
        verdicts,
        evaluated.at,
        cluster=chosen_cluster(given).name or evaluated.settings.cluster_name,
        leader=reading.leader,
        notes=reading.notes,
    )


def _print(frame: Frame, *, as_json: bool) -> int:
    import msgspec

    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(frame), indent=2).decode())
        return 0
    from tenure.dashboard.board.plain import plain_text

    click.echo(plain_text(frame))
    return 0
