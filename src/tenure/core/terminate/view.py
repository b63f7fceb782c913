"""What the termination of a claim and its Node depends on, and the steps that both share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core import verdicts
from tenure.core.decision import Concern, Delete, Inspect, Patch, Terminate, Verdict
from tenure.core.marks.deadline import deadline_of, force_at, stops_at
from tenure.core.marks.ownership import is_missing
from tenure.core.marks.taints import close_terminating
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.deadlines import (
    InstanceKept,
    TerminationWaits,
    TerminationWaitsForDeadline,
)
from tenure.core.terminate.facts.termination import (
    InstanceTerminated,
    InstanceTerminating,
    TerminatingInstance,
)
from tenure.core.terminate.pods import (
    REFUSED,
    STUCK_AFTER,
    Attachment,
    DrainView,
    PodView,
    blocks_drain,
    evaluate_pods,
    left_alone,
    waited_until,
)
from tenure.core.writes import delete_node, release
from tenure.model.api.meta import BEGINNING, find_condition, later
from tenure.model.api.names import FINALIZER
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.cloud.instance import Instance
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import InspectionAnswer, TerminationAnswer
from tenure.model.snapshot.unreadable import first_unreadable, is_unreadable
from tenure.model.values.unreadable import UnreadableObject


class TerminationView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim | None
    #: Every Node with the claim's provider id, by name; with its drain if it is terminating.
    drains: tuple[DrainView, ...]
    #: Another claim has the same provider id, so the Nodes are evaluated without a claim.
    shared: bool = False
    answer: TerminationAnswer | None = None
    #: The instance that the cloud has launched and that the claim's status does not name yet.
    instance: Instance | None = None
    #: When the newest list of instances was made, if it lacks this claim's instance.
    unlisted_at: datetime | None = None
    #: The cloud's answer about this one instance.
    inspection: InspectionAnswer | None = None
    #: Which of the claim and its Nodes cannot be read, and why.
    unreadable: UnreadableObject | None = None
    #: The pods of its Nodes that cannot be read, also where none is drained.
    unreadable_pods: tuple[Pod, ...] = ()
    #: The unfinished pods that are bound to the claim's Node although that Node is gone.
    bound_pods: tuple[Pod, ...] = ()

    @property
    def nodes(self) -> list[Node]:
        return [drain.node for drain in self.drains]


say = partial(verdicts.say, Concern.TERMINATION)

Waiting = Sequence[tuple[PodView, Verdict]]


def waiting_pods(drain: DrainView, settings: Settings, now: datetime) -> Waiting:
    """The pods that the Node waits for, with their verdicts; none after the last minute."""
    evaluated = zip(drain.pods, evaluate_pods(drain, settings, now), strict=True)
    return [(item, verdict) for item, verdict in evaluated if _is_waited_for(item, drain, now)]


def _is_waited_for(item: PodView, drain: DrainView, now: datetime) -> bool:
    if not blocks_drain(item.pod, now):
        return False
    until = waited_until(item, drain)
    return until is None or now < until


def left_behind(drain: DrainView, now: datetime) -> list[str]:
    """The pods that still exist although the last minute has passed."""
    if drain.deadline is None or now < drain.deadline.end:
        return []
    return [item.pod.key for item in drain.pods if not left_alone(item.pod)]


def stuck_pods(drain: DrainView, now: datetime) -> list[str]:
    """The pods that should have stopped long ago, and that the Node no longer waits for."""
    pods = (item.pod for item in drain.pods)
    return [pod.key for pod in pods if not left_alone(pod) and not blocks_drain(pod, now)]


def waiting_volumes(drain: DrainView, now: datetime) -> list[Attachment]:
    """The attachments that the Node waits for; none after the deadline.

    A volume of a pod that the drain ignores is never detached, so the Node does not wait for it.
    """
    if drain.deadline is not None and now >= drain.deadline.at:
        return []
    return [one for one in drain.attachments if not _stays_attached(one, now)]


def left_attached(drain: DrainView, now: datetime) -> list[Attachment]:
    """The attachments that still exist although the deadline has passed."""
    return [one for one in drain.attachments if not _stays_attached(one, now)]


def _stays_attached(attachment: Attachment, now: datetime) -> bool:
    return any(not pod.finished and not blocks_drain(pod, now) for pod in attachment.pods)


def next_force(view: TerminationView, now: datetime) -> datetime | None:
    """When a deadline, or a pod that counts as stuck, next changes what the Node waits for."""
    deadlines = [drain.deadline for drain in view.drains if drain.deadline is not None]
    instants = [at for deadline in deadlines for at in (deadline.at, deadline.end)]
    for drain in view.drains:
        stops = (stops_at(pod) for one in drain.attachments for pod in one.pods)
        instants += [later(at, STUCK_AFTER) for at in stops if at is not None]
    return min((at for at in instants if at > now), default=None)


def next_change(drain: DrainView, waiting: Waiting) -> datetime | None:
    """When these pods may next change the verdict on the drain. The retry of a refused eviction does
    not count: until there is an answer, it is refused as before."""
    deadline = drain.deadline
    instants = [v.recheck_at for _, v in waiting if v.reason not in REFUSED]
    if deadline is not None:
        refused = (i.pod for i, v in waiting if v.reason in REFUSED)
        instants += [force_at(pod, deadline) for pod in refused]
        instants += [waited_until(item, drain) for item, _ in waiting]
    return min((at for at in instants if at is not None), default=None)


def settled_at(claim: NodeClaim, settings: Settings) -> datetime | None:
    """When the minimum duration of a drain ends; None until its beginning has been recorded."""
    condition = claim.condition("Drained")
    if condition is None or condition.last_transition_time is None:
        return None
    return later(condition.last_transition_time, settings.drain_min)


def lost_instance(view: TerminationView, claim: NodeClaim, settings: Settings) -> bool:
    """The cloud no longer has the instance, so there is nothing that could be drained."""
    gone = view.inspection is not None and view.inspection.gone
    return claim.deleting and (gone or is_missing(claim, view.unlisted_at, settings))


def inspected(
    view: TerminationView, node: Node, verdict: Verdict, settings: Settings, now: datetime
) -> Verdict:
    """Ask the cloud for the instance of a Node that is not Ready, if the verdict has no other action:
    the instance may be gone. Once each time the Node becomes not Ready; later, the list of
    instances shows it."""
    claim, answer = view.claim, view.inspection
    if claim is None or not claim.deleting or node.ready or not claim.provider_id:
        return verdict
    ready = find_condition(node.status.conditions, "Ready")
    since = (ready.last_transition_time if ready is not None else None) or BEGINNING
    if answer is not None:
        again_at = later(answer.asked_at, settings.garbage_period)
        if answer.gone or answer.asked_at >= since:
            return verdict
        if now < again_at:
            return verdicts.no_later(verdict, again_at)
    if verdict.action is not None:
        return verdict
    action = Inspect(provider_id=claim.provider_id, claim_uid=claim.uid)
    return msgspec.structs.replace(verdict, action=action)


def blocked_by_unreadable(
    view: TerminationView, about: Node | NodeClaim, settings: Settings, now: datetime
) -> Verdict | None:
    """What cannot be read is neither drained nor terminated before the deadline; None if all can."""
    claim = view.claim
    if not (why := view.unreadable):
        return None
    deadline = deadline_of(claim)
    if claim is None or deadline is None:
        return say(about, Reason.BLOCKED_BY_UNREADABLE, TerminationWaits(why))
    waiting = [(d, item) for d in view.drains for item, _ in waiting_pods(d, settings, now)]
    if now < deadline.end or waiting:
        ends = [waited_until(item, drain) for drain, item in waiting]
        if now < deadline.end:
            ends.append(deadline.end)  # From then on some of them are not waited for.
        action = _marked(claim, about, view.nodes) if not view.shared else None
        return say(
            about,
            Reason.BLOCKED_BY_UNREADABLE,
            TerminationWaitsForDeadline(why, deadline.at, deadline.end),
            action=action,
            recheck_at=min((at for at in ends if at is not None), default=None),
        )
    return terminate_instance(view, claim, about, settings, now)


def _marked(
    claim: NodeClaim, about: Node | NodeClaim, nodes: Sequence[Node]
) -> Delete | Patch | None:
    """If only the claim cannot be read: delete its Nodes with it, and taint them."""
    readable = [node for node in nodes if not is_unreadable(node)]
    if isinstance(about, Node):
        return close_terminating(about) if about in readable else None
    waiting = (one for one in readable if not one.deleting and FINALIZER in one.metadata.finalizers)
    node = next(waiting, None)
    return delete_node(node) if node is not None and claim.deleting else None


def terminate_instance(
    view: TerminationView,
    claim: NodeClaim,
    about: Node | NodeClaim,
    settings: Settings,
    now: datetime,
) -> Verdict:
    """Terminate the instance until the cloud reports it gone; then release ``about``."""
    answer = view.answer
    provider_id = claim.provider_id or (view.instance.provider_id if view.instance else "")
    if answer is not None and answer.gone:
        gone = InstanceTerminated(claim.name, provider_id, answer.asked_at)
        return say(about, Reason.RELEASING, gone, action=release(about))
    if answer is not None and now < (again_at := later(answer.asked_at, settings.termination_poll)):
        terminating = InstanceTerminating(claim.name, provider_id, again_at)
        return say(about, Reason.INSTANCE_TERMINATING, terminating, recheck_at=again_at)
    deadline, lost = deadline_of(claim), lost_instance(view, claim, settings)
    pods = (pod for pod in view.unreadable_pods if blocks_drain(pod, now))
    if not lost and (deadline is None or now < deadline.end) and (why := first_unreadable(pods)):
        ends = [deadline.end] if deadline is not None else []
        stops = (at for pod in view.unreadable_pods if (at := stops_at(pod)) is not None)
        ends += [at for at in (later(stop, STUCK_AFTER) for stop in stops) if at > now]
        at, kept = min(ends, default=None), InstanceKept(why, claim.name, provider_id)
        return say(about, Reason.BLOCKED_BY_UNREADABLE, kept, recheck_at=at)
    # The first time only, and not where pods are not waited for: an instance that is lost, or a deadline.
    over = lost or answer is not None or (deadline is not None and deadline.at <= now)
    nodes = () if over else tuple(sorted(node.name for node in view.nodes))
    return say(
        about,
        Reason.INSTANCE_TERMINATING,
        TerminatingInstance(claim.name, provider_id),
        action=Terminate(provider_id=provider_id, claim_uid=claim.uid, pods_of=nodes),
        recheck_at=deadline.at if deadline is not None and not over else None,
    )
