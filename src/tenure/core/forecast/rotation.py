"""Which pools cannot replace their nodes in time, with the numbers.

A node is late if it has not started when it is older than ``expireAfter``. It becomes a candidate a
little earlier than that, by its spread: so windows and budgets have some time. A drifted or empty
node has no such instant: of these only how long they wait is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from tenure.core.disrupt.expiration import ALWAYS, expires_at
from tenure.core.facts import Fact
from tenure.core.forecast.candidates import Candidacy
from tenure.core.forecast.groups import about_node
from tenure.core.forecast.result import Rotation, Start
from tenure.core.forecast.waiting import Waiting
from tenure.core.gates.reasons import Disruption

#: A candidate that has waited for so long when the forecast ends has not just become one: it may have
#: had its night.
OVERDUE: Final = timedelta(days=1)
#: So many causes are told.
_CAUSES: Final = 3


def rotations_of(
    pool: str,
    candidacies: Sequence[Candidacy],
    starts: Sequence[Start],
    waiting: Sequence[Waiting],
    now: datetime,
    until: datetime,
) -> Iterator[Rotation]:
    """One for each reason for which the pool has candidates, in the order of the pipeline.

    A node may have several reasons. Each of them counts it among its candidates; it starts, or waits at
    the end, for one.
    """
    mine = [one for one in candidacies if one.claim.pool_name == pool]
    begun = {one.claim: one for one in starts if one.pool == pool and not one.generation}
    again = [one for one in starts if one.pool == pool and one.generation]
    left = _once(one for one in waiting if one.candidacy.claim.pool_name == pool)
    reasons = dict.fromkeys(one.traits.reason for one in sorted(mine, key=lambda one: one.order))
    for reason in (*reasons, *sorted({one.reason for one in again} - reasons.keys())):
        own = [one for one in mine if one.traits.reason == reason and not _is_over(one, begun)]
        first = [begun[one.claim.name] for one in own if _has_begun(one, begun)]
        later_ones = [one for one in again if one.reason == reason]
        stay = [one for one in left if one.candidacy.traits.reason == reason]
        if own or later_ones or stay:
            yield _rotation(reason, own, [*first, *later_ones], stay, now, until)


def _once(waiting: Iterable[Waiting]) -> list[Waiting]:
    """Of a node that waits for several reasons the one for which it would start."""
    found: dict[tuple[str, int], Waiting] = {}
    for one in sorted(waiting, key=lambda one: one.candidacy.order):
        found.setdefault((one.candidacy.claim.name, one.generation), one)
    return list(found.values())


def _has_begun(candidacy: Candidacy, begun: dict[str, Start]) -> bool:
    start = begun.get(candidacy.claim.name)
    return start is not None and start.reason == candidacy.traits.reason


def _is_over(candidacy: Candidacy, begun: dict[str, Start]) -> bool:
    """Another method begins with the node before it is due for this one."""
    start = begun.get(candidacy.claim.name)
    return start is not None and not _has_begun(candidacy, begun) and start.at < candidacy.due_at


def _rotation(
    reason: str,
    candidacies: Sequence[Candidacy],
    starts: Sequence[Start],
    stay: Sequence[Waiting],
    now: datetime,
    until: datetime,
) -> Rotation:
    waits = [_waited(one, now) for one in starts]
    late = list(_late(candidacies, starts, stay, until)) if reason == Disruption.EXPIRED else []
    again = sum(bool(one.generation) for one in starts)
    again += sum(bool(one.generation) for one in stay)
    return Rotation(
        reason=reason,
        now=sum(one.due_at <= now for one in candidacies),
        due=len(candidacies) + again,
        again=again,
        started=len(starts),
        late=len(late),
        late_by=max(late, default=timedelta()),
        longest=max(waits, default=timedelta()),
        last_start=max((one.at for one in starts), default=None),
        waiting=len(stay),
        otherwise=len(candidacies) + again - len(starts) - len(stay),
        overdue=sum(_has_waited(one.candidacy, now, until) for one in stay),
        never=sum(one.never for one in stay),
        why=tuple(_causes(stay)),
    )


def _late(
    candidacies: Sequence[Candidacy],
    starts: Sequence[Start],
    stay: Sequence[Waiting],
    until: datetime,
) -> Iterator[timedelta]:
    """By how much those become older than they may that exist now, until they start or ``until``."""
    begun = {one.claim: one.at for one in starts if not one.generation}
    begun |= {one.candidacy.claim.name: until for one in stay if not one.generation}
    for one in candidacies:
        at, limit_at = begun.get(one.claim.name), _limit(one)
        if at is not None and at > limit_at:
            yield at - limit_at


def _waited(start: Start, now: datetime) -> timedelta:
    since = max(start.due_at, now)
    return max(start.at - since, timedelta())


def _has_waited(candidacy: Candidacy, now: datetime, until: datetime) -> bool:
    since = max(candidacy.due_at, now)
    return until - since >= OVERDUE


def _limit(candidacy: Candidacy) -> datetime:
    """When its node is as old as it may become."""
    return expires_at(candidacy.claim, ALWAYS) or candidacy.due_at


def _causes(stay: Iterable[Waiting]) -> Iterator[tuple[int, Fact]]:
    """What blocks them, the most frequent first; of many nodes one is named."""
    counts: Counter[Fact] = Counter()
    examples: dict[Fact, Fact] = {}
    for one in stay:
        same = about_node(one.why, "")
        counts[same] += 1
        examples.setdefault(same, one.why)
    return ((count, examples[same]) for same, count in counts.most_common(_CAUSES))
