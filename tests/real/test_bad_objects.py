"""Invalid objects that a real API server serves: they block and delay no other object."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from tenure.kube.client.http import Limits
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS, Resource
from tenure.ports.transport import Request
from testbed.controlplane import ControlPlane, control_plane
from tests.builders import a_deployment
from tests.fuzz.objects import fuzzed
from tests.real.cluster import ANSWER, connected, install_crds
from tests.real.deadlines import Leaving, a_marked_pod, a_place, in_place, tell
from tests.real.users import Json, is_true, names

SEED, COUNT = 5, 300

#: The server keeps the instant, and writes it in UTC: as a year that few calendars have.
BEYOND: Final = {
    "type": "example.com/x",
    "status": "True",
    "lastTransitionTime": "9999-12-31T23:59:59-23:59",
}


async def patched(leaving: Leaving, resource: Resource, thing: Json) -> str:
    """With that condition; the instant as the server hands it out."""
    meta = thing["metadata"]
    told = {"status": {"conditions": [*thing["status"]["conditions"], BEYOND]}}
    where = meta.get("namespace", "")
    await leaving.users.client.patch(
        resource, meta["name"], told, namespace=where, subresource="status"
    )
    (now,) = [one for one in await leaving.users.all(resource) if names([one]) == names([thing])]
    (found,) = [c for c in now["status"]["conditions"] if c["type"] == BEYOND["type"]]
    return str(found["lastTransitionTime"])


async def mended(leaving: Leaving, resource: Resource, thing: Json) -> None:
    """Without it again. A real server takes no merge patch of an object with such an instant, not
    even from Tenure: it is replaced as a whole."""
    meta = thing["metadata"]
    where, name = meta.get("namespace", ""), meta["name"]
    path = resource.path(where, name, "status")
    async with connected(leaving.scene.plane.kubeconfig, Limits(answer=ANSWER)) as transport:
        while True:
            now = msgspec.json.decode(await leaving.users.client.get(resource, name, where))
            told = now["status"]["conditions"]
            now["status"]["conditions"] = [c for c in told if c["type"] != BEYOND["type"]]
            body = msgspec.json.encode(now)
            answer = await transport.request(Request(method="PUT", path=path, body=body))
            if answer.status != 409:  # Another client wrote in between: try again on its version.
                break
    assert answer.status == 200, answer.body


def test_a_protected_pod_with_an_instant_beyond_the_calendar_keeps_its_node(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        pod = a_marked_pod("kept", {DO_NOT_DISRUPT: "true"}, **in_place("far"))
        await leaving.settle(a_place("far"), pod, pods=1)
        kept = await leaving.pod("kept")
        assert await patched(leaving, PODS, kept) == "10000-01-01T23:58:59Z"
        claim = await leaving.claim_in("far")
        await leaving.users.delete(NODE_CLAIMS, claim)
        node = claim["status"]["nodeName"]
        await leaving.event("FailedDraining", node, "beyond/kept", DO_NOT_DISRUPT)
        assert names(await leaving.users.all(PODS)) == ["kept"]
        await mended(leaving, PODS, kept)
        await leaving.patch(PODS, kept, annotations={DO_NOT_DISRUPT: None})
        await leaving.scene.until_gone(claim)

    tell(cluster, tmp_path, "beyond", story)


def test_a_node_with_an_instant_beyond_the_calendar_is_not_lost(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        first = a_deployment("first", **in_place("far"))
        await leaving.settle(a_place("far"), first, pods=1)
        claim = await leaving.claim_in("far")
        (node,) = await leaving.users.all(NODES)
        assert await patched(leaving, NODES, node) == "10000-01-01T23:58:59Z"
        # That another node comes shows that Tenure has seen the first one as it is now.
        await leaving.users.apply(a_place("near"), a_deployment("second", **in_place("near")))
        await leaving.scene.all_run(2)
        now = await leaving.claim_in("far")
        assert names([now]) == names([claim])
        assert not is_true("NodeLost")(now)
        assert "deletionTimestamp" not in now["metadata"]
        await mended(leaving, NODES, node)
        await leaving.users.delete(NODE_CLAIMS, claim)
        await leaving.scene.until_gone(claim)
        evicted = [order for order in leaving.audit.orders() if order.verb == "evict"]
        assert evicted, "it was drained, as any other"

    tell(cluster, tmp_path, "notlost", story)


def test_odd_objects_that_a_real_server_accepts_block_no_other() -> None:
    with control_plane() as plane:
        install_crds(plane)
        found, kinds = asyncio.run(fuzzed(plane.kubeconfig, COUNT, SEED))
    assert not found, f"seed {SEED}: " + "\n".join(map(str, found[:10]))
    assert len(kinds) > 8, f"else few kinds were tried: {kinds}"
