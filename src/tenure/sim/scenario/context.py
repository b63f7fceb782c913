"""Where a scenario runs: the world, and what its steps and checks need to know of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import partial

from tenure.errors import TenureError
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.model.values.duration import Duration
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.history import Entry
from tenure.sim.scenario.targets import Target
from tenure.sim.world import World


class Missing(TenureError):
    """A step cannot be done: what it is about is not there."""


class ScenarioContext:
    def __init__(self, world: World) -> None:
        self.world = world
        self.store = world.store
        #: What was said so far, by reason.
        self.said: dict[str, list[Entry]] = defaultdict(list)
        world.history.listen(self._hear)
        #: How often objects of these kinds have changed so far.
        self.changes: Counter[Resource] = Counter()
        for resource in (r.PODS, r.NODES, r.NODE_CLAIMS):
            world.store.subscribe(resource, partial(self._count, resource))
        self.cloud_version = 0
        world.cloud.listen(self._on_instance)

    @property
    def now(self) -> datetime:
        return self.world.now

    @property
    def version(self) -> tuple[int, int]:
        """Changes whenever anything happens at all."""
        return self.store.version, len(self.world.history.entries)

    def instant(self, after: timedelta) -> datetime:
        return self.world.options.epoch + after

    def found(self, target: Target) -> Obj:
        """The object that is meant; raises ``Missing`` when there is none."""
        obj = target.find(self.store)
        if obj is None:
            raise Missing(f"there is no such object: {target}")
        return obj

    def _count(self, resource: Resource, *_: object) -> None:
        self.changes[resource] += 1

    def _on_instance(self, *_: object) -> None:
        self.cloud_version += 1

    def _hear(self, entry: Entry) -> None:
        self.said[entry.reason].append(entry)


def clock(instant: datetime) -> str:
    """``08:00:31.700``: as the history shows it."""
    return f"{instant:%H:%M:%S}.{instant.microsecond // 1000:03d}"


def span(delta: timedelta) -> str:
    """``1h30m``: as users write it."""
    text = str(Duration.of(delta))
    for zero in ("m0s", "h0m"):
        if text.endswith(zero):
            text = text.removesuffix(zero[1:])
    return text
