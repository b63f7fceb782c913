"""Which pods a change of storage objects may help."""

from __future__ import annotations

from typing import Protocol

from tenure.model.api.resource import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.store.watch import DELETED


class Reconsider(Protocol):
    def __call__(self, namespace: str = "", name: str = "") -> None:
        """Look again at pods with this claim; without a name, at pods with any claim."""
        ...


def watch_storage(store: Store, reconsider: Reconsider) -> None:
    def on_claim(_type: str, claim: Obj, _old: Obj | None) -> None:
        reconsider(claim["metadata"]["namespace"], claim["metadata"]["name"])

    def on_volume(_type: str, volume: Obj, _old: Obj | None) -> None:
        owner = volume["spec"].get("claimRef") or {}
        reconsider(owner.get("namespace", ""), owner.get("name", ""))

    def on_attachment(type_: str, _attachment: Obj, _old: Obj | None) -> None:
        if type_ == DELETED:
            reconsider()

    def on_other(*_: object) -> None:
        reconsider()

    store.subscribe(PERSISTENT_VOLUME_CLAIMS, on_claim)
    store.subscribe(PERSISTENT_VOLUMES, on_volume)
    store.subscribe(VOLUME_ATTACHMENTS, on_attachment)
    store.subscribe(STORAGE_CLASSES, on_other)
    store.subscribe(CSI_NODES, on_other)
