"""An API server's semantics in memory: single-threaded, synchronous, deterministic.

Simulated actors call these methods; every other client uses ``tenure.sim.apiserver.api``,
which speaks requests and responses and ends up here too, with a ``strictness``: what comes
from outside is validated, actors are trusted to write objects that can be read. Objects are plain JSON dicts
and immutable by agreement (``tenure.sim.apiserver.objects.tree``): nothing handed in or out is copied.

A write goes, in this order: which object and which version of it (404, 409) · what this
subresource may write at all (status or the rest) · metadata · generation · admission (422) ·
quotas (403) · nothing changed? then nothing happens · a deleted object that nothing holds any more is
removed · a new resourceVersion, the history, the watches, then the subscribers, later.

Time comes from the clock, chance from the given ``Random``, and what has to happen later
is put on the simulation's heap through ``schedule``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from tenure.model.api.meta import format_time
from tenure.model.api.resource import (
    CSI_NODES,
    LIMIT_RANGES,
    NAMESPACES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    Resource,
)
from tenure.ports.clock import Clock
from tenure.ports.transport import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from tenure.sim.apiserver.admission import metadata as meta
from tenure.sim.apiserver.admission.admission import Admission, Gate, Schemas
from tenure.sim.apiserver.admission.separation import spec_changed, what_may_be_written
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.kinds import ALL, KINDS, Kind
from tenure.sim.apiserver.objects.refusals import (
    already_exists,
    bad_request,
    conflict,
    invalid,
    malformed,
    not_found,
    unsupported_media_type,
)
from tenure.sim.apiserver.objects.storedkinds import (
    COMPONENT_STATUSES,
    CONTROLLER_REVISIONS,
    SERVICE_ACCOUNTS,
)
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.ownership.managers import CONTROLLERS, Claims, Writer
from tenure.sim.apiserver.patch.merge import json_patch, merge_patch_object
from tenure.sim.apiserver.patch.strategic import strategic_merge_patch
from tenure.sim.apiserver.store import (
    binding,
    classes,
    definitions,
    eviction,
    namespaces,
    quotas,
    tracking,
)
from tenure.sim.apiserver.store.deletion import DeleteOptions, finished, plan_deletion
from tenure.sim.apiserver.store.feed import Feed, Post, Schedule
from tenure.sim.apiserver.store.gc import GarbageCollector
from tenure.sim.apiserver.store.kindstore import Overlay, Shelf, Subscriber, View
from tenure.sim.apiserver.store.selection import selected
from tenure.sim.apiserver.store.watch import ADDED, DELETED, MODIFIED, Event, Record

Objects = list[Obj]
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
#: Built-in kinds only.
_TYPED_ONLY: Final = STRATEGIC_MERGE_PATCH

#: What the cluster makes for itself: its UIDs are drawn apart, so that they move no name in a story.
_OWN: Final = (
    STORAGE_CLASSES,
    CSI_NODES,
    COMPONENT_STATUSES,
    CONTROLLER_REVISIONS,
    SERVICE_ACCOUNTS,
)
_UNTRACKED: Final[Obj] = {"metadata": {}}


class Store:
    def __init__(
        self,
        clock: Clock,
        random: Random,
        schedule: Schedule,
        post: Post,
        *,
        admission: Admission | None = None,
        history: int = 4096,
        collect_after: timedelta = timedelta(milliseconds=100),
    ) -> None:
        """``history``: events kept per kind. ``collect_after``: how long garbage lies around."""
        self.clock = clock
        self._dry = False
        self._random = random
        self._own_random = Random("storage")
        self.schedule = schedule
        self.feed = Feed(clock, random, schedule, post)
        self.gate = Gate(
            admission or Schemas(),
            priority=lambda n: classes.priority(self, n),
            limit_ranges=lambda n: self.list(LIMIT_RANGES, n),
            default_class=lambda: classes.default_class(self),
        )
        self._history = history
        self._shelves: dict[Resource, Shelf] = {}
        for resource in ALL:
            self._shelves[resource] = self._new_shelf(KINDS[resource])
        #: Told of every write, inside it.
        self._quotas = quotas.Quotas(self)
        self._taps: tuple[Callable[[Resource, Obj | None, Obj | None], None], ...] = (
            GarbageCollector(self, collect_after).wrote,
            namespaces.Sweeper(self, collect_after).wrote,
            self._quotas.wrote,
        )
        #: Counts the changes of what is served.
        self.served_version = 0
        self._definitions = definitions.Definitions(self)
        self._seed()

    def _seed(self) -> None:
        """What every cluster has from the start."""
        for name in namespaces.INITIAL:
            self.create(NAMESPACES, {"metadata": {"name": name}})
        for name, value in classes.SYSTEM_CLASSES.items():
            self.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})

    # What is served.

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Everything that is served, in the order in which it came."""
        return tuple(shelf.kind for shelf in self._shelves.values())

    @property
    def defined(self) -> tuple[Kind, ...]:
        """Of these, what clients have defined."""
        return tuple(kind for kind in self.kinds if kind.definition is not None)

    def serve(self, kind: Kind) -> bool:
        """Serve a kind that a client has defined, or has defined anew; whether it is new."""
        self.served_version += 1
        shelf = self._shelves.get(kind.resource)
        if shelf is not None:
            shelf.kind = kind
            return False
        self._shelves[kind.resource] = self._new_shelf(kind)
        return True

    def _new_shelf(self, kind: Kind) -> Shelf:
        if kind.stored_as is None:
            return Shelf(kind, history=self._history)
        return View(kind, self._shelves[kind.stored_as])

    def withdraw(self, resource: Resource, *, into: Resource | None = None) -> None:
        """Serve it no longer; ``into``: the version of the kind in which its objects live on."""
        self.served_version += 1
        shelf = self._shelves.pop(resource)
        for watch in shelf.open_watches():
            watch.end()
        if into is not None:
            moved = self._shelves[into] = Shelf(shelf.kind, history=self._history)
            moved.adopt(
                {
                    key: Record({**record.obj, "apiVersion": into.api_version})
                    for key, record in shelf.records.items()
                }
            )
            moved.subscribers = shelf.subscribers
            moved.history.forget(self.version)
            for (
                record
            ) in moved.records.values():  # Its owners and dependents are found by its place.
                for tap in self._taps:
                    tap(resource, None, record.obj)
                    tap(into, record.obj, None)

    # Reading.

    @property
    def version(self) -> int:
        """The resourceVersion of the latest write."""
        return self.feed.version

    def shelf(self, resource: Resource) -> Shelf:
        return self._shelves[resource]

    def get(self, resource: Resource, namespace: str, name: str) -> Obj:
        shelf = self._shelves[resource]
        return shelf.as_read(shelf.found(namespace, name)).obj

    def find(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        """Like ``get``, but None for an object that is not there."""
        shelf = self._shelves[resource]
        record = shelf.records.get(shelf.key(namespace, name))
        return None if record is None else shelf.as_read(record).obj

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Objects:
        shelf = self._shelves[resource]
        matches = selected(shelf.kind, label_selector, field_selector)
        objects = (shelf.as_read(record).obj for _, record in shelf.listed(namespace))
        return [obj for obj in objects if matches is None or matches(obj)]

    def subscribe(
        self, resource: Resource, subscriber: Subscriber, *, replay: bool = False
    ) -> None:
        """Call back for every later write; ``replay`` begins with what is there, as ADDED."""
        self.feed.subscribe(self._shelves[resource], subscriber, replay=replay)

    def compute_on_read(self, resource: Resource, overlay: Overlay) -> None:
        """Let an actor fill in fields whenever objects of that kind are read."""
        self._shelves[resource].overlay = overlay

    def compact(self) -> None:
        """Forget the past: every watch that resumes from it must list again."""
        for shelf in self._shelves.values():
            shelf.history.forget(self.version)

    def end_watches(self) -> None:
        """End every open watch from the server's side, as a restart does."""
        for shelf in self._shelves.values():
            for watch in [*shelf.watches]:
                watch.end()

    # Writing.

    def create(
        self,
        resource: Resource,
        obj: Obj,
        *,
        strictness: Strictness | None = None,
        writer: Writer = CONTROLLERS,
    ) -> Obj:
        obj = self._new(resource, obj, strictness)
        shelf = self._shelves[resource]
        return self._commit(
            shelf, ADDED, tracking.created(shelf.kind, obj, writer, self.stamp()), None
        )

    def _new(self, resource: Resource, obj: Obj, strictness: Strictness | None) -> Obj:
        """A new object as it will be stored; raises if it will not."""
        shelf = self._shelves[resource]
        kind = shelf.kind
        if strictness is not None:
            obj = self.gate.read(kind, obj, None, strictness)
        given = obj.get("metadata") or {}
        namespace = given.get("namespace", "")
        random = self._own_random if resource in _OWN else self._random
        settled = meta.for_creation(
            kind, given, namespace=namespace, random=random, now=self.stamp()
        )
        if resource.namespaced:
            namespaces.check_open(self, resource, namespace, settled["name"])
        if shelf.key(namespace, settled["name"]) in shelf.records:
            raise already_exists(resource, settled["name"])
        # This order of keys is relied upon where lists leave out the type of their items.
        new: Obj = {"apiVersion": "", "kind": "", "metadata": settled, **obj}
        new.update(apiVersion=resource.api_version, kind=resource.kind, metadata=settled)
        if kind.status and not kind.keeps_status:
            new.pop("status", None)
        new = self.gate.create(kind, new)
        self._quotas.check(resource, new)
        return new

    def update(
        self,
        resource: Resource,
        obj: Obj,
        subresource: str = "",
        *,
        strictness: Strictness | None = None,
        writer: Writer = CONTROLLERS,
    ) -> Obj:
        """Replace the object (a PUT)."""
        shelf = self._shelves[resource]
        if strictness is not None:
            obj = self.gate.read(shelf.kind, obj, None, strictness)
        metadata = obj.get("metadata") or {}
        record = shelf.found(metadata.get("namespace", ""), metadata.get("name", ""))
        meta.check_version(shelf.kind, record.obj["metadata"], metadata, put=True)
        return self._replace(shelf, record, obj, subresource, writer)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
        *,
        strictness: Strictness | None = None,
        writer: Writer = CONTROLLERS,
    ) -> Obj:
        shelf = self._shelves[resource]
        _check_patch_type(shelf.kind, content_type)
        record = shelf.found(namespace, name)
        patched = _patched(shelf.kind, record.obj, patch, content_type)
        if patched is record.obj:
            return record.obj
        if strictness is not None:
            patched = self.gate.read(shelf.kind, patched, record.obj, strictness)
        metadata = patched.get("metadata") or {}
        meta.check_version(shelf.kind, record.obj["metadata"], metadata, put=False)
        return self._replace(shelf, record, patched, subresource, writer)

    def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        config: Any,
        writer: Writer,
        *,
        subresource: str = "",
        force: bool = False,
        strictness: Strictness,
    ) -> tuple[Obj, bool]:
        """Server-side apply: the object, and whether it is new. Raises 409 for a conflict."""
        shelf = self._shelves[resource]
        kind, record = shelf.kind, shelf.records.get(shelf.key(namespace, name))
        config = self._config(kind, namespace, name, config)
        if record is None and subresource:
            raise not_found(resource, name)
        now, live = self.stamp(), None if record is None else record.obj
        applied = tracking.applied(
            kind, live, config, writer, subresource=subresource, force=force, now=now
        )
        if record is None:
            obj = self._new(resource, applied.obj, strictness)
            obj = tracking.settled(_UNTRACKED, obj, applied.claims)
            return self._commit(shelf, ADDED, obj, None), True
        obj = self.gate.read(kind, applied.obj, record.obj, strictness)
        return self._replace(shelf, record, obj, subresource, writer, applied.claims), False

    def _config(self, kind: Kind, namespace: str, name: str, config: Any) -> Obj:
        """What is applied, settled to be the object in the path."""
        config = tracking.check_config(kind, config)
        given = config["metadata"]
        wanted = {"name": name, **({"namespace": namespace} if kind.resource.namespaced else {})}
        for key, value in wanted.items():
            if given.get(key, value) != value:
                raise bad_request(f"the {key} of the object does not match the {key} on the URL")
        shelf = self._shelves[kind.resource]
        if record := shelf.records.get(shelf.key(namespace, name)):
            meta.check_version(kind, record.obj["metadata"], given, put=False)
        return {**config, "metadata": {**given, **wanted}}

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        grace_period_seconds: int | None = None,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation_policy: str = "",
    ) -> Obj:
        """The object as it was left: marked for deletion, or as it was when it went."""
        options = DeleteOptions(
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
            propagation_policy=propagation_policy,
        )
        return self.remove(resource, namespace, name, options)

    def remove(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Obj:
        """``delete`` with its options as one value."""
        shelf = self._shelves[resource]
        record = shelf.found(namespace, name)
        _check_preconditions(resource, record.obj["metadata"], options)
        if resource == NAMESPACES:
            return self.rewrite(NAMESPACES, namespaces.closed(record.obj, self.stamp()))
        if resource == DEFINITIONS:
            return self.rewrite(DEFINITIONS, definitions.closed(record.obj, self.stamp()))
        if shelf.kind.orphans and not options.propagation_policy:
            options = msgspec.structs.replace(options, propagation_policy="Orphan")
        graceful = shelf.kind.graceful
        plan = plan_deletion(record.obj, options, graceful=graceful, now=self.clock.now())
        if plan.obj is not record.obj:
            self._commit(shelf, MODIFIED, plan.obj, record)
            record = shelf.found(namespace, name)
        return self._discard(shelf, record) if plan.gone else record.obj

    def evict(
        self, namespace: str, name: str, grace_period_seconds: int | None = None, *, uid: str = ""
    ) -> None:
        """Delete a pod if its disruption budget allows it; raises ``TooManyRequests`` if not."""
        options = DeleteOptions(grace_period_seconds=grace_period_seconds, uid=uid)
        eviction.evict(self, namespace, name, options)

    def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> Obj:
        """Give a pod its node, as the scheduler does."""
        return binding.bind(self, namespace, name, node, uid=uid)

    def stamp(self) -> str:
        """Now, as objects carry it."""
        return format_time(self.clock.now())

    # The way of every write.

    def rewrite(self, resource: Resource, obj: Obj) -> Obj:
        """Store a new version as it is: for the server's own changes, no client's."""
        shelf = self._shelves[resource]
        record = shelf.records[shelf.key_of(obj)]
        return record.obj if obj is record.obj else self._commit(shelf, MODIFIED, obj, record)

    def restore(self, resource: Resource, obj: Obj) -> Obj:
        """Store an object as another cluster had it: with its UID, age, status and deletion.

        One that every cluster has from the start keeps the UID that it has here.
        """
        shelf = self._shelves[resource]
        new: Obj = {"apiVersion": "", "kind": "", **obj}
        new.update(apiVersion=resource.api_version, kind=resource.kind)
        old = shelf.records.get(shelf.key_of(new))
        if old is None:
            return self._commit(shelf, ADDED, new, None)
        new["metadata"] = {**new["metadata"], "uid": old.obj["metadata"]["uid"]}
        return self._commit(shelf, MODIFIED, new, old)

    def discard(self, resource: Resource, obj: Obj) -> Obj:
        """Remove an object whatever holds it: for the server's own use, too."""
        shelf = self._shelves[resource]
        return self._discard(shelf, shelf.records[shelf.key_of(obj)])

    def _replace(
        self,
        shelf: Shelf,
        record: Record,
        given: Obj,
        subresource: str,
        writer: Writer,
        claims: Claims | None = None,
    ) -> Obj:
        """``claims``: the managers after an apply; any other write changes those that there are."""
        kind, old = shelf.kind, record.obj
        given = what_may_be_written(kind, old, given, subresource)
        if (metadata := given.get("metadata") or {}) is not old["metadata"]:
            metadata = meta.for_update(kind, old["metadata"], metadata)
        new: Obj = {"apiVersion": "", "kind": "", **given, "metadata": metadata}
        new["apiVersion"], new["kind"] = old["apiVersion"], old["kind"]
        new = self.gate.update(kind, new, old)
        self._quotas.check(kind.resource, new, old)
        if kind.generation and spec_changed(old, new):
            new["metadata"] = {**metadata, "generation": old["metadata"]["generation"] + 1}
        if claims is not None:
            new = tracking.settled(old, new, claims)
        elif tracking.MANAGED in new["metadata"] or tracking.MANAGED in old["metadata"]:
            new = tracking.updated(kind, old, new, writer, subresource, self.stamp())
        if new == old:
            return old
        if finished(new):
            # Watchers see the object as it lay there; the caller sees what it asked for.
            self._discard(shelf, record)
            return new
        return self._commit(shelf, MODIFIED, new, record)

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Inside, every write is evaluated and answered as usual, and nothing is stored."""
        self._dry = True
        try:
            yield
        finally:
            self._dry = False

    def _commit(self, shelf: Shelf, type_: str, obj: Obj, old: Record | None) -> Obj:
        if self._dry:
            return obj
        if isinstance(shelf, View):
            old = None if old is None else shelf.base.found_as(old.obj)
            return shelf.outward(self._commit(shelf.base, type_, shelf.inward(obj), old))
        self.feed.version = version = self.feed.version + 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        self.feed.publish(shelf, Event(type_, version, Record(obj), old))
        before = None if old is None else old.obj
        for tap in self._taps:
            tap(shelf.kind.resource, None if type_ is DELETED else obj, before)
        return obj

    def _discard(self, shelf: Shelf, record: Record) -> Obj:
        return self._commit(shelf, DELETED, record.obj, record)


def _check_patch_type(kind: Kind, content_type: str) -> None:
    accepted = [one for one in PATCHES if not kind.custom or one != _TYPED_ONLY]
    if content_type not in accepted:
        raise unsupported_media_type(content_type, accepted)


def _patched(kind: Kind, obj: Obj, patch: Any, content_type: str) -> Obj:
    if content_type == MERGE_PATCH:
        patched = merge_patch_object(obj, patch)
    elif content_type == JSON_PATCH:
        patched = json_patch(obj, patch)
    else:
        patched = strategic_merge_patch(obj, patch)
    patched = patched if isinstance(patched, dict) else {}
    if patched.get("kind") != obj["kind"] or patched.get("apiVersion") != obj["apiVersion"]:
        cause = malformed("patch", "the type of an object cannot be patched")
        raise invalid(kind.resource, obj["metadata"]["name"], [cause])
    return patched


def _check_preconditions(resource: Resource, metadata: Obj, options: DeleteOptions) -> None:
    name = metadata["name"]
    if options.uid and options.uid != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {metadata['uid']}"
        raise conflict(resource, name, why)
    version = metadata["resourceVersion"]
    if options.resource_version and options.resource_version != version:
        why = f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, ResourceVersion in object meta: {version}"
        raise conflict(resource, name, why)
