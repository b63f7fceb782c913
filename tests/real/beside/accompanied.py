"""What a story of Tenure beside Karpenter has: both as processes, and the levers on the Nodes.

Which Karpenter is in charge Tenure reads from its Deployment, which the bed applies as Karpenter's chart does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.cli.settings.config import BESIDE_LEASE
from tenure.errors import NotFound
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    DO_NOT_DISRUPT_BECAUSE,
    DO_NOT_DISRUPT_BY,
    DO_NOT_DISRUPT_UNTIL,
    NODEPOOL,
)
from tenure.model.api.resource import CONFIG_MAPS, LEASES, MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES
from testbed.karpenter import Karpenter
from tests.builders import SECOND, Manifest, a_requirement
from tests.real.account import NAMESPACE, account
from tests.real.audit import Audit
from tests.real.beside.mortal import WRITES
from tests.real.beside.onlooker import Onlooker, onlooking, pool_of
from tests.real.chronicle import Holds, is_leaving, says, version_of
from tests.real.process import Process, program, tenure_run
from tests.real.terminations import at
from tests.real.test_voluntary import a_window
from tests.real.users import LOOK_EVERY, Json

PAST: Final = "2020-01-01T00:00:00Z"
FUTURE: Final = "2099-01-01T00:00:00Z"
FLAGS: Final = ("--beside-karpenter", f"--leader-election-namespace={NAMESPACE}")
#: Its name in the audit log.
TENURE: Final = "tenure"
#: How Tenure is run: once, or killed right after each of its writes and started again.
WHOLE, KILLED = "whole", "killed after each write"
LIVES: Final = (WHOLE, KILLED)
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
        self._folder = folder

    # -- Tenure ------------------------------------------------------------------------

    @contextmanager
    def tenure(self, name: str, *flags: str, **more: Any) -> Iterator[Process]:
        """A replica, or a new life of one: each has a name, for its log."""
        kubeconfig = account(self.karpenter.plane)
        with tenure_run(kubeconfig, self._folder, *FLAGS, *flags, name=name, **more) as process:
            yield process

    @asynccontextmanager
    async def living(self, life: str) -> AsyncIterator[list[str]]:
        """One of ``LIVES``; the writes after which it was killed."""
        if life == KILLED:
            async with self.dying_after_each_write() as lives:
                yield lives
        else:
            with self.tenure("tenure"):
                yield []

    @asynccontextmanager
    async def dying_after_each_write(self) -> AsyncIterator[list[str]]:
        """Tenure, killed right after each of its writes and started again; the writes."""
        lives: list[str] = []
        task = asyncio.create_task(self._die_and_live(lives))
        try:
            yield lives
            assert not task.done(), task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _die_and_live(self, lives: list[str]) -> None:
        while True:
            name = f"life-{len(lives)}"
            mortal = program("tests.real.beside.mortal")
            with self.tenure(name, program=mortal, **{WRITES: "1"}) as tenure:
                while tenure.running:
                    await asyncio.sleep(LOOK_EVERY)
                last = tenure.log_file.read_text(errors="replace").splitlines()[-1]
                assert last.startswith("killed after"), last
            lives.append(last.removeprefix("killed after "))
            print(f"{self.users.namespace}: {last}")  # noqa: T201
            await self.renew_lease()

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

    async def end_soon(self, window: str, seconds: int) -> datetime:
        """Its only dates end in so many seconds by the API server's clock; when."""
        ends = await self.now() + seconds * SECOND
        dates = [{"from": PAST, "until": f"{ends:%Y-%m-%dT%H:%M:%SZ}"}]
        await self.users.client.patch(MAINTENANCE_WINDOWS, window, {"spec": {"dates": dates}})
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

    # -- what has become of a pool -----------------------------------------------------

    def ever(self, pool: str) -> list[Json]:
        """All claims that it has ever had, as they were at first."""
        return self._claims(pool)

    def most_at_once(self, pool: str) -> int:
        """Nodes of the pool that were disrupted or on their way out at the same time."""
        spans = []
        for claim in self.ever(pool):
            versions = self.chronicle.of(claim)
            if begun := [version for version in versions if is_disrupted(version)]:
                node = self.chronicle.of(self.chronicle.node_of(versions[-1]))[-1]
                spans.append((version_of(begun[0]), version_of(node)))
        return max(sum(a <= begin < z for a, z in spans) for begin, _ in spans)

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


def annotated(thing: Json) -> Json:
    found: Json = thing["metadata"].get("annotations", {})
    return found


def is_disrupted(claim: Json) -> bool:
    """By Karpenter, by Tenure, or because it is deleted."""
    by_karpenter = says("DisruptionReason", "True")(claim)
    return by_karpenter or DISRUPTION_REASON in annotated(claim) or is_leaving(claim)


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
