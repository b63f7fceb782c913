"""What has to hold when the trouble is over: everything at rest, and staying so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.decision import Concern, Subject
from tenure.core.marks.deadline import deadline_of
from tenure.core.policy.deciders import deciders
from tenure.model.api.names import (
    DISRUPTED_TAINT,
    DRIFTED_CONDITION,
    EMPTY_CONDITION,
    EXPIRED_CONDITION,
    FINALIZER,
    NODEPOOL,
    REBALANCE_CONDITION,
    REBOOT_PRE_BOOT_ID,
    REPLACED_BY,
    REPLACES,
    ZONE,
)
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.snapshot.kinds import decode
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.runtime.evaluate.evaluator import Evaluator
from tests.fuzz.deeds import REBOOT_REQUIRED, TEMPLATE, UNHEALTHY
from tests.runtime.worlds import Tapped

RESOURCES: Final = {one.kind: one.plural for one in (NODE_CLAIMS, NODE_POOLS, NODES, PODS)}

#: Seconds; no day is watched for longer once it is at rest.
PLANNED_WITHIN: Final = 3600.0

#: The conditions of claims that make their nodes candidates.
CHOSEN: Final = {DRIFTED_CONDITION, EMPTY_CONDITION, EXPIRED_CONDITION, REBALANCE_CONDITION}


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
    problems += [f"node {name} needs a reboot" for name in _nodes_with(world, REBOOT_REQUIRED)]
    problems += [f"node {name} is unhealthy" for name in _nodes_with(world, UNHEALTHY)]
    problems += [f"{meta['name']} is being replaced" for meta in things if _is_replaced(meta)]
    closed = [n["metadata"]["name"] for n in world.store.list(NODES) if _is_closed(n)]
    problems += [f"node {name} is closed" for name in closed]
    problems += [f"{meta['name']} is rebooting" for meta in things if _reboots(meta)]
    silent = [
        uid for uid, said in world.controller.observations.instances.drifts.items() if said.silence
    ]
    problems += [f"it is not known whether the claim with UID {uid} has drifted" for uid in silent]
    due_in = world.controller.consolidation.due_in
    if due_in is not None and due_in < PLANNED_WITHIN:
        problems.append(f"a plan of consolidation is due in {due_in:.0f} s")
    plan = world.controller.observations.consolidation.plan
    there = {claim["metadata"]["name"] for claim in claims}
    moves = plan.moves if plan is not None else ()
    # Empty nodes are those of emptiness, which waits for budgets and windows.
    planned = {name for move in moves if move.pods for name in move.claims}
    problems += [f"{name} is to be consolidated" for name in sorted(there & planned)]
    problems += [f"instance {name} has no claim" for name in world.checkers.instances.unclaimed()]
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


def unfinished(world: Tapped) -> list[str]:
    """What Tenure would take away by choice, and replacements that replace nothing."""
    claims = world.store.list(NODE_CLAIMS)
    uids = {claim["metadata"]["uid"] for claim in claims}
    problems = []
    for claim in claims:
        name, annotations = claim["metadata"]["name"], claim["metadata"].get("annotations", {})
        chosen = sorted(_said(claim) & CHOSEN)
        problems += [f"claim {name} is still there: {one}" for one in chosen]
        if uids & set(annotations.get(REPLACES, "").split(",")):
            problems.append(f"claim {name} is the replacement of one that is still there")
    return problems


def misjudged(world: Tapped) -> list[str]:
    """Claims that have drifted and do not say so, or the other way round; by arithmetic of its own."""
    pools = {pool["metadata"]["name"]: pool for pool in world.store.list(NODE_POOLS)}
    running = {one.provider_id: one for one in world.cloud.instances()}
    wanted = world.store.get(KWOK_NODE_CLASSES, "", "default").get("spec", {}).get("image")
    if wanted in (None, "latest"):
        wanted = world.cloud.newest_image
    problems = []
    for claim in world.store.list(NODE_CLAIMS):
        labels, name = claim["metadata"]["labels"], claim["metadata"]["name"]
        template = pools[labels[NODEPOOL]]["spec"]["template"]
        made_from = (template.get("metadata") or {}).get("labels", {}).get(TEMPLATE)
        differs = {
            "template": labels.get(TEMPLATE) != made_from,
            "zone": any(
                one["key"] == ZONE and labels[ZONE] not in one["values"]
                for one in template["spec"]["requirements"]
            ),
            "expireAfter": claim["spec"]["expireAfter"] != template["spec"]["expireAfter"],
            "image": running[claim["status"]["providerID"]].image_id != wanted,
        }
        told = any(
            (c["type"], c["status"]) == ("Drifted", "True") for c in claim["status"]["conditions"]
        )
        if told != any(differs.values()):
            problems.append(f"claim {name} says Drifted={told}, and {differs}")
    return problems


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
    """What must not change any more, and which claims are candidates to be taken away by choice."""
    claims = world.store.list(NODE_CLAIMS)
    return {
        "claims": sorted(claim["metadata"]["name"] for claim in claims),
        "candidates": {claim["metadata"]["name"] for claim in claims if _said(claim) & CHOSEN},
        "launches": world.cloud.launch_count,
        "ends": world.cloud.termination_count,
        "verdicts": _verdicts(world.controller.evaluator),
        "writes": Counter(
            f"{call.verb} {call.what}" for call in world.api_tap.calls if "/events" not in call.what
        ),
        "actions under way": world.controller.executor.in_flight,
    }


def announced(world: Tapped) -> dict[Subject, datetime]:
    """What may change with time alone, as its verdicts say, and from when on."""
    found: dict[Subject, datetime] = {}
    for verdict in world.controller.evaluator.in_force():
        if verdict.recheck_at is not None:
            known = found.get(verdict.subject, verdict.recheck_at)
            found[verdict.subject] = min(known, verdict.recheck_at)
    return found


def unsettled(
    world: Tapped, before: dict[str, Any], announced_for: dict[Subject, datetime]
) -> list[str]:
    """What changed although nothing happened, and what is remembered wrongly.

    A subject whose verdict announced a change by now (``recheck_at``) may have changed. A node that is
    a candidate, and waited for a budget, a window or a protection to end, may have gone.
    """
    after = settled(world)
    may_change = [subject for subject, at in announced_for.items() if at <= world.now]
    gone = before["candidates"] - {*after["claims"]}
    gone &= {one.name for one in may_change if one.kind == NODE_CLAIMS.kind}
    before = before | {
        "claims": [name for name in before["claims"] if name not in gone],
        "ends": before["ends"] + len(gone),
    }
    problems = [
        f"{what} changed although nothing happened: {changed}"
        for what in sorted(before.keys() - {"candidates"})
        if (changed := _difference(before[what], after[what], may_change))
    ]
    fresh = Evaluator(deciders(), world.options.settings)
    fresh.evaluate(world.controller.snapshot(), (), (), world.now)
    if _verdicts(fresh) != after["verdicts"]:
        problems.append("a fresh evaluator says something else than the one that was there all day")
    observations = world.controller.observations
    left = {
        "evictions": observations.pods.evictions,
        "terminations": observations.instances.terminations,
    }
    return problems + [f"{what} are still remembered: {had}" for what, had in left.items() if had]


def _difference(before: Any, after: Any, may_change: Sequence[Subject]) -> str:
    if isinstance(before, Counter):
        more = [what for what in (after - before).elements() if not _is_about(what, may_change)]
        return ", ".join(more)
    if isinstance(before, dict):
        keys = [key for key in {**before, **after} if key[1] not in may_change]
        before, after = (
            [f"{key[0]} {key[1]} {said[key]}" for key in keys if key in said]
            for said in (before, after)
        )
        before, after = (
            [one for one in before if one not in after],
            [one for one in after if one not in before],
        )
    return f"{before} → {after}" if before != after else ""


def _is_about(call: str, subjects: Iterable[Subject]) -> bool:
    """Whether the call writes one of these."""
    parts = call.removesuffix("/status").split("/")
    return any(
        parts[-2:] == [RESOURCES[one.kind], one.name] for one in subjects if one.kind in RESOURCES
    )


def _verdicts(evaluator: Evaluator) -> dict[tuple[Concern, Subject], str]:
    """All but those that end with time alone."""
    lasting = (v for v in evaluator.in_force() if v.concern is not Concern.PROTECTION)
    return {(v.concern, v.subject): f"{v.reason} {v.message}" for v in lasting}


def _is_ours(node: dict[str, Any]) -> bool:
    """A Node that appears while its claim goes is never registered; the cloud's own controller,
    which the embedded cluster does not have, would take it away."""
    return FINALIZER in node["metadata"].get("finalizers", ())


def _nodes_with(world: Tapped, type_: str) -> list[str]:
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


def _said(claim: dict[str, Any]) -> set[str]:
    """The types of its conditions that are True."""
    conditions = claim.get("status", {}).get("conditions", ())
    return {c["type"] for c in conditions if c["status"] == "True"}


def _ready(thing: dict[str, Any]) -> bool:
    conditions = thing.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
