"""What a fresh cluster has, so that the first pod gets a node without further ado."""

from __future__ import annotations

from typing import Any, Final

from tenure.model.api.names import ARCH, CAPACITY_TYPE, OS
from tenure.model.api.resource import NODE_POOLS
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

WELCOME: Final = (NODE_CLASS, NODE_POOL)
