"""Decide the next step of a Node that is being deleted, the first of these that applies:

0. unreadable the Node or its claim cannot be read: nothing, until a minute after the deadline;
1. taint      taint it and remove it from load balancers, before any pod is evicted;
2. lost       not Ready, and the cloud no longer has its instance (the list of instances lacks it,
              or the cloud answered so for this instance): nothing to drain, so it is released;
3. drain      wait for the pods (see ``pods``), at most until a minute after the deadline; name
              the pods that block the drain, and why. The drain fails, with a Warning, once no pod
              terminates and no PDB has changed for two minutes;
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
from tenure.core.facts import as_fact
from tenure.core.marks.deadline import stops_at
from tenure.core.marks.taints import close_terminating
from tenure.core.reasons import Reason
from tenure.core.terminate.pdb import blocked_since
from tenure.core.terminate.pods import REFUSED, Attachment, DrainView, PodView, refusal_of
from tenure.core.terminate.view import (
    TerminationView,
    Waiting,
    blocked_by_unreadable,
    end_instance,
    inspected,
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
from tenure.core.verdicts import no_later
from tenure.core.writes import release
from tenure.model.api.meta import format_time, later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import VOLUME_ATTACHMENTS
from tenure.model.settings import Settings

#: Verdicts on pods that do not change by themselves within a grace period.
BLOCKED: Final = REFUSED | {
    Reason.PROTECTED,
    Reason.PROTECTION_UNREADABLE,
    Reason.BLOCKED_BY_UNREADABLE,
}
#: Verdicts on pods that terminate, or begin to.
_TERMINATING: Final = frozenset({Reason.EVICTING, Reason.POD_TERMINATING, Reason.FORCED})
#: How long a PDB may allow no disruption in a drain that makes progress: the last evicted pod stops,
#: and the pod that replaces it becomes ready. After that the drain counts as blocked.
PACE_MAX: Final = timedelta(minutes=2)

#: How many pods a message names; the blockers name them all.
_NAMED_MAX: Final = 3


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
        message = f"tainting Node {node.name} and removing it from load balancers"
        return say(node, Reason.TAINTING, message, action=closing)
    claim = view.claim
    if claim is not None and not node.ready and lost_instance(view, claim, settings):
        return end_instance(view, claim, node, settings, now)
    if waiting := waiting_pods(drain, settings, now):
        return _draining(drain, waiting, now)
    if claim is None:
        message = f"Node {node.name} is drained and has no NodeClaim; removing the finalizer"
        return say(node, Reason.RELEASING, message, action=release(node))
    if claim.is_settled("Drained"):
        if volumes := waiting_volumes(drain, now):
            return _attached(drain, volumes)
        if claim.is_settled("VolumesDetached"):
            return end_instance(view, claim, node, settings, now)
        return say(node, Reason.DRAINED, f"all volumes are detached from Node {node.name}")
    verdict = _drained(drain, claim, settled_at(claim, settings), now)
    return no_later(verdict, next_force(view, now))


def _drained(
    drain: DrainView, claim: NodeClaim, settled: datetime | None, now: datetime
) -> Verdict:
    node, empty = drain.node, _drained_text(drain, now)
    if settled is None:
        message = f"{empty}; recording the start of the drain in NodeClaim {claim.name}"
        return say(node, Reason.SETTLING, message)
    if now < settled:
        message = f"{empty}; terminating its instance at {format_time(settled)}"
        return say(node, Reason.SETTLING, message, recheck_at=settled)
    reason = Reason.GRACE_PERIOD_ELAPSED if left_behind(drain, now) else Reason.DRAINED
    message = f"{empty}; recording that in NodeClaim {claim.name}"
    return say(node, reason, message)


def _drained_text(drain: DrainView, now: datetime) -> str:
    if left := left_behind(drain, now):
        return f"Node {drain.node.name}: {remaining(left)}"
    if stuck := stuck_pods(drain, now):
        pods = some(stuck)
        return f"Node {drain.node.name} is drained, except for pods stuck in termination: {pods}"
    return f"Node {drain.node.name} is drained"


def remaining(pods: Sequence[str]) -> str:
    count = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
    return f"{count} remained after the deadline: {some(pods)}"


def _attached(drain: DrainView, volumes: Sequence[Attachment]) -> Verdict:
    deadline = drain.deadline
    names_ = some(f"{one.name} ({one.volume})" for one in volumes)
    until = f", at most until {deadline}" if deadline is not None else ""
    return say(
        drain.node,
        Reason.AWAITING_VOLUMES,
        f"Node {drain.node.name} is drained; waiting until volumes are detached{until}: {names_}",
        blockers=tuple(volume_blocks(one) for one in volumes),
        recheck_at=deadline.at if deadline is not None else None,
    )


def volume_blocks(attachment: Attachment) -> Blocker:
    subject = Subject(VOLUME_ATTACHMENTS.kind, attachment.name)
    return Blocker(subject=subject, fact=as_fact(f"volume {attachment.volume} is attached"))


def _draining(drain: DrainView, waiting: Waiting, now: datetime) -> Verdict:
    blocked = [one for one in waiting if one[1].reason in BLOCKED]
    count = f"{len(waiting)} {'pod' if len(waiting) == 1 else 'pods'}"
    message = f"waiting for {count}: {some(item.pod.key for item, _ in waiting)}"
    if blocked:
        message = f"waiting for {count}, {len(blocked)} blocked: {_blocked_by(blocked)}"
    progress_ends = [_progress_until(drain.node, *one) for one in blocked]
    progresses = any(verdict.reason in _TERMINATING for _, verdict in waiting) or any(
        until is not None and now < until for until in progress_ends
    )
    reason = Reason.DRAINING if progresses or not blocked else Reason.EVICTION_REFUSED
    if drain.deadline is not None:
        message = f"{message}; Node {drain.node.name} must be drained by {drain.deadline}"
    return say(
        drain.node,
        reason,
        message,
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


def _progress_until(node: Node, item: PodView, verdict: Verdict) -> datetime | None:
    """Until when a drain with this refused eviction still counts as making progress."""
    if verdict.reason is not Reason.EVICTION_WAITS:
        return None
    since = blocked_since(item.budgets[0]) or node.metadata.deletion_timestamp
    return later(since, PACE_MAX) if since is not None else None


def blockers_of(waiting: Waiting) -> tuple[Blocker, ...]:
    """The pods that a drain waits for, and the PDBs that block some of them."""
    blocked = (verdict for _, verdict in waiting if verdict.reason in BLOCKED)
    budgets = (blocker for verdict in blocked for blocker in verdict.blockers)
    return (*itertools.starmap(_blocks, waiting), *dict.fromkeys(budgets))


def _blocked_by(blocked: Waiting) -> str:
    """Each cause once, with the pods that it blocks."""
    causes: dict[str, list[str]] = {}
    for item, verdict in blocked:
        causes.setdefault(_why(item, verdict), []).append(item.pod.key)
    return some((f"{some(pods)}: {why}" for why, pods in causes.items()), "; ")


def _why(item: PodView, verdict: Verdict) -> str:
    """The PDBs that block its eviction if there are any, else its verdict's message."""
    if verdict.reason not in REFUSED:
        return verdict.message
    # The pod's own verdict has the time of the next try, which changes every few seconds.
    if verdict.blockers:
        return refusal_of(verdict.blockers)
    return item.answer.message if item.answer is not None else verdict.message


def _blocks(item: PodView, verdict: Verdict) -> Blocker:
    return Blocker(
        subject=verdict.subject,
        fact=as_fact(_why(item, verdict)),
        until=stops_at(item.pod)
        or (verdict.recheck_at if verdict.reason is Reason.PROTECTED else None),
    )


def some(sentences: Iterable[str], between: str = ", ") -> str:
    """The first few, and how many more."""
    every = list(sentences)
    more = f" and {len(every) - _NAMED_MAX} more" if len(every) > _NAMED_MAX else ""
    return between.join(every[:_NAMED_MAX]) + more
