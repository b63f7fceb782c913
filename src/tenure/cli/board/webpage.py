"""The web page of a cluster that is looked at: on this machine alone, for as long as the look lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from importlib.metadata import version
from typing import Protocol

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.page.source import PageSource
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.web.files import Files
from tenure.dashboard.web.guards import NONE, LoopbackGuard
from tenure.dashboard.web.server import PageServer
from tenure.dashboard.web.source import About
from tenure.runtime.telemetry.ring import Entry, RingJournal
from tenure.runtime.telemetry.serving import LOOPBACK


class Looking(Protocol):
    """What is looked at."""

    @property
    def journal(self) -> RingJournal: ...

    @property
    def evaluated_at(self) -> datetime | None:
        """None: nothing has been evaluated yet."""

    def inputs(self) -> Inputs: ...

    def evaluated(self) -> EvaluatedCluster: ...


class LookProgram:
    def __init__(self, look: Looking, mode: str, since: datetime) -> None:
        self._look, self._mode, self._since = look, mode, since

    def about(self) -> About:
        inputs = self._look.inputs()
        return About(
            version=version("tenure"),
            cluster=inputs.cluster,
            leader=inputs.leader,
            authentication=NONE,
            since=self._since,
            mode=self._mode,
        )

    def inputs(self) -> Inputs | None:
        return self._look.inputs() if self._look.evaluated_at is not None else None

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        return self._look.journal.since(since)

    def evaluated(self) -> EvaluatedCluster | None:
        return self._look.evaluated() if self._look.evaluated_at is not None else None

    def silence(self) -> str:
        return ""

    def where(self) -> str:
        return self._look.inputs().cluster


class LookPage:
    """``port`` 0 takes a free one."""

    def __init__(self, files: Files, port: int, opened: Callable[[str], object]) -> None:
        self._files, self._port, self._opened = files, port, opened

    async def serve(
        self, look: Looking, since: datetime, failed: Callable[[Exception], object]
    ) -> None:
        """Until cancelled. Raises ``OSError`` where the port is taken."""
        source = PageSource(LookProgram(look, "board", since))
        server = PageServer(source, self._files, LoopbackGuard(), failed=failed)
        bound = await server.open(LOOPBACK, self._port)
        self._opened(f"http://{LOOPBACK}:{bound}")
        try:
            await asyncio.Event().wait()
        finally:
            await server.close()
