"""What a fresh cluster has: the first pod gets a node, and a changed template waits for its window."""

from __future__ import annotations

from typing import Any, Final

from tenure.model.api.names import ARCH, CAPACITY_TYPE, OS
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_POOLS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES

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
