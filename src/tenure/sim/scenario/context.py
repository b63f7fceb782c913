"""Where a scenario runs: the world, and what its steps and checks need to know of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tenure.errors import TenureError
from tenure.model.api import resource as r
from tenure.model.api.names import NODEPOOL
from tenure.model.api.resource import Resource
from tenure.model.matching.selectors import parse_label_selector
from tenure.model.values.duration import Duration
from tenure.sim.actors.kubelet.podstatus import APP_LABELS
from tenure.sim.apiserver.objects.tree import Obj, dig
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.history import Entry
from tenure.sim.scenario.targets import Filter, Target, meant, select
from tenure.sim.world import World


class Missing(TenureError):
    """A step cannot be done: what it is about is not there."""


class Gone(Missing):
    """It was there, and is not any more: a matter of when, and not a mistake in the file."""


_KEPT: Final = (r.NODES, r.NODE_CLAIMS)


class Departed:
    """Nodes and claims that were there and are gone: what a line of a scenario may still mean.

    They come and go by what Tenure decides: a line about one that has left is no mistake in the file.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._gone: dict[Resource, list[Obj]] = {resource: [] for resource in _KEPT}
        #: By Node, the apps whose pods it has had.
        self._apps: dict[str, set[str]] = defaultdict(set)
        for resource, gone in self._gone.items():
            store.subscribe(resource, partial(_keep, gone))
        store.subscribe(r.PODS, self._on_pod)

    def had(self, target: Target) -> bool:
        """Whether as many were there as the target counts, those that are there included."""
        gone = [obj for obj in self._gone.get(target.resource, ()) if self._fits(obj, target)]
        there = select(self._store, target.resource, target.filter)
        return bool(gone) and len(there) + len(gone) > target.index

    def _fits(self, obj: Obj, target: Target) -> bool:
        wanted: Filter = target.filter
        metadata = obj["metadata"]
        labels = metadata.get("labels") or {}
        if wanted.name not in ("", metadata["name"]):
            return False
        if wanted.pool not in ("", labels.get(NODEPOOL)):
            return False
        if wanted.labels and not parse_label_selector(wanted.labels)(labels):
            return False
        node = metadata["name"] if target.resource == r.NODES else dig(obj, "status", "nodeName")
        return not wanted.app or wanted.app in self._apps.get(node or "", ())

    def _on_pod(self, type_: str, pod: Obj, old: Obj | None) -> None:
        node = pod["spec"].get("nodeName")
        if node and (old is None or not old["spec"].get("nodeName")):
            labels = pod["metadata"].get("labels") or {}
            self._apps[node] |= {labels[key] for key in APP_LABELS if key in labels}


def _keep(gone: list[Obj], type_: str, obj: Obj, _old: Obj | None) -> None:
    if type_ == DELETED:
        gone.append(obj)


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
        self._departed = Departed(world.store)
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
        """The object that is meant; raises ``Gone`` or ``Missing`` when there is none."""
        obj = target.find(self.store)
        if obj is not None:
            return obj
        if self._departed.had(target):
            raise Gone(f"{target} is gone")
        raise Missing(f"there is no {target.wanted}{meant(self.store, target)}")

    def pods_on(self, node: str) -> list[Obj]:
        return self.world.infrastructure.pods.on(node)

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
