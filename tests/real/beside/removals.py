"""Which pods left a Node too early, and which program removed them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from tests.real.audit import Removal
from tests.real.beside.accompanied import Accompanied
from tests.real.chronicle import is_leaving, version_of
from tests.real.users import LOOK_EVERY, Json

#: Seconds.
WRITTEN_WITHIN: Final = 30


async def removed_before(seen: Accompanied, claim: Json, version: int) -> list[str]:
    """Pods of its Node that were told to go before that version of the cluster, and by which program."""
    await seen.chronicle.caught_up()
    early = [
        gone
        for pod in seen.chronicle.pods_on(claim)
        for gone in seen.chronicle.seen(pod, is_leaving)[:1]
        if version_of(gone) < version
    ]
    return [f"{_removed(gone)}: {await _by(seen, gone)}" for gone in early]


def _removed(gone: Json) -> str:
    conditions = gone["status"].get("conditions", [])
    why = [each["reason"] for each in conditions if each["type"] == "DisruptionTarget"]
    return f"pod {gone['metadata']['name']} at {version_of(gone)} {why}"


async def _by(seen: Accompanied, gone: Json) -> str:
    removals: list[Removal] = []
    metadata = gone["metadata"]
    # The API server writes a request down once it has answered: that may be after the watch told of it.
    with suppress(TimeoutError):
        async with asyncio.timeout(WRITTEN_WITHIN):
            while not removals:
                removals = seen.audit.removals(metadata["namespace"], metadata["name"])
                await asyncio.sleep(LOOK_EVERY)
    return "; then ".join(map(str, removals)) or "no request of the audit log"
