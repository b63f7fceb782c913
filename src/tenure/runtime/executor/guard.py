"""The last check before an action leaves: asks ``safety`` about the newest view.

Verdicts are made at the beginning of a turn; an action may start later. The guard reads the newest
cache and observations, and refuses with a sentence. An action without a rule is refused.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import (
    Action,
    Create,
    Delete,
    DeletePod,
    Evict,
    Ground,
    Inspect,
    Launch,
    Patch,
    Reboot,
    Terminate,
)
from tenure.model.api import names
from tenure.model.api.meta import later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import first_unreadable
from tenure.model.values.unreadable import UnreadableObject
from tenure.safety import actions
from tenure.safety.beside import beyond_levers, is_left_over
from tenure.safety.departure import (
    BEGINS,
    PLANNED,
    Departure,
    forbidden,
    forbidden_on,
    forbidden_reboot,
)
from tenure.safety.pods import awaited_pods, protection_cap
from tenure.safety.times import deadline_of, span_of
from tenure.safety.unreadable import unreadable_parts
from tenure.safety.voluntary import EXPIRED

#: For callers that do not depend on a setting.
_DEFAULTS: Final = Settings()
#: After the deadline every pod has been deleted; then the instance goes, whatever is left.
LAST_MINUTE: Final = timedelta(minutes=1)


def veto(
    action: Action, snapshot: Snapshot, now: datetime, settings: Settings = _DEFAULTS
) -> str | None:
    """Why this must not be done; None when it may."""
    if snapshot.unreadable() and (why := _unreadable(action, snapshot, now)):
        return f"{why}, so nothing is taken away from it"
    if settings.beside_karpenter:
        beyond = beyond_levers(action, snapshot, now, settings)
        if beyond is not None:
            return beyond
    match action:
        case Patch() | Delete():
            return _write(action, snapshot, now, settings)
        case Create():
            return _create(action, snapshot, now, settings)
        case Evict():
            return _take_pod(action, snapshot) or _evict(action, snapshot, now, settings)
        case DeletePod():
            return _take_pod(action, snapshot) or _force(action, snapshot, now)
        case Launch():
            return actions.late_launch(_claim(action.request.claim_uid, snapshot))
        case Reboot():
            claim = _claim(action.claim_uid, snapshot)
            # What may hold it was asked when it began, and when its drain was over.
            return actions.uncalled_reboot(claim, action.provider_id)
        case Inspect():
            return None  # A read.
    untagged = actions.untagged_termination(action.provider_id, action.claim_uid)
    return untagged or actions.live_termination(_claim(action.claim_uid, snapshot))


def _unreadable(action: Action, snapshot: Snapshot, now: datetime) -> UnreadableObject | None:
    """What the action is about and cannot be read; a deadline that is over holds all the same."""
    match action:
        case Patch() | Delete():
            key = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return first_unreadable([snapshot.objects(action.resource).get(key)])
        case Evict():
            pod = snapshot.pods.get(f"{action.namespace}/{action.name}")
            node = snapshot.nodes.get(pod.spec.node_name) if pod is not None else None
            claim = snapshot.claim_of(node) if node is not None else None
            nodes = [node] if node is not None else []
            return first_unreadable([pod]) or unreadable_parts(claim, nodes)
        case Terminate() | Reboot():
            claim = _claim(action.claim_uid, snapshot)
            if claim is None or _is_gone(claim, snapshot):
                return None
            return _unreadable_instance(claim, snapshot, now)
    return None


def _is_gone(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """The cloud says that it no longer has the instance, so nothing can be lost there."""
    answer = snapshot.observations.inspections.get(claim.uid)
    return (answer is not None and answer.gone) or claim.uid in snapshot.observations.vanished


def _unreadable_instance(
    claim: NodeClaim, snapshot: Snapshot, now: datetime
) -> UnreadableObject | None:
    deadline = deadline_of(claim)
    if deadline is not None and later(deadline, LAST_MINUTE) <= now:
        return None
    nodes = snapshot.nodes_with_provider(claim.provider_id).values()
    unreadable = unreadable_parts(claim, nodes)
    return unreadable or first_unreadable(awaited_pods(nodes, snapshot, now))


def _create(action: Create, snapshot: Snapshot, now: datetime, settings: Settings) -> str | None:
    if action.resource != NODE_CLAIMS:
        return f"{action.resource.kind} {action.name}: nothing but claims is created here"
    claim = msgspec.convert(action.body, NodeClaim)
    foreign = actions.foreign_class(claim.spec.node_class_ref, snapshot.ours)
    if foreign is not None:
        return foreign
    uids = frozenset(filter(None, claim.annotations.get(names.REPLACES, "").split(",")))
    for uid in sorted(uids):
        replaced = _claim(uid, snapshot)
        if replaced is None or replaced.deleting:
            return f"{action.name} would replace a claim that is gone or being deleted"
        departure = Departure(
            claim=replaced,
            snapshot=snapshot,
            settings=settings,
            now=now,
            reason=action.disrupts_for,
            # One that is under way needs more replacements.
            planned=names.REPLACED_BY not in replaced.annotations,
            group=uids,
        )
        if why := forbidden(departure, PLANNED):
            return f"{action.name} would be a replacement for nothing: {why}"
    return None


def _take_pod(action: Evict | DeletePod, snapshot: Snapshot) -> str | None:
    pod = snapshot.pods.get(f"{action.namespace}/{action.name}")
    if pod is None or pod.uid != action.uid:
        return f"pod {action.namespace}/{action.name} is gone or another one"
    node = snapshot.nodes.get(pod.spec.node_name)
    claim = snapshot.claim_of(node) if node is not None else None
    foreign = actions.foreign_node(node, claim, snapshot.ours) if node is not None else None
    forced = isinstance(action, DeletePod)
    return foreign or actions.early_eviction(pod, node, claim, forced=forced)


def _evict(action: Evict, snapshot: Snapshot, now: datetime, settings: Settings) -> str | None:
    pod = snapshot.pods[f"{action.namespace}/{action.name}"]
    cap = protection_cap(snapshot.nodes[pod.spec.node_name], snapshot)
    return actions.protected_eviction(pod, now, cap=cap, clock=settings.protection_clock)


def _force(action: DeletePod, snapshot: Snapshot, now: datetime) -> str | None:
    pod = snapshot.pods[f"{action.namespace}/{action.name}"]
    deadline = deadline_of(snapshot.claim_of(snapshot.nodes[pod.spec.node_name]))
    return actions.early_force(pod, deadline, action.grace_at(now), now)


def _write(
    action: Patch | Delete, snapshot: Snapshot, now: datetime, settings: Settings
) -> str | None:
    if action.resource == NODES:
        return _write_node(action, snapshot)
    if action.resource == NODE_CLAIMS:
        return _write_claim(action, snapshot, now, settings)
    if isinstance(action, Patch) and action.resource == NODE_POOLS:
        pool = snapshot.pools.get(action.name)
        if pool is None or pool.uid != action.uid:
            return f"pool {action.name} is gone or another one"
        return actions.foreign_class(pool.node_class_ref, snapshot.ours)
    if isinstance(action, Patch) and action.resource in (MAINTENANCE_WINDOWS, NODE_POOL_POLICIES):
        kind = action.resource.kind
        return None if action.subresource == "status" else f"only users write the spec of a {kind}"
    if isinstance(action, Patch) and action.resource == PODS:
        return _write_pod(action, snapshot)
    verb = type(action).__name__.lower()
    return f"{action.resource.kind} {action.name} is not ours to {verb}"


def _write_pod(action: Patch, snapshot: Snapshot) -> str | None:
    pod = snapshot.pods.get(f"{action.namespace}/{action.name}")
    if pod is None or pod.uid != action.uid:
        return f"pod {action.namespace}/{action.name} is gone or another one"
    if action.subresource != "status" or set(action.body) - {"metadata", "status"}:
        return (
            f"of pod {action.namespace}/{action.name} nothing but its nomination is ours to write"
        )
    name = action.body["status"].get("nominatedNodeName")
    node = snapshot.nodes.get(name) if name else None
    if name and node is None:
        return f"Node {name} is gone"
    return actions.foreign_status(pod, action.body["status"])


def _write_node(action: Patch | Delete, snapshot: Snapshot) -> str | None:
    node = snapshot.nodes.get(action.name)
    if node is None or node.uid != action.uid:
        return f"Node {action.name} is gone or another one"
    claim = snapshot.claim_of(node)
    if snapshot.beside_karpenter and claim is None and is_left_over(action, node, snapshot):
        return None
    foreign = actions.foreign_node(node, claim, snapshot.ours)
    if foreign is not None or claim is None:
        return foreign
    if isinstance(action, Delete):
        early = actions.early_node_deletion(node, claim)
        return early or actions.undrained_deletion(node, claim)
    return _release(action, node, claim, snapshot)


def _write_claim(
    action: Patch | Delete, snapshot: Snapshot, now: datetime, settings: Settings
) -> str | None:
    claim = snapshot.claims.get(action.name)
    if claim is None or claim.uid != action.uid:
        return f"claim {action.name} is gone or another one"
    foreign = actions.foreign_class(claim.spec.node_class_ref, snapshot.ours)
    if foreign is not None:
        return foreign
    departure = Departure(
        claim=claim,
        snapshot=snapshot,
        settings=settings,
        now=now,
        reason=_reason(action.ground, claim),
    )
    if isinstance(action, Delete):
        if not action.resource_version:
            return f"claim {claim.name} would be deleted on any version"
        return forbidden_on(action.ground, departure)
    return (
        _release(action, claim, claim, snapshot)
        or _deadline(action, departure)
        or _begins(action, departure)
    )


def _reason(ground: Ground | None, claim: NodeClaim) -> str:
    """Why it is disrupted, where that is what happens to it."""
    if ground is Ground.EXPIRED:
        return EXPIRED
    if ground is not Ground.REPLACED:
        return ""
    return claim.annotations.get(names.DISRUPTION_REASON, "")


def _deadline(action: Patch, departure: Departure) -> str | None:
    """A deadline is set on a known ground, and is never put off."""
    claim, now = departure.claim, departure.now
    annotations = action.body.get("metadata", {}).get("annotations") or {}
    if names.TERMINATION_TIMESTAMP not in annotations:
        return None
    known = deadline_of(claim)
    if annotations[names.TERMINATION_TIMESTAMP] is None:
        return actions.later_deadline(claim, known, None)
    written = read_instant(annotations[names.TERMINATION_TIMESTAMP])
    if not action.dated and action.ground is None:
        # What follows from its grace period is written down, for everyone to see.
        return actions.unfounded_deadline(claim, written)
    if action.dated:
        written = later(now, action.ahead)
    heard = departure.snapshot.observations.interruptions.get(claim.uid)
    if action.ground is Ground.INTERRUPTED and heard is not None:
        early = actions.early_interruption(claim, written, heard.deadline)
        if early is not None:
            return early
    put_off = actions.later_deadline(claim, known, written)
    return put_off or forbidden_on(action.ground, departure)


def _begins(action: Patch, departure: Departure) -> str | None:
    """The command or reboot that this write commits to, if it does."""
    claim = departure.claim
    annotations = action.body.get("metadata", {}).get("annotations") or {}
    if (
        annotations.get(names.REPLACED_BY) is not None
        and names.REPLACED_BY not in claim.annotations
    ):
        reason = annotations.get(names.DISRUPTION_REASON) or ""
        planned = msgspec.structs.replace(departure, reason=reason, planned=True)
        return forbidden(planned, BEGINS)
    conditions = action.body.get("status", {}).get("conditions") or ()
    says = {(one.get("type"), one.get("status")) for one in conditions}
    begins = ("Rebooting", "True") in says and not claim.rebooting
    issued = claim.condition("RebootIssued")
    drained = ("RebootIssued", "Unknown") in says and (issued is None or issued.status != "Unknown")
    if not begins and not (claim.rebooting and drained):
        return None
    return forbidden_reboot(departure, forced=_is_forced(claim))


def _is_forced(claim: NodeClaim) -> bool:
    """Its reboot drains nothing, as one of a forceful policy."""
    return span_of(claim.annotations.get(names.REBOOT_GRACE_PERIOD)) == timedelta()


def _release(
    action: Patch, thing: Node | NodeClaim, claim: NodeClaim, snapshot: Snapshot
) -> str | None:
    """Taking our finalizer off is the one patch that cannot be taken back."""
    finalizers = action.body.get("metadata", {}).get("finalizers")
    if finalizers is None or names.FINALIZER in finalizers:
        return None
    if names.FINALIZER not in thing.metadata.finalizers:
        return None
    answer = snapshot.observations.terminations.get(claim.uid)
    gone = answer is not None and answer.gone
    return actions.early_release(thing.name, instance_running=not gone)


def _claim(uid: str, snapshot: Snapshot) -> NodeClaim | None:
    return next((claim for claim in snapshot.claims.values() if claim.uid == uid), None)
