"""Every version of the pools, claims, Nodes and pods of a story, in the order in which they were written.

Versions order what happens to all objects, whenever we hear of it: so a story can say what came first,
however slow the machine is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from tenure.errors import TooManyRequests, Unavailable
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS, Resource
from tests.real.users import LOOK_EVERY, PATIENCE, Users

Json = dict[str, Any]
Holds = Callable[[Json], bool]
FOLLOWED: Final = (NODE_POOLS, NODE_CLAIMS, NODES, PODS)


class Chronicle:
    def __init__(self, users: Users) -> None:
        self._users = users
        #: By UID.
        self.versions: dict[str, list[Json]] = {}
        self._known: dict[Resource, set[str]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def written(self) -> AsyncIterator[None]:
        self._tasks = [asyncio.create_task(self._follow(resource)) for resource in FOLLOWED]
        try:
            yield
            self.goes_on()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def goes_on(self) -> None:
        """It has not stopped."""
        for task in self._tasks:
            if task.done():
                raise AssertionError("the recorder has stopped") from task.exception()

    def of(self, thing: Json) -> list[Json]:
        return self.versions.get(thing["metadata"]["uid"], [])

    def node_of(self, claim: Json) -> Json:
        """The Node of a claim, as it was last, whether it is still there or not."""
        provider_id = claim["status"]["providerID"]
        (node,) = [
            node
            for *_, node in self.versions.values()
            if node["spec"].get("providerID") == provider_id
        ]
        return node

    def pods_on(self, claim: Json) -> list[Json]:
        """Every pod that was ever bound to its Node, as it was last."""
        name = claim["status"]["nodeName"]
        return [pod for *_, pod in self.versions.values() if pod["spec"].get("nodeName") == name]

    def seen(self, thing: Json, holds: Holds, *, after: int = 0) -> list[Json]:
        """Its versions of which that is true, after that version of the cluster."""
        return [v for v in self.of(thing) if version_of(v) > after and holds(v)]

    async def first(self, thing: Json, holds: Holds, what: str, *, after: int = 0) -> int:
        """At which version of the cluster that was first true of it; waits until it is."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := self.seen(thing, holds, after=after)):
                    await asyncio.sleep(LOOK_EVERY)
        except TimeoutError:
            name = thing["metadata"]["name"]
            last = self.of(thing)[-1:]
            raise AssertionError(f"{name}: never {what}: {last}") from None
        return version_of(found[0])

    async def caught_up(self) -> None:
        """Until it has heard of everything that was written before: each kind has its own watch."""
        for resource in FOLLOWED:
            for thing in await self._users.all(resource):
                version = version_of(thing)

                def heard(it: Json, version: int = version) -> bool:
                    return version_of(it) >= version

                await self.first(thing, heard, f"heard of at {version}")

    async def _follow(self, resource: Resource) -> None:
        client = self._users.client
        version = await self._list(resource)
        while True:
            # It goes on behind the last version, and misses nothing.
            with suppress(Unavailable, TooManyRequests):
                async for line in await client.watch(resource, version):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        # An API server that began anew knows no older version.
                        assert event["object"]["code"] == 410, event
                        version = await self._list(resource)
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._note(resource, event["object"])
            await asyncio.sleep(LOOK_EVERY)

    async def _list(self, resource: Resource) -> str:
        """What is there now; what has gone meanwhile leaves at the version of the list."""
        items, version = await self._users.client.list_all(resource)
        there = [msgspec.json.decode(item) for item in items]
        for thing in there:
            self._note(resource, thing)
        uids = {thing["metadata"]["uid"] for thing in there}
        for uid in self._known.get(resource, set()) - uids:
            last = self.versions[uid][-1]
            if not is_leaving(last):
                gone = {"deletionTimestamp": "unseen", "resourceVersion": version}
                self._note(resource, {**last, "metadata": {**last["metadata"], **gone}})
        return version

    def _note(self, resource: Resource, thing: Json) -> None:
        uid = thing["metadata"]["uid"]
        self._known.setdefault(resource, set()).add(uid)
        known = self.versions.setdefault(uid, [])
        if not known or version_of(known[-1]) != version_of(thing):
            known.append(thing)


def version_of(thing: Json) -> int:
    return int(thing["metadata"]["resourceVersion"])


def is_leaving(thing: Json) -> bool:
    return "deletionTimestamp" in thing["metadata"]


def has_taint(key: str) -> Holds:
    return lambda node: any(taint["key"] == key for taint in node["spec"].get("taints", []))


def says(condition: str, status: str, reason: str = "") -> Holds:
    """Whether it has that condition; with that reason, where one is given."""

    def holds(thing: Json) -> bool:
        return any(
            (each["type"], each["status"]) == (condition, status)
            and reason in ("", each.get("reason"))
            for each in thing.get("status", {}).get("conditions", [])
        )

    return holds
