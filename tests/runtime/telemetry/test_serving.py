"""What a replica serves, on which interface, and to which clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest

from tenure.runtime.telemetry.metrics import Metrics
from tenure.runtime.telemetry.scrape import ClusterCollector
from tenure.runtime.telemetry.serving import LOOPBACK, Serving
from tenure.sim.world import World
from tests.builders import MINUTE, a_cluster, a_deployment
from tests.runtime.telemetry.test_logs import NOON, Desk, a_verdict
from tests.runtime.telemetry.test_scrape import Onlooker
from tests.runtime.worlds import Tapped

PATIENCE: Final = 60.0


@asynccontextmanager
async def serving(world: World, *, journal_port: int | None = 0) -> AsyncIterator[Serving]:
    """With one entry in its journal."""
    desk, metrics = Desk(), Metrics(lambda: 0.0)
    desk.journal.decided(NOON, a_verdict())
    watched = Onlooker(world)
    collector = ClusterCollector(watched, per_object=True)
    metrics.registry.register(collector)
    found = Serving(
        watched,
        metrics,
        collector,
        desk.journal,
        metrics_port=0,
        health_port=0,
        journal_port=journal_port,
    )
    async with found:
        yield found


async def asked(
    port: int | None, path: str, method: str = "GET", **headers: str
) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"http://127.0.0.1:{port}{path}", headers=headers) as answer,
    ):
        return answer.status, await answer.text()


def told(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """On a loop of its own: a cluster's is virtual, and stands still meanwhile."""
    with Tapped(*a_cluster(a_deployment(replicas=1))) as cluster:
        cluster.run(MINUTE)
        asyncio.run(asyncio.wait_for(story(cluster), PATIENCE))


def test_each_port_has_its_pages_and_no_others() -> None:
    async def story(world: World) -> None:
        async with serving(world) as site:
            assert (await asked(site.health_port, "/healthz"))[0] == 200
            assert "tenure" in (await asked(site.metrics_port, "/metrics"))[1]
            for port in (site.metrics_port, site.health_port):
                assert (await asked(port, "/debug/journal"))[0] == 404
            assert (await asked(site.journal_port, "/metrics"))[0] == 404
            assert (await asked(site.metrics_port, "/metrics", "POST"))[0] == 405

    told(story)


def test_the_journal_is_on_the_loopback_interface_alone() -> None:
    async def story(world: World) -> None:
        async with serving(world) as site:
            addresses = {listener.address for listener in site.listeners}
            assert (LOOPBACK, site.journal_port) in addresses
            status, body = await asked(site.journal_port, "/debug/journal?subject=web")
            assert (status, len(body.splitlines())) == (200, 1)
            assert "web-1" in body

    told(story)


@pytest.mark.parametrize(
    "host", ["attacker.example", "10.0.0.7:8082", "localhost.attacker.example"]
)
def test_a_web_page_cannot_read_the_journal_through_a_browser(host: str) -> None:
    async def story(world: World) -> None:
        async with serving(world) as site:
            assert (await asked(site.journal_port, "/debug/journal", Host=host))[0] == 403
            assert (await asked(site.journal_port, "/debug/journal", Host="localhost:1"))[0] == 200

    told(story)


def test_the_journal_can_be_turned_off() -> None:
    async def story(world: World) -> None:
        async with serving(world, journal_port=None) as site:
            assert len(site.listeners) == 2
            assert site.journal_port is None

    told(story)


def test_silent_connections_do_not_keep_the_kubelet_from_its_probe() -> None:
    async def story(world: World) -> None:
        async with serving(world) as site:
            silent = [
                await asyncio.open_connection("127.0.0.1", site.health_port) for _ in range(200)
            ]
            assert (await asked(site.health_port, "/healthz"))[0] == 200
            for _, writer in silent:
                writer.transport.abort()

    told(story)
