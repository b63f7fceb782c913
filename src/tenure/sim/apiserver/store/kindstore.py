"""Where the objects of one kind lie, with their history and those who follow it.

A kind that is served in several versions is stored once. Each further version is a ``View``: it shows the
same objects in its own form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tenure.sim.apiserver.objects.kinds import Kind
from tenure.sim.apiserver.objects.refusals import not_found
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.objects.versions import inward, outward
from tenure.sim.apiserver.store.watch import DELETED, Event, History, Record, Watch

#: What an actor is told: the event's type, the object after and before it.
Subscriber = Callable[[str, Obj, Obj | None], object]
#: Computes fields of an object when it is read (a lease that is renewed without writes).
Overlay = Callable[[Obj], Obj]


class Shelf:
    def __init__(self, kind: Kind, *, history: int) -> None:
        self.kind = kind
        self._records: dict[str, Record] = {}
        self.history = History(history)
        self.watches: dict[Watch, None] = {}  # A dict: sets have no order to rely on.
        self.subscribers: list[Subscriber] = []
        self.overlay: Overlay | None = None

    @property
    def base(self) -> Shelf:
        """Where the objects lie."""
        return self

    @property
    def records(self) -> Mapping[str, Record]:
        return self._records

    def adopt(self, records: dict[str, Record]) -> None:
        """Begin with these objects."""
        self._records = records

    def outward(self, obj: Obj) -> Obj:
        """A stored object as it is shown here."""
        return obj

    def open_watches(self) -> list[Watch]:
        return [*self.watches]

    def key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.kind.resource.namespaced else name

    def found(self, namespace: str, name: str) -> Record:
        record = self.records.get(self.key(namespace, name))
        if record is None:
            raise not_found(self.kind.resource, name)
        return record

    def found_as(self, obj: Obj) -> Record:
        """What is stored of this object."""
        return self._records[self.key_of(obj)]

    def as_read(self, record: Record) -> Record:
        """The record as a reader sees it."""
        if self.overlay is None:
            return record
        seen = self.overlay(record.obj)
        return record if seen is record.obj else Record(seen)

    def listed(self, namespace: str = "") -> list[tuple[str, Record]]:
        """Keys and records in the order of keys, as the API lists them."""
        records = self.records.items()
        if namespace and self.kind.resource.namespaced:
            prefix = f"{namespace}/"
            return sorted(item for item in records if item[0].startswith(prefix))
        return sorted(records, key=lambda item: item[0])

    def at_version(self, version: int) -> list[tuple[str, Record]]:
        """What was listed at that version: the present with everything since undone."""
        past = dict(self.records)
        for event in reversed(self.history.since(version)):
            key = self.key_of(event.record.obj)
            if event.old is None:
                past.pop(key, None)
            else:
                past[key] = event.old
        return sorted(past.items(), key=lambda item: item[0])

    def key_of(self, obj: Obj) -> str:
        metadata = obj["metadata"]
        return self.key(metadata.get("namespace", ""), metadata["name"])

    def put(self, event: Event) -> None:
        """Store the outcome of a write and tell the watches."""
        key = self.key_of(event.record.obj)
        if event.type == DELETED:
            del self._records[key]
        else:
            self._records[key] = event.record
        self.history.append(event)
        if not self.watches:
            return
        with event.record.encoded_once():
            for watch in self.watches:
                watch.offer(event)


class View(Shelf):
    """One more version of a kind: the same objects in another form."""

    def __init__(self, kind: Kind, base: Shelf) -> None:
        super().__init__(kind, history=1)
        self._base = base

    @property
    def base(self) -> Shelf:
        return self._base

    @property
    def records(self) -> Mapping[str, Record]:
        return _Seen(self._base.records, self.outward)

    def outward(self, obj: Obj) -> Obj:
        return outward(self.kind, obj)

    def inward(self, obj: Obj) -> Obj:
        """An object of this version as it is stored."""
        return inward(self.kind, self._base.kind, obj)

    def open_watches(self) -> list[Watch]:
        return [watch for watch in self._base.watches if watch.seen == self.outward]

    def at_version(self, version: int) -> list[tuple[str, Record]]:
        past = self._base.at_version(version)
        return [(key, Record(self.outward(record.obj))) for key, record in past]


class _Seen(Mapping[str, Record]):
    """Records in another form."""

    def __init__(self, records: Mapping[str, Record], form: Callable[[Obj], Obj]) -> None:
        self._records = records
        self._form = form

    def __getitem__(self, key: str) -> Record:
        return Record(self._form(self._records[key].obj))

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
