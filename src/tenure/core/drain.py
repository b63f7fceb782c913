"""Decide, pod by pod, who may leave a node that is being deleted.

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

from tenure.core.decision import Blocker, Concern, Evict, Subject, Verdict
from tenure.core.protection import FOR_EVER, protected_until
from tenure.core.reasons import Reason
from tenure.model import names
from tenure.model.meta import format_time
from tenure.model.node import Node
from tenure.model.observations import EvictionAnswer
from tenure.model.pod import Pod
from tenure.model.resource import NODES, POD_DISRUPTION_BUDGETS, PODS
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
        elif change.resource == POD_DISRUPTION_BUDGETS:
            yield from snapshot.leaving_nodes()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == PODS.kind:
            pod = snapshot.pods.get(f"{subject.namespace}/{subject.name}")
            if pod is not None and pod.spec.node_name in snapshot.leaving_nodes():
                yield pod.spec.node_name

    def view(self, snapshot: Snapshot, key: str) -> DrainView | None:
        node = snapshot.leaving_nodes().get(key)
        if node is None or names.FINALIZER not in node.metadata.finalizers:
            return None
        if not node.has_taint(names.DISRUPTED_TAINT, "NoSchedule"):
            return None  # Nobody is asked to leave before the door is closed.
        pods = snapshot.pods_on(key)
        return DrainView(node, tuple(_pod_view(pods[name], snapshot) for name in sorted(pods)))

    def decide(self, view: DrainView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        open_tier = min(
            (tier_of(item.pod) for item in view.pods if holds_node(item.pod, now)), default=0
        )
        return [_decide(item, view.node, open_tier, now) for item in view.pods]


def _pod_view(pod: Pod, snapshot: Snapshot) -> PodView:
    answer = snapshot.observations.evictions.get(pod.uid)
    if answer is None:
        return PodView(pod)
    in_namespace = snapshot.budgets_in(pod.namespace)
    budgets = (in_namespace[name] for name in sorted(in_namespace))
    return PodView(pod, answer, tuple(b for b in budgets if matches(b.spec.selector, pod.labels)))


def left_alone(pod: Pod) -> str:
    """Why the drain does not concern itself with this pod; empty when it does."""
    if pod.finished:
        return f"it has finished ({pod.status.phase})"
    if pod.mirror:
        return "it is a static pod's mirror"
    if pod.tolerates_disruption:
        return f"it tolerates {names.DISRUPTED_TAINT}"
    return ""


def stuck_at(pod: Pod) -> datetime | None:
    """When a terminating pod counts as stuck; None for a pod that is not terminating."""
    deletion = pod.metadata.deletion_timestamp
    return deletion + STUCK_AFTER if deletion is not None else None


def holds_node(pod: Pod, now: datetime) -> bool:
    """Whether the node has to wait for this pod."""
    stuck = stuck_at(pod)
    return not left_alone(pod) and (stuck is None or now < stuck)


def tier_of(pod: Pod) -> int:
    """0 leaves first."""
    return 2 * pod.critical + pod.daemon


def _decide(item: PodView, node: Node, open_tier: int, now: datetime) -> Verdict:
    pod, answer = item.pod, item.answer
    if why := left_alone(pod):
        return _verdict(pod, Reason.LEFT_ALONE, why)
    stuck = stuck_at(pod)
    if stuck is not None:
        return _terminating(pod, stuck, now)
    if (tier := tier_of(pod)) > open_tier:
        return _verdict(pod, Reason.TIER_WAITS, f"{TIERS[tier]} leave after {TIERS[open_tier]}")
    until = protected_until(pod)
    if until is not None and now < until:
        return _protected(pod, until)
    if answer is not None and now < answer.retry_at:
        return _refused(item, answer)
    # A plain eviction of a pod without grace would remove it before it has stopped.
    no_grace = pod.spec.termination_grace_period_seconds == 0
    action = Evict(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        grace_period_seconds=1 if no_grace else None,
    )
    return _verdict(pod, Reason.EVICTING, f"asked to leave node {node.name}", action=action)


def _terminating(pod: Pod, stuck: datetime, now: datetime) -> Verdict:
    if now >= stuck:
        return _verdict(pod, Reason.LEFT_ALONE, f"stuck in termination since {format_time(stuck)}")
    deletion = pod.metadata.deletion_timestamp or stuck
    message = f"stops by {format_time(deletion)} at the latest"
    return _verdict(pod, Reason.POD_TERMINATING, message, recheck_at=stuck)


def _protected(pod: Pod, until: datetime) -> Verdict:
    value = pod.annotations[names.DO_NOT_DISRUPT]
    if until == FOR_EVER:
        message = f'{names.DO_NOT_DISRUPT}: "{value}" protects it for ever'
        return _verdict(pod, Reason.PROTECTED, message)
    message = f'{names.DO_NOT_DISRUPT}: "{value}" protects it until {format_time(until)}'
    return _verdict(pod, Reason.PROTECTED, message, recheck_at=until)


def _refused(item: PodView, answer: EvictionAnswer) -> Verdict:
    blockers = tuple(
        Blocker(
            subject=Subject.of(POD_DISRUPTION_BUDGETS.kind, budget),
            message=f"allows {budget.status.disruptions_allowed} disruptions: "
            f"{budget.status.current_healthy} healthy, {budget.status.desired_healthy} wanted",
        )
        for budget in item.budgets
    )
    message = f"{answer.message}; asked again at {format_time(answer.retry_at)}"
    return _verdict(
        item.pod,
        Reason.EVICTION_REFUSED,
        message,
        recheck_at=answer.retry_at,
        blockers=blockers,
    )


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
