"""The Deployment of a Karpenter that no cluster here runs: it says which release it is, and that it is ready.

It is paused, so that no pod of it takes part in a story, and its status is written as if there were one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from tenure.model.api.resource import DEPLOYMENTS
from tenure.sim.world import World

KARPENTER: Final[Mapping[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "karpenter",
        "namespace": "kube-system",
        "labels": {"app.kubernetes.io/name": "karpenter"},
    },
    "spec": {
        "replicas": 1,
        "paused": True,
        "selector": {"matchLabels": {"app": "karpenter"}},
        "template": {
            "metadata": {"labels": {"app": "karpenter"}},
            "spec": {"containers": [{"name": "controller", "image": "karpenter:1.15.0"}]},
        },
    },
}


def install_karpenter(world: World, manifest: Mapping[str, Any] = KARPENTER) -> None:
    """Again: as it is rolled out."""
    world.apply(copy.deepcopy(dict(manifest)))
    world.run(timedelta(seconds=1))  # The Deployment controller looks at it once.
    say_ready(world, manifest["metadata"]["name"])


def say_ready(world: World, name: str = "karpenter", *, ready: int = 1, old: int = 0) -> None:
    """``old``: pods of the template before."""
    found = world.store.get(DEPLOYMENTS, "kube-system", name)
    status = {
        "observedGeneration": found["metadata"]["generation"],
        "replicas": 1 + old,
        "updatedReplicas": 1,
        "readyReplicas": ready,
    }
    world.store.patch(DEPLOYMENTS, "kube-system", name, {"status": status}, subresource="status")
