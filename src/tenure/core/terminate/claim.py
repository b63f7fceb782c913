"""Decide the next step of a claim that is being deleted, or whose Node is:

0. unreadable   it or a Node of it cannot be read: nothing, until a minute after the deadline;
1. claim        delete the claim of a Node that is being deleted;
2. its Nodes    delete those that are registered (a Node that has lost our finalizer gets it back
                first, otherwise it would be removed before its pods are drained), and record the
                progress of their drain in the claim's conditions (``Drained``,
                ``VolumesDetached``, ``InstanceTerminating``);
3. instance     terminate it once no Node has our finalizer any more. Pods of a Node that vanished
                delay this until pod garbage collection has removed them, or the deadline has
                passed. A launch that may be unanswered counts as an instance until the cloud
                answers that no instance carries the UID;
4. leftovers    delete a Node that never registered after its instance: no pod was scheduled
                there, so there is nothing to drain;
5. release      remove the finalizer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.conditions import Wanted
from tenure.core.decision import Blocker, Ground, Subject, Verdict
from tenure.core.facts import as_fact
from tenure.core.marks.deadline import deadline_of, stops_at
from tenure.core.marks.ownership import claim_status
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import is_held
from tenure.core.terminate.node import blockers_of, remaining, some, volume_blocks
from tenure.core.terminate.pods import STUCK_AFTER, holds_node
from tenure.core.terminate.view import (
    TerminationView,
    blocked_by_unreadable,
    end_instance,
    left_attached,
    left_behind,
    lost_instance,
    next_change,
    next_force,
    say,
    settled_at,
    stuck_pods,
    waiting_pods,
    waiting_volumes,
)
from tenure.core.writes import delete_claim, delete_node, hold, patch
from tenure.model.api import names
from tenure.model.api.meta import format_time, later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings


def decide_claim(
    view: TerminationView, claim: NodeClaim, settings: Settings, now: datetime
) -> Verdict:
    if (blocked := blocked_by_unreadable(view, claim, settings, now)) is not None:
        return blocked
    if not claim.deleting:
        deleted = ", ".join(node.name for node in view.nodes if node.deleting)
        message = f"deleting NodeClaim {claim.name}: its Node {deleted} is being deleted"
        action = delete_claim(claim, Ground.NODE_DELETED)
        return say(claim, Reason.NODE_DELETED, message, action=action)
    for node in view.nodes:
        if not node.deleting and _is_registered(claim, node):
            return _delete_node(claim, node)
    held = [node for node in view.nodes if is_held(node)]
    if held:
        return _follow(view, claim, held, settings, now)
    if not _is_gone(view):
        return _terminate_instance(view, claim, settings, now)
    for node in view.nodes:
        if not node.deleting:
            message = f"the instance is gone; deleting Node {node.name}, which never registered"
            return say(claim, Reason.CLAIM_DELETED, message, action=delete_node(node))
    return end_instance(view, claim, claim, settings, now)


def _delete_node(claim: NodeClaim, node: Node) -> Verdict:
    if names.FINALIZER in node.metadata.finalizers:
        message = f"deleting Node {node.name}: NodeClaim {claim.name} is being deleted"
        return say(claim, Reason.CLAIM_DELETED, message, action=delete_node(node))
    message = (
        f"Node {node.name} has lost finalizer {names.FINALIZER}; "
        "restoring it before the Node is deleted, so that its pods are drained"
    )
    return say(claim, Reason.CLAIM_DELETED, message, action=patch(node, {"finalizers": hold(node)}))


def _is_registered(claim: NodeClaim, node: Node) -> bool:
    """Node or claim may show it first: the Node is written before the claim."""
    return claim.registered or names.FINALIZER in node.metadata.finalizers


def _is_gone(view: TerminationView) -> bool:
    return view.answer is not None and view.answer.gone


def _terminate_instance(
    view: TerminationView, claim: NodeClaim, settings: Settings, now: datetime
) -> Verdict:
    if view.answer is not None and not claim.instance_terminating:
        said = claim_status(claim, _TERMINATING)
        message = f"terminating the instance of NodeClaim {claim.name}"
        return say(claim, Reason.INSTANCE_TERMINATING, message, action=said)
    if (blocked := _blocked_by_bound_pods(view, claim, settings, now)) is not None:
        return blocked
    return end_instance(view, claim, claim, settings, now)


def _blocked_by_bound_pods(
    view: TerminationView, claim: NodeClaim, settings: Settings, now: datetime
) -> Verdict | None:
    """The Node was removed without a drain: its pods may still run on the instance."""
    pods = [pod for pod in view.bound_pods if holds_node(pod, now)]
    deadline = deadline_of(claim)
    if not pods or claim.instance_terminating or lost_instance(view, claim, settings):
        return None
    if deadline is not None and now >= deadline.end:
        return None
    are, those = ("1 pod is", "that pod") if len(pods) == 1 else (f"{len(pods)} pods are", "them")
    message = (
        f"Node {claim.node_name} is gone, but {are} still bound to it: "
        f"{some(pod.key for pod in pods)}; its instance is terminated once pod garbage collection "
        f"has removed {those}"
    )
    stops = (at for pod in pods if (at := stops_at(pod)) is not None)
    ends = [later(at, STUCK_AFTER) for at in stops]
    if deadline is not None:
        message += f", at {format_time(deadline.end)} at the latest"
        ends.append(deadline.end)
    blockers = tuple(
        Blocker(subject=Subject.of(PODS.kind, pod), fact=as_fact("bound to the Node"))
        for pod in pods
    )
    at = min(ends, default=None)
    return say(claim, Reason.DRAINING, message, blockers=blockers, recheck_at=at)


def _follow(
    view: TerminationView,
    claim: NodeClaim,
    held: list[Node],
    settings: Settings,
    now: datetime,
) -> Verdict:
    """Record the progress of the drain; the Node's own verdict has the next action."""
    listed = ", ".join(node.name for node in held)
    if claim.condition("Drained") is None:
        said = claim_status(claim, Wanted("Drained", "Unknown", "Draining", "draining pods"))
        return say(claim, Reason.DRAINING, f"Node {listed} is being drained", action=said)
    lost = lost_instance(view, claim, settings) and not any(node.ready for node in held)
    if not lost and not claim.is_settled("Drained"):
        return _drained(view, claim, listed, settings, now)
    if not lost and not claim.is_settled("VolumesDetached"):
        return _detached(view, claim, listed, now)
    said = claim_status(claim, _TERMINATING)
    message = f"terminating the instance of Node {listed}"
    return say(claim, Reason.INSTANCE_TERMINATING, message, action=said)


