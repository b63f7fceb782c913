"""Asks the cloud what it has: instance types for planning, instances for garbage.

Where the cache shows a claim for every instance and an instance for every claim, all is
well. Else instances are compared with a *live* list of claims: a stale cache must never make
a running node look like garbage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Subject
from tenure.core.pool.lookup import node_class_key
from tenure.errors import NotLeader, TenureError
from tenure.kube.client.client import Client
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.model.settings import Settings
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.parse.jsontext import DECODE_ERRORS
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.runtime.observe.nodeclasses import state_of
from tenure.runtime.observe.store import ObservationStore

#: Prices and offerings move slowly.
TYPES_PERIOD: Final = timedelta(minutes=5)
#: … but without types nothing can be launched at all.
TYPES_RETRY: Final = timedelta(seconds=10)


class _Named(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    uid: str = ""


class _Stage(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _Progress(msgspec.Struct, frozen=True):
    provider_id: str = msgspec.field(default="", name="providerID")
    conditions: tuple[_Stage, ...] = ()


class _Sighting(msgspec.Struct, frozen=True):
    """As much of a claim as the comparison needs: it lists all of them every two minutes."""

    metadata: _Named = _Named()
    status: _Progress = _Progress()

    @property
    def launched(self) -> bool:
        return any(s.type == "Launched" and s.status == "True" for s in self.status.conditions)


_SIGHTING: Final = msgspec.json.Decoder(_Sighting)


class Inventory:
    def __init__(
        self,
        *,
        client: Client,
        cloud: Cloud,
        observations: ObservationStore,
        clock: Clock,
        settings: Settings,
        snapshot: Callable[[], Snapshot],
        report: Callable[[TenureError], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._cloud = cloud
        self._observations = observations
        self._clock = clock
        self._settings = settings
        self._snapshot = snapshot
        self._report = report
        self._classes_changed = asyncio.Event()
        #: When the first class that was refused is asked for again.
        self._retry_at: datetime | None = None
        #: Why the instances could not be listed last time; empty when they were.
        self.problem = ""

    def node_classes_changed(self) -> None:
        """A pool or node class is new or different: its types are asked for at once."""
        self._classes_changed.set()

    async def run_types(self) -> None:
        while True:
            self._classes_changed.clear()
            complete = await self.refresh_types()
            pause = TYPES_PERIOD if complete else TYPES_RETRY
            if self._retry_at is not None:
                pause = min(pause, max(self._retry_at - self._clock.now(), timedelta()))
            try:
                async with asyncio.timeout(pause.total_seconds()):
                    await self._classes_changed.wait()
            except TimeoutError:
                pass

    async def refresh_types(self) -> bool:
        """Whether every node class in use was answered for."""
        wanted = _classes_in_use(self._snapshot())
        self._observations.node_classes.forget_others(wanted)
        complete, self._retry_at = True, None
        for key, ref in wanted.items():
            node_class = self._snapshot().node_class(ref.group, ref.kind, ref.name)
            if not isinstance(node_class, NodeClass) or is_unreadable(node_class):
                continue
            until = self._observations.node_classes.unusable_until(key, state_of(node_class))
            if until is not None and self._clock.now() < until:
                self._retry_at = min(until, self._retry_at or until)
                continue
            try:
                self._observations.node_classes.types_known(
                    key, await self._cloud.instance_types(node_class)
                )
            except NotLeader as error:
                # Not asked: what the pool offers is unknown, and its pods wait for it.
                complete = False
                self._report(error)
            except TenureError as error:
                complete = False
                self._report(error)
                # Asked and not answered: this pool has nothing to offer, the others go on.
                self._observations.node_classes.types_unknown(key)
        return complete

    async def run_garbage(self) -> None:
        while True:
            await asyncio.sleep(self._settings.garbage_period.total_seconds())
            try:
                await self.compare()
                self.problem = ""
            except TenureError as error:
                self.problem = str(error)
                self._report(error)

    async def compare(self) -> None:
        """Instances first: a claim that is made in between is then no surprise."""
        instances = await self._cloud.list_instances(self._settings.cluster_name)
        orphans: dict[str, Instance] = {}
        vanished: dict[str, Subject] = {}
        if not self._all_is_well(instances):
            raw, _ = await self._client.list_all(NODE_CLAIMS)
            claims = [_sighted(item) for item in raw]
            orphans = _without_claim(claims, instances)
            vanished = _without_instance(claims, instances)
        now = self._clock.now()
        self._observations.instances.found_orphans(orphans, now)
        self._observations.instances.found_vanished(vanished, now)
        self._observations.node_classes.forget_dry(now)

    def _all_is_well(self, instances: tuple[Instance, ...]) -> bool:
        """Whether the cache shows a claim for every instance, and an instance for every claim."""
        claims = self._snapshot().claims.values()
        uids = {claim.uid for claim in claims}
        running = _running(instances)
        return all(instance.claim_uid in uids for instance in instances) and all(
            claim.provider_id in running for claim in claims if claim.launched
        )


def _sighted(item: msgspec.Raw) -> _Sighting:
    try:
        return _SIGHTING.decode(item)
    except DECODE_ERRORS:
        # A claim that cannot be read is a claim all the same: its instance is no garbage.
        known = decode(NODE_CLAIMS, item)
        return _Sighting(metadata=_Named(name=known.name, uid=known.uid))


def _classes_in_use(snapshot: Snapshot) -> dict[str, NodeClassRef]:
    refs = (pool.spec.template.spec.node_class_ref for _, pool in sorted(snapshot.pools.items()))
    return {node_class_key(ref): ref for ref in refs if (ref.group, ref.kind) in snapshot.ours}


def _without_claim(
    claims: Sequence[_Sighting], instances: tuple[Instance, ...]
) -> dict[str, Instance]:
    """Instances that were launched for a claim which is no more, by provider id."""
    known_uids = {claim.metadata.uid for claim in claims}
    return {
        instance.provider_id: instance
        for instance in instances
        if instance.claim_uid and instance.claim_uid not in known_uids
    }


def _without_instance(
    claims: Sequence[_Sighting], instances: tuple[Instance, ...]
) -> dict[str, Subject]:
    """Launched claims whose instance is missing."""
    running = _running(instances)
    return {
        claim.metadata.uid: Subject(NODE_CLAIMS.kind, claim.metadata.name, "", claim.metadata.uid)
        for claim in claims
        if claim.launched and claim.status.provider_id not in running
    }


def _running(instances: tuple[Instance, ...]) -> set[str]:
    """One that is terminating counts as gone."""
    return {i.provider_id for i in instances if i.state is not InstanceState.TERMINATING}
