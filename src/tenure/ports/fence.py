"""Whether we may act at this very instant: asked right before anything leaves the process.

The lease keeps one such fence. Whoever writes to the API or calls the cloud asks it in
the last step before the bytes leave, so that a process that was paused in between says
nothing when it wakes up.
"""

from __future__ import annotations

from typing import Final, Protocol


class Fence(Protocol):
    def closed(self) -> str:
        """Why nothing may leave now, in words for people; empty while it may."""
        ...


class _Open:
    def closed(self) -> str:
        return ""


#: For who is alone: a simulation, or a run without leader election.
OPEN: Final[Fence] = _Open()
