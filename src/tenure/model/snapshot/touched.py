"""Names of what has changed: Nodes of which something has (the Node itself, its claim, a pod there), subjects of verdicts.

What is kept of all of them over turns is told by it which to look at again. Changes are numbered; who asks
says up to which number it has followed.
"""

from __future__ import annotations

from typing import Final

#: So many names are remembered beyond those that exist.
NAMES_MAX: Final = 10_000


class Touched:
    def __init__(self) -> None:
        #: The number of the last change.
        self.number = 0
        #: By name, the latest last: the number of its last change.
        self._last: dict[str, int] = {}
        #: Changes up to this one are forgotten.
        self._forgotten = 0

    def touch(self, name: str) -> None:
        if name:
            self.number += 1
            self._last.pop(name, None)
            self._last[name] = self.number

    def since(self, number: int) -> list[str] | None:
        """Names of what has changed after this change; None: any may have."""
        if number < self._forgotten:
            return None
        found: list[str] = []
        for name in reversed(self._last):
            if self._last[name] <= number:
                break
            found.append(name)
        return found

    def tidy(self, exist: int) -> None:
        """Forget the oldest, where far more names are known than ``exist``."""
        if len(self._last) > exist + NAMES_MAX:
            for name in list(self._last)[: NAMES_MAX // 2]:
                self._forgotten = self._last.pop(name)
