"""Objects that want a look, each once however often it was named, in the order of naming.

A controller takes a moment to react; what happens to one object within that moment is one
look. A look that the API refuses is repeated, later and later, so that a namespace that is
being deleted costs nothing. Nothing else is repeated by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.errors import ApiError
from tenure.sim.virtual.environment import Environment

REACTION: Final = timedelta(milliseconds=10)
_RETRY_FIRST: Final = timedelta(seconds=1)
_RETRY_LAST: Final = timedelta(minutes=5)


class WorkQueue:
    def __init__(
        self,
        env: Environment,
        look: Callable[[str, str], object],
        *,
        reaction: timedelta = REACTION,
    ) -> None:
        """``look`` is called with the namespace and name of an object."""
        self._env = env
        self._look = look
        self._reaction = reaction
        self._named: dict[str, None] = {}
        self._alarms: dict[str, datetime] = {}
        self._retry: dict[str, timedelta] = {}

    def add(self, key: str) -> None:
        """Look at ``namespace/name`` soon."""
        if not self._named:
            self._env.after(self._reaction, self._run)
        self._named[key] = None

    def add_at(self, key: str, instant: datetime) -> None:
        """Look at that instant; the earliest wish counts."""
        earlier = self._alarms.get(key)
        if earlier is None or instant < earlier:
            self._alarms[key] = instant
            self._env.at(instant, self._ring, key, instant)

    def _ring(self, key: str, instant: datetime) -> None:
        if self._alarms.get(key) == instant:
            del self._alarms[key]
            self.add(key)

    def _run(self) -> None:
        named, self._named = self._named, {}
        for key in named:
            namespace, _, name = key.partition("/")
            try:
                self._look(namespace, name)
            except ApiError:
                wait = self._retry.get(key, _RETRY_FIRST)
                self._retry[key] = min(2 * wait, _RETRY_LAST)
                self.add_at(key, self._env.now() + wait)
            else:
                self._retry.pop(key, None)


def queue_key(obj: dict[str, dict[str, str]]) -> str:
    """``namespace/name`` of a namespaced object."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
