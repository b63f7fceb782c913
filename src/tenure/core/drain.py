"""Decide, pod by pod, who may leave a node of ours that is being deleted.

A node is drained once it carries the taint that keeps new pods away. Each pod gets
one verdict, the first of these that applies:

1. left alone    finished, mirror and tolerating pods, and pods stuck in termination
                 for a minute: they do not hold the node back;
2. terminating   it is on its way out within its grace period;
3. later tier    pods leave in four tiers: plain, plain daemon, critical, critical daemon;
4. protected     ``karpenter.sh/do-not-disrupt``, until its end;
5. refused       the API said no (a disruption budget): asked again after a pause;
6. evicted       through the eviction API, with the pod's UID as precondition.

There is no deadline here yet: a drain waits as long as its pods make it wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.claims import is_our_node
from tenure.core.decision import Blocker, Concern, Evict, Subject, Verdict
from tenure.core.protection import FOR_EVER, Protection, protection_of
from tenure.core.reasons import Reason
from tenure.model import names
from tenure.model.meta import format_time
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import EvictionAnswer
from tenure.model.pod import Pod
from tenure.model.resource import NODE_CLAIMS, NODES, POD_DISRUPTION_BUDGETS, PODS
from tenure.model.selectors import matches
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot
from tenure.model.workload import PodDisruptionBudget

#: A pod that is still there this long after its grace ran out will not go by itself.
STUCK_AFTER: Final = timedelta(minutes=1)

TIERS: Final = ("plain pods", "daemon pods", "critical pods", "critical daemon pods")


class PodView(msgspec.Struct, frozen=True):
    pod: Pod
    answer: EvictionAnswer | None = None
    #: Only looked up for pods that were refused.
    budgets: tuple[PodDisruptionBudget, ...] = ()


class DrainView(msgspec.Struct, frozen=True):
    node: Node
    pods: tuple[PodView, ...]


class DrainDecider:
    concern = Concern.DRAIN

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.leaving_nodes()

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODES:
            yield change.key
        elif change.resource == PODS:
            for pod in change.versions():
                assert isinstance(pod, Pod)
                if pod.spec.node_name in snapshot.leaving_nodes():
                    yield pod.spec.node_name
        elif change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                yield from snapshot.nodes_with_provider(claim.provider_id)
        elif change.resource == POD_DISRUPTION_BUDGETS:
            yield from snapshot.leaving_nodes()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if (node := leaving_node_of(subject, snapshot)) is not None:
            yield node.name

    def view(self, snapshot: Snapshot, key: str) -> DrainView | None:
        node = snapshot.leaving_nodes().get(key)
        if node is None or not is_held(node) or not is_our_node(node, snapshot):
            return None
        if not node.has_taint(names.DISRUPTED_TAINT, "NoSchedule"):
            return None  # Nobody is asked to leave before the door is closed.
        return DrainView(node, pod_views(node, snapshot))

    def decide(self, view: DrainView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return judge_pods(view.node, view.pods, now)


def leaving_node_of(subject: Subject, snapshot: Snapshot) -> Node | None:
    """The leaving node that a pod is on; None for anything else."""
    if subject.kind != PODS.kind:
        return None
    pod = snapshot.pods.get(f"{subject.namespace}/{subject.name}")
    return snapshot.leaving_nodes().get(pod.spec.node_name) if pod is not None else None


def is_held(node: Node) -> bool:
    """It is being deleted, and waits for us."""
    return node.deleting and names.FINALIZER in node.metadata.finalizers


def pod_views(node: Node, snapshot: Snapshot) -> tuple[PodView, ...]:
    pods = snapshot.pods_on(node.name)
    return tuple(_pod_view(pods[name], snapshot) for name in sorted(pods))


def _pod_view(pod: Pod, snapshot: Snapshot) -> PodView:
    answer = snapshot.observations.evictions.get(pod.uid)
    if answer is None:
        return PodView(pod)
    in_namespace = snapshot.budgets_in(pod.namespace)
    budgets = (in_namespace[name] for name in sorted(in_namespace))
    return PodView(pod, answer, tuple(b for b in budgets if matches(b.spec.selector, pod.labels)))


def judge_pods(node: Node, pods: Sequence[PodView], now: datetime) -> list[Verdict]:
    """One verdict per pod, in their order."""
    holding = (tier_of(item.pod) for item in pods if holds_node(item.pod, now))
    open_tier = min(holding, default=0)
    return [_judge(item, node, open_tier, now) for item in pods]


def holds_node(pod: Pod, now: datetime) -> bool:
    """Whether the node has to wait for this pod."""
    stuck = _stuck_at(pod)
    return not _left_alone(pod) and (stuck is None or now < stuck)


def tier_of(pod: Pod) -> int:
    """0 leaves first."""
    return 2 * pod.critical + pod.daemon


def _left_alone(pod: Pod) -> str:
    """Why the drain does not concern itself with this pod; empty when it does."""
    if pod.finished:
        return f"it has finished ({pod.status.phase})"
    if pod.mirror:
        return "it is a static pod's mirror: only its kubelet can stop it"
    if pod.tolerates_disruption:
        return f"it tolerates {names.DISRUPTED_TAINT}"
    return ""


def _stuck_at(pod: Pod) -> datetime | None:
    """When a terminating pod counts as stuck; None for a pod that is not terminating."""
    deletion = pod.metadata.deletion_timestamp
    return deletion + STUCK_AFTER if deletion is not None else None


def _judge(item: PodView, node: Node, open_tier: int, now: datetime) -> Verdict:
    pod = item.pod
    if why := _left_alone(pod):
        return _verdict(pod, Reason.LEFT_ALONE, f"{why}; node {node.name} does not wait for it")
    if pod.metadata.deletion_timestamp is not None:
        return _terminating(pod, pod.metadata.deletion_timestamp, now)
    if (tier := tier_of(pod)) > open_tier:
        return _verdict(pod, Reason.TIER_WAITS, f"{TIERS[tier]} leave after {TIERS[open_tier]}")
    protection = protection_of(pod)
    if protection is not None and now < protection.until:
        return _protected(pod, protection)
    if item.answer is not None:
        return _refused(item, item.answer, now)
    message = f"asked to leave node {node.name}, which is going away"
    return _verdict(pod, Reason.EVICTING, message, action=_evict(pod))


def _evict(pod: Pod) -> Evict:
    # A plain eviction of a pod without grace would remove it before it has stopped.
    no_grace = pod.spec.termination_grace_period_seconds == 0
    return Evict(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        grace_period_seconds=1 if no_grace else None,
    )


def _terminating(pod: Pod, deletion: datetime, now: datetime) -> Verdict:
    stuck = deletion + STUCK_AFTER
    if now >= stuck:
        message = f"should have stopped by {format_time(deletion)}; no longer waited for"
        return _verdict(pod, Reason.LEFT_ALONE, message)
    message = f"stops by {format_time(deletion)} at the latest"
    return _verdict(pod, Reason.POD_TERMINATING, message, recheck_at=stuck)


def _protected(pod: Pod, protection: Protection) -> Verdict:
    said = f'{names.DO_NOT_DISRUPT}: "{protection.value}"'
    if protection.unreadable:
        message = f'{said} is neither "true", "false" nor a duration such as 4h: protected for ever'
        return _verdict(pod, Reason.PROTECTION_UNREADABLE, message)
    if protection.until == FOR_EVER:
        return _verdict(pod, Reason.PROTECTED, f"{said} protects it for ever")
    message = f"{said} protects it until {format_time(protection.until)}"
    return _verdict(pod, Reason.PROTECTED, message, recheck_at=protection.until)


def _refused(item: PodView, answer: EvictionAnswer, now: datetime) -> Verdict:
    """Asking again is no other verdict: the last answer stands until there is a new one."""
    due = now >= answer.retry_at
    return _verdict(
        item.pod,
        Reason.EVICTION_REFUSED,
        f"{answer.message.rstrip('.')}; asked again at {format_time(answer.retry_at)}",
        action=_evict(item.pod) if due else None,
        recheck_at=None if due else answer.retry_at,
        blockers=tuple(map(_budget_blocks, item.budgets)),
    )


def _budget_blocks(budget: PodDisruptionBudget) -> Blocker:
    status = budget.status
    message = (
        f"allows {status.disruptions_allowed} disruptions: "
        f"{status.current_healthy} of {status.expected_pods} pods are healthy, "
        f"{status.desired_healthy} must be"
    )
    return Blocker(subject=Subject.of(POD_DISRUPTION_BUDGETS.kind, budget), message=message)


def _verdict(
    pod: Pod,
    reason: Reason,
    message: str,
    *,
    action: Evict | None = None,
    recheck_at: datetime | None = None,
    blockers: tuple[Blocker, ...] = (),
) -> Verdict:
    return Verdict(
        concern=Concern.DRAIN,
        subject=Subject.of(PODS.kind, pod),
        reason=reason,
        message=message,
        blockers=blockers,
        action=action,
        recheck_at=recheck_at,
    )
