"""The back-off of a pool whose new nodes are of no use.

A new node is of no use when Tenure deletes its claim because the Node

* was not Ready within ``readinessTTL`` (``health.readiness``), or
* was unhealthy, or not initialized in time, and it was never initialized or less than 10m old
  (``marks.repaired``).

Each costs an instance, and its pods need the next one: a TTL that is shorter than the boot, or
nodes that fail after a minute, would launch instances without end. So they are counted per pool:

1. after three in a row the pool backs off: the next launch is 1m after the last of them, then 2m,
   4m, … 30m, one node at a time. Pods may be placed on other pools meanwhile;
2. it ends when a node of the pool becomes Ready (for nodes that were not) or has been initialized
   for 10m (for nodes that were repaired), or when the pool's template or its node class changes.

Such claims are read from the cluster while they terminate, and recorded in an annotation of the
pool, so a restart changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.health.readiness import was_ready
from tenure.core.marks.memory import ready_once
from tenure.core.marks.repaired import OF_USE_AFTER, was_of_no_use
from tenure.core.marks.timeout import has_timed_out
from tenure.core.pool.facts import NodesOfNoUse
from tenure.model.api.meta import ApiObject, Instant, earlier, later
from tenure.model.api.names import LAUNCH_TIMEOUTS, NODEPOOL_HASH
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.parse.jsontext import DECODE_ERRORS

#: It begins after this many in a row.
TIMES: Final = 3
BACK_OFF_MIN: Final = timedelta(minutes=1)
BACK_OFF_MAX: Final = timedelta(minutes=30)
_AHEAD_MAX: Final = timedelta(minutes=10)
#: How many are recorded: the first, which began it, and the newest.
RECORDED_MAX: Final = 20
#: Longer annotations were not written by Tenure, and are not read.
_LENGTH_MAX: Final = 16 * 1024


class OfNoUse(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    claim: str
    #: When the claim was created.
    at: Instant
    #: When it was deleted.
    until: Instant
    #: It was repaired; else it was not Ready in time.
    repaired: bool = False


class Record(msgspec.Struct, frozen=True):
    """What the pool's annotation says."""

    #: What the nodes were made from: those of an older template do not count.
    template: str = ""
    claims: tuple[OfNoUse, ...] = ()


