"""Keys that a turn has left over: there were so many that it ended before them.

What is urgent is answered within a turn or two, so no turn may be long. The next one, which follows at once, evaluates
what is left over, in the order of the deciders. Meanwhile the verdicts of before stay in force for
readers, and none of them is acted upon: what it was decided on may have changed.

What is left over for a second is evaluated to the end, however long that takes: so every key has its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from tenure.runtime.evaluate.results import Work

#: Seconds after which a turn begins no further key.
TURN: Final = 0.03
#: So long keys are left over at the most.
LEFT_OVER_MAX: Final = timedelta(seconds=1)


class LeftOver:
    def __init__(self) -> None:
        #: In the order in which they were to be evaluated.
        self._works: tuple[Work, ...] = ()
        #: When the first of the turns began that had to leave some over.
        self._since: datetime | None = None
        self._leaves_nothing = False

    def __bool__(self) -> bool:
        return bool(self._works)

    def __iter__(self) -> Iterator[Work]:
        return iter(self._works)

    def begin_turn(self, now: datetime) -> tuple[Work, ...]:
        """What the turns before have left over for this one."""
        works, self._works = self._works, ()
        if not works or self._since is None:
            self._since = now
        self._leaves_nothing = not timedelta(0) <= now - self._since < LEFT_OVER_MAX
        return works

    def leave_nothing(self) -> None:
        """This turn is done to its end."""
        self._leaves_nothing = True

    def may_end(self, took: float) -> bool:
        """Whether a turn that has taken so many seconds leaves the rest to the next."""
        return took >= TURN and not self._leaves_nothing

    def leave(self, works: Iterable[Work]) -> None:
        self._works = tuple(works)
