"""Stories of nodes that are replaced: told with a chronicle, so that they can say what came first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from tenure.model.api.names import REPLACES
from tenure.model.api.resource import NODE_CLAIMS
from testbed.controlplane import ControlPlane
from tests.real import deadlines
from tests.real.chronicle import Chronicle
from tests.real.deadlines import Leaving
from tests.real.users import Json


async def replacement_of(leaving: Leaving, claim: Json) -> Json:
    """Until there is one; it says which claim it replaces."""
    uid = claim["metadata"]["uid"]

    def ours(claims: list[Json]) -> list[Json]:
        return [c for c in claims if c["metadata"].get("annotations", {}).get(REPLACES) == uid]

    claims = await leaving.users.until(NODE_CLAIMS, lambda now: bool(ours(now)), "replaced")
    (new,) = ours(claims)
    return new


def tell(
    cluster: ControlPlane,
    folder: Path,
    namespace: str,
    story: Callable[[Leaving, Chronicle], Awaitable[None]],
) -> None:
    async def told(leaving: Leaving) -> None:
        chronicle = Chronicle(leaving.users)
        async with chronicle.written():
            await story(leaving, chronicle)

    deadlines.tell(cluster, folder, namespace, told)
