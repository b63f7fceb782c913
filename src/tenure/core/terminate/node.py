"""Decide the next step of a Node that is being deleted, the first of these that applies:

0. unreadable the Node or its claim cannot be read: nothing, until a minute after the deadline;
1. taint      taint it and remove it from load balancers, before any pod is evicted;
2. lost       not Ready, and the cloud no longer has its instance (the list of instances lacks it,
              or the cloud answered so for this instance): nothing to drain, so it is released;
3. drain      wait for the pods (see ``pods``), at most until a minute after the deadline; name
              the pods that block the drain, and why. The drain fails, with a Warning, once no pod
              terminates, and what blocks the others has not changed for two minutes, or never will;
4. settle     a few seconds from the start of the drain, so that every controller sees the taint;
5. volumes    wait until they are detached, at most until the deadline;
6. terminate  ask the cloud to terminate the instance, until the instance is gone;
7. release    remove the finalizer.

A Node without a claim is drained and released: its instance was terminated with its claim.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from tenure.core.decision import Blocker, Subject, Verdict
from tenure.core.facts import NAMED_MAX, Fact, Quoted, joined
from tenure.core.marks.deadline import stops_at
from tenure.core.marks.taints import close_terminating
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.deadlines import MustBeDrained
from tenure.core.terminate.facts.termination import (
    ClaimGone,
    Drained,
    MoreCauses,
    PodsBlocked,
    PodsRemained,
    RecordingDrainEnd,
    RecordingDrainStart,
    Tainting,
    TerminatingAt,
    VolumeAttached,
    VolumesDetached,
    WaitingForPods,
    WaitingForVolumes,
)
from tenure.core.terminate.pdb import blocked_since, refusal_of
from tenure.core.terminate.pods import REFUSED, Attachment, DrainView, PodView
from tenure.core.terminate.view import (
    TerminationView,
    Waiting,
    blocked_by_unreadable,
    inspected,
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
from tenure.core.verdicts import no_later
from tenure.core.writes import release
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODES, VOLUME_ATTACHMENTS
from tenure.model.settings import Settings

#: Verdicts on pods that do not change by themselves within a grace period.
BLOCKED: Final = REFUSED | {
    Reason.PROTECTED,
    Reason.PROTECTION_UNREADABLE,
    Reason.BLOCKED_BY_UNREADABLE,
}
#: Verdicts on pods that terminate, or begin to.
_TERMINATING: Final = frozenset({Reason.EVICTING, Reason.POD_TERMINATING, Reason.FORCED})
#: How long a drain may make no progress before it counts as blocked. A PDB allows no disruption until
#: the last evicted pod has stopped and the pod that replaces it is ready, and a protection may end.
PACE_MAX: Final = timedelta(minutes=2)


def decide_node(
    view: TerminationView, drain: DrainView, settings: Settings, now: datetime
) -> Verdict:
    verdict = _next_step(view, drain, settings, now)
    return inspected(view, drain.node, verdict, settings, now)


def _next_step(
    view: TerminationView, drain: DrainView, settings: Settings, now: datetime
) -> Verdict:
    node = drain.node
    if (blocked := blocked_by_unreadable(view, node, settings, now)) is not None:
        return blocked
    closing = close_terminating(node)
    if closing is not None:
        return say(node, Reason.TAINTING, Tainting(node.name), action=closing)
    claim = view.claim
    if claim is not None and not node.ready and lost_instance(view, claim, settings):
        return terminate_instance(view, claim, node, settings, now)
    if waiting := waiting_pods(drain, settings, now):
        return _draining(drain, waiting, now)
    if claim is None:
        return say(node, Reason.RELEASING, ClaimGone(node.name), action=release(node))
    if claim.is_settled("Drained"):
        if volumes := waiting_volumes(drain, now):
            return _attached(drain, volumes)
        if claim.is_settled("VolumesDetached"):
            return terminate_instance(view, claim, node, settings, now)
        return say(node, Reason.DRAINED, VolumesDetached((node.name,)))
    verdict = _drained(drain, claim, settled_at(claim, settings), now)
    return no_later(verdict, next_force(view, now))


def _drained(
    drain: DrainView, claim: NodeClaim, settled: datetime | None, now: datetime
) -> Verdict:
    node, left = drain.node, left_behind(drain, now)
    drained = Drained((node.name,), tuple(stuck_pods(drain, now)))
    empty = PodsRemained((node.name,), tuple(left)) if left else drained
    if settled is None:
        return say(node, Reason.SETTLING, empty, RecordingDrainStart(claim.name))
    if now < settled:
        return say(node, Reason.SETTLING, empty, TerminatingAt(settled), recheck_at=settled)
    reason = Reason.GRACE_PERIOD_ELAPSED if left else Reason.DRAINED
    return say(node, reason, empty, RecordingDrainEnd(claim.name))


def _attached(drain: DrainView, volumes: Sequence[Attachment]) -> Verdict:
    node, deadline = drain.node, drain.deadline
    return say(
        node,
        Reason.AWAITING_VOLUMES,
        Drained((node.name,)),
        WaitingForVolumes(named(volumes), deadline),
        blockers=tuple(volume_blocks(one, node) for one in volumes),
        recheck_at=deadline.at if deadline is not None else None,
    )


def named(attachments: Iterable[Attachment]) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, one.volume) for one in attachments)


def volume_blocks(attachment: Attachment, node: Node) -> Blocker:
    subject = Subject(VOLUME_ATTACHMENTS.kind, attachment.name)
    fact = VolumeAttached(attachment.name, attachment.volume, node.name)
    return Blocker(subject=subject, fact=fact)


def _draining(drain: DrainView, waiting: Waiting, now: datetime) -> Verdict:
    blocked = blocked_pods(waiting)
    progress_ends = _progress_ends(drain.node, blocked)
    progresses = any(verdict.reason in _TERMINATING for _, verdict in waiting) or any(
        now < until for until in progress_ends
    )
    reason = Reason.DRAINING if progresses or not blocked else Reason.EVICTION_REFUSED
    due = drain.deadline
    return say(
        drain.node,
        reason,
        WaitingForPods(tuple(item.pod.key for item, _ in waiting), len(blocked)),
        *_causes(blocked),
        *([MustBeDrained(NODES.kind, drain.node.name, due)] if due is not None else []),
        blockers=blockers_of(waiting),
        recheck_at=min(
            (
                at
                for at in (next_change(drain, waiting), *progress_ends)
                if at is not None and now < at
            ),
            default=None,
        ),
    )


def _progress_ends(node: Node, blocked: Waiting) -> list[datetime]:
    """Until when the drain still counts as making progress, although these pods are blocked.

    A PDB that refuses now may allow the next eviction soon. A protection that ends is waited for as
    well, unless another pod is blocked for ever.
    """
    began_at = node.metadata.deletion_timestamp
    paced = [item for item, verdict in blocked if verdict.reason is Reason.EVICTION_WAITS]
    since = [blocked_since(item.pdbs[0], began_at) for item in paced]
    protected = [verdict for _, verdict in blocked if _protection_ends(verdict)]
    if protected and len(protected) + len(paced) == len(blocked):
        since.append(began_at)
    return [later(at, PACE_MAX) for at in since if at is not None]


def _protection_ends(verdict: Verdict) -> bool:
    return any(isinstance(fact, Protection) and fact.ends_at for fact in verdict.facts)


def blocked_pods(waiting: Waiting) -> Waiting:
    return [one for one in waiting if one[1].reason in BLOCKED]


def blockers_of(waiting: Waiting) -> tuple[Blocker, ...]:
    """The pods that a drain waits for, and the PDBs that block some of them."""
    pdbs = (blocker for _, verdict in blocked_pods(waiting) for blocker in verdict.blockers)
    return (*itertools.starmap(_blocks, waiting), *dict.fromkeys(pdbs))


def _causes(blocked: Waiting) -> Iterable[PodsBlocked | MoreCauses]:
    """The first few causes, each with the pods that it blocks; the blockers name them all."""
    causes: dict[Fact, list[str]] = {}
    for item, verdict in blocked:
        causes.setdefault(_why(item, verdict), []).append(item.pod.key)
    for why in list(causes)[:NAMED_MAX]:
        yield PodsBlocked(tuple(causes[why]), why)
    if len(causes) > NAMED_MAX:
        yield MoreCauses(len(causes) - NAMED_MAX)


def _why(item: PodView, verdict: Verdict) -> Fact:
    """The PDBs that block its eviction if there are any, else what its verdict says."""
    if verdict.reason not in REFUSED:
        return joined(verdict.facts)
    # The pod's own verdict has the time of the next try, which changes every few seconds.
    if verdict.blockers:
        return refusal_of(verdict.blockers)
    return Quoted(item.answer.message) if item.answer is not None else joined(verdict.facts)


def _blocks(item: PodView, verdict: Verdict) -> Blocker:
    return Blocker(
        subject=verdict.subject, fact=_why(item, verdict), until=_blocks_until(item, verdict)
    )


def _blocks_until(item: PodView, verdict: Verdict) -> datetime | None:
    if (stops := stops_at(item.pod)) is not None:
        return stops
    if verdict.reason is Reason.PROTECTED:
        return verdict.recheck_at
    # Its PDB allows the eviction by now, which succeeds as soon as it is retried.
    next_one = verdict.reason is Reason.EVICTION_WAITS and not verdict.blockers
    return item.answer.retry_at if next_one and item.answer is not None else None
