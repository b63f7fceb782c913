"""The verdict on each pod of a terminating Node, the first of these that applies:

1. ignored       finished, mirror and tolerating pods, and pods that should have stopped a minute
                 ago: the Node does not wait for them;
2. terminating   it stops within its grace period, which is cut if it ends after the Node's
                 deadline;
3. force delete  the deadline is so near that the full grace period just fits: the pod is deleted
                 despite its tier, its protection and its PDBs;
4. later tier    pods are evicted in four tiers: plain, plain daemon, critical, critical daemon;
5. protected     by ``karpenter.sh/do-not-disrupt``, until that ends; or because the pod, its PDB,
                 its Node or the claim cannot be read;
6. refused       the API server refused the eviction, or a PDB's status says that it would: retried
                 after a pause. The pod waits where a PDB only slows the drain down; the eviction
                 has failed where the PDBs can never allow it;
7. evicted       through the eviction API, with the pod's UID as precondition.

Without a deadline a drain has no time limit.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Blocker, Concern, DeletePod, Evict, Subject, Verdict
from tenure.core.facts import Fact, Quoted, RetriedAt
from tenure.core.marks.deadline import (
    LAST_MINUTE,
    Deadline,
    force_at,
    grace_of,
    requested_at,
    shortened,
    stops_at,
)
from tenure.core.protect.protection import Protection, protection_of
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.pods import (
    CuttingGrace,
    Evicting,
    ForceDeletedAt,
    ForceDeleting,
    Ignored,
    NoEvictions,
    PodIgnored,
    PodOverdue,
    PodStops,
    PodStuck,
    TierWaits,
    TriedFirst,
    TryingNow,
)
from tenure.core.terminate.pdb import Allowances, blocks, never_allows, refusal, refusal_of
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import EvictionAnswer
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable
from tenure.model.values.unreadable import UnreadableObject

#: A pod that still exists this long after its grace period will not terminate by itself.
STUCK_AFTER: Final = timedelta(minutes=1)

#: Verdicts on pods whose eviction the API server has refused, or would refuse.
REFUSED: Final = frozenset({Reason.EVICTION_REFUSED, Reason.EVICTION_WAITS})

TIERS: Final = ("plain pods", "daemon pods", "critical pods", "critical daemon pods")


class PodView(msgspec.Struct, frozen=True):
    pod: Pod
    answer: EvictionAnswer | None = None
    #: The PDBs that select the pod.
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    #: Since when the API server has failed to force delete it.
    deletion_failed_at: datetime | None = None


class Attachment(msgspec.Struct, frozen=True):
    """A volume that is attached to the node, and the pods there that use it."""

    name: str
    volume: str
    pods: tuple[Pod, ...] = ()


class DrainView(msgspec.Struct, frozen=True, kw_only=True):
    """A terminating Node and everything that its drain depends on."""

    node: Node
    pods: tuple[PodView, ...] = ()
    deadline: Deadline | None = None
    #: The pool's ``maxPodProtection``.
    cap: str | None = None
    #: Why no pod is evicted: the Node or its claim cannot be read; empty where both can.
    unreadable: UnreadableObject | None = None
    attachments: tuple[Attachment, ...] = ()


def evaluate_pods(drain: DrainView, settings: Settings, now: datetime) -> list[Verdict]:
    """One verdict per pod, in their order."""
    blocking = (tier_of(item.pod) for item in drain.pods if blocks_drain(item.pod, now))
    evaluation = _Evaluation(drain, min(blocking, default=0), settings, now)
    return [evaluation.of(item) for item in drain.pods]


def blocks_drain(pod: Pod, now: datetime) -> bool:
    """Whether the Node waits for this pod."""
    stuck = _stuck_at(pod)
    return not left_alone(pod) and (stuck is None or now < stuck)


def waited_until(item: PodView, drain: DrainView) -> datetime | None:
    """When the Node stops waiting for a pod; None without a deadline, and until the API server has
    been asked to delete the pod.

    That is a minute after the deadline, or a minute after the pod's deletion if Tenure or the API
    server was down at the deadline. A pod that was created after the deadline gets no extra minute,
    otherwise new pods could delay the Node without end. Neither does a pod whose Node cannot be
    read, because it is never deleted.
    """
    pod, deadline = item.pod, drain.deadline
    if deadline is None:
        return None
    created_at, left_at = pod.metadata.creation_timestamp, drain.node.metadata.deletion_timestamp
    late = created_at and left_at and created_at > max(deadline.at, left_at)
    if late or pod.spec.node_name == UNKNOWN:
        return deadline.end
    asked_at = requested_at(pod) if pod.deleting else item.deletion_failed_at
    return None if asked_at is None else later(max(deadline.at, asked_at), LAST_MINUTE)


def tier_of(pod: Pod) -> int:
    """Tier 0 is evicted first."""
    return 2 * pod.critical + pod.daemon


def left_alone(pod: Pod) -> Ignored | None:
    """Why the drain ignores this pod; None when it does not."""
    if pod.finished:
        return Ignored(pod.status.phase)
    if pod.mirror:
        return Ignored.MIRROR
    return Ignored.TOLERATES if pod.tolerates_disruption else None


def _stuck_at(pod: Pod) -> datetime | None:
    """When a terminating pod counts as stuck; None for a pod that is not terminating."""
    stops = stops_at(pod)
    return later(stops, STUCK_AFTER) if stops is not None else None


class _Evaluation:
    """Evaluates the pods of one Node at one instant."""

    def __init__(self, drain: DrainView, open_tier: int, settings: Settings, now: datetime) -> None:
        self._node = drain.node
        self._deadline = drain.deadline
        self._cap = drain.cap
        self._unreadable = drain.unreadable
        self._open_tier = open_tier
        self._settings = settings
        self._now = now
        self._allowances = Allowances()
        #: For each PDB that seems to allow nothing, the one pod whose eviction is tried all the same.
        self._probes: dict[tuple[str, ...], Pod] = {}
        #: By the PDB's UID: the pods of this Node that are terminating already.
        self._terminated: dict[str, list[str]] = {}
        #: Pods whose eviction was refused and is retried, because it should succeed by now.
        self._retried_pods: set[str] = set()
        for item in drain.pods:
            if item.pod.deleting:
                for pdb in item.pdbs:
                    self._terminated.setdefault(pdb.uid, []).append(item.pod.key)

    def of(self, item: PodView) -> Verdict:
        pod = item.pod
        if why := left_alone(pod):
            return _verdict(pod, Reason.LEFT_ALONE, PodIgnored(why, self._node.name))
        if (stops := stops_at(pod)) is not None:
            return self._terminating(pod, stops)
        if self._deadline is None:
            return self._not_forced(item)
        begins = force_at(pod, self._deadline)
        if self._now >= begins:
            return self._forced(pod, self._deadline)
        return _until_forced(begins, self._not_forced(item))

    # -- terminating -------------------------------------------------------------------

    def _terminating(self, pod: Pod, deletion: datetime) -> Verdict:
        stuck = later(deletion, STUCK_AFTER)
        if self._now >= stuck:
            return _verdict(pod, Reason.LEFT_ALONE, PodStuck(deletion, self._node.name))
        deadline = self._deadline
        if deadline is not None and (seconds := shortened(pod, deadline)) is not None:
            cut = CuttingGrace(self._node.name, deadline, deletion, seconds)
            action = _delete(pod, seconds)
            return _verdict(pod, Reason.FORCED, cut, action=action, recheck_at=stuck)
        if self._now < deletion:
            stops = PodStops(deletion)
            return _verdict(pod, Reason.POD_TERMINATING, stops, recheck_at=deletion)
        overdue = PodOverdue(deletion, stuck, pod.metadata.finalizers)
        return _verdict(pod, Reason.POD_TERMINATING, overdue, recheck_at=stuck)

    def _forced(self, pod: Pod, deadline: Deadline) -> Verdict:
        late = self._now >= deadline.end
        span = min(grace_of(pod), LAST_MINUTE) if late else grace_of(pod)
        grace = span // timedelta(seconds=1)
        forced = ForceDeleting(self._node.name, deadline, grace)
        action = _delete(pod, max(grace, 1), until=None if late else deadline.at)
        recheck_at = None if late else deadline.end
        return _verdict(pod, Reason.FORCED, forced, action=action, recheck_at=recheck_at)

    # -- evicted, if nothing blocks it -------------------------------------------------

    def _not_forced(self, item: PodView) -> Verdict:
        pod = item.pod
        if self._unreadable:
            none = NoEvictions(self._unreadable, self._node.name)
            return _verdict(pod, Reason.BLOCKED_BY_UNREADABLE, none)
        if (tier := tier_of(pod)) > self._open_tier:
            return _verdict(pod, Reason.TIER_WAITS, TierWaits(TIERS[tier], TIERS[self._open_tier]))
        protection = protection_of(pod, cap=self._cap, clock=self._settings.protection_clock)
        if protection is not None and self._now < protection.until:
            return _protected(pod, protection)
        if not self._allowances.grants(pod, item.pdbs):
            return self._predicted_refusal(item)
        if item.answer is not None:
            return self._refused(item, item.answer)
        evicting = Evicting(self._node.name)
        return _verdict(pod, Reason.EVICTING, evicting, action=_evict(pod))

    def _refused(self, item: PodView, answer: EvictionAnswer) -> Verdict:
        """A retry brings no news: the last answer counts until there is a new one."""
        key = item.pod.key
        self._retried_pods.add(key)
        # A pod that uses what its PDB allows by now waits for the retry alone.
        allowed = any(key in self._allowances.taken_by(pdb) for pdb in item.pdbs)
        blockers = () if allowed else self._blockers(item)
        return self._retried(item, Quoted(answer.message.rstrip(".")), answer.retry_at, blockers)

    def _predicted_refusal(self, item: PodView) -> Verdict:
        """The PDB's status predicts a refusal. It may be stale, so one pod is tried."""
        if bad := next((b for b in item.pdbs if is_unreadable(b)), None):
            blockers = tuple(map(blocks, item.pdbs))
            why: Fact = refusal(bad)
            return _verdict(item.pod, Reason.BLOCKED_BY_UNREADABLE, why, blockers=blockers)
        blockers = self._blockers(item)
        why = refusal_of(blockers)
        probe = self._probes.setdefault(tuple(b.uid for b in item.pdbs), item.pod)
        if probe is not item.pod:
            return self._waits(item, why, TriedFirst(probe.key), blockers=blockers)
        answer = item.answer
        last = answer.at if answer is not None else self._node.metadata.deletion_timestamp
        # A Node that is rebooted does not say since when it is drained.
        at = later(last, self._settings.eviction_probe) if last is not None else self._now
        return self._retried(item, why, at, blockers)

    def _retried(
        self, item: PodView, why: Fact, at: datetime, blockers: tuple[Blocker, ...] = ()
    ) -> Verdict:
        due = self._now >= at
        return self._waits(
            item,
            why,
            TryingNow() if due else RetriedAt(at),
            action=_evict(item.pod) if due else None,
            recheck_at=None if due else at,
            blockers=blockers,
        )

    def _waits(
        self,
        item: PodView,
        *facts: Fact,
        action: Evict | None = None,
        recheck_at: datetime | None = None,
        blockers: tuple[Blocker, ...] = (),
    ) -> Verdict:
        paced = len(item.pdbs) == 1 and not never_allows(item.pdbs[0])
        return _verdict(
            item.pod,
            Reason.EVICTION_WAITS if paced else Reason.EVICTION_REFUSED,
            *facts,
            action=action,
            recheck_at=recheck_at,
            blockers=blockers,
        )

    def _blockers(self, item: PodView) -> tuple[Blocker, ...]:
        return tuple(map(self._blocks, item.pdbs))

    def _blocks(self, pdb: PodDisruptionBudget) -> Blocker:
        taken = self._allowances.taken_by(pdb)
        evicted = (key for key in taken if key not in self._retried_pods)
        first = [key for key in taken if key in self._retried_pods]
        return blocks(pdb, (*self._terminated.get(pdb.uid, ()), *evicted), first)


