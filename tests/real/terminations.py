"""Who looks on while nodes leave: when each pod was told to go, by when to stop, and when it was gone.

What is asserted of instants comes from the API server's own arithmetic wherever it can: a pod's
``deletionTimestamp`` less its ``deletionGracePeriodSeconds`` is when it was told, to the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.errors import Unavailable
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.resource import NODES, PODS, Resource
from tests.real.users import LOOK_EVERY, PATIENCE, Users

Json = dict[str, Any]
SECOND: Final = timedelta(seconds=1)


class Life(msgspec.Struct):
    """One pod or Node, from when it was first seen on."""

    name: str
    uid: str
    created_at: datetime
    #: The version of the cluster in which it was first seen, and that in which it was gone: they
    #: order what happens to all objects, whenever we hear of it.
    born: int
    ended: int = 0
    #: When it was first told to go.
    told_at: datetime | None = None
    #: By when it has to have stopped, each time that was decided.
    stops_by: list[datetime] = []
    #: When we heard that it was gone.
    gone_at: datetime | None = None

    @property
    def told(self) -> datetime:
        assert self.told_at is not None, f"{self.name} was never told to go"
        return self.told_at

    @property
    def gone(self) -> datetime:
        assert self.gone_at is not None, f"{self.name} is still there"
        return self.gone_at

    def see(self, metadata: Json) -> None:
        seconds = metadata.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" not in metadata or not seconds:
            return  # It stays, or its kubelet says by 0 seconds that it has stopped.
        stops_by = at(metadata["deletionTimestamp"])
        if stops_by not in self.stops_by:
            self.stops_by.append(stops_by)
        self.told_at = self.told_at or stops_by - seconds * SECOND

    def end(self, metadata: Json) -> None:
        self.ended, self.gone_at = int(metadata["resourceVersion"]), datetime.now(UTC)


class Terminations:
    def __init__(self, users: Users) -> None:
        self._users = users
        #: By UID, those that are gone included.
        self.pods: dict[str, Life] = {}
        self.nodes: dict[str, Life] = {}

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self._follow(PODS, self.pods)),
            asyncio.create_task(self._follow(NODES, self.nodes)),
        ]
        try:
            yield
            assert not any(task.done() for task in tasks), "the observer has stopped"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def of(self, name: str) -> list[Life]:
        """Pods of that name, one after the other."""
        return [life for life in self.pods.values() if life.name == name]

    async def successor(self, name: str) -> Life:
        """The second pod of that name; there are no more."""
        await _until(lambda: len(self.of(name)) > 1, f"a second {name}")
        _, second = self.of(name)
        return second

    async def gone(self, pod: Json) -> Life:
        return await self._until_gone(self.pods, pod["metadata"]["uid"])

    async def node_gone(self, claim: Json) -> Life:
        name = claim["status"]["nodeName"]

        def found() -> list[str]:
            return [uid for uid, node in self.nodes.items() if node.name == name]

        await _until(found, f"sight of {name}")
        (uid,) = found()
        return await self._until_gone(self.nodes, uid)

    async def told(self, pod: Json) -> Life:
        uid = pod["metadata"]["uid"]
        await _until(lambda: uid in self.pods and self.pods[uid].told_at, "word to a pod")
        return self.pods[uid]

    async def _until_gone(self, lives: dict[str, Life], uid: str) -> Life:
        await _until(lambda: uid in lives and lives[uid].gone_at, "end")
        return lives[uid]

    async def _follow(self, resource: Resource, lives: dict[str, Life]) -> None:
        client = self._users.client
        items, version = await client.list_all(resource)
        for item in items:
            self._note(lives, msgspec.json.decode(item)["metadata"])
        while True:
            with suppress(Unavailable):  # It goes on behind the last version, and misses nothing.
                async for line in await client.watch(resource, version):
                    event = msgspec.json.decode(line)
                    assert event["type"] != "ERROR", event
                    metadata = event["object"]["metadata"]
                    version = metadata["resourceVersion"]
                    if event["type"] == "DELETED":
                        lives[metadata["uid"]].end(metadata)
                    elif event["type"] != "BOOKMARK":
                        self._note(lives, metadata)
            await asyncio.sleep(LOOK_EVERY)

    def _note(self, lives: dict[str, Life], metadata: Json) -> None:
        life = lives.setdefault(
            metadata["uid"],
            Life(
                name=metadata["name"],
                uid=metadata["uid"],
                created_at=at(metadata["creationTimestamp"]),
                born=int(metadata["resourceVersion"]),
            ),
        )
        life.see(metadata)


async def _until(holds: Callable[[], object], what: str) -> None:
    """A list may show something before the watch tells of it."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError:
        raise AssertionError(f"no {what} within {PATIENCE:.0f} s") from None


def at(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


def stamp_of(claim: Json) -> str:
    """What the claim says by when it must be gone; empty when it says nothing."""
    return str(claim["metadata"].get("annotations", {}).get(TERMINATION_TIMESTAMP, ""))
