"""``tenure up``: the embedded cluster as a Kubernetes API on this machine, Tenure in it.

Writes a kubeconfig into the current folder, says how to use it, and until Ctrl-C tells what
Tenure does. Nothing outlives it: the next one begins with an empty cluster.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from tenure.cli.copying.source import source_of, source_options
from tenure.cli.output.numbers import Between
from tenure.model.api.meta import format_time

if TYPE_CHECKING:
    from tenure.cli.copying.source import Source
    from tenure.sim.serve.cluster import ServedCluster
    from tenure.sim.world import WorldOptions

#: Cluster seconds between two looks at what there is to tell, per unit of speed.
_LOOK_EVERY: Final = 0.5
#: Told lines are forgotten; these many entries stay for those who look at the history.
_KEPT: Final = 1000
FASTEST: Final = 3600.0
#: What a disk says, and no port.
_OF_DISKS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
#: A change of the template, so that every node drifts.
_RELEASE: Final = '{"spec":{"template":{"metadata":{"labels":{"release":"two"}}}}}'


class Ports(NamedTuple):
    """0 takes a free one."""

    api: int
    page: int


class Where(NamedTuple):
    """What is where, for the reader of the welcome."""

    server: str
    #: Empty: there is none.
    page: str
    kubeconfig: Path


EPILOG: Final = """\b
Examples:
  tenure up
  tenure up --speed 60
  tenure up --scenario examples/scenarios/fifty-pods.yaml
  tenure up --feature-gates SpotToSpotConsolidation=true
  tenure up --from cluster.jsonl --speed 60
  tenure up --from-cluster --kubeconfig prod.yaml

\b
Nothing is kept: the next one begins with an empty cluster. Exit code 2 means that the
port is taken or that the scenario is wrong, 1 that the cluster to copy cannot be read.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--speed",
    type=Between(0.1, FASTEST),
    default=1.0,
    show_default=True,
    help="Cluster seconds per real second. Above 1, what kubectl describe calls an age is odd.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="On 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--ui-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Of the web page, on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    help="Begin with its objects, cloud and faults. Its events and expectations are not played.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The settings of tenure run, in YAML: those that differ from their defaults count.",
)
@click.option(
    "--feature-gates",
    metavar="NAME=true|false,…",
    help="As of tenure run, for example SpotToSpotConsolidation=true.",
)
@source_options
def up(
    speed: float,
    port: int,
    ui_port: int,
    scenario: Path | None,
    config_file: Path | None,
    feature_gates: str | None,
    from_file: Path | None,
    from_cluster: bool,
    kubeconfig: str,
    context: str,
) -> None:
    """Serve the embedded cluster to kubectl, with Tenure at work in it.

    No cluster, cloud or credentials are needed. The kubeconfig is written to
    .tenure/kubeconfig in this folder; only programs on this machine get in.

    With --from or --from-cluster it begins as a copy of that cluster, at the instant at which
    the copy was taken, and says at the end what became of it.
    """
    _check_folder()
    source = source_of(from_file, from_cluster, kubeconfig, context)
    chosen = _chosen(config_file, feature_gates)
    if source.named:
        if scenario is not None:
            raise click.UsageError("--scenario and --from name two clusters; leave one out")
        _copied(source, speed, Ports(port, ui_port), chosen)
        return
    with _cluster(speed, scenario, chosen) as cluster:
        cluster.loop.run_until_complete(
            _live(cluster, Ports(port, ui_port), rolls=scenario is None)
        )


def _copied(source: Source, speed: float, ports: Ports, chosen: Mapping[str, Any]) -> None:
    """Serve a copy of a cluster, and say at the end what became of it."""
    from tenure.cli.copying.differencetext import difference_lines
    from tenure.cli.copying.source import copy_of
    from tenure.cli.view.progress import waiting
    from tenure.sim.collector import rest_collector
    from tenure.sim.copied.difference import Observed
    from tenure.sim.copied.load import load, options_for
    from tenure.sim.serve.cluster import ServedCluster

    notes: list[str] = []
    with waiting("copying the cluster") as wait:
        copy = copy_of(source)
        wait.now("filling the embedded cluster")
        served = ServedCluster(
            options_for(copy, _with_settings(None, chosen)),
            speed=speed,
            objects=(),
            prepare=lambda world: notes.extend(load(copy, world)),
            report=_report,
        )
    for sentence in notes:
        click.echo(f"note: {sentence}", err=True)
    with served as cluster:
        observed = Observed(cluster.world)
        rest_collector()
        click.echo(f"A copy of the cluster as it was at {format_time(copy.at)}.")
        cluster.loop.run_until_complete(_live(cluster, ports, rolls=False, copy=True))
        for line in difference_lines(observed.difference()):
            click.echo(line)


def _check_folder() -> None:
    """Two of us in one folder would take kubectl away from each other."""
    from tenure.sim.serve.kubeconfig import FILE, still_served  # loaded only when called

    if server := still_served(FILE):
        raise click.UsageError(
            f"{FILE} belongs to a tenure up that is still running ({server}); "
            "stop that one, or start this one in another folder",
            click.get_current_context(),
        )


