"""Observes the cluster while processes die: which objects existed, and how many pods ran at least.

It lists and watches by itself, so that it shares no fault with the replica that it watches.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from tenure.errors import TenureError
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS, Resource
from tenure.providers.kwok.labels import CLAIM_UID
from tests.real.users import PATIENCE, Users, running

Json = dict[str, Any]
LOOK_EVERY: Final = 0.1


class Observer:
    def __init__(self, users: Users) -> None:
        self._users = users
        #: By UID, those that are gone included, as they were last.
        self.nodes: dict[str, Json] = {}
        self.claims: dict[str, Json] = {}
        #: By UID, those that are there.
        self._pods: dict[str, Json] = {}
        self._counts = False
        #: How many pods of the story ran at any moment since it counts, at least.
        self.fewest = 0

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self._follow(NODES, self.nodes)),
            asyncio.create_task(self._follow(NODE_CLAIMS, self.claims)),
            asyncio.create_task(self._follow(PODS, self._pods, keep=False)),
        ]
        try:
            yield
            assert not any(task.done() for task in tasks), "the observer looked away"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def caught_up(self, *objects: Json) -> None:
        """Until it has seen all of these: it sees nothing while an API server restarts."""
        uids = {each["metadata"]["uid"] for each in objects}
        async with asyncio.timeout(PATIENCE):
            while not uids <= self.claims.keys() | self.nodes.keys():
                await asyncio.sleep(LOOK_EVERY)

    def doubled(self) -> dict[str, list[str]]:
        """Claims for which more than one instance was ever made, by UID."""
        made: dict[str, list[str]] = defaultdict(list)
        for node in self.nodes.values():
            made[node["metadata"]["annotations"][CLAIM_UID]].append(node["metadata"]["name"])
        return {uid: nodes for uid, nodes in made.items() if len(nodes) > 1}

    def count_from_now(self) -> None:
        self._counts, self.fewest = True, self._running()

    def _running(self) -> int:
        ours = self._users.namespace
        return sum(pod["metadata"]["namespace"] == ours for pod in running(self._pods.values()))

    async def _follow(
        self, resource: Resource, known: dict[str, Json], *, keep: bool = True
    ) -> None:
        client = self._users.client
        while True:
            with suppress(TenureError):  # An API server that is away comes back.
                items, version = await client.list_all(resource)
                if not keep:
                    known.clear()
                known |= {each["metadata"]["uid"]: each for each in map(msgspec.json.decode, items)}
                self._look()
                async for line in await client.watch(resource, version):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        break  # The past is forgotten: look at the present.
                    if event["type"] != "BOOKMARK":
                        self._note(known, event, keep)
            await asyncio.sleep(LOOK_EVERY)

    def _note(self, known: dict[str, Json], event: Json, keep: bool) -> None:
        uid = event["object"]["metadata"]["uid"]
        known[uid] = event["object"]
        if event["type"] == "DELETED" and not keep:
            del known[uid]
        self._look()

    def _look(self) -> None:
        if self._counts:
            self.fewest = min(self.fewest, self._running())
