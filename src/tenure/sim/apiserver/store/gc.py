"""The garbage collector: what has lost all its owners goes, a moment later.

Background deletion needs nothing but this. Foreground deletion keeps the owner (by the
finalizer ``foregroundDeletion``) until the dependents that block it are gone. Orphaning
(finalizer ``orphan``) first cuts the dependents loose. On a real cluster this is a
controller: it acts later than the write, so it does here, through the simulation's heap.

An object is evaluated by its owner references, in this order:

1. An owner that lives and is not waiting for its dependents keeps the object; references
   to the others are removed.
2. An owner that waits, and dependents of its own: the object is deleted in the foreground.
3. Otherwise it is deleted, in the way its own finalizers ask for.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.kinds import BY_KIND
from tenure.sim.apiserver.objects.tree import Obj, with_metadata
from tenure.sim.apiserver.store.deletion import FOREGROUND, ORPHAN, DeleteOptions

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

#: The metadata of an owner that cannot be looked up.
_UNKNOWN: Final[Obj] = {}


class _Place(NamedTuple):
    resource: Resource
    namespace: str
    name: str


class GarbageCollector:
    def __init__(self, store: Store, after: timedelta) -> None:
        self._store = store
        self._after = after
        self._places: dict[str, _Place] = {}
        #: owner uid -> dependents' uids, in the order in which they came.
        self._dependents: dict[str, dict[str, None]] = {}
        self._due: dict[str, None] = {}

    def wrote(self, resource: Resource, new: Obj | None, old: Obj | None) -> None:
        """Keep the graph; called for every write, so the usual write must be cheap."""
        if new is None:
            assert old is not None
            self._gone(old["metadata"])
            return
        after = new["metadata"]
        before = old["metadata"] if old is not None else {}
        if old is None:
            place = _Place(resource, after.get("namespace", ""), after["name"])
            self._places[after["uid"]] = place
        owners, former = after.get("ownerReferences"), before.get("ownerReferences")
        if owners is not former:
            self._relink(after["uid"], owners or [], former or [])
        if "deletionTimestamp" in after:
            self._look_at_owner(after)

    def _relink(self, uid: str, owners: list[Obj], former: list[Obj]) -> None:
        for owner in former:
            self._dependents.get(owner["uid"], {}).pop(uid, None)
        for owner in owners:
            self._dependents.setdefault(owner["uid"], {})[uid] = None
        if any(owner["uid"] not in self._places for owner in owners):
            self._examine_later(uid)

    def _gone(self, metadata: Obj) -> None:
        uid = metadata["uid"]
        self._places.pop(uid, None)
        for owner in metadata.get("ownerReferences", ()):
            self._dependents.get(owner["uid"], {}).pop(uid, None)
            self._examine_later(owner["uid"])  # It may wait for its last dependent.
        for dependent in self._dependents.pop(uid, ()):
            self._examine_later(dependent)

    def _look_at_owner(self, metadata: Obj) -> None:
        """An owner that begins to wait: look at it and at what depends on it."""
        if not _waits(metadata) and not _orphans(metadata):
            return
        for dependent in self._dependents.get(metadata["uid"], ()):
            self._examine_later(dependent)
        self._examine_later(metadata["uid"])

    def _examine_later(self, uid: str) -> None:
        if uid not in self._due:
            if not self._due:
                self._store.schedule(self._store.clock.now() + self._after, self._examine_all)
            self._due[uid] = None

    def _examine_all(self) -> None:
        due, self._due = self._due, {}
        for uid in due:
            if (place := self._places.get(uid)) is not None:
                self._examine(place)

    def _examine(self, place: _Place) -> None:
        metadata = self._store.get(*place)["metadata"]
        if _orphans(metadata):
            self._cut_loose(metadata["uid"])
            self._release(place, ORPHAN)
        elif _waits(metadata) and not self._blocked(metadata["uid"]):
            self._release(place, FOREGROUND)
        elif metadata.get("ownerReferences") and "deletionTimestamp" not in metadata:
            self._evaluate(place, metadata)

    def _evaluate(self, place: _Place, metadata: Obj) -> None:
        owners = metadata["ownerReferences"]
        found = [self._owner(place, owner) for owner in owners]
        solid = [
            reference
            for reference, owner in zip(owners, found, strict=True)
            if owner is not None and not _waits(owner)
        ]
        if len(solid) == len(owners):
            return
        if solid:
            self._write(place, ownerReferences=solid)
            return
        waited_for = any(owner is not None for owner in found)
        policy = _policy_of(metadata)
        if waited_for and self._dependents.get(metadata["uid"]):
            policy = "Foreground"
        options = DeleteOptions(uid=metadata["uid"], propagation_policy=policy)
        self._store.remove(*place, options)

    def _owner(self, place: _Place, reference: Obj) -> Obj | None:
        """The owner's metadata; None when it is gone or in another namespace.

        Of an owner of a kind that is not served nothing can be known: as on a real cluster, it keeps
        its dependents.
        """
        if not self._is_served(reference["apiVersion"], reference["kind"]):
            return _UNKNOWN
        owner = self._places.get(reference["uid"])
        if owner is None or owner.namespace not in ("", place.namespace):
            return None
        metadata: Obj = self._store.get(*owner)["metadata"]
        return metadata

    def _is_served(self, version: str, kind: str) -> bool:
        return (version, kind) in BY_KIND or any(
            (one.resource.api_version, one.resource.kind) == (version, kind)
            for one in self._store.defined
        )

    def _blocked(self, uid: str) -> bool:
        for dependent in self._dependents.get(uid, ()):
            owners = self._store.get(*self._places[dependent])["metadata"]["ownerReferences"]
            if any(o["uid"] == uid and o.get("blockOwnerDeletion") for o in owners):
                return True
        return False

    def _cut_loose(self, uid: str) -> None:
        for dependent in [*self._dependents.get(uid, ())]:
            place = self._places[dependent]
            owners = self._store.get(*place)["metadata"]["ownerReferences"]
            self._write(place, ownerReferences=[o for o in owners if o["uid"] != uid] or None)

    def _release(self, place: _Place, finalizer: str) -> None:
        finalizers = self._store.get(*place)["metadata"]["finalizers"]
        patch = {"metadata": {"finalizers": [f for f in finalizers if f != finalizer]}}
        self._store.patch(*place, patch)

    def _write(self, place: _Place, **fields: object) -> None:
        self._store.rewrite(place.resource, with_metadata(self._store.get(*place), **fields))


def _waits(metadata: Obj) -> bool:
    return "deletionTimestamp" in metadata and FOREGROUND in metadata.get("finalizers", ())


def _orphans(metadata: Obj) -> bool:
    return "deletionTimestamp" in metadata and ORPHAN in metadata.get("finalizers", ())


def _policy_of(metadata: Obj) -> str:
    finalizers = metadata.get("finalizers", ())
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
