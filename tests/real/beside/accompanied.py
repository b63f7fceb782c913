"""What a story of Tenure beside Karpenter has: both as processes, and the levers on the Nodes.

Which Karpenter is in charge Tenure reads from its Deployment, which the bed applies as Karpenter's chart does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import NotFound
from tenure.model.api.names import (
    DO_NOT_DISRUPT,
    DO_NOT_DISRUPT_BECAUSE,
    DO_NOT_DISRUPT_BY,
    DO_NOT_DISRUPT_UNTIL,
    NODEPOOL,
)
from tenure.model.api.resource import CONFIG_MAPS, LEASES, MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES
from tenure.model.settings import BESIDE_LEASE
from testbed.karpenter import Karpenter
from tests.builders import SECOND, Manifest, a_requirement
from tests.real.account import NAMESPACE, account
from tests.real.audit import Audit
from tests.real.beside.onlooker import Onlooker, annotated, onlooking, pool_of
from tests.real.chronicle import Holds
from tests.real.process import Process, tenure_run
from tests.real.terminations import at
from tests.real.test_voluntary import a_window
from tests.real.users import LOOK_EVERY, Json

PAST: Final = "2020-01-01T00:00:00Z"
FUTURE: Final = "2099-01-01T00:00:00Z"
#: Before it, and as far away for every story.
EARLIER: Final = "2098-01-01T00:00:00Z"
FLAGS: Final = ("--beside-karpenter", f"--leader-election-namespace={NAMESPACE}")
#: Its name in the audit log.
TENURE: Final = "tenure"
#: All that Tenure may ask for here, besides its Lease.
ALLOWED: Final = frozenset(
    {
        ("patch", "nodes"),
        ("patch", "maintenancewindows/status"),
        ("patch", "nodepoolpolicies/status"),
        ("create", "events"),
        ("patch", "events"),
    }
)
#: What a lever is made of.
MARKS: Final = (DO_NOT_DISRUPT, DO_NOT_DISRUPT_BY, DO_NOT_DISRUPT_BECAUSE, DO_NOT_DISRUPT_UNTIL)


class Accompanied(Onlooker):
    def __init__(self, onlooker: Onlooker, folder: Path) -> None:
        super().__init__(onlooker.karpenter, onlooker.users, onlooker.chronicle)
        self.audit = Audit(onlooker.karpenter.plane)
        self.folder = folder

    # -- Tenure ------------------------------------------------------------------------

    @contextmanager
    def tenure(self, name: str, *flags: str, **more: Any) -> Iterator[Process]:
        """A replica, or a new life of one: each has a name, for its log."""
        kubeconfig = account(self.karpenter.plane)
        with tenure_run(kubeconfig, self.folder, *FLAGS, *flags, name=name, **more) as process:
            yield process

    async def renew_lease(self) -> None:
        """One that no replica has held: the next life need not wait for the end of one that was killed."""
        client = self.users.client
        with suppress(NotFound):
            lease = await client.get(LEASES, BESIDE_LEASE, NAMESPACE)
            uid = msgspec.json.decode(lease)["metadata"]["uid"]
            await client.delete(LEASES, BESIDE_LEASE, uid=uid, namespace=NAMESPACE)
        await client.create(LEASES, {"metadata": {"name": BESIDE_LEASE}}, NAMESPACE)

    def wrote_only(self, *more: tuple[str, str]) -> None:
        """Levers and what is its own, and these; none was refused for lack of a right."""
        asked = self.audit.entries(TENURE)
        beyond = {(each.verb, each.resource) for each in asked} - ALLOWED - set(more)
        assert not beyond
        assert not [each for each in asked if each.code == 403]

    async def restart_karpenter(self) -> None:
        """kill -9, and another life of it."""
        await asyncio.to_thread(self.karpenter.kill)
        await self.instances_register()
        await asyncio.to_thread(self.karpenter.restart)

    # -- what users do -----------------------------------------------------------------

    async def now(self) -> datetime:
        """By the API server's clock, to the second."""
        made = await self.users.client.create(
            CONFIG_MAPS, {"metadata": {"generateName": "now-"}}, self.users.namespace
        )
        return at(msgspec.json.decode(made)["metadata"]["creationTimestamp"])

    async def until_past(self, instant: datetime) -> None:
        while await self.now() <= instant:
            await asyncio.sleep(LOOK_EVERY * 5)

    async def end_at(self, window: str, until: str) -> None:
        """Its only dates end then."""
        dates = [{"from": PAST, "until": until}]
        await self.users.client.patch(MAINTENANCE_WINDOWS, window, {"spec": {"dates": dates}})

    async def end_soon(self, window: str, seconds: int) -> datetime:
        """Its only dates end in so many seconds by the API server's clock; when."""
        ends = await self.now() + seconds * SECOND
        await self.end_at(window, f"{ends:%Y-%m-%dT%H:%M:%SZ}")
        return ends

    # -- levers ------------------------------------------------------------------------

    async def claims_in(self, pool: str) -> list[Json]:
        return [c for c in await self.users.all(NODE_CLAIMS) if pool_of(c) == pool]

    async def lever_set(
        self, claim: Json, because: str, until: str = FUTURE, *, after: int = 0
    ) -> int:
        """At which version its Node had a whole lever that says so; waits until it has."""
        node, what = self.chronicle.node_of(claim), f"blocked by {because} until {until}"
        return await self.chronicle.first(node, a_lever(because, until), what, after=after)

    async def lever_removed(self, claim: Json, after: int) -> int:
        """At which version after that one its Node had nothing of a lever."""
        node = self.chronicle.node_of(claim)
        return await self.chronicle.first(node, lever_free, "without a lever", after=after)

    async def until_open(self, claims: list[Json], number: int) -> None:
        """Until all of their Nodes but so many have a lever."""
        there = {claim["status"]["nodeName"] for claim in claims}

        def holds(nodes: list[Json]) -> bool:
            ours = [node for node in nodes if node["metadata"]["name"] in there]
            return sum(map(lever_free, ours)) == number

        await self.users.until(NODES, holds, f"{number} open")

    # -- what levers are like ----------------------------------------------------------

    async def left_alone(self, *claims: Json) -> None:
        """Tenure never had a lever there: what became of them is Karpenter's doing alone."""
        await self.chronicle.caught_up()
        for claim in claims:
            assert all(map(lever_free, self.chronicle.of(self.chronicle.node_of(claim))))

    async def levers_whole(self, *claims: Json) -> None:
        """At no time did one of the annotations stand without the others."""
        await self.chronicle.caught_up()
        for claim in claims:
            for version in self.chronicle.of(self.chronicle.node_of(claim)):
                assert set(marks_of(version)) in (set(), set(MARKS)), marks_of(version)