def _chosen(config_file: Path | None, feature_gates: str | None) -> dict[str, Any]:
    """The settings that differ from the defaults, by their fields."""
    if config_file is None and feature_gates is None:
        return {}
    from tenure.cli.settings.config import configured

    found, usual = configured({"feature-gates": feature_gates}, {}, config_file), configured({}, {})
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    return {
        name: value
        for name in usual.settings.__struct_fields__
        if (value := getattr(found.settings, name)) != getattr(usual.settings, name)
    }


def _report(line: str) -> None:
    click.echo(f"tenure: {line}", err=True)


def _with_settings(options: WorldOptions | None, chosen: Mapping[str, Any]) -> WorldOptions:
    import msgspec

    from tenure.sim.world import WorldOptions

    options = options or WorldOptions()
    settings = msgspec.structs.replace(options.settings, **chosen)
    return msgspec.structs.replace(options, settings=settings)


@contextmanager
def _cluster(
    speed: float, scenario: Path | None, chosen: Mapping[str, Any]
) -> Iterator[ServedCluster]:
    from tenure.sim.collector import rest_collector  # loaded only when called
    from tenure.sim.serve.cluster import ServedCluster

    if scenario is None:
        cluster = ServedCluster(_with_settings(None, chosen), speed=speed, report=_report)
    else:
        from tenure.sim.scenario.load import load_scenario

        loaded = load_scenario(scenario)
        options = _with_settings(loaded.options, chosen)
        cluster = ServedCluster(options, speed=speed, objects=loaded.objects, report=_report)
    rest_collector()
    with cluster:
        yield cluster


async def _live(cluster: ServedCluster, ports: Ports, *, rolls: bool, copy: bool = False) -> None:
    from tenure.sim.serve.kubeconfig import FILE, write_kubeconfig

    async with AsyncExitStack() as open_:
        try:
            access = await open_.enter_async_context(cluster.served(ports.api))
        except OSError as error:
            why = _why_not(error, ports.api)
            raise click.UsageError(why, click.get_current_context()) from error
        try:
            write_kubeconfig(access, FILE)
        except OSError as error:
            why = f"the kubeconfig cannot be written: {error.filename or FILE}: {_words(error)}"
            raise click.UsageError(why, click.get_current_context()) from error
        page = await _page(open_, cluster, ports.page)
        with _stopped_by_signals() as stop:
            where = Where(access.server, page, FILE.absolute())
            _welcome(where, cluster.loop.speed, rolls=rolls, copy=copy)
            await _tell_until(stop, cluster)
    click.echo("\nThe cluster is gone; nothing of it was kept.")


async def _page(open_: AsyncExitStack, cluster: ServedCluster, port: int) -> str:
    """Its address; empty where this package has no page."""
    from tenure.cli.page.worldpage import world_page
    from tenure.dashboard.web.files import PageMissing, built_page

    def failed(error: Exception) -> None:
        _report(f"a fault of ours in the page: {type(error).__name__}: {error}")

    try:
        files = built_page()
        page = world_page(cluster.world, files, port=port, speed=cluster.loop.speed, failed=failed)
        return await open_.enter_async_context(page)
    except PageMissing as error:
        _report(str(error))
        return ""
    except OSError as error:
        why = _why_not(error, port, "--ui-port")
        raise click.UsageError(why, click.get_current_context()) from error


def _why_not(error: OSError, port: int, flag: str = "--port") -> str:
    if error.errno in _OF_DISKS:
        where = "no temporary file can be written"
        return (
            f"{where} for the server's certificate ({_words(error)}); TMPDIR names another folder"
        )
    return f"port {port} on 127.0.0.1 cannot be used ({_words(error)}); leave {flag} out for a free one"


def _words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _welcome(where: Where, speed: float, *, rolls: bool, copy: bool = False) -> None:
    """``rolls``: the cluster has the pool and the window that it begins with by default."""
    pace = "in real time" if speed == 1 else f"at {speed:g}× real time"
    click.echo(f"An embedded cluster at {where.server}, {pace}, with Tenure at work in it.")
    click.echo(f"\n  export KUBECONFIG={shlex.quote(str(where.kubeconfig))}\n")
    click.echo("In another terminal: that line first, then for example\n")
    click.echo("  kubectl get nodepools,nodeclaims,nodes")
    if copy:
        click.echo("  kubectl edit nodepool    # or apply the change that you have in mind")
    else:
        click.echo("  kubectl create deployment web --image=web --replicas=3")
    click.echo("  kubectl get nodeclaims -w")
    if rolls:
        click.echo(f"  kubectl patch nodepool default --type=merge -p '{_RELEASE}'")
        click.echo("  kubectl get maintenancewindows    # nodes are replaced once it is active")
    if where.page:
        click.echo(f"\nThe same in a browser: {where.page}")
    click.echo("\nCtrl-C ends it; nothing is kept.")
    if copy:
        click.echo("Instants are by the copy's clock, which began when the copy was taken.")
    elif speed != 1:
        click.echo(
            "Instants are by the cluster's clock, which began at yours and keeps its own pace."
        )
    click.echo("What Tenure does and why (UTC):\n")


@contextmanager
def _stopped_by_signals() -> Iterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _tell_until(stop: asyncio.Event, cluster: ServedCluster) -> None:
    from tenure.cli.output.said import say_line
    from tenure.cli.view.tail import Tail

    tail = Tail()
    history = cluster.world.history
    history.listen(tail.hear)
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY * cluster.loop.speed):
                await stop.wait()
        for line in tail.take(cluster.world.now):
            say_line(line)
        del history.entries[:-_KEPT]
