"""Which tests go to the same worker, where there are several.

Whatever shares a control plane does: then there is at most one bed for each worker. All others go
wherever there is time. (The ``xdist_group`` mark does the same, but not with every pytest.)
"""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

STORIES: Final = "tests/real/"
CONTRACT: Final = "through the real door"


def together(test: str) -> str:
    """Tests with the same answer go to the same worker, in their order."""
    if test.startswith(STORIES):
        return STORIES
    return CONTRACT if CONTRACT in test else test


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)