class BackOff(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of one pool that were of no use since one was."""

    record: Record
    #: The claim that is tried now, and since when it exists.
    tried: str = ""
    tried_since: datetime | None = None
    #: When a node that came up after the last repair has been of use, and what is left from then on.
    of_use_at: datetime | None = None
    then: BackOff | None = None

    @property
    def is_open(self) -> bool:
        return len(self.record.claims) >= TIMES

    def at(self, now: datetime) -> BackOff:
        """Repaired nodes no longer count once a later one has been of use."""
        over = self.then is not None and self.of_use_at is not None and self.of_use_at <= now
        return self.then if self.then is not None and over else self

    def instants(self) -> Iterator[datetime]:
        """When it may hold or no longer hold launches although no object changes."""
        if self.is_open:
            yield from (self.holds_from, self.next_at)
        if self.of_use_at is not None and self.then is not None:
            yield self.of_use_at
            yield from self.then.instants()

    @property
    def next_at(self) -> datetime:
        """The earliest time of the next launch, if the back-off is open."""
        claims = self.record.claims
        opened = sorted(one.until for one in claims)[TIMES - 1]
        # Nodes that were launched together before it opened do not double it.
        trials = sum(one.at >= opened for one in claims)
        pause = min(BACK_OFF_MIN * (1 << min(trials, 10)), BACK_OFF_MAX)
        next_at = later(max(one.until for one in claims), pause)
        if self.tried_since is None:
            return next_at
        return max(next_at, later(self.tried_since, BACK_OFF_MAX))

    @property
    def holds_from(self) -> datetime:
        """A record that is further in the future than clocks may differ holds nothing yet."""
        return earlier(self.next_at, BACK_OFF_MAX + _AHEAD_MAX)

    def holds(self, now: datetime) -> bool:
        """Whether nothing is launched now."""
        return self.holds_from <= now < self.next_at

    def fact(self, pool: NodePool, *, timeless: bool = False) -> NodesOfNoUse:
        """``timeless``: for the pool's condition."""
        last = self.record.claims[-1]
        return NodesOfNoUse(
            len(self.record.claims),
            pool.spec.template.spec.readiness_ttl or "15m",
            last.claim,
            last.until,
            repaired=sum(one.repaired for one in self.record.claims),
            at_least=len(self.record.claims) == RECORDED_MAX,
            tried="" if timeless else self.tried,
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
        if (of_no_use := _of_no_use(claim, pool)) is not None:
            found[of_no_use.claim, of_no_use.at] = of_no_use
    if not found:
        return BackOff(record=Record(template))  # The usual case, and it must stay cheap.
    came_up = max(filter(None, map(_came_up_at, claims)), default=None)
    ordered = sorted(
        (one for one in found.values() if one.repaired or came_up is None or one.until > came_up),
        key=lambda one: (one.until, one.claim),
    )
    late = [one for one in ordered if not one.repaired]
    booting = [claim for claim in claims if not claim.deleting and not was_ready(claim, None)]
    only_late = _back_off(template, late, booting)
    if len(late) == len(ordered):
        return only_late
    repaired_at = max(one.until for one in ordered if one.repaired)
    new = [claim for claim in claims if not claim.deleting and claim.created_at > repaired_at]
    return msgspec.structs.replace(
        _back_off(template, ordered, [*booting, *new]),
        of_use_at=min(_of_use_at(claims, repaired_at), default=None),
        then=only_late,
    )


def _back_off(template: str, ordered: list[OfNoUse], tried: Iterable[NodeClaim]) -> BackOff:
    if len(ordered) > RECORDED_MAX:
        ordered = [*ordered[:TIMES], *ordered[TIMES - RECORDED_MAX :]]
    newest = max(((claim.created_at, claim.name) for claim in tried), default=None)
    return BackOff(
        record=Record(template, tuple(ordered)),
        tried=newest[1] if newest else "",
        tried_since=newest[0] if newest else None,
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
    """The hash has no requirements, and none of the fields that only Tenure has."""
    generation = node_class.metadata.generation if node_class is not None else 0
    spec = pool.spec.template.spec
    beside = (spec.readiness_ttl, spec.initialization_ttl, spec.requirements)
    digest = hashlib.sha256(msgspec.json.encode(beside)).hexdigest()[:12]
    return f"{pool.annotations.get(NODEPOOL_HASH, '')}/{digest}/{generation}"


def _of_no_use(claim: NodeClaim, pool: NodePool) -> OfNoUse | None:
    """Only a claim of the pool's present template counts."""
    until = claim.metadata.deletion_timestamp
    if until is None or claim.annotations.get(NODEPOOL_HASH) != pool.annotations.get(NODEPOOL_HASH):
        return None
    wanted, made = pool.spec.template.spec, claim.spec
    if made.readiness_ttl != wanted.readiness_ttl:
        return None
    if made.initialization_ttl != wanted.initialization_ttl:
        return None
    if has_timed_out(claim):
        return OfNoUse(claim.name, claim.created_at, until)
    if was_of_no_use(claim):
        return OfNoUse(claim.name, claim.created_at, until, repaired=True)
    return None


def _of_use_at(claims: Iterable[NodeClaim], since: datetime) -> Iterator[datetime]:
    """When each node that was initialized since then has been of use."""
    for claim in claims:
        initialized = claim.condition("Initialized")
        at = initialized.last_transition_time if initialized and claim.initialized else None
        deleted = claim.metadata.deletion_timestamp
        if at is None or at <= since:
            continue
        of_use_at = later(at, OF_USE_AFTER)
        if deleted is None or deleted >= of_use_at:
            yield of_use_at


def _came_up_at(claim: NodeClaim) -> datetime | None:
    conditions = (ready_once(claim), claim.condition("Initialized"))
    return min(
        (
            c.last_transition_time
            for c in conditions
            if c and c.status == "True" and c.last_transition_time
        ),
        default=None,
    )
