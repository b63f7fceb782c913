"""What a board is fed by: a cluster, a scenario, or frames of a test."""

from __future__ import annotations

from typing import Protocol

import msgspec

from tenure.dashboard.fleet.values import Frame, Lane


class PodLine(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a node."""

    namespace: str
    name: str
    phase: str
    #: Of its governing verdict; empty where there is none.
    reason: str = ""
    because: str = ""
    cpu: int = 0
    memory: int = 0


class Listener(Protocol):
    """Is told from the source's own thread."""

    def show(self, frame: Frame) -> None: ...

    def connection(self, problem: str) -> None:
        """Why nothing is heard of the cluster, in a sentence; empty when it is there again."""

    def failed(self, error: Exception) -> None:
        """There is nothing to look at, and there will not be."""


class Source(Protocol):
    """Runs in a thread of its own. Questions are asked from any other, and may take a moment."""

    @property
    def title(self) -> str: ...

    def run(self, listener: Listener) -> None:
        """Until stopped."""

    def stop(self) -> None: ...

    def explain(self, subject: str, width: int) -> str:
        """``NodeClaim/general-4nv74``, as ``tenure explain`` says it. Raises ``TenureError``."""

    def pods(self, key: str) -> tuple[PodLine, ...]:
        """On the node with that key."""

    def lane(self, key: str) -> Lane | None:
        """What was seen of the node, and what is to come."""