def _protected(pod: Pod, protection: Protection) -> Verdict:
    reason = Reason.PROTECTION_UNREADABLE if protection.unreadable else Reason.PROTECTED
    if protection.problem:
        reason = Reason.BLOCKED_BY_UNREADABLE
    return _verdict(pod, reason, protection, recheck_at=protection.ends_at)


def _until_forced(begins: datetime, verdict: Verdict) -> Verdict:
    """The verdict, valid at most until the deadline requires a force delete."""
    recheck_at = min(verdict.recheck_at or begins, begins)
    if verdict.reason is Reason.EVICTING:
        return msgspec.structs.replace(verdict, recheck_at=recheck_at)
    forced = ForceDeletedAt(begins)
    return msgspec.structs.replace(verdict, facts=(*verdict.facts, forced), recheck_at=recheck_at)


def _evict(pod: Pod) -> Evict:
    # A plain eviction of a pod without grace would remove it before it has stopped.
    no_grace = pod.spec.termination_grace_period_seconds == 0
    return Evict(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        grace_period_seconds=1 if no_grace else None,
    )


def _delete(pod: Pod, seconds: int, until: datetime | None = None) -> DeletePod:
    return DeletePod(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        grace_period_seconds=seconds,
        until=until,
    )


def _verdict(
    pod: Pod,
    reason: Reason,
    *facts: Fact,
    action: Evict | DeletePod | None = None,
    recheck_at: datetime | None = None,
    blockers: tuple[Blocker, ...] = (),
) -> Verdict:
    return Verdict(
        concern=Concern.DRAIN,
        subject=Subject.of(PODS.kind, pod),
        reason=reason,
        facts=facts,
        blockers=blockers,
        action=action,
        recheck_at=recheck_at,
    )
