"""Pools whose nodes are taken away by choice, and in which order that has to be seen."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tenure.model.api.names import DISRUPTED_TAINT, INSTANCE_TYPE, NODEPOOL, REPLACES
from tenure.model.api.resource import NODE_POOLS
from tests.builders import Manifest, a_deployment, a_pool, a_requirement
from tests.real.audit import LEASES, AuditEntry
from tests.real.chronicle import Chronicle, has_taint, is_leaving, says
from tests.real.deadlines import Leaving, in_place
from tests.real.replacements import replacement_of
from tests.real.scene import TWO_CORES
from tests.real.users import LOOK_EVERY, PATIENCE, Json, names

RENEWALS: Final = 5
#: Nodes that have become empty stay.
KEEP_EMPTY: Final = {"consolidateAfter": "Never"}


def a_small_pool(
    name: str,
    *,
    template: Manifest | None = None,
    node_class: str = "default",
    **disruption: Any,
) -> tuple[Manifest, Manifest]:
    """A pool of nodes that one pod fills, and a Deployment of its name with one pod for it."""
    pool = a_pool(
        name,
        requirements=[a_requirement(INSTANCE_TYPE, TWO_CORES)],
        node_class=node_class,
        template=template,
        disruption=KEEP_EMPTY | disruption,
    )
    return pool, a_deployment(name, cpu="1500m", **in_place(name))


async def change_template(leaving: Leaving, pool: str, **spec: Any) -> None:
    """A merge of ``spec.template.spec``."""
    patch = {"spec": {"template": {"spec": spec}}}
    await leaving.users.client.patch(NODE_POOLS, pool, patch)


async def change_labels(leaving: Leaving, pool: str) -> None:
    """Every node of the pool has drifted."""
    patch = {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}}
    await leaving.users.client.patch(NODE_POOLS, pool, patch)


async def allow(leaving: Leaving, pool: str, *budgets: Manifest) -> None:
    patch = {"spec": {"disruption": {"budgets": list(budgets)}}}
    await leaving.users.client.patch(NODE_POOLS, pool, patch)


async def blocked(leaving: Leaving, claim: Json, *words: str) -> None:
    """Until the Node and the claim say so."""
    for about in (claim["status"]["nodeName"], names([claim])[0]):
        await leaving.event("DisruptionBlocked", about, *words)


async def untouched(leaving: Leaving, chronicle: Chronicle, *claims: Json) -> None:
    """Nothing has been done about them."""
    await chronicle.caught_up()
    for claim in claims:
        assert not chronicle.seen(chronicle.node_of(claim), has_taint(DISRUPTED_TAINT))
        assert not chronicle.seen(claim, is_leaving)
    assert leaving.audit.orders() == []


async def quiet(leaving: Leaving) -> None:
    """Until Tenure has renewed its Lease five times without any other write."""

    def writes() -> list[AuditEntry]:
        renewed = [each.at for each in leaving.audit.entries("tenure", resource=LEASES)]
        since = renewed[-RENEWALS] if len(renewed) >= RENEWALS else None
        return [e for e in leaving.audit.entries("tenure") if since is None or e.at >= since]

    try:
        async with asyncio.timeout(PATIENCE):
            while writes():
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError:
        raise AssertionError(f"it writes again and again: {writes()}") from None


async def replaced(leaving: Leaving, chronicle: Chronicle, claim: Json, reason: str) -> Json:
    """For that reason, the replacement first; what replaces it."""
    node, pods = chronicle.node_of(claim), chronicle.pods_on(claim)
    new = await replacement_of(leaving, claim)
    comes = await chronicle.first(new, lambda _: True, "there")
    closed = await chronicle.first(node, has_taint(DISRUPTED_TAINT), "closed")
    said = await chronicle.first(claim, says("DisruptionReason", "True", reason), reason)
    ready = await chronicle.first(new, says("Initialized", "True"), "initialized")
    leaves = await chronicle.first(claim, is_leaving, "leaving")
    assert comes < closed < leaves
    assert comes < ready < leaves
    assert said < leaves
    assert pods
    for pod in pods:
        assert await chronicle.first(pod, is_leaving, "leaving") > leaves
    assert new["metadata"]["labels"][NODEPOOL] == claim["metadata"]["labels"][NODEPOOL]
    await leaving.scene.until_gone(claim)
    return new


async def removed(leaving: Leaving, chronicle: Chronicle, claim: Json, reason: str) -> None:
    """For that reason, and nothing comes for it."""
    said = await chronicle.first(claim, says("DisruptionReason", "True", reason), reason)
    assert said < await chronicle.first(claim, is_leaving, "leaving")
    await leaving.scene.until_gone(claim)
    uid = claim["metadata"]["uid"]
    every = leaving.scene.seen.claims.values()
    assert not [c for c in every if c["metadata"].get("annotations", {}).get(REPLACES) == uid]
