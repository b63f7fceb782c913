"""Who looks on while nodes leave: when each pod was told to go, by when to stop, and when it was gone.

What is asserted of instants comes from the API server's own arithmetic wherever it can: a pod's
``deletionTimestamp`` less its ``deletionGracePeriodSeconds`` is when it was told, to the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

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

    async def gone(self, pod: Json) -> Life:
        return await self._until_gone(self.pods, pod["metadata"]["uid"])

    async def node_gone(self, claim: Json) -> Life:
        (uid,) = [u for u, node in self.nodes.items() if node.name == claim["status"]["nodeName"]]
        return await self._until_gone(self.nodes, uid)

    async def told(self, pod: Json) -> Life:
        life = self.pods[pod["metadata"]["uid"]]
        async with asyncio.timeout(PATIENCE):
            while life.told_at is None:
                await asyncio.sleep(LOOK_EVERY)
        return life

    async def _until_gone(self, lives: dict[str, Life], uid: str) -> Life:
        async with asyncio.timeout(PATIENCE):
            while lives[uid].gone_at is None:
                await asyncio.sleep(LOOK_EVERY)
        return lives[uid]

    async def _follow(self, resource: Resource, lives: dict[str, Life]) -> None:
        client = self._users.client
        items, version = await client.list_all(resource)
        for item in items:
            self._note(lives, msgspec.json.decode(item)["metadata"])
        while True:
            async for line in await client.watch(resource, version):
                event = msgspec.json.decode(line)
                assert event["type"] != "ERROR", event
                metadata = event["object"]["metadata"]
                version = metadata["resourceVersion"]
                if event["type"] == "DELETED":
                    lives[metadata["uid"]].end(metadata)
                elif event["type"] != "BOOKMARK":
                    self._note(lives, metadata)

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


def at(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


def stamp_of(claim: Json) -> str:
    """What the claim says by when it must be gone; empty when it says nothing."""
    return str(claim["metadata"].get("annotations", {}).get(TERMINATION_TIMESTAMP, ""))
