"""How long a pod runs that is not started again and does not say how long: a Job's, a hook's, a chart's test.

Only in a cluster that users work on. A scenario says what it wants, and how long the pods of a copied
cluster take is not known: what was there at the start runs until it is evicted or deleted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.model.api.resource import JOBS, PODS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store

RUNS_FOR: Final = timedelta(seconds=30)
_NOT_STARTED_AGAIN: Final = ("Never", "OnFailure")


class Completion:
    def __init__(self, store: Store) -> None:
        """What the store has now was there at the start."""
        there = [*store.list(JOBS), *filter(_ends, store.list(PODS))]
        self._there = frozenset(one["metadata"]["uid"] for one in there)

    def runs_for(self, pod: Obj) -> timedelta | None:
        """From running to Succeeded; None for a pod that runs until it is told to go."""
        metadata = pod["metadata"]
        owners = (one["uid"] for one in metadata.get("ownerReferences") or ())
        if not _ends(pod) or not self._there.isdisjoint((metadata["uid"], *owners)):
            return None
        return RUNS_FOR


def _ends(pod: Obj) -> bool:
    return pod["spec"].get("restartPolicy") in _NOT_STARTED_AGAIN