def _drained(
    view: TerminationView, claim: NodeClaim, listed: str, settings: Settings, now: datetime
) -> Verdict:
    drains = [(drain, waiting_pods(drain, settings, now)) for drain in view.drains]
    waiting = [item for _, items in drains for item in items]
    if waiting:
        pods = "1 pod remains" if len(waiting) == 1 else f"{len(waiting)} pods remain"
        changes = (next_change(drain, items) for drain, items in drains if items)
        return say(
            claim,
            Reason.DRAINING,
            f"Node {listed} is being drained: {pods}",
            blockers=blockers_of(waiting),
            recheck_at=min((at for at in changes if at is not None), default=None),
        )
    settled = settled_at(claim, settings)
    if settled is not None and now < settled:
        message = f"Node {listed} is drained; terminating its instance at {format_time(settled)}"
        return say(claim, Reason.SETTLING, message, recheck_at=settled)
    if left := [pod for drain in view.drains for pod in left_behind(drain, now)]:
        message = remaining(left)
        said = claim_status(
            claim, Wanted("Drained", "False", _ELAPSED, message), _volumes(view, now)
        )
        return say(claim, Reason.GRACE_PERIOD_ELAPSED, message, action=said)
    said = claim_status(claim, Wanted("Drained", "True", "Drained"), _volumes(view, now))
    stuck = [pod for drain in view.drains for pod in stuck_pods(drain, now)]
    message = f"Node {listed} is drained"
    if stuck:
        message = f"Node {listed} is drained, except for pods stuck in termination: {some(stuck)}"
    return say(claim, Reason.DRAINED, message, action=said, recheck_at=next_force(view, now))


def _detached(view: TerminationView, claim: NodeClaim, listed: str, now: datetime) -> Verdict:
    wanted = _volumes(view, now)
    said = claim_status(claim, wanted)
    if wanted.status != "Unknown":
        reason = Reason.DRAINED if wanted.status == "True" else Reason.GRACE_PERIOD_ELAPSED
        message = wanted.message or f"all volumes are detached from Node {listed}"
        return say(claim, reason, message, action=said, recheck_at=next_force(view, now))
    attached = [one for drain in view.drains for one in waiting_volumes(drain, now)]
    return say(
        claim,
        Reason.AWAITING_VOLUMES,
        f"Node {listed} is drained; waiting until volumes are detached: {wanted.message}",
        blockers=tuple(map(volume_blocks, attached)),
        recheck_at=next_force(view, now),
        action=said,
    )


def _volumes(view: TerminationView, now: datetime) -> Wanted:
    """The condition that says whether the volumes are detached."""
    if waiting := [one.name for drain in view.drains for one in waiting_volumes(drain, now)]:
        return Wanted("VolumesDetached", "Unknown", "AwaitingVolumeDetachment", some(waiting))
    if left := [one.name for drain in view.drains for one in left_attached(drain, now)]:
        volumes = "1 volume" if len(left) == 1 else f"{len(left)} volumes"
        message = f"{volumes} remained attached after the deadline: {some(left)}"
        return Wanted("VolumesDetached", "False", _ELAPSED, message)
    return Wanted("VolumesDetached", "True", "VolumesDetached")


_ELAPSED: Final = "TerminationGracePeriodElapsed"
_TERMINATING = Wanted("InstanceTerminating", "True", "InstanceTerminating")
