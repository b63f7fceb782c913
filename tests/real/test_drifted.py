"""A change of each field of a template that drifts: the node is replaced by one that has it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES
from testbed.controlplane import ControlPlane
from tests.builders import a_requirement
from tests.real.chronicle import Chronicle, is_leaving, says
from tests.real.deadlines import Leaving
from tests.real.replacements import replacement_of, tell
from tests.real.scene import TWO_CORES
from tests.real.unhealthy import node_of
from tests.real.users import Json, names
from tests.real.voluntary import a_small_pool, replaced

TAINT: Final = {"key": "example.com/dedicated", "value": "x", "effect": "PreferNoSchedule"}
STARTS: Final = {"key": "example.com/starts", "effect": "NoSchedule"}
REQUIRED: Final = [
    a_requirement("karpenter.sh/capacity-type", "on-demand"),
    a_requirement("node.kubernetes.io/instance-type", TWO_CORES),
    a_requirement("topology.kubernetes.io/zone", "test-zone-c"),
]
#: By pool: a merge of ``spec.template``, and the reason and a part of the message of ``Drifted``.
CHANGES: Final[dict[str, tuple[Json, str, str]]] = {
    "labels": (
        {"metadata": {"labels": {"team": "b"}}},
        "NodePoolDrifted",
        "metadata.labels (team=b added)",
    ),
    "annotations": (
        {"metadata": {"annotations": {"example.com/owner": "me"}}},
        "NodePoolDrifted",
        "metadata.annotations (example.com/owner=me added)",
    ),
    "taints": (
        {"spec": {"taints": [TAINT]}},
        "NodePoolDrifted",
        "spec.taints (example.com/dedicated=x:PreferNoSchedule added)",
    ),
    "startup-taints": (
        {"spec": {"startupTaints": [STARTS]}},
        "NodePoolDrifted",
        "spec.startupTaints (example.com/starts:NoSchedule added)",
    ),
    "requirements": (
        {"spec": {"requirements": REQUIRED}},
        "RequirementsDrifted",
        "topology.kubernetes.io/zone In [test-zone-c] (the claim has test-zone-",
    ),
}


def test_each_field_that_drifts_makes_a_node_be_replaced_by_one_that_has_it(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        manifests = [manifest for pool in CHANGES for manifest in a_small_pool(pool)]
        await leaving.settle(*manifests, pods=len(CHANGES))
        old = {pool: await leaving.claim_in(pool) for pool in CHANGES}
        new = await asyncio.gather(
            *(drifts_and_goes(leaving, chronicle, pool, claim) for pool, claim in old.items())
        )
        nodes = dict(zip(old, [await node_of(leaving.users, claim) for claim in new], strict=True))
        assert nodes["labels"]["metadata"]["labels"]["team"] == "b"
        assert nodes["annotations"]["metadata"]["annotations"]["example.com/owner"] == "me"
        assert TAINT in nodes["taints"]["spec"]["taints"]
        zone = nodes["requirements"]["metadata"]["labels"]["topology.kubernetes.io/zone"]
        assert zone == "test-zone-c"
        await leaving.scene.all_run(len(CHANGES))
        await leaving.scene.in_order(claims=len(CHANGES), ever=2 * len(CHANGES))

    tell(cluster, tmp_path, "fields", story)


async def drifts_and_goes(leaving: Leaving, chronicle: Chronicle, pool: str, claim: Json) -> Json:
    change, reason, what = CHANGES[pool]
    await leaving.users.client.patch(NODE_POOLS, pool, {"spec": {"template": change}})
    drifted = says("Drifted", "True", reason)
    await chronicle.first(claim, drifted, reason)
    (said, *_) = chronicle.seen(claim, drifted)
    (message,) = [c["message"] for c in said["status"]["conditions"] if c["type"] == "Drifted"]
    assert what in message
    await leaving.event("Drifted", names([claim])[0], what)
    if pool == "startup-taints":
        await started(leaving, chronicle, claim)
    return await current(leaving, await replaced(leaving, chronicle, claim, "Drifted"))


async def started(leaving: Leaving, chronicle: Chronicle, claim: Json) -> None:
    """A daemon of the new node takes its startup taint off; until then the old one stays."""
    new = await replacement_of(leaving, claim)
    await chronicle.first(new, says("Registered", "True"), "registered")
    node = await node_of(leaving.users, await current(leaving, new))
    await chronicle.first(node, says("Ready", "True"), "Ready")
    assert not chronicle.seen(new, says("Initialized", "True"))
    assert not chronicle.seen(claim, is_leaving)
    await take_off(leaving, node, STARTS["key"])


async def take_off(leaving: Leaving, node: Json, key: str) -> None:
    """As ``kubectl taint node NAME KEY-``."""
    name = names([node])[0]
    nodes = await leaving.users.all(NODES)
    (node,) = [one for one in nodes if names([one]) == [name]]
    taints = [taint for taint in node["spec"]["taints"] if taint["key"] != key]
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    patch = {"metadata": version, "spec": {"taints": taints or None}}
    await leaving.users.client.patch(NODES, name, patch)


async def current(leaving: Leaving, claim: Json) -> Json:
    """The claim as it is now."""
    claims = await leaving.users.all(NODE_CLAIMS)
    (found,) = [one for one in claims if names([one]) == names([claim])]
    return found
