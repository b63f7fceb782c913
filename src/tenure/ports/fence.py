"""Whether we may act at this very instant: asked right before anything leaves the process.

The lease keeps one such fence. Every write to the API and every call to the cloud asks it in
the last step before the bytes leave, so that a process that was paused in between sends nothing
when it continues.
"""

from __future__ import annotations

from typing import Final, Protocol


class Fence(Protocol):
    def closed(self) -> str:
        """Why nothing may leave now, in words for users; empty while it may."""
        ...


class _Open:
    def closed(self) -> str:
        return ""


#: For a single replica: a simulation, or a run without leader election.
OPEN: Final[Fence] = _Open()
