"""Odd objects against a real API server: what it accepts is handed to every decider.

``make fuzz-objects COUNT=20000 SEED=7``. Each object is created, its status written, some are
deleted; every version that the server hands out is evaluated beside a small cluster that has nothing
to do with it (``bystanders``). Nothing may fail, and nothing may change for others.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final

import msgspec

from tenure.errors import ApiError
from tenure.kube.client.client import Client
from tenure.model.api.resource import DAEMON_SETS, Resource
from testbed.controlplane import control_plane
from tests.fuzz.bystanders import Bystanders, Finding
from tests.fuzz.oddities import Odd, odd_objects
from tests.real.cluster import connected, install_crds

#: So many objects are on their way at once.
AT_ONCE: Final = 16
#: After so many objects a line says how far it is.
SAID_EVERY: Final = 2000
#: So many findings are shown.
SHOWN: Final = 20
#: Of those that stay when they are deleted, every so many is: finalizers and graces hold them.
DELETED: Final = 0.3
#: Every so many stays beside those that come later.
STAYING: Final = 0.02


class Handed(msgspec.Struct, frozen=True):
    """An accepted object in every version that the server has handed out."""

    resource: Resource
    versions: tuple[bytes, ...]


async def accepted(client: Client, odds: Iterator[Odd], random: Random) -> AsyncIterator[Handed]:
    """What the server accepts, without end."""
    while True:
        batch = [next(odds) for _ in range(AT_ONCE)]
        chances = [random.random() for _ in batch]
        tasks = [_handed(client, odd, chance) for odd, chance in zip(batch, chances, strict=True)]
        for handed in await asyncio.gather(*tasks):
            if handed is not None:
                yield handed


async def _handed(client: Client, odd: Odd, chance: float) -> Handed | None:
    meta = odd.manifest["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    try:
        versions = [await client.create(odd.resource, odd.manifest, namespace)]
    except ApiError:
        return None
    if odd.status:
        patch = {"status": odd.status}
        with suppress(ApiError):  # The object without it counts all the same.
            versions.append(
                await client.patch(
                    odd.resource, name, patch, namespace=namespace, subresource="status"
                )
            )
    if chance < DELETED:
        uid = msgspec.json.decode(versions[0])["metadata"]["uid"]
        with suppress(ApiError):  # It may be gone at once.
            await client.delete(odd.resource, name, uid=uid, namespace=namespace)
            versions.append(await client.get(odd.resource, name, namespace))
    return Handed(odd.resource, tuple(versions))


def say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


async def fuzzed(kubeconfig: Path, count: int, seed: int) -> tuple[list[Finding], Counter[str]]:
    """What was found in so many accepted objects, and how many of each kind there were."""
    # Each has its own chance: who stays changes nothing about who comes.
    staying, bystanders = Random(seed + 2), Bystanders()
    found: list[Finding] = []
    kinds: Counter[str] = Counter()
    async with connected(kubeconfig) as transport:
        odds = odd_objects(Random(seed), f"odd{seed}")
        async for handed in accepted(Client(transport), odds, Random(seed + 1)):
            kinds[handed.resource.kind] += 1
            # Many ordinary daemons leave no room on any node, and that is as it should be.
            if staying.random() < STAYING and handed.resource != DAEMON_SETS:
                found += bystanders.stay(handed.resource, handed.versions[-1])
            else:
                found += bystanders.meet(handed.resource, handed.versions)
            if kinds.total() % SAID_EVERY == 0:
                say(f"  {kinds.total()} accepted, {len(found)} findings")
            if kinds.total() >= count or len(found) >= SHOWN:
                return found, kinds
    raise AssertionError("there is always another one")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None)
    options: Any = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else Random().randrange(10**6)
    say(f"seed {seed}: make fuzz-objects SEED={seed} COUNT={options.count}")
    began = monotonic()
    with control_plane() as plane:
        install_crds(plane)
        found, kinds = asyncio.run(fuzzed(plane.kubeconfig, options.count, seed))
    for finding in found[:SHOWN]:
        say(f"  {str(finding)[:4000]}")
    listed = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    say(f"{kinds.total()} accepted objects in {monotonic() - began:.0f} s ({listed})")
    say(f"seed {seed}: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