def marks(because: str, until: str) -> dict[str, str]:
    """A whole lever."""
    return dict(zip(MARKS, ("true", "tenure", because, until), strict=True))


def a_lever(because: str, until: str) -> Holds:
    return lambda node: marks_of(node) == marks(because, until)


def marks_of(node: Json) -> dict[str, str]:
    return {key: annotated(node)[key] for key in MARKS if key in annotated(node)}


def lever_free(node: Json) -> bool:
    return not marks_of(node)


def a_block(name: str, *pools: str, actions: list[str]) -> Manifest:
    """A window that is active, for the Nodes of these pools."""
    selector = {"matchExpressions": [a_requirement(NODEPOOL, *pools)]}
    dates = [{"from": PAST, "until": FUTURE}]
    return a_window(name, actions=actions, dates=dates, selector=selector)


def a_policy(name: str, *pools: str, **spec: Any) -> Manifest:
    """Settings for these pools."""
    kind = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePoolPolicy"}
    return {
        **kind,
        "metadata": {"name": name},
        "spec": {"nodePools": {"names": list(pools)}, **spec},
    }


def tell(
    karpenter: Karpenter,
    folder: Path,
    namespace: str,
    story: Callable[[Accompanied], Awaitable[None]],
) -> None:
    async def told() -> None:
        async with onlooking(karpenter, namespace) as onlooker:
            seen = Accompanied(onlooker, folder)
            await seen.renew_lease()
            await story(seen)

    asyncio.run(told())
