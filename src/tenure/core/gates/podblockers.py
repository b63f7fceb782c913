"""What of a Node, its claim and its pods blocks a disruption: the gate ``PODS``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from tenure.core.decision import Blocker, Subject
from tenure.core.gates.traits import Traits
from tenure.core.marks.deadline import grace_period
from tenure.core.protect.protection import protection_of, protection_on
from tenure.core.terminate.facts.pods import PdbAllowsNoMore
from tenure.core.terminate.pdb import allows_one, blocks
from tenure.core.terminate.pods import DrainView, left_alone
from tenure.core.writes import subject_of
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object


def blockers_of(
    traits: Traits,
    claim: NodeClaim,
    drain: DrainView,
    settings: Settings,
    now: datetime,
    *,
    bound: timedelta | None = None,
) -> Iterator[Blocker]:
    """What of the Node, its claim and its pods blocks a disruption now.

    *Eventual* disruption: a deadline will end the drain, so pods do not block it; the drain itself
    still respects them until then.
    """
    if traits.node_protection_counts:
        yield from _of_node(claim, drain, now)
    if not is_eventual(traits, claim, bound):
        yield from _of_pods(drain, settings, now)
    else:
        # A deadline that is still to be set would delete them unread.
        yield from (_unreadable(item.pod) for item in drain.pods if is_unreadable(item.pod))


def is_eventual(traits: Traits, claim: NodeClaim, bound: timedelta | None = None) -> bool:
    """Whether it may start although pods block it. ``bound``: of the drain, by the method."""
    return traits.eventual and (bound is not None or grace_period(claim) is not None)


def ends_last(one: Blocker) -> tuple[bool, datetime]:
    """By when it ends; a PDB that allows no more for now opens again by itself, and comes first."""
    return not isinstance(one.fact, PdbAllowsNoMore), one.until or FOR_EVER


def _of_node(claim: NodeClaim, drain: DrainView, now: datetime) -> Iterator[Blocker]:
    for thing in (drain.node, claim):
        protection = protection_on(thing)
        if protection is not None and now < protection.until:
            subject = subject_of(thing)
            yield Blocker(subject=subject, fact=protection, until=protection.ends_at)


def _of_pods(drain: DrainView, settings: Settings, now: datetime) -> Iterator[Blocker]:
    for item in drain.pods:
        pod = item.pod
        if not item.pdbs and not is_unreadable(pod) and DO_NOT_DISRUPT not in pod.annotations:
            continue  # Nearly all pods: nothing says that it stays.
        if left_alone(pod) or pod.deleting:
            continue
        protection = protection_of(pod, cap=drain.cap, clock=settings.protection_clock)
        if protection is not None and now < protection.until:
            subject = Subject.of(PODS.kind, pod)
            yield Blocker(subject=subject, fact=protection, until=protection.ends_at)
        # Each pod by itself: whether all can be evicted at once is the drain's business.
        elif not allows_one(pod, item.pdbs):
            yield from map(blocks, item.pdbs)


def _unreadable(pod: Pod) -> Blocker:
    return Blocker(subject=Subject.of(PODS.kind, pod), fact=unreadable_object(pod))
