"""Unhealthy nodes on the test bed: what a kubelet, or a node problem detector, would write.

kwok writes no condition of a node that has been Ready once, so what is written here stays.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.errors import Conflict
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import NODES
from testbed.controlplane import KWOK_LABEL
from tests.builders import Manifest, a_node_class, a_pool, a_requirement
from tests.real.chronicle import Chronicle
from tests.real.scene import EIGHT_CORES, Scene
from tests.real.users import Json, Users

#: What makes kwok play the kubelet of a node.
PLAYED: Final = KWOK_LABEL.partition("=")[0]


def a_forceful_pool(name: str, *, type_: str = EIGHT_CORES, **spec: Any) -> Manifest:
    """One whose nodes are repaired forcefully, three seconds after they became unhealthy."""
    repair = {"policies": [{"conditionType": "Ready", "toleration": "3s"}]}
    repair |= spec.pop("repair", {})
    return a_pool(name, requirements=[a_requirement(INSTANCE_TYPE, type_)], repair=repair, **spec)


def a_graceful_pool(*policies: dict[str, Any], **spec: Any) -> Manifest:
    """One whose nodes are repaired gracefully: by these policies, or else as the provider says."""
    if policies:
        spec["repair"] = {"terminationMode": "Graceful", "policies": list(policies)}
    return a_pool(requirements=[a_requirement(INSTANCE_TYPE, EIGHT_CORES)], **spec)


async def settle(scene: Scene, policy: dict[str, Any], *manifests: Manifest, pods: int) -> Json:
    """On one node of such a pool, of which the next would come five seconds late; its claim."""
    slow = a_node_class("slow", nodeRegistrationDelay="5s")
    await scene.users.apply(slow, a_graceful_pool(policy, node_class="slow"), *manifests)
    await scene.all_run(pods)
    (claim,) = await scene.ready_claims()
    scene.seen.count_from_now()
    return claim


async def node_of(users: Users, claim: Json) -> Json:
    node: Json = msgspec.json.decode(await users.client.get(NODES, claim["status"]["nodeName"]))
    return node


async def say(
    users: Users,
    claim: Json,
    type_: str,
    status: str,
    reason: str = "Broken",
    ago: timedelta = timedelta(),
) -> datetime:
    """A condition of the claim's Node is so from now on, or since then; the instant that is written there."""
    at = datetime.now(UTC).replace(microsecond=0) - ago
    instant = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    said = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": "a story made it so",
        "lastHeartbeatTime": instant,
        "lastTransitionTime": instant,
    }
    while True:
        node = await node_of(users, claim)
        others = [c for c in node["status"].get("conditions", []) if c["type"] != type_]
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": {"conditions": [*others, said]}}
        try:
            await users.client.patch(NODES, node["metadata"]["name"], patch, subresource="status")
        except Conflict:
            continue  # Another client wrote in between: try again on its version.
        return at


async def recover(users: Users, claim: Json, type_: str = "Ready") -> None:
    await say(users, claim, type_, "True" if type_ == "Ready" else "False", "WellAgain")


async def silence(users: Users, claim: Json) -> datetime:
    """Its kubelet is dead: it stops no pod, renews no Lease, and the cluster does not know it."""
    patch = {"metadata": {"labels": {PLAYED: None}}}
    await users.client.patch(NODES, claim["status"]["nodeName"], patch)
    return await say(users, claim, "Ready", "Unknown", "NodeStatusUnknown")


def is_rebooted(node: Json) -> bool:
    """Whether kwok's machine says that it has been."""
    return str(node["status"].get("nodeInfo", {}).get("bootID", "")).startswith("kwok-")


def boots_of(chronicle: Chronicle, node: Json) -> list[str]:
    """The boots that it has had, one after the other."""
    found: list[str] = []
    for version in chronicle.of(node):
        boot = version["status"].get("nodeInfo", {}).get("bootID", "")
        if boot not in found[-1:]:
            found.append(boot)
    return found
