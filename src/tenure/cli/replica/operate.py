"""The life of the process around a replica: input, log, signals, exit code.

A signal stops the work, gives the Lease back and ends with 0; a second one ends at once. What a
user must correct in the *input* is raised and ends with 2; what may mend itself is the replica's
business. A fault of ours is logged with its trace and ends with 1: Kubernetes starts the process again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

import msgspec
from prometheus_client import disable_created_metrics

from tenure.cli.cluster.access import Reached, find_access, trust_notes
from tenure.cli.replica.replica import Replica
from tenure.cli.settings.config import Configured, provider_of
from tenure.cli.settings.table import NOT_YET
from tenure.errors import SpecError
from tenure.kube.lease.record import new_identity
from tenure.model.settings import Settings
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.telemetry.logs import Log, library_lines, make_log

OUTSIDE: Final = "kube-system"
#: New containers before Python looks for cycles, of which we make few: often among the youngest, which takes a
#: millisecond, and hardly ever among all objects of a large cluster, which takes longer than a turn.
COLLECTOR: Final = (5_000, 4, 5_000)


def operate(configured: Configured, environment: Mapping[str, str]) -> int:
    """Run until told to stop; the exit code. Raises ``SpecError`` for bad input."""
    settings = configured.settings
    reached = find_access(settings.kubeconfig, settings.context, environment)
    settings = _settled(settings, reached)
    provider = provider_of(settings)
    identity = new_identity(environment)
    log = _log(settings)
    gc.set_threshold(*COLLECTOR)
    # Without these: twice as many series, for a question that is never asked.
    disable_created_metrics()  # type: ignore[no-untyped-call]

    async def life() -> None:
        replica = Replica(settings, reached, provider, log, identity)
        replica.check_input()
        _introduce(log, configured, reached, identity, provider.name)
        await replica.live(_stopped_by_signals(log))

    try:
        with library_lines(log):
            asyncio.run(life())
    except SpecError:
        raise
    except Exception:
        log.exception("a fault of ours ends this replica: please report it")
        return 1
    log.info("stopped")
    return 0


def _settled(settings: Settings, reached: Reached) -> Settings:
    """With what depends on where we are."""
    if settings.lease_namespace:
        return settings
    own = reached.access.namespace if reached.in_pod else ""
    return msgspec.structs.replace(settings, lease_namespace=own or OUTSIDE)


def _log(settings: Settings) -> Log:
    terminal = sys.stdout.isatty()
    text = settings.log_format == "text" or (settings.log_format == "auto" and terminal)
    colors = terminal and not os.environ.get("NO_COLOR")
    return make_log(
        sys.stdout.buffer, SystemClock(), level=settings.log_level, text=text, colors=colors
    )


def _introduce(
    log: Log, configured: Configured, reached: Reached, identity: str, provider: str
) -> None:
    log.info(
        "tenure starts",
        version=version("tenure"),
        provider=provider,
        server=reached.access.server,
        access=reached.source,
        identity=identity,
        settings=dict(configured.chosen),
    )
    if not configured.settings.beside_karpenter:  # There Karpenter does it.
        log.info("does nothing yet", about=list(NOT_YET))
    for note in (*configured.notes, *trust_notes(reached.access)):
        log.warning(note)
    if not configured.settings.leader_election:
        log.warning("leader election is off: nothing else may act on this cluster")


def _stopped_by_signals(log: Log) -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def stopped(number: int) -> None:
        name = signal.Signals(number).name
        if stop.is_set():
            log.warning("ended at once", signal=name)
            os._exit(128 + number)
        log.info("stopping", signal=name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped, number)
    return stop
