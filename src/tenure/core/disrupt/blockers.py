"""What keeps a node from being a candidate of voluntary disruption, and until when.

In order: the Node or its claim asks to be left alone; then its pods, one by one: protected, or
under a budget that allows nothing now. A repair is no business of the Node's own annotation.

*Eventual* disruption: an expired or drifted node whose claim has a grace period may start in
spite of its pods, because its deadline will end it; so may a repair whose drain has a bound. The
drain itself still respects them until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from tenure.core.decision import Blocker, Subject
from tenure.core.disrupt.method import Traits
from tenure.core.facts import as_fact
from tenure.core.protect.protection import protection_of, protection_on
from tenure.core.terminate.deadline import grace_period
from tenure.core.terminate.pdb import Allowances, blocks
from tenure.core.terminate.pods import DrainView, left_alone
from tenure.core.writes import subject_of
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.unreadable import is_unreadable, why_unreadable


def is_eventual(traits: Traits, claim: NodeClaim, bound: timedelta | None = None) -> bool:
    """Whether it may start although pods block it. ``bound``: of the drain, by the method."""
    return traits.eventual and (bound is not None or grace_period(claim) is not None)


def obstacles(
    traits: Traits,
    claim: NodeClaim,
    drain: DrainView,
    settings: Settings,
    now: datetime,
    *,
    bound: timedelta | None = None,
) -> list[Blocker]:
    """Everything that blocks it now; none: it is a candidate."""
    found: list[Blocker] = []
    if traits.node_protection_counts:
        found += _own(claim, drain, now)
    if not is_eventual(traits, claim, bound):
        found += _of_pods(drain, settings, now)
    else:
        # A deadline that is still to be set would take them away.
        found += [_blocks(item.pod) for item in drain.pods if is_unreadable(item.pod)]
    return found


def _blocks(pod: Pod) -> Blocker:
    return Blocker(subject=Subject.of(PODS.kind, pod), fact=as_fact(why_unreadable(pod)))


def in_the_way(found: list[Blocker]) -> str:
    """For a sentence."""
    first = f"{found[0].subject}: {found[0].message}"
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"pods are in its way, and no grace period bounds its drain: {first}{more}"


def _own(claim: NodeClaim, drain: DrainView, now: datetime) -> Iterator[Blocker]:
    for thing in (drain.node, claim):
        protection = protection_on(thing)
        if protection is not None and now < protection.until:
            yield Blocker(
                subject=subject_of(thing), fact=as_fact(str(protection)), until=protection.ends_at
            )


def _of_pods(drain: DrainView, settings: Settings, now: datetime) -> Iterator[Blocker]:
    for item in drain.pods:
        pod = item.pod
        if left_alone(pod) or pod.deleting:
            continue
        protection = protection_of(pod, cap=drain.cap, clock=settings.protection_clock)
        if protection is not None and now < protection.until:
            subject = Subject.of(PODS.kind, pod)
            yield Blocker(subject=subject, fact=as_fact(str(protection)), until=protection.ends_at)
        # Each for itself: whether they can all go at once is the drain's business.
        elif not Allowances().grants(pod, item.budgets):
            yield from map(blocks, item.budgets)
