"""The back-off of a pool whose new nodes do not come up in time.

A claim has timed out when Tenure deleted it because its Node was not Ready within ``readinessTTL``
(``health.readiness``). Each such claim costs an instance, and its pods need the next one: a TTL
that is shorter than the boot would launch instances without end. So time-outs are counted per pool:

1. after three in a row the pool backs off: the next launch is 1m after the last time-out, then 2m,
   4m, … 30m, one node at a time. Pods may be placed on other pools meanwhile;
2. it ends when a node of the pool becomes Ready, or when the pool's template, its ``readinessTTL``
   or its node class changes.

Timed-out claims are read from the cluster while they terminate, and recorded in an annotation of
the pool, so a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.health.readiness import was_ready
from tenure.core.marks.ownership import READY_ONCE
from tenure.core.marks.timeout import has_timed_out
from tenure.core.pool.facts import NodesTimedOut
from tenure.model.api.meta import ApiObject, Instant, earlier, later
from tenure.model.api.names import LAUNCH_TIMEOUTS, NODEPOOL_HASH
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.parse.jsontext import DECODE_ERRORS

#: It begins after this many time-outs in a row.
TIMES: Final = 3
BACK_OFF_MIN: Final = timedelta(minutes=1)
BACK_OFF_MAX: Final = timedelta(minutes=30)
_AHEAD_MAX: Final = timedelta(minutes=10)
#: How many are recorded: the first, which began it, and the newest.
RECORDED_MAX: Final = 20
#: Longer annotations were not written by Tenure, and are not read.
_LENGTH_MAX: Final = 16 * 1024


class TimedOut(msgspec.Struct, frozen=True, gc=False):
    claim: str
    #: When the claim was created.
    at: Instant
    #: When it was deleted.
    until: Instant


class Record(msgspec.Struct, frozen=True):
    """What the pool's annotation says."""

    #: What the nodes were made from: time-outs of an older template do not count.
    template: str = ""
    claims: tuple[TimedOut, ...] = ()


class BackOff(msgspec.Struct, frozen=True, kw_only=True):
    """The time-outs of one pool since a node last came up."""

    record: Record
    #: A claim of the pool that is still booting, and since when it exists.
    booting: str = ""
    booting_since: datetime | None = None

    @property
    def is_open(self) -> bool:
        return len(self.record.claims) >= TIMES

    @property
    def next_at(self) -> datetime:
        """The earliest time of the next launch, if the back-off is open."""
        timed_out = self.record.claims
        opened = sorted(one.until for one in timed_out)[TIMES - 1]
        # Nodes that were launched together before it opened do not double it.
        trials = sum(one.at >= opened for one in timed_out)
        pause = min(BACK_OFF_MIN * (1 << min(trials, 10)), BACK_OFF_MAX)
        next_at = later(max(one.until for one in timed_out), pause)
        if self.booting_since is None:
            return next_at
        return max(next_at, later(self.booting_since, BACK_OFF_MAX))

    @property
    def holds_from(self) -> datetime:
        """A record that is further in the future than clocks may differ holds nothing yet."""
        return earlier(self.next_at, BACK_OFF_MAX + _AHEAD_MAX)

    def holds(self, now: datetime) -> bool:
        """Whether nothing is launched now."""
        return self.holds_from <= now < self.next_at

    def fact(self, pool: NodePool, *, timeless: bool = False) -> NodesTimedOut:
        """``timeless``: for the pool's condition."""
        last = self.record.claims[-1]
        return NodesTimedOut(
            len(self.record.claims),
            pool.spec.template.spec.readiness_ttl or "15m",
            last.claim,
            last.until,
            at_least=len(self.record.claims) == RECORDED_MAX,
            booting="" if timeless else self.booting,
            next_at=None if timeless else self.next_at,
        )

    @property
    def annotation(self) -> str | None:
        """What the pool has to say; None: nothing."""
        if not self.record.claims:
            return None
        return msgspec.json.encode(self.record).decode()


def back_off_of(
    pool: NodePool, claims: Iterable[NodeClaim], node_class: ApiObject | None
) -> BackOff:
    """``claims``: all of the pool that exist."""
    claims = [claim for claim in claims if not is_unreadable(claim)]
    template = _template(pool, node_class)
    known = record_of(pool)
    # A claim may get the name of an earlier one.
    found = {(one.claim, one.at): one for one in known.claims if known.template == template}
    for claim in claims:
        if (timed_out := _timed_out(claim, pool)) is not None:
            found[timed_out.claim, timed_out.at] = timed_out
    if not found:
        return BackOff(record=Record(template))  # The usual case, and it must stay cheap.
    came_up = max(filter(None, map(_came_up_at, claims)), default=None)
    ordered = sorted(
        (one for one in found.values() if came_up is None or one.until > came_up),
        key=lambda one: (one.until, one.claim),
    )
    if len(ordered) > RECORDED_MAX:
        ordered = [*ordered[:TIMES], *ordered[TIMES - RECORDED_MAX :]]
    booting = max(
        ((c.created_at, c.name) for c in claims if not c.deleting and not was_ready(c, None)),
        default=None,
    )
    return BackOff(
        record=Record(template, tuple(ordered)),
        booting=booting[1] if booting else "",
        booting_since=booting[0] if booting else None,
    )


def record_of(pool: NodePool) -> Record:
    return _read(pool.annotations.get(LAUNCH_TIMEOUTS, ""))


@lru_cache(256)
def _read(text: str) -> Record:
    if not text or len(text) > _LENGTH_MAX:
        return Record()
    try:
        return msgspec.json.decode(text, type=Record)
    except DECODE_ERRORS:
        return Record()


def _template(pool: NodePool, node_class: ApiObject | None) -> str:
    generation = node_class.metadata.generation if node_class is not None else 0
    ttl = pool.spec.template.spec.readiness_ttl
    return f"{pool.annotations.get(NODEPOOL_HASH, '')}/{ttl}/{generation}"


def _timed_out(claim: NodeClaim, pool: NodePool) -> TimedOut | None:
    """Only a claim of the pool's present template counts."""
    until = claim.metadata.deletion_timestamp
    if until is None or not has_timed_out(claim):
        return None
    if claim.annotations.get(NODEPOOL_HASH) != pool.annotations.get(NODEPOOL_HASH):
        return None
    if claim.spec.readiness_ttl != pool.spec.template.spec.readiness_ttl:
        return None
    return TimedOut(claim.name, claim.created_at, until)


def _came_up_at(claim: NodeClaim) -> datetime | None:
    conditions = (claim.condition(READY_ONCE), claim.condition("Initialized"))
    return min(
        (
            c.last_transition_time
            for c in conditions
            if c and c.status == "True" and c.last_transition_time
        ),
        default=None,
    )
