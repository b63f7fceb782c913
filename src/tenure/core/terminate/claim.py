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
from functools import partial
from typing import Final

from tenure.core.conditions import Wanted
from tenure.core.decision import Blocker, Ground, Subject, Verdict
from tenure.core.marks.deadline import deadline_of, stops_at
from tenure.core.marks.ownership import claim_status
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import is_finalizing
from tenure.core.terminate.facts.termination import (
    BoundToGoneNode,
    DeletingClaim,
    DeletingNode,
    DeletingUnregisteredNode,
    Drained,
    Draining,
    FinalizerLost,
    PodsOutliveNode,
    PodsRemained,
    TerminatingAt,
    TerminatingInstance,
    VolumesDetached,
    VolumesRemained,
    WaitingForVolumes,
)
from tenure.core.terminate.node import blocked_pods, blockers_of, named, volume_blocks
from tenure.core.terminate.pods import STUCK_AFTER, blocks_drain
from tenure.core.terminate.view import (
    TerminationView,
    blocked_by_unreadable,
    left_attached,
    left_behind,
    lost_instance,
    next_change,
    next_force,
    say,
    settled_at,
    stuck_pods,
    terminate_instance,
    waiting_pods,
    waiting_volumes,
)
from tenure.core.writes import delete_claim, delete_node, patch, with_finalizer
from tenure.model.api import names
from tenure.model.api.meta import later
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
        deleted = tuple(node.name for node in view.nodes if node.deleting)
        action = delete_claim(claim, Ground.NODE_DELETED)
        return say(claim, Reason.NODE_DELETED, DeletingClaim(claim.name, deleted), action=action)
    for node in view.nodes:
        if not node.deleting and _is_registered(claim, node):
            return _delete_node(claim, node)
    held = [node for node in view.nodes if is_finalizing(node)]
    if held:
        return _follow(view, claim, held, settings, now)
    if not _is_gone(view):
        return _terminate_instance(view, claim, settings, now)
    for node in view.nodes:
        if not node.deleting:
            unregistered = DeletingUnregisteredNode(node.name)
            return say(claim, Reason.CLAIM_DELETED, unregistered, action=delete_node(node))
    return terminate_instance(view, claim, claim, settings, now)


def _delete_node(claim: NodeClaim, node: Node) -> Verdict:
    if names.FINALIZER in node.metadata.finalizers:
        deleting = DeletingNode(node.name, claim.name)
        return say(claim, Reason.CLAIM_DELETED, deleting, action=delete_node(node))
    restored = patch(node, {"finalizers": with_finalizer(node)})
    return say(claim, Reason.CLAIM_DELETED, FinalizerLost(node.name), action=restored)


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
        return say(claim, Reason.INSTANCE_TERMINATING, TerminatingInstance(claim.name), action=said)
    if (blocked := _blocked_by_bound_pods(view, claim, settings, now)) is not None:
        return blocked
    return terminate_instance(view, claim, claim, settings, now)


def _blocked_by_bound_pods(
    view: TerminationView, claim: NodeClaim, settings: Settings, now: datetime
) -> Verdict | None:
    """The Node was removed without a drain: its pods may still run on the instance."""
    pods = [pod for pod in view.bound_pods if blocks_drain(pod, now)]
    deadline = deadline_of(claim)
    if not pods or claim.instance_terminating or lost_instance(view, claim, settings):
        return None
    if deadline is not None and now >= deadline.end:
        return None
    stops = (at for pod in pods if (at := stops_at(pod)) is not None)
    ends = [later(at, STUCK_AFTER) for at in stops]
    if deadline is not None:
        ends.append(deadline.end)
    bound = BoundToGoneNode(claim.node_name)
    return say(
        claim,
        Reason.DRAINING,
        PodsOutliveNode(
            claim.node_name,
            tuple(pod.key for pod in pods),
            until=deadline.end if deadline is not None else None,
        ),
        blockers=tuple(Blocker(subject=Subject.of(PODS.kind, pod), fact=bound) for pod in pods),
        recheck_at=min(ends, default=None),
    )


