"""What clients find in every cluster: the health of its control plane, and an account in each namespace."""

from __future__ import annotations

from typing import Any, Final

from tenure.model.api.resource import NAMESPACES
from tenure.sim.apiserver.objects.storedkinds import COMPONENT_STATUSES, SERVICE_ACCOUNTS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store

_PARTS: Final = ("controller-manager", "etcd-0", "scheduler")
_HEALTHY: Final[dict[str, Any]] = {"type": "Healthy", "status": "True", "message": "ok"}
_ACCOUNT: Final = "default"


def furnish(store: Store) -> None:
    """Fill in what every cluster has, now and in each namespace to come."""
    for name in _PARTS:
        if store.find(COMPONENT_STATUSES, "", name) is None:
            store.create(COMPONENT_STATUSES, {"metadata": {"name": name}, "conditions": [_HEALTHY]})
    for namespace in store.list(NAMESPACES):
        _give_account(store, namespace)

    def on_namespace(_type: str, namespace: Obj, _old: Obj | None) -> None:
        _give_account(store, namespace)

    store.subscribe(NAMESPACES, on_namespace)


def _give_account(store: Store, namespace: Obj) -> None:
    name = namespace["metadata"]["name"]
    current = store.find(NAMESPACES, "", name)
    if current is None or "deletionTimestamp" in current["metadata"]:
        return
    if store.find(SERVICE_ACCOUNTS, name, _ACCOUNT) is None:
        store.create(SERVICE_ACCOUNTS, {"metadata": {"name": _ACCOUNT, "namespace": name}})
