"""Python's collector, which rests while an answer is made.

It begins after so many new objects, whichever thread made them, and keeps the interpreter until it has gone through all that are
young: 5 to 100 ms after an answer's, in a turn or while one waits. What an answer is made of is freed without it; and what was
replaced meanwhile is freed once the twin has caught up, so until then it rests, too. Where much is left even so, that is the twin and
what it has worked out, which lives long: it is left out from then on (``gc.freeze``), and freed as everything else when it is replaced.
A cycle that is garbage by then would stay for ever, and there are some thousands a minute: so after half an hour everything is
gone through once, which takes as long as a pass of the collector without pages.
"""

from __future__ import annotations

import gc
from time import monotonic
from typing import Final

#: Seconds after which it goes on even so, at the end of an answer.
RESTS_MAX: Final = 5.0
#: Seconds after which what was left out is gone through once.
LEFT_OUT_MAX: Final = 1800.0


class Collector:
    def __init__(self) -> None:
        self._rests_since: float | None = None
        self._leaves_out_since: float | None = None

    @property
    def has_rested_long(self) -> bool:
        return self._rests_since is not None and monotonic() - self._rests_since >= RESTS_MAX

    def rest(self) -> None:
        """Where it is off anyway, it stays so."""
        if gc.isenabled():
            gc.disable()
            self._rests_since = monotonic()

    def go_on(self) -> None:
        if self._rests_since is not None:
            self._rests_since = None
            if gc.get_count()[0] > gc.get_threshold()[0] > 0:
                self._leave_out()
            gc.enable()

    def _leave_out(self) -> None:
        now = monotonic()
        if self._leaves_out_since is None:
            self._leaves_out_since = now
        if now - self._leaves_out_since < LEFT_OUT_MAX:
            gc.freeze()
        else:
            self._leaves_out_since = None
            gc.unfreeze()
            gc.collect()
