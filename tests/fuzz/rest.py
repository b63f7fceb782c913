"""What has to hold when the trouble is over: everything at rest, and staying so."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from tenure.core.deadline import deadline_of
from tenure.core.decision import Concern
from tenure.core.plan import deciders
from tenure.model.kinds import decode
from tenure.model.names import DISRUPTED_TAINT, FINALIZER, REBOOT_PRE_BOOT_ID, REPLACED_BY
from tenure.model.nodeclaim import NodeClaim
from tenure.model.resource import DEPLOYMENTS, NODE_CLAIMS, NODES, PODS
from tenure.runtime.judge import Judge
from tests.fuzz.deeds import REBOOT_REQUIRED, UNHEALTHY
from tests.runtime.stage import Tapped


def restless(world: Tapped) -> list[str]:
    """What keeps the cluster from being at rest."""
    claims, pods = world.store.list(NODE_CLAIMS), world.store.list(PODS)
    things = [thing["metadata"] for thing in (*claims, *world.store.list(NODES))]
    leaving = [meta["name"] for meta in things if "deletionTimestamp" in meta]
    problems = [f"{name} is still leaving" for name in leaving]
    problems += [f"pod {pod['metadata']['name']} does not run" for pod in pods if not _ready(pod)]
    nodes = [n["metadata"]["name"] for n in world.store.list(NODES) if _is_ours(n)]
    problems += [f"node {name} is silent" for name in nodes if not world.kubelets.is_alive(name)]
    problems += [
        f"node {node['metadata']['name']} is not Ready"
        for node in world.store.list(NODES)
        if _is_ours(node) and not _ready(node)
    ]
    problems += [f"node {name} needs a reboot" for name in _saying(world, REBOOT_REQUIRED)]
    problems += [f"node {name} is unwell" for name in _saying(world, UNHEALTHY)]
    problems += [f"{meta['name']} is being replaced" for meta in things if _is_replaced(meta)]
    closed = [n["metadata"]["name"] for n in world.store.list(NODES) if _is_closed(n)]
    problems += [f"node {name} is closed" for name in closed]
    problems += [f"{meta['name']} is rebooting" for meta in things if _reboots(meta)]
    problems += [f"instance {name} has no claim" for name in world.checkers.unclaimed()]
    wanted = sum(d["spec"]["replicas"] for d in world.store.list(DEPLOYMENTS))
    counts = {
        "pods": (len(pods), wanted),
        "instances": (len(world.cloud.instances()), len(claims)),
        "nodes": (len(nodes), len(claims)),
    }
    return problems + [
        f"there are {have} {what}, and {want} are wanted"
        for what, (have, want) in counts.items()
        if have != want
    ]


def overdue(world: Tapped, calm_since: datetime) -> list[str]:
    """What is still there two minutes after its deadline, and after the trouble."""
    late = []
    for claim in world.store.list(NODE_CLAIMS):
        known = decode(NODE_CLAIMS, msgspec.json.encode(claim))
        deadline = deadline_of(known) if isinstance(known, NodeClaim) else None
        if deadline and world.now > max(deadline.at, calm_since) + timedelta(minutes=2):
            late.append(f"claim {known.name} had to be gone by {deadline}")
    return late


def settled(world: Tapped) -> dict[str, Any]:
    """What must not change any more."""
    return {
        "claims": sorted(claim["metadata"]["name"] for claim in world.store.list(NODE_CLAIMS)),
        "launches": world.cloud.launch_count,
        "ends": world.cloud.termination_count,
        "verdicts": _verdicts(world.controller.judge),
        "writes": len([call for call in world.api_tap.calls if "/events" not in call.what]),
        "actions under way": world.controller.executor.in_flight,
    }


def unsettled(world: Tapped, before: dict[str, Any]) -> list[str]:
    """What changed although nothing happened, and what is remembered wrongly."""
    after = settled(world)
    problems = [
        f"{what} changed although nothing happened: {_difference(before[what], after[what])}"
        for what in before
        if before[what] != after[what]
    ]
    fresh = Judge(deciders(), world.options.settings)
    fresh.turn(world.controller.snapshot(), (), (), world.now)
    if _verdicts(fresh) != after["verdicts"]:
        problems.append("a fresh judge says something else than the one that was there all day")
    knowledge = world.controller.knowledge
    left = {"evictions": knowledge.evictions, "terminations": knowledge.terminations}
    return problems + [f"{what} are still remembered: {had}" for what, had in left.items() if had]


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, list):
        before, after = (
            [one for one in before if one not in after],
            [one for one in after if one not in before],
        )
    return f"{before} → {after}"


def _verdicts(judge: Judge) -> list[str]:
    """All but those that end with time alone."""
    lasting = (v for v in judge.in_force() if v.concern is not Concern.PROTECTION)
    return sorted(f"{v.concern} {v.subject} {v.reason} {v.message}" for v in lasting)


def _is_ours(node: dict[str, Any]) -> bool:
    """A Node that appears while its claim goes is never registered; the cloud's own controller,
    which the embedded cluster does not have, would take it away."""
    return FINALIZER in node["metadata"].get("finalizers", ())


def _saying(world: Tapped, type_: str) -> list[str]:
    """Nodes of ours with that condition."""
    return [
        node["metadata"]["name"]
        for node in world.store.list(NODES)
        for c in node.get("status", {}).get("conditions", ())
        if (c["type"], c["status"]) == (type_, "True") and _is_ours(node)
    ]


def _is_replaced(meta: dict[str, Any]) -> bool:
    return REPLACED_BY in meta.get("annotations", {})


def _is_closed(node: dict[str, Any]) -> bool:
    return any(taint["key"] == DISRUPTED_TAINT for taint in node["spec"].get("taints", ()))


def _reboots(meta: dict[str, Any]) -> bool:
    """It goes with the end of one, good or bad."""
    return REBOOT_PRE_BOOT_ID in meta.get("annotations", {})


def _ready(thing: dict[str, Any]) -> bool:
    conditions = thing.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
