"""Which StorageClass a claim gets that names none, at the moment the claim is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tenure.model.api.resource import STORAGE_CLASSES
from tenure.sim.apiserver.objects.tree import dig

if TYPE_CHECKING:
    from tenure.sim.apiserver.store.store import Store

IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_MARKS: Final = (IS_DEFAULT, "storageclass.beta.kubernetes.io/is-default-class")


def default_class(store: Store) -> str:
    """Of several the newest, of several of one second the first by name; empty: there is none."""
    marked = [
        one["metadata"]
        for one in store.list(STORAGE_CLASSES)
        if any(dig(one, "metadata", "annotations", mark) == "true" for mark in _MARKS)
    ]
    newest = max((one["creationTimestamp"] for one in marked), default="")
    return min((one["name"] for one in marked if one["creationTimestamp"] == newest), default="")
