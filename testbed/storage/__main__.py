"""``python -m testbed.storage KUBECONFIG``: the storage driver at work, until it is killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from tenure.errors import AlreadyExists, Conflict, NotFound, TenureError
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport, Limits
from tenure.kube.client.kubeconfig import load_access
from tenure.model.api.resource import Resource
from tenure.runtime.clock.system import SystemClock
from testbed.storage.orders import DRIVER, WATCHED, Order, Seen, orders

CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False)
#: Seconds until something is tried again that the API server did not take.
AGAIN_AFTER: Final = 0.2
#: Attachments come by the hundred.
AT_ONCE: Final = 16
#: What a write says that is no longer needed.
STALE: Final = (AlreadyExists, Conflict, NotFound)


class Driver:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen = Seen()
        self._changed = asyncio.Event()

    async def work(self) -> None:
        async with asyncio.TaskGroup() as group:
            for kind in WATCHED:
                group.create_task(self._follow(kind))
            group.create_task(self._act())

    async def _act(self) -> None:
        await self._registered()
        while True:
            await self._changed.wait()
            self._changed.clear()
            turn = asyncio.Semaphore(AT_ONCE)
            done = await asyncio.gather(*(self._carry_out(o, turn) for o in [*orders(self._seen)]))
            if not all(done):
                await asyncio.sleep(AGAIN_AFTER)
                self._changed.set()

    async def _registered(self) -> None:
        body = {"metadata": {"name": DRIVER}, "spec": {"attachRequired": True}}
        while True:
            try:
                await self._client.create(CSI_DRIVERS, body)
            except AlreadyExists:
                return
            except TenureError:
                await asyncio.sleep(AGAIN_AFTER)

    async def _carry_out(self, order: Order, turn: asyncio.Semaphore) -> bool:
        """Whether it need not be tried again."""
        try:
            async with turn:
                await self._write(order)
        except STALE:
            return True
        except TenureError as error:
            print(f"{order.verb} {order.kind} {order.name}: {error}", flush=True)
            return False
        return True

    async def _write(self, order: Order) -> None:
        client, where = self._client, order.namespace
        match order.verb:
            case "create":
                await client.create(order.kind, order.body, where)
            case "delete":
                await client.delete(order.kind, order.name, uid=order.uid, namespace=where)
            case _:
                await client.patch(
                    order.kind,
                    order.name,
                    order.body,
                    namespace=where,
                    subresource=order.subresource,
                )

    async def _follow(self, kind: Resource) -> None:
        known = self._seen.by_kind[kind]
        while True:
            with suppress(TenureError):  # An API server that is away comes back.
                items, version = await self._client.list_all(kind)
                known.clear()
                known |= {_key(each): each for each in map(msgspec.json.decode, items)}
                self._changed.set()
                async for line in await self._client.watch(kind, version):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        _note(known, event)
                        self._changed.set()
            await asyncio.sleep(AGAIN_AFTER)


def _note(known: dict[tuple[str, str], dict[str, Any]], event: Mapping[str, Any]) -> None:
    if event["type"] == "DELETED":
        known.pop(_key(event["object"]), None)
    else:
        known[_key(event["object"])] = event["object"]


def _key(thing: Mapping[str, Any]) -> tuple[str, str]:
    return thing["metadata"].get("namespace", ""), thing["metadata"]["name"]


async def main(kubeconfig: Path) -> None:
    access = load_access(kubeconfig)
    credentials = credentials_for(access, SystemClock())
    async with HttpTransport(access, credentials, limits=Limits()) as transport:
        await Driver(Client(transport)).work()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
