"""Stories in Python: a world with a few more words, for tests.

    with Story(*a_cluster(a_deployment(replicas=3))) as story:
        story.at(5 * MINUTE, lambda: story.delete_claim())
        story.run(10 * MINUTE)
        assert story.running("web") == 3

Leaving the story checks that no promise was broken in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from tenure.model.api import resource as r
from tenure.sim.actors.kubelet.podstatus import PodPace
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.context import ScenarioContext
from tenure.sim.scenario.tallies import TALLIES
from tenure.sim.scenario.targets import Filter, Target, select
from tenure.sim.world import World, WorldOptions


class Story(World):
    def __init__(self, *manifests: Mapping[str, Any], options: WorldOptions | None = None) -> None:
        super().__init__(options)
        self._stage = ScenarioContext(self)
        for manifest in manifests:
            self.apply(manifest)

    # -- what happens ------------------------------------------------------------------

    def at(self, after: timedelta, deed: Callable[[], object]) -> None:
        """Do that, so long after the start. (``crash`` instead between two runs.)"""
        self.environment.at(self.options.epoch + after, deed)

    def the(self, resource: r.Resource, **which: Any) -> Obj:
        """The oldest object of that kind, by ``name``, ``pool``, ``app``, ``labels``; see targets."""
        chosen = {key: which.pop(key) for key in ("pick", "index") if key in which}
        return self._stage.found(Target(resource=resource, filter=Filter(**which), **chosen))

    def delete_claim(self, **which: Any) -> str:
        """Delete a claim, the oldest unless told otherwise; its name."""
        name: str = self.the(r.NODE_CLAIMS, **which)["metadata"]["name"]
        self.store.delete(r.NODE_CLAIMS, "", name)
        return name

    def pace(self, app: str, **takes: Any) -> None:
        """From now on that app's pods take so long: ``stop_takes=5 * MINUTE``; see ``PodPace``."""
        self.kubelets.set_paces(PodPace(app=app, **takes))

    def stick_volumes(self, **which: Any) -> str:
        """From now on no volume leaves a node, the oldest unless told otherwise; its name."""
        name: str = self.the(r.NODES, **which)["metadata"]["name"]
        self.infrastructure.storage.attachments.stick(name)
        return name

    # -- what is -----------------------------------------------------------------------

    def count(self, what: str, state: str = "count", **which: Any) -> int:
        """How many ``pods``, ``nodes``, ``claims`` or ``instances`` are in that state."""
        tally, _ = TALLIES[what]
        return tally(self._stage, Filter(**which))[state]

    def running(self, app: str = "") -> int:
        return self.count("pods", "running", app=app)

    def all(self, resource: r.Resource, **which: Any) -> list[Obj]:
        """Oldest first."""
        return select(self.store, resource, Filter(**which))

    # -- what was said -----------------------------------------------------------------

    def reasons(self, subject: str) -> list[str]:
        """Tenure's reasons for a subject (a glob), in order, repetitions left out."""
        said: list[str] = []
        for entry in self.history.entries:
            if (
                entry.source != "tenure"
                or entry.ended is not None
                or not fnmatchcase(entry.subject, subject)
            ):
                continue
            if said[-1:] != [entry.reason]:
                said.append(entry.reason)
        return said

    def when(self, reason: str, subject: str = "*") -> list[datetime]:
        """The instants at which Tenure gave that reason."""
        return [
            entry.at
            for entry in self.history.entries
            if entry.reason == reason
            and entry.ended is None
            and fnmatchcase(entry.subject, subject)
        ]
