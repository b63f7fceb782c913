"""What the objects that decide over a node's end were, as long as a watch may be late.

Tenure's view is as old as its watches. A write that was right by any state of that time is no
violation: the user's change that made it wrong could not be known yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import combinations
from typing import Final

from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED
from tenure.sim.check.read import State
from tenure.sim.virtual.environment import Environment

#: How late a watch may be, where a story does not say.
LATE: Final = timedelta(seconds=30)
KEPT: Final = (
    r.NODES,
    r.NODE_CLAIMS,
    r.NODE_POOLS,
    r.MAINTENANCE_WINDOWS,
    r.NODE_POOL_POLICIES,
)


class Recent:
    def __init__(self, environment: Environment, store: Store) -> None:
        self._environment, self._store = environment, store
        #: A story whose watches are later than usual sets it higher.
        self.late = LATE
        self._mirror: dict[Resource, dict[str, Obj]] = {one: {} for one in KEPT}
        self._log: deque[tuple[datetime, Resource, str, Obj | None, str]] = deque()
        #: The versions of claims that Tenure itself wrote: its own marks it knows at once.
        self._own: set[str] = set()
        for resource in KEPT:
            store.subscribe(resource, partial(self._changed, resource), replay=True)

    def _changed(self, resource: Resource, type_: str, obj: Obj, _old: Obj | None) -> None:
        now, name, mirror = self._environment.now(), obj["metadata"]["name"], self._mirror[resource]
        version = obj["metadata"]["resourceVersion"]
        self._log.append((now, resource, name, mirror.get(name), version))
        while self._log and now - self._log[0][0] > self.late:
            self._log.popleft()
        if type_ == DELETED:
            mirror.pop(name, None)
        else:
            mirror[name] = obj

    def wrote(self, resource: Resource, obj: Obj) -> None:
        """Tenure has written this version. Of other kinds the answer may be lost, and the watch late."""
        if resource == r.NODE_CLAIMS:
            self._own.add(obj["metadata"]["resourceVersion"])

    def now(self) -> State:
        """As it is."""
        found: dict[Resource, dict[str, Obj]] = {}
        for one in KEPT:
            records = self._store.shelf(one).records.values()
            found[one] = {record.obj["metadata"]["name"]: record.obj for record in records}
        return found

    def past(self, kinds: Collection[Resource] = KEPT) -> Iterator[State]:
        """As it was, the latest first; one state for each instant. Tenure's own writes are kept.

        ``kinds``: those whose watches are late; of the others everything is as it is.
        """
        state = {resource: {**objects} for resource, objects in self._mirror.items()}
        last: datetime | None = None
        known: set[tuple[Resource, str]] = set()
        yield state
        for at, resource, name, before, version in reversed(self._log):
            if self._environment.now() - at > self.late:
                return
            if resource not in kinds:
                continue
            if last is not None and at != last:
                yield state
            last = at
            if version in self._own:
                known.add((resource, name))
            if (resource, name) in known:
                continue
            if before is None:
                state[resource].pop(name, None)
            else:
                state[resource][name] = before
        yield state

    def seen(self) -> Iterator[State]:
        """Every state that Tenure may still have seen: each kind has a watch of its own."""
        late = {resource for _, resource, _, _, _ in self._log} or {KEPT[0]}
        kept = [resource for resource in KEPT if resource in late]
        for count in range(len(kept), 0, -1):
            for kinds in combinations(kept, count):
                yield from self.past(kinds)
