"""What a fresh cluster has: the first pod gets a node, and a changed template waits for its window.

The images of its cloud are a ConfigMap: a user who adds a line releases an image. It is the one that
the kwok provider reads, in the same namespace, so that the same command releases an image there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenure.model.api.names import ARCH, CAPACITY_TYPE, OS
from tenure.model.api.resource import CONFIG_MAPS, MAINTENANCE_WINDOWS, NAMESPACES, NODE_POOLS
from tenure.providers.kwok.images import LIST, NAME
from tenure.providers.kwok.nodeclass import IMAGE_LENGTH, KWOK_NODE_CLASSES
from tenure.providers.kwok.provider import KwokProvider
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.world import World

Json = dict[str, Any]

NODE_CLASS: Final[Json] = {
    "apiVersion": KWOK_NODE_CLASSES.api_version,
    "kind": KWOK_NODE_CLASSES.kind,
    "metadata": {"name": "default"},
    "spec": {},
}

NODE_CLASS_REF: Final[Json] = {
    "group": KWOK_NODE_CLASSES.group,
    "kind": KWOK_NODE_CLASSES.kind,
    "name": "default",
}

NODE_POOL: Final[Json] = {
    "apiVersion": NODE_POOLS.api_version,
    "kind": NODE_POOLS.kind,
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": ARCH, "operator": "In", "values": ["amd64"]},
                    {"key": OS, "operator": "In", "values": ["linux"]},
                    {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]},
                ],
                "nodeClassRef": NODE_CLASS_REF,
            }
        }
    },
}

#: Three minutes of every five: a user sees it blocked and opened within minutes.
WINDOW: Final[Json] = {
    "apiVersion": MAINTENANCE_WINDOWS.api_version,
    "kind": MAINTENANCE_WINDOWS.kind,
    "metadata": {"name": "drift"},
    "spec": {
        "type": "Allow",
        "actions": ["Drift"],
        "schedules": [{"cron": "*/5 * * * *", "duration": "3m"}],
    },
}

WELCOME: Final = (NODE_CLASS, NODE_POOL, WINDOW)

NAMESPACE: Final = KwokProvider.namespace


class PublishedImages:
    """Writes the ConfigMap, and releases what users add to it."""

    def __init__(self, world: World, *, report: Callable[[str], object]) -> None:
        self._world = world
        self._report = report
        if world.store.find(NAMESPACES, "", NAMESPACE) is None:
            world.apply(_named(NAMESPACES.kind, NAMESPACE))
        if world.store.find(CONFIG_MAPS, NAMESPACE, NAME) is None:
            listed = {"data": {LIST: f"{world.cloud.newest_image}\n"}}
            world.apply(_named(CONFIG_MAPS.kind, NAME, NAMESPACE) | listed)
        # What a scenario has listed is released, too.
        world.store.subscribe(CONFIG_MAPS, self._on_write, replay=True)

    def _on_write(self, type_: str, written: Obj, _: Obj | None) -> None:
        meta = written["metadata"]
        if type_ == "DELETED" or (meta["namespace"], meta["name"]) != (NAMESPACE, NAME):
            return
        listed = str((written.get("data") or {}).get(LIST, ""))
        newest = listed.strip().rpartition("\n")[2].strip()
        if len(newest) > IMAGE_LENGTH:
            where = f"ConfigMap {NAMESPACE}/{NAME}: the last line of {LIST}"
            self._report(f"{where} has {len(newest)} characters, at most {IMAGE_LENGTH} do")
        elif newest and newest != self._world.cloud.newest_image:
            self._world.cloud.release_image(newest)
            note = f"image {newest} is released"
            self._world.history.note("cloud", "Cloud", "ImageReleased", note)


def _named(kind: str, name: str, namespace: str = "") -> Obj:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **where}}
