"""The cluster as far as we have heard: one informer for each kind, and the cache they fill.

A view runs whether or not its replica leads: one that takes over knows everything already,
and evaluates all of it. While no loop runs, what changes is not kept as a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tenure.core.beside.karpenter import SELECTOR
from tenure.core.policy.readers import READERS
from tenure.core.poolpolicy.govern import govern, govern_beside
from tenure.errors import Forbidden, NotFound, TenureError
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.informer import Informer, in_words
from tenure.kube.client.client import Client
from tenure.model.api import resource as r
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import Govern
from tenure.ports.clock import Clock

#: What deciders read. The provider's node classes come on top.
WATCHED: Final = (
    r.NODE_POOLS,
    r.NODE_CLAIMS,
    r.NODES,
    r.PODS,
    r.DAEMON_SETS,
    r.POD_DISRUPTION_BUDGETS,
    r.MAINTENANCE_WINDOWS,
    r.NODE_POOL_POLICIES,
    r.PERSISTENT_VOLUMES,
    r.VOLUME_ATTACHMENTS,
    r.LIMIT_RANGES,
    r.PERSISTENT_VOLUME_CLAIMS,
    r.STORAGE_CLASSES,
    r.CSI_NODES,
    r.NAMESPACES,
)

#: What deciders read beside Karpenter: nothing that only tells where pods fit.
WATCHED_BESIDE: Final = (
    r.NODE_POOLS,
    r.NODE_CLAIMS,
    r.NODES,
    r.PODS,
    r.POD_DISRUPTION_BUDGETS,
    r.MAINTENANCE_WINDOWS,
    r.NODE_POOL_POLICIES,
    r.DEPLOYMENTS,
)

#: Of these kinds only some objects are of interest.
SELECTORS: Final = {r.DEPLOYMENTS: SELECTOR}

#: What only makes an answer better, or is not used by everyone. Where it cannot be listed, say because a role
#: or a set of CRDs of an older release lacks it, everything goes on without it: without the kind there is
#: no NodePoolPolicy, and NodePools say all there is to say.
HELPFUL: Final = frozenset({r.LIMIT_RANGES, r.CSI_NODES, r.NODE_POOL_POLICIES})

#: Where these cannot be listed, deciders are told, and what they might forbid does not start: a role
#: or a set of CRDs of Karpenter has no maintenance windows, and launches and drains go on. Without
#: volume claims or storage classes no node is launched for pods with volumes, for all others it is; without
#: namespaces, none for pods whose affinity selects namespaces by their labels; without Deployments it is not
#: known which Karpenter is in charge, and no lever is set.
FORBIDDING: Final = frozenset(
    {
        r.MAINTENANCE_WINDOWS,
        r.PERSISTENT_VOLUME_CLAIMS,
        r.STORAGE_CLASSES,
        r.NAMESPACES,
        r.DEPLOYMENTS,
    }
)

#: Without the right to list these there may be some, and deciders are told: a budget of theirs that cannot be read
#: closes its NodePool, and beside Karpenter levers stay that it may have set. Without the kind there is none.
_TOLD_IF_FORBIDDEN: Final = frozenset({r.NODE_POOL_POLICIES})

#: Where the API server refuses to list these, everything else goes on.
DISPENSABLE: Final = HELPFUL | FORBIDDING


def is_told(resource: Resource, error: Forbidden | NotFound) -> bool:
    """Whether deciders are told that the kind cannot be listed."""
    forbidden = isinstance(error, Forbidden) and resource in _TOLD_IF_FORBIDDEN
    return resource in FORBIDDING or forbidden


def _watched_with(settings: Settings) -> tuple[Resource, ...]:
    return WATCHED_BESIDE if settings.beside_karpenter else WATCHED


def govern_with(settings: Settings) -> Govern:
    """What policies say about a pool."""
    return govern_beside if settings.beside_karpenter else govern


class View:
    def __init__(
        self,
        client: Client,
        *,
        node_classes: Sequence[Resource],
        clock: Clock,
        random: Random,
        report: Callable[[Resource, TenureError], None] = lambda *_: None,
        settings: Settings,
    ) -> None:
        self._clock = clock
        self._listed = asyncio.Event()
        #: Kinds above that the API server does not let us list.
        self._refused: set[Resource] = set()
        self.cache = Cache(readers=READERS, govern=govern_with(settings))
        self.informers = [
            Informer(
                client,
                resource,
                self.cache,
                clock=clock,
                random=random,
                report=self._reported(report),
                listed=self._look_whether_synced,
                label_selector=SELECTORS.get(resource, ""),
            )
            for resource in (*_watched_with(settings), *node_classes)
        ]
        self.rest()

    def _reported(
        self, report: Callable[[Resource, TenureError], None]
    ) -> Callable[[Resource, TenureError], None]:
        def told(resource: Resource, error: TenureError) -> None:
            report(resource, error)
            if resource in DISPENSABLE and isinstance(error, Forbidden | NotFound):
                self._refused.add(resource)
                if is_told(resource, error):
                    self.cache.list_failed(resource, in_words(error))
                self._look_whether_synced()

        return told

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self.informers:
                tasks.create_task(informer.run())

    def wake_on_change(self, wake: Callable[[], None]) -> None:
        """A loop runs from now on: keep the changes for it, and wake it."""
        self.cache.take_changes()
        self.cache.wake = wake

    def rest(self) -> None:
        """No loop runs: changes that no loop takes would pile up."""
        self.cache.wake = self.cache.forget_changes

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed; before that nothing can be evaluated.

        One of ``DISPENSABLE`` has been asked for, and may have been refused.
        """
        return self._listed.is_set()

    async def until_synced(self) -> None:
        await self._listed.wait()

    @property
    def outdated(self) -> str:
        """What of it is too old to take anything away on its word; empty when nothing is."""
        now = self._clock.monotonic()
        unlisted = HELPFUL | self.cache.tables.unlisted.keys()
        needed = (one for one in self.informers if one.resource not in unlisted)
        old = [str(one.resource) for one in needed if not one.is_fresh(now)]
        return f"nothing is heard of {', '.join(old)}" if old else ""

    def _look_whether_synced(self) -> None:
        if all(one.synced or one.resource in self._refused for one in self.informers):
            self._listed.set()
