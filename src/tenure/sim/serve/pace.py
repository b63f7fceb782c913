"""An event loop with real sockets whose time runs at a multiple of ours.

Time moves only while the loop waits, and never past a timer that is due: what takes long
to compute makes the cluster late, it does not make its time-outs expire. A loop that is
late does not wait until it has caught up.

Suspending the machine suspends the cluster: the clock behind this one stands still then.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any

from tenure.sim.virtual.loop import TimeKeepingSelector, VirtualLoop


class _PacingSelector(TimeKeepingSelector):
    """Waits for sockets as any selector does, but a second of the loop's is a fraction of ours."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._began = time.monotonic()
        self._sockets = selectors.DefaultSelector()

    def _elapsed(self) -> float:
        """The loop's seconds since it began, if it was never late."""
        return (time.monotonic() - self._began) * self._speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """``timeout``: 0 when something is ready to run; the base loop knows of no timers."""
        assert self.loop is not None
        due = self.loop.next_timer()
        if timeout is None and due is not None:
            timeout = max(due - self._elapsed(), 0) / self._speed
        ready = self._sockets.select(timeout)
        self.loop.advance(self._elapsed())
        self.loop.ring()
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._sockets.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._sockets.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._sockets.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._sockets.get_map()

    def close(self) -> None:
        self._sockets.close()


class PacedLoop(VirtualLoop):
    """``speed`` 60: a minute of the cluster's per second of ours."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        super().__init__(selector=_PacingSelector(speed))

    # The outside world may come in here: undo what the virtual loop forbids.

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]  # the parent never returns
        return asyncio.SelectorEventLoop.run_in_executor(self, executor, func, *args)

    def _make_self_pipe(self) -> None:
        asyncio.SelectorEventLoop._make_self_pipe(self)  # type: ignore[attr-defined]  # not in typeshed

    def _close_self_pipe(self) -> None:
        asyncio.SelectorEventLoop._close_self_pipe(self)  # type: ignore[attr-defined]  # not in typeshed

    def _write_to_self(self) -> None:
        asyncio.SelectorEventLoop._write_to_self(self)  # type: ignore[attr-defined]  # not in typeshed
