"""How much of its ResourceQuotas a namespace has used: kept write by write, and shown in their status.

A write costs one look-up where its namespace has no quota. A quota that is new, or whose spec has changed, is counted
once from what is there; after that each write adds and subtracts. The status follows a moment later.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tenure.model.api.resource import Resource
from tenure.model.values.quantity import add, subtract
from tenure.sim.apiserver.admission.quotas import (
    CHECKED_ON_UPDATE,
    as_texts,
    check_room,
    check_said,
    hard_of,
    is_about,
    usage,
)
from tenure.sim.apiserver.objects.storedkinds import RESOURCE_QUOTAS
from tenure.sim.apiserver.objects.tree import Obj

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

#: How soon the status follows; what happens meanwhile is one write.
_SHOWN_AFTER: Final = timedelta(milliseconds=10)


class _Quota:
    __slots__ = ("hard", "obj", "used")

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self.hard = hard_of(obj)
        self.used: dict[str, int] = {}

    def counts(self, resource: Resource, obj: Obj | None) -> dict[str, int]:
        """What the object takes of this quota."""
        if obj is None or not is_about(self.obj, resource, obj):
            return {}
        found = usage(resource, obj)
        return {name: nano for name, nano in found.items() if name in self.hard}


class Quotas:
    def __init__(self, store: Store) -> None:
        self._store = store
        #: Namespace → name → quota.
        self._known: dict[str, dict[str, _Quota]] = {}
        self._to_show: dict[tuple[str, str], None] = {}

    def check(self, resource: Resource, new: Obj, old: Obj | None = None) -> None:
        """Raises 403 for what would take its namespace above a quota."""
        metadata = new["metadata"]
        quotas = self._known.get(metadata.get("namespace", ""))
        if not quotas or (old is not None and resource not in CHECKED_ON_UPDATE):
            return
        for name, quota in sorted(quotas.items()):
            if not is_about(quota.obj, resource, new):
                continue
            if old is None:
                check_said(resource, new, name, quota.hard)
            more = subtract(quota.counts(resource, new), quota.counts(resource, old))
            check_room(resource, metadata["name"], name, quota.hard, quota.used, more)

    def wrote(self, resource: Resource, new: Obj | None, old: Obj | None) -> None:
        """Keep the sums; called for every write."""
        namespace = _namespace(new if new is not None else old)
        for name, quota in self._known.get(namespace, {}).items():
            before, after = quota.counts(resource, old), quota.counts(resource, new)
            if before != after:
                quota.used = subtract(add(quota.used, after), before)
                self._show_later(namespace, name)
        if resource == RESOURCE_QUOTAS:
            self._on_quota(namespace, new, old)

    def _on_quota(self, namespace: str, new: Obj | None, old: Obj | None) -> None:
        if new is None:
            assert old is not None
            self._known[namespace].pop(old["metadata"]["name"])
            if not self._known[namespace]:
                del self._known[namespace]
        elif old is None or new["spec"] is not old["spec"]:
            name = new["metadata"]["name"]
            quota = self._known.setdefault(namespace, {})[name] = _Quota(new)
            self._count(namespace, quota)
            self._show_later(namespace, name)

    def _count(self, namespace: str, quota: _Quota) -> None:
        for kind in self._store.kinds:
            if kind.resource.namespaced and kind.stored_as is None:
                for obj in self._store.list(kind.resource, namespace):
                    quota.used = add(quota.used, quota.counts(kind.resource, obj))

    def _show_later(self, namespace: str, name: str) -> None:
        if not self._to_show:
            self._store.schedule(self._store.clock.now() + _SHOWN_AFTER, self._show)
        self._to_show[namespace, name] = None

    def _show(self) -> None:
        places, self._to_show = [*self._to_show], {}
        for namespace, name in places:
            quota = self._known.get(namespace, {}).get(name)
            obj = self._store.find(RESOURCE_QUOTAS, namespace, name)
            if quota is None or obj is None:
                continue
            used = as_texts({one: quota.used.get(one, 0) for one in quota.hard})
            status = {"hard": as_texts(quota.hard), "used": used}
            if status != obj.get("status"):
                self._store.rewrite(RESOURCE_QUOTAS, {**obj, "status": status})


def _namespace(obj: Obj | None) -> str:
    assert obj is not None
    return str(obj["metadata"].get("namespace", ""))