def _follow(
    view: TerminationView,
    claim: NodeClaim,
    held: list[Node],
    settings: Settings,
    now: datetime,
) -> Verdict:
    """Record the progress of the drain; the Node's own verdict has the next action."""
    nodes = tuple(node.name for node in held)
    if claim.condition("Drained") is None:
        said = claim_status(claim, Wanted("Drained", "Unknown", "Draining", "draining pods"))
        return say(claim, Reason.DRAINING, Draining(nodes), action=said)
    lost = lost_instance(view, claim, settings) and not any(node.ready for node in held)
    if not lost and not claim.is_settled("Drained"):
        return _drained(view, claim, nodes, settings, now)
    if not lost and not claim.is_settled("VolumesDetached"):
        return _detached(view, claim, nodes, now)
    said = claim_status(claim, _TERMINATING)
    terminating = TerminatingInstance(claim.name, claim.provider_id)
    return say(claim, Reason.INSTANCE_TERMINATING, terminating, action=said)


def _drained(
    view: TerminationView,
    claim: NodeClaim,
    nodes: tuple[str, ...],
    settings: Settings,
    now: datetime,
) -> Verdict:
    drains = [(drain, waiting_pods(drain, settings, now)) for drain in view.drains]
    waiting = [item for _, items in drains for item in items]
    if waiting:
        changes = (next_change(drain, items) for drain, items in drains if items)
        return say(
            claim,
            Reason.DRAINING,
            Draining(nodes, len(waiting), len(blocked_pods(waiting))),
            blockers=blockers_of(waiting),
            recheck_at=min((at for at in changes if at is not None), default=None),
        )
    settled = settled_at(claim, settings)
    if settled is not None and now < settled:
        facts = (Drained(nodes), TerminatingAt(settled))
        return say(claim, Reason.SETTLING, *facts, recheck_at=settled)
    if left := [pod for drain in view.drains for pod in left_behind(drain, now)]:
        remained = PodsRemained(nodes, tuple(left))
        said = claim_status(
            claim,
            Wanted("Drained", "False", _ELAPSED, str(remained)),
            _volumes_condition(_volumes(view, nodes, now)),
        )
        at = next_force(view, now)
        return say(claim, Reason.GRACE_PERIOD_ELAPSED, remained, action=said, recheck_at=at)
    said = claim_status(
        claim,
        Wanted("Drained", "True", "Drained"),
        _volumes_condition(_volumes(view, nodes, now)),
    )
    stuck = tuple(pod for drain in view.drains for pod in stuck_pods(drain, now))
    drained = Drained(nodes, stuck)
    return say(claim, Reason.DRAINED, drained, action=said, recheck_at=next_force(view, now))


def _detached(
    view: TerminationView, claim: NodeClaim, nodes: tuple[str, ...], now: datetime
) -> Verdict:
    volumes = _volumes(view, nodes, now)
    say_ = partial(
        say,
        claim,
        action=claim_status(claim, _volumes_condition(volumes)),
        recheck_at=next_force(view, now),
    )
    match volumes:
        case VolumesDetached():
            return say_(Reason.DRAINED, volumes)
        case VolumesRemained():
            return say_(Reason.GRACE_PERIOD_ELAPSED, volumes)
        case WaitingForVolumes():
            blockers = tuple(
                volume_blocks(one, drain.node)
                for drain in view.drains
                for one in waiting_volumes(drain, now)
            )
            return say_(Reason.AWAITING_VOLUMES, Drained(nodes), volumes, blockers=blockers)


def _volumes(
    view: TerminationView, nodes: tuple[str, ...], now: datetime
) -> WaitingForVolumes | VolumesRemained | VolumesDetached:
    if waiting := [one for drain in view.drains for one in waiting_volumes(drain, now)]:
        return WaitingForVolumes(named(waiting))
    if left := [one for drain in view.drains for one in left_attached(drain, now)]:
        return VolumesRemained(nodes, named(left))
    return VolumesDetached(nodes)


def _volumes_condition(volumes: WaitingForVolumes | VolumesRemained | VolumesDetached) -> Wanted:
    """The condition that says whether the volumes are detached."""
    match volumes:
        case WaitingForVolumes():
            return Wanted("VolumesDetached", "Unknown", "AwaitingVolumeDetachment", str(volumes))
        case VolumesRemained():
            return Wanted("VolumesDetached", "False", _ELAPSED, str(volumes))
        case VolumesDetached():
            return Wanted("VolumesDetached", "True", "VolumesDetached")


_ELAPSED: Final = "TerminationGracePeriodElapsed"
_TERMINATING = Wanted("InstanceTerminating", "True", "InstanceTerminating")
