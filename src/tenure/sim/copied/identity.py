"""What the objects of a dump may lack, and need in a cluster: UIDs, the instants at which they were created, and the
instant at which the cluster was read.

Tools that clean a dump take UIDs away, from owner references too: then owners are found by kind and name. A UID
that two objects share names neither, so each gets its own. An object without any trace of a cluster is left as
it was written: it is a manifest.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from tenure.model.api.meta import format_time
from tenure.model.api.resource import Resource
from tenure.sim.apiserver.objects.tree import Obj, dig, with_metadata
from tenure.sim.copied.leftout import counted

Objects = dict[Resource, list[Obj]]
#: (group, kind, namespace, name).
_Key = tuple[str, str, str, str]
#: Instants of an earlier year are no cluster's, and of a later one no clock's.
_YEARS: Final = ("2014", "2200")
#: An instant counts as the latest one if another is near it: one odd clock moves nothing.
_NEAR: Final = timedelta(days=1)
_REMEMBERED: Final = 64


class LatestInstant:
    """The latest instant that the objects of a dump speak of."""

    def __init__(self) -> None:
        #: The latest ones, as RFC 3339 in UTC, which sorts as text.
        self._latest: list[str] = []

    def hear(self, instants: Iterator[str]) -> None:
        for text in instants:
            if not _YEARS[0] <= text[:4] < _YEARS[1]:
                continue
            if len(self._latest) < _REMEMBERED:
                heapq.heappush(self._latest, text)
            elif text > self._latest[0]:
                heapq.heapreplace(self._latest, text)

    def instant(self) -> datetime | None:
        """None where no instant can be read. Where each is far from all others, the earliest of them."""
        found = sorted(filter(None, map(instant_of, self._latest)), reverse=True)
        for later, earlier in pairwise(found):
            if later - earlier <= _NEAR:
                return later
        return found[-1] if found else None


def instant_of(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found.astimezone(UTC).replace(microsecond=0) if found.tzinfo else None


def identified(objects: Objects, at: datetime) -> tuple[Objects, list[str]]:
    """The objects, each with a UID of its own and an instant of its creation; and what was made up, a sentence each."""
    uids = Counter(one["metadata"].get("uid") for found in objects.values() for one in found)
    made = _Made(objects, {uid for uid, count in uids.items() if uid and count > 1}, at)
    whole = {kind: [made.whole(kind, one) for one in found] for kind, found in objects.items()}
    return whole, list(made.notes())


class _Made:
    def __init__(self, objects: Objects, shared: set[str], at: datetime) -> None:
        self._shared, self._at = shared, at
        self._uids: dict[_Key, str] = {}
        self._created = 0
        self._future: list[str] = []
        for resource, found in objects.items():
            for one in found:
                given = one["metadata"].get("uid")
                if (not given or given in shared) and _has_lived(one):
                    key = _key(resource, one)
                    self._uids[key] = str(uuid5(NAMESPACE_URL, "/".join(key)))

    def whole(self, resource: Resource, obj: Obj) -> Obj:
        metadata = obj["metadata"]
        if uid := self._uids.get(_key(resource, obj)):
            obj = with_metadata(obj, uid=uid)
        if self._uids and (owners := metadata.get("ownerReferences")):
            obj = with_metadata(obj, ownerReferences=list(self._owners(metadata, owners)))
        created = instant_of(metadata.get("creationTimestamp"))
        if created is not None and created <= self._at:
            return obj
        if created is not None:
            self._future.append(f"{resource.kind} {metadata['name']}")
        elif _has_lived(obj):
            self._created += 1
        else:
            return obj
        return with_metadata(obj, creationTimestamp=format_time(self._at))

    def _owners(self, metadata: Obj, owners: list[Obj]) -> Iterator[Obj]:
        """Without those that are not there: they have no UID to be found by."""
        for owner in owners:
            group = str(owner.get("apiVersion", "")).rpartition("/")[0]
            named = (group, str(owner.get("kind")), str(owner.get("name")))
            for namespace in (metadata.get("namespace", ""), ""):
                if uid := self._uids.get((*named[:2], namespace, named[2])):
                    yield {**owner, "uid": uid}
                    break
            else:
                if owner.get("uid") and owner["uid"] not in self._shared:
                    yield owner

    def notes(self) -> Iterator[str]:
        if self._uids:
            many = counted(len(self._uids), "object")
            yield f"no UID of its own: {many}; each is given one, and owners are found by their names"
        if self._created:
            many = counted(self._created, "object")
            yield f"no instant of its creation: {many}; age counts from the copy on"
        if self._future:
            many = counted(len(self._future), "object")
            yield (
                f"created after the copy was taken: {many}, the first of them {self._future[0]}; age counts "
                "from the copy on"
            )


def _key(resource: Resource, obj: Obj) -> _Key:
    metadata = obj["metadata"]
    return (*resource.group_kind, metadata.get("namespace", ""), metadata["name"])


def _has_lived(obj: Obj) -> bool:
    """Whether a cluster has had it: it has a status, an owner or a node."""
    metadata = obj["metadata"]
    return bool(
        any(obj.get("status") or ())
        or metadata.get("ownerReferences")
        or metadata.get("creationTimestamp")
        or dig(obj, "spec", "nodeName")
        or dig(obj, "spec", "providerID")
    )
