"""Reads the CRDs of Karpenter's kinds, by name: no list, and no watch of all CRDs of a cluster.

They change when Karpenter is upgraded. Where they cannot be read, deciders are told why.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from tenure.core.beside.crds import NAMES
from tenure.errors import TenureError
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.informer import in_words
from tenure.kube.client.client import Client
from tenure.model.api.resource import CRDS
from tenure.model.snapshot.kinds import decode

#: How often they are read again.
PERIOD: Final = timedelta(minutes=5)


async def read_crds(client: Client, cache: Cache) -> None:
    """One that cannot be read stays as it was."""
    problem = ""
    for name in NAMES:
        try:
            cache.upsert(CRDS, decode(CRDS, await client.get(CRDS, name)))
        except TenureError as error:
            problem = in_words(error)
    cache.list_failed(CRDS, problem)


async def watch_crds(client: Client, cache: Cache) -> None:
    """Until cancelled; they have been read once."""
    while True:
        await asyncio.sleep(PERIOD.total_seconds())
        await read_crds(client, cache)
