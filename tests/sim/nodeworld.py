"""A small embedded cluster for stories about its node side, told in virtual time.

``World.story`` runs a coroutine on a virtual loop that begins at noon; ``at`` waits until
so many seconds after noon, and ``seconds`` says how late it is. The store's writes are kept
as a history, so that a test can ask when something happened, not only whether.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.resource import NODES, PODS, Resource
from tenure.model.cloud.instance import Instance, LaunchRequest
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.actors.kubelet.kubelet import KubeletTimings
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import Infrastructure, InfrastructureOptions
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop, run_virtually

NOON = datetime(2030, 6, 3, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)

#: No chance: API calls take no time, boots take 30 s, readiness 10 s.
EXACT = InfrastructureOptions(
    cloud=CloudTimings(api_latency=timedelta(0), boot_spread=timedelta(0)),
    kubelet=KubeletTimings(),
)


class World:
    def __init__(self, options: InfrastructureOptions = EXACT, *, seed: int = 1) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.environment = Environment(loop, epoch=NOON, seed=seed)
        self.store = Store(
            self.environment.clock,
            self.environment.random_for("store"),
            self.environment.at,
            self.environment.soon,
        )
        self.infrastructure = Infrastructure(self.environment, self.store, options)
        self.cloud = self.infrastructure.cloud
        self.kubelets = self.infrastructure.kubelets
        self.volumes = self.infrastructure.storage.attachments
        self.faults = self.infrastructure.faults
        self.store.create(KWOK_NODE_CLASSES, {"metadata": {"name": "default"}})

    async def at(self, seconds: float) -> None:
        """Wait until that long after noon, and for everything that happens then."""
        await asyncio.sleep(seconds - self.seconds)
        for _ in range(10):
            await asyncio.sleep(0)

    @property
    def seconds(self) -> float:
        return (self.environment.now() - NOON) / SECOND

    async def launch(self, claim: str = "claim-1", **changes: Any) -> Instance:
        return await self.cloud.launch(a_request(claim, **changes))

    async def a_node(self, claim: str = "claim-1", **changes: Any) -> str:
        """A node that has just become Ready and is registered with us, 40 s later."""
        started = self.seconds
        instance = await self.launch(claim, **changes)
        await self.at(started + 30)
        name = self.cloud.node_name(instance.provider_id)
        self.untaint(name, "karpenter.sh/unregistered")
        await self.at(started + 40)
        return name

    def untaint(self, node: str, key: str) -> None:
        taints = [taint for taint in self.taints(node) if taint["key"] != key]
        self.store.patch(NODES, "", node, {"spec": {"taints": taints or None}})

    def node(self, name: str) -> Obj:
        return self.store.get(NODES, "", name)

    def taints(self, node: str) -> list[Obj]:
        taints: list[Obj] = self.node(node)["spec"].get("taints", [])
        return taints

    def taint_keys(self, node: str) -> set[str]:
        return {f"{taint['key']}:{taint['effect']}" for taint in self.taints(node)}

    def condition(self, node: str, type_: str = "Ready") -> tuple[str, str, float]:
        """Status, reason, and when it changed, in seconds after noon."""
        for one in self.node(node)["status"]["conditions"]:
            if one["type"] == type_:
                changed = datetime.fromisoformat(one["lastTransitionTime"])
                return one["status"], one["reason"], (changed - NOON) / SECOND
        raise AssertionError(f"{node} has no condition {type_}")

    def add_pod(self, name: str, node: str, *, grace: int = 30, **steer: Any) -> Obj:
        """A bound pod; ``stop_seconds=5`` becomes its annotation sim.tenure.dev/stop-seconds."""
        annotations = {
            f"sim.tenure.dev/{key.replace('_', '-')}": str(steer.pop(key))
            for key in [*steer]
            if key.endswith(("_seconds", "_code"))
        }
        pod = {
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {
                "containers": [{"name": "main", "image": "app"}],
                "terminationGracePeriodSeconds": grace,
                **steer,
            },
        }
        self.store.create(PODS, pod)
        return self.store.bind("default", name, node)

    def pod(self, name: str) -> Obj | None:
        return self.store.find(PODS, "default", name)

    def phase(self, name: str) -> str:
        pod = self.pod(name)
        return "gone" if pod is None else pod["status"]["phase"]

    def pod_condition(self, name: str, type_: str = "Ready") -> str:
        pod = self.store.get(PODS, "default", name)
        conditions = {c["type"]: c for c in pod["status"].get("conditions", ())}
        status: str = conditions.get(type_, {}).get("status", "")
        return status

    def times(self, resource: Resource, said: Callable[[str, Obj], str | None]) -> list[Any]:
        """A list that fills with (seconds, what ``said`` returned) at every write from now."""
        history: list[Any] = []

        def note(type_: str, new: Obj, _old: Obj | None) -> None:
            text = said(type_, new)
            if text is not None and (not history or history[-1][1] != text):
                history.append((self.seconds, text))

        self.store.subscribe(resource, note)
        return history


def story(tell: Callable[[World], Awaitable[None]], **world: Any) -> None:
    """Tell a story in a world of its own."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        errors: list[Any] = []
        loop.set_exception_handler(lambda _loop, context: errors.append(context))
        await tell(World(**world))
        assert not errors, errors

    run_virtually(run())


def a_request(claim: str = "claim-1", **changes: Any) -> LaunchRequest:
    request = LaunchRequest(
        cluster="test",
        claim_name=claim,
        claim_uid=f"uid-of-{claim}",
        pool="general",
        node_class=NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default"),
        requirements=Requirements(),
        requests={},
        labels={"karpenter.sh/nodepool": "general"},
    )
    return msgspec.structs.replace(request, **changes)


def wants(**labels: str) -> Requirements:
    """``wants(zone="zone-b", arch="arm64")`` in the words of the API."""
    keys = {
        "zone": "topology.kubernetes.io/zone",
        "arch": "kubernetes.io/arch",
        "type": "node.kubernetes.io/instance-type",
        "capacity": "karpenter.sh/capacity-type",
    }
    return Requirements.of(Requirement.label(keys[key], value) for key, value in labels.items())


def a_taint(key: str, effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, effect=effect)
