"""Stories of nodes that leave by a deadline: pools with one, pods that are slow or held, and onlookers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.model.api.names import INSTANCE_TYPE, NODEPOOL
from tenure.model.api.resource import EVENTS, NODE_CLAIMS, PODS, Resource
from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_node_class, a_pod, a_pool, a_requirement
from tests.real import scene as scenes
from tests.real.process import Process
from tests.real.scene import EIGHT_CORES, Scene
from tests.real.terminations import Terminations, at, stamp_of
from tests.real.users import PATIENCE, Json, names, running

#: What the test bed's kubelet takes for a pod's stop; without it a pod stops at once.
STOPS_AFTER: Final = "testbed/stops-after"
#: Longer than any story.
NEVER: Final = "24h"


class Leaving:
    """What a story of leaving nodes has."""

    def __init__(self, scene: Scene, tenure: Process) -> None:
        self.scene = scene
        self.users = scene.users
        self.audit = scene.audit
        self.tenure = tenure
        self.seen = Terminations(scene.users)

    async def settle(self, *manifests: Manifest, pods: int) -> None:
        await self.users.apply(a_node_class(), *manifests)
        await self.users.until(
            PODS, lambda now: len(running(now)) == len(now) == pods, "all running"
        )
        await self.scene.ready_claims()

    async def pod(self, name: str) -> Json:
        (found,) = [pod for pod in await self.users.all(PODS) if names([pod]) == [name]]
        return found

    async def claim_in(self, pool: str) -> Json:
        """The only claim of that pool."""
        (found,) = [
            claim
            for claim in await self.users.all(NODE_CLAIMS)
            if claim["metadata"]["labels"][NODEPOOL] == pool
        ]
        return found

    async def leave(self, pool: str) -> tuple[Json, datetime]:
        """Delete the pool's claim; the claim, and the deadline that is written on it."""
        claim = await self.claim_in(pool)
        await self.users.delete(NODE_CLAIMS, claim)
        return claim, await self.deadline(claim)

    async def deadline(self, claim: Json) -> datetime:
        name = claim["metadata"]["name"]
        claims = await self.users.until(
            NODE_CLAIMS,
            lambda claims: any(stamp_of(c) for c in claims if names([c]) == [name]),
            "stamped",
        )
        (stamped,) = [claim for claim in claims if names([claim]) == [name]]
        return at(stamp_of(stamped))

    async def events(self, reason: str, about: str) -> list[Json]:
        """Tenure's, on the object of that name, wherever events of its kind are."""
        items, _ = await self.users.client.list_all(EVENTS)
        return [
            event
            for event in map(msgspec.json.decode, items)
            if event["source"].get("component") == "tenure"
            and (event["reason"], event["involvedObject"]["name"]) == (reason, about)
        ]

    async def event(self, reason: str, about: str, *words: str) -> Json:
        """Until Tenure has said that, with these words."""

        def holds(events: list[Json]) -> list[Json]:
            return [e for e in events if all(word in e["message"] for word in words)]

        heard: list[Json] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := holds(heard := await self.events(reason, about))):
                    await asyncio.sleep(0.2)
        except TimeoutError:
            said = [event["message"] for event in heard]
            raise AssertionError(f"{about}: no {reason} with {words}: {said}") from None
        return found[0]

    async def patch(self, resource: Resource, thing: Json, **metadata: Any) -> None:
        where, name = thing["metadata"].get("namespace", ""), thing["metadata"]["name"]
        await self.users.client.patch(resource, name, {"metadata": metadata}, namespace=where)


def a_place(name: str, period: str | None = None, *, type_: str = EIGHT_CORES) -> Manifest:
    """A pool for the pods that ask for it; its nodes have that long to leave."""
    template = {"terminationGracePeriod": period} if period is not None else {}
    kind = a_requirement(INSTANCE_TYPE, type_)
    return a_pool(name, requirements=[kind], template=template)


def in_place(name: str) -> dict[str, Any]:
    """What makes a pod ask for it."""
    return {"nodeSelector": {NODEPOOL: name}}


def a_marked_pod(name: str, annotations: dict[str, str], **spec: Any) -> Manifest:
    pod = a_pod(name, **spec)
    pod["metadata"]["annotations"] = annotations
    return pod


def tell(
    plane: ControlPlane,
    folder: Path,
    namespace: str,
    story: Callable[[Leaving], Awaitable[None]],
    *,
    kubeconfig: Path | None = None,
) -> None:
    """With Tenure as a process. Whatever happens, it names the pod, which has its grace."""

    async def told(scene: Scene) -> None:
        with scene.tenure("tenure", kubeconfig=kubeconfig) as tenure:
            leaving = Leaving(scene, tenure)
            async with leaving.seen.watching():
                await story(leaving)
            orders = scene.audit.orders()
            assert all(order.uid for order in orders), orders
            assert all(order.seconds != 0 for order in orders), orders
            assert await asyncio.to_thread(tenure.stop) == 0

    scenes.tell(plane, folder, namespace, told)
