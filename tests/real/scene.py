"""What every story of processes has: a Lease to win, users, a observer, the audit log, replicas."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from tenure.errors import AlreadyExists, NotFound
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import LEASES, NODE_CLAIMS, NODES, PODS
from tenure.model.api.workload import Lease
from tenure.providers.kwok.labels import CLAIM_UID
from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_node_class, a_pool, a_requirement
from tests.kube.karpenter import NAME, lease_of
from tests.real.account import GROUPS, NAMESPACE, RESOURCES, account, shipped
from tests.real.audit import Audit
from tests.real.cluster import patient
from tests.real.observer import Observer
from tests.real.process import Process, tenure_run
from tests.real.users import Json, Users, is_true, names, running, users_at

#: With the default Lease; short waits elsewhere, so that a story does not take minutes.
BRISK: Final = (
    f"--leader-election-namespace={NAMESPACE}",
    "--drain-min=1s",
    "--termination-poll=1s",
)
#: For those who wait until the Lease of a replica that died is over. Only them: a machine that is
#: busy for four seconds makes a leader lose it, where it may be busy for ten with the default.
SHORT_LEASE: Final = (
    "--lease-duration=9s",
    "--lease-renew-deadline=4s",
    "--lease-retry-period=500ms",
)
#: Room for fifteen pods of half a core.
EIGHT_CORES: Final = "c-8x-amd64-linux"
#: Room for one pod of one core and a half.
TWO_CORES: Final = "c-2x-amd64-linux"


class Scene:
    def __init__(self, plane: ControlPlane, users: Users, folder: Path) -> None:
        self.plane = plane
        self.users = users
        self.seen = Observer(users)
        self.audit = Audit(plane)
        self._folder = folder

    # -- who is there ------------------------------------------------------------------

    def tenure(
        self, name: str, *flags: str, kubeconfig: Path | None = None
    ) -> AbstractContextManager[Process]:
        """A replica, or a new life of one: each has a name, for its log."""
        kubeconfig = kubeconfig or account(self.plane)
        return tenure_run(kubeconfig, self._folder, *BRISK, *flags, name=name)

    async def account(self, name: str) -> Path:
        """Another account with the rights of the shipped one: the audit log tells them apart."""
        for manifest in shipped():
            if not manifest["kind"].endswith("RoleBinding"):
                continue
            binding = copy.deepcopy(manifest)
            binding["metadata"]["name"] += f"-{name}"
            binding["subjects"][0]["name"] = name
            where = binding["metadata"].get("namespace", "")
            with suppress(AlreadyExists):
                await self.users.client.create(RESOURCES[binding["kind"]], binding, where)
        return self.plane.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:{name}", *GROUPS)

    async def lease(self) -> Lease:
        return await lease_of(self.users.client, NAMESPACE)

    # -- what happens ------------------------------------------------------------------

    async def settle(self, *manifests: Manifest, type_: str, pods: int) -> list[Json]:
        """Until so many pods run on nodes of that type; the claims."""
        pool = a_pool(requirements=[a_requirement(INSTANCE_TYPE, type_)])
        await self.users.apply(a_node_class(), pool, *manifests)
        await self.all_run(pods)
        return await self.ready_claims()

    async def all_run(self, pods: int) -> None:
        await self.users.until(PODS, lambda now: len(running(now)) == len(now) == pods, "running")

    async def ready_claims(self) -> list[Json]:
        return await self.users.until(
            NODE_CLAIMS, lambda claims: all(map(is_true("Ready"), claims)), "all ready"
        )

    async def pods_on(self, claim: Json) -> list[str]:
        return names(on(claim, await self.users.all(PODS)))

    async def until_drained_in_part(self, claim: Json, pods: int) -> None:
        """Until so many are left on its node, or fewer."""
        await self.users.until(
            PODS, lambda now: len(running(on(claim, now))) <= pods, "drained in part"
        )

    async def until_gone(self, claim: Json) -> None:
        name = claim["metadata"]["name"]
        await self.users.until(NODE_CLAIMS, lambda claims: name not in names(claims), "gone")

    # -- how it ends -------------------------------------------------------------------

    async def in_order(self, *, claims: int, ever: int) -> None:
        """So many claims now and in all; a Node for each and none besides; none was ever doubled."""
        now = await self.ready_claims()
        nodes = await self.users.all(NODES)
        await self.seen.caught_up(*now, *nodes)
        assert sorted((c["status"]["nodeName"], c["metadata"]["uid"]) for c in now) == sorted(
            (n["metadata"]["name"], n["metadata"]["annotations"][CLAIM_UID]) for n in nodes
        )
        counted = (len(now), len(self.seen.claims), len(self.seen.nodes))
        assert counted == (claims, ever, ever), f"{counted}: {sorted(self.seen.claims)}"
        assert self.seen.doubled() == {}
        evicted = self.audit.evicted()
        assert len(evicted) == len(set(evicted)), "no eviction was granted twice"


def on(claim: Json, pods: list[Json]) -> list[Json]:
    return [pod for pod in pods if pod["spec"].get("nodeName") == claim["status"]["nodeName"]]


def tell(
    plane: ControlPlane, folder: Path, namespace: str, story: Callable[[Scene], Awaitable[None]]
) -> None:
    async def told() -> None:
        async with _scene(plane, folder, namespace) as scene:
            await story(scene)

    asyncio.run(told())


@asynccontextmanager
async def _scene(plane: ControlPlane, folder: Path, namespace: str) -> AsyncIterator[Scene]:
    await _renew_lease(plane)
    async with users_at(plane, namespace) as users:
        scene = Scene(plane, users, folder)
        async with scene.seen.watching():
            yield scene


async def _renew_lease(plane: ControlPlane) -> None:
    """One that no replica has held: the first need not wait for a replica that another story killed."""
    async with patient(plane.kubeconfig) as client:
        with suppress(NotFound):
            uid = (await lease_of(client, NAMESPACE)).uid
            await client.delete(LEASES, NAME, uid=uid, namespace=NAMESPACE)
        await client.create(LEASES, {"metadata": {"name": NAME}}, NAMESPACE)
