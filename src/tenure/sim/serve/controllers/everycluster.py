"""What clients find in every cluster: the health of its control plane, an account in each namespace, and the definitions
of the custom kinds that are served from the start.

Those of Karpenter's chart of CRDs belong to the release that its own guide makes, so that helm installs it here. A
definition that is deleted is there again at once, as the API server's own APIServices are: its kind is served all the while.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.model.api.resource import NAMESPACES
from tenure.sim.apiserver.objects.customkinds import served_definitions
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.storedkinds import COMPONENT_STATUSES, SERVICE_ACCOUNTS
from tenure.sim.apiserver.objects.tree import Obj, with_metadata
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED

_PARTS: Final = ("controller-manager", "etcd-0", "scheduler")
_HEALTHY: Final[dict[str, Any]] = {"type": "Healthy", "status": "True", "message": "ok"}
_ACCOUNT: Final = "default"


#: What helm looks at before it takes over an object.
_OF_CHART: Final[Obj] = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {
        "meta.helm.sh/release-name": "karpenter-crd",
        "meta.helm.sh/release-namespace": "kube-system",
    },
}
#: Its spec has no manager yet, so that the first client that applies another one has no conflict.
_OWNED: Final[Obj] = {
    "manager": "kube-apiserver",
    "operation": "Update",
    "subresource": "status",
    "apiVersion": DEFINITIONS.api_version,
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:status": {"f:conditions": {}}},
}
_IN_CHART: Final = frozenset({("karpenter.sh", "v1"), ("karpenter.k8s.aws", "v1")})


def furnish(store: Store) -> None:
    """Fill in what every cluster has, now and in each namespace to come."""
    _define(store)
    for name in _PARTS:
        if store.find(COMPONENT_STATUSES, "", name) is None:
            store.create(COMPONENT_STATUSES, {"metadata": {"name": name}, "conditions": [_HEALTHY]})
    for namespace in store.list(NAMESPACES):
        _give_account(store, namespace)

    def on_namespace(_type: str, namespace: Obj, _old: Obj | None) -> None:
        _give_account(store, namespace)

    store.subscribe(NAMESPACES, on_namespace)


def _define(store: Store) -> None:
    for definition in served_definitions().values():
        _install(store, definition)

    def on_definition(type_: str, definition: Obj, _old: Obj | None) -> None:
        name = definition["metadata"]["name"]
        own = served_definitions().get(name)
        if type_ == DELETED and own is not None and store.find(DEFINITIONS, "", name) is None:
            _install(store, own)

    store.subscribe(DEFINITIONS, on_definition)


def _install(store: Store, definition: Obj) -> None:
    spec = definition["spec"]
    if (spec["group"], spec["versions"][0]["name"]) in _IN_CHART:
        definition = {**definition, "metadata": {**definition["metadata"], **_OF_CHART}}
    stored = store.create(DEFINITIONS, definition)
    owned = {**_OWNED, "time": store.stamp()}
    store.rewrite(DEFINITIONS, with_metadata(stored, managedFields=[owned]))


def _give_account(store: Store, namespace: Obj) -> None:
    name = namespace["metadata"]["name"]
    current = store.find(NAMESPACES, "", name)
    if current is None or "deletionTimestamp" in current["metadata"]:
        return
    if store.find(SERVICE_ACCOUNTS, name, _ACCOUNT) is None:
        store.create(SERVICE_ACCOUNTS, {"metadata": {"name": _ACCOUNT, "namespace": name}})
