"""The backends of whole clusters: an API server with controllers, a scheduler and kubelets behind it.

The embedded one is all of the simulator's actors but Tenure, in virtual time; the real one is
kube-controller-manager, kube-scheduler, and kwok in the role of the kubelets. Where the two
differ, the embedded one is wrong. What the bed cannot show, because nothing there runs containers
or drives storage: how long a pod takes to stop, the provisioning of volumes, and when a volume is
really attached; ``attach`` plays the driver for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from tenure.model.api.resource import NODES, PODS, VOLUME_ATTACHMENTS, Resource
from tenure.sim.actors.pdb.controller import PdbController
from tenure.sim.actors.scheduling.scheduler import Scheduler
from tenure.sim.actors.workloads.job import Jobs
from tenure.sim.actors.workloads.statefulset import StatefulSets
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.infrastructure import Infrastructure
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop
from tests.contract.backends import Backend, Json, RealBackend, StoreBackend

T = TypeVar("T")

#: Seconds; a real binder looks at its claims every 15, and machines may be slow.
PATIENCE: Final = 240.0
LOOK_EVERY: Final = 0.1
#: What a test's pods ask for, so that they stay on nodes of that test.
LANE: Final = "example.com/lane"
#: As every kubelet says it: volumes of this node are attached by the controller.
MANAGED: Final = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
ROOM: Final = {"cpu": "16", "memory": "64Gi", "pods": "110"}


class Cluster(Backend):
    """What a test of controllers may use, beside requests."""

    async def node(self, name: str) -> str:
        """A node that is Ready and takes this test's pods; its name."""
        unique = self.unique(name)
        labels = {LANE: self.namespace, "kwok.x-k8s.io/node": "fake"}
        metadata = {"name": unique, "labels": labels, "annotations": MANAGED}
        node = {"metadata": metadata, "status": {"capacity": ROOM}}
        await self.created(NODES, node)
        await self.adopt(unique)

        async def open_() -> bool:
            return not (await self.get(NODES, unique)).body["spec"].get("taints")

        await self.until(open_, f"node {unique} is Ready")
        return unique

    async def adopt(self, node: str) -> None:
        """Give the node a kubelet, where none comes by itself."""

    async def attach(self, name: str) -> None:
        """Wait until the volume is attached, or set it where no controller does."""
        raise NotImplementedError

    async def until(self, holds: Callable[[], Awaitable[T | None]], what: str) -> T:
        """Wait for the first answer that is not empty."""
        for _ in range(round(PATIENCE / LOOK_EVERY)):
            if found := await holds():
                return found
            await asyncio.sleep(LOOK_EVERY)
        raise AssertionError(f"not within {PATIENCE:.0f} s: {what}")

    async def pods(self, app: str) -> dict[str, Json]:
        """This test's pods of an app, by name."""
        listed = await self.list(PODS, labelSelector=f"app={app}")
        return {pod["metadata"]["name"]: pod for pod in listed.body["items"]}

    async def until_pods(self, app: str, names: set[str], *, ready: bool = True) -> dict[str, Json]:
        """Wait until these are the pods of the app, and ready if they are to be."""

        async def there() -> dict[str, Json] | None:
            pods = await self.pods(app)
            fine = set(pods) == names and all(is_ready(pod) or not ready for pod in pods.values())
            return pods if fine else None

        if not names:

            async def gone() -> bool:
                return not await self.pods(app)

            await self.until(gone, f"no pods of {app}")
            return {}
        return await self.until(there, f"pods of {app} are {sorted(names)}")

    async def until_status(self, resource: Resource, name: str, **wanted: Any) -> Json:
        """Wait until the object's status has these fields."""

        async def told() -> Json | None:
            status: Json = (await self.get(resource, name)).body.get("status", {})
            return status if wanted.items() <= status.items() else None

        return await self.until(told, f"{resource.kind} {name} has {wanted}")

    def template(self, app: str, **spec: Any) -> Json:
        """Pods of an app, for nodes of this test."""
        container = {"name": "main", "image": "registry.example/app:1"}
        given = {"containers": [container], "nodeSelector": {LANE: self.namespace}, **spec}
        return {"metadata": {"labels": {"app": app}}, "spec": given}

    def workload(self, app: str, **spec: Any) -> Json:
        pod = spec.pop("pod", {})
        selector = {"matchLabels": {"app": app}}
        template = self.template(app, **pod)
        return {
            "metadata": {"name": app},
            "spec": {"selector": selector, "template": template, **spec},
        }


class EmbeddedCluster(Cluster, StoreBackend):
    _kubelets: Any

    async def _run(self, main: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = Environment(loop, epoch=datetime(2031, 5, 2, 8, tzinfo=UTC), seed=1)
        self._store = Store(world.clock, world.random_for("store"), world.at, world.soon)
        self._kubelets = Infrastructure(world, self._store).kubelets
        Scheduler(world, self._store)
        StatefulSets(world, self._store)
        Jobs(world, self._store)
        PdbController(world, self._store)
        self.transport = InProcessTransport(Api(self._store))
        await self.prepared(main)

    async def adopt(self, node: str) -> None:
        self._kubelets.adopt(node)

    async def attach(self, name: str) -> None:
        await self.until_status(VOLUME_ATTACHMENTS, name, attached=True)


class RealCluster(Cluster, RealBackend):
    async def attach(self, name: str) -> None:
        """Returns when the controller has noted it: it detaches nothing before."""
        patch = {"status": {"attached": True}}
        answer = await self.patch(VOLUME_ATTACHMENTS, name, patch, subresource="status")
        assert answer.status == 200, answer
        spec = answer.body["spec"]
        volume = spec["source"]["persistentVolumeName"]
        await self.until_seen(
            NODES,
            spec["nodeName"],
            lambda node: volume in str(node.body["status"].get("volumesAttached")),
        )


def is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    leaving = "deletionTimestamp" in pod["metadata"]
    return not leaving and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
