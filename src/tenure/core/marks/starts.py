"""The starts of disruptions that a pool remembers, for budgets with ``within``.

``NodePool.status.disruptionStarts`` is the memory: a restarted or new leader counts the same. This
module is its only owner. The rules:

* A command or a reboot is recorded before it is committed, and is committed only while its record
  is fresh (``COMMITTED_WITHIN``). A crash in between counts one start too many, never one too few.
* So a start counts for its span and this little longer. After that it is recorded anew.
* A record serves one commit, and the claim says which (``used_by``): a command that is rolled back
  and starts again is recorded again.
* A departure that no budget blocks (forceful repair, a deletion by a user) is recorded when it is
  seen, under the instant when it began. That of a left-over replacement is none.
* A start without a readable instant, or with one ahead of every clock, closes the budgets with
  ``within``. It is rewritten to begin now: its effect ends with the span.
* A pool without such a budget records nothing.
* Beside Karpenter that status is not ours: nothing is recorded there before a commit (``is_recorded``). Policies
  remember departures (``starts_of``, ``core.beside.departures``), and what is seen counts until then (``seen``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.decision import Patch
from tenure.core.marks.command import (
    REASON_CONDITION,
    disrupted_since,
    is_commanded,
    is_replaced,
    names_replacement,
    reason_of,
    replaced_uids,
)
from tenure.core.marks.ownership import is_ours, uses_budgets
from tenure.errors import SpecError
from tenure.model.api import names
from tenure.model.api.meta import earlier, format_time, later, read_instant
from tenure.model.api.names import NORMALIZED_LABELS
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import STARTS_MAX, WITHIN_MAX, Budget, DisruptionStart, NodePool
from tenure.model.api.resource import NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.governed import of_policies, starts_of, with_starts
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import parse_duration

#: The field of the status.
DISRUPTION_STARTS: Final = "disruptionStarts"
#: How old the record of a start may be when it is committed: a turn or two, and a slow API server.
COMMITTED_WITHIN: Final = timedelta(seconds=15)
#: No clock of a replica is ahead by more.
AHEAD_MAX: Final = timedelta(minutes=1)
#: The reason of a departure that does not say why.
_DELETED: Final = "Deleted"


# -- read ----------------------------------------------------------------------------------


def has_velocity(pool: NodePool) -> bool:
    return any(budget.within is not None for budget in pool.spec.disruption.budgets)


def span_of(budget: Budget) -> timedelta:
    """For how long a start counts; the longest there is where that cannot be read."""
    try:
        span = parse_duration(budget.within or "").timedelta
    except (SpecError, OverflowError):
        return WITHIN_MAX
    return min(span, WITHIN_MAX)


def instant_of(start: DisruptionStart, now: datetime) -> datetime | None:
    """When it was; None: that cannot be read, or is ahead of every clock."""
    at = read_instant(start.at)
    return at if at is not None and earlier(at, AHEAD_MAX) <= now else None


def counts_until(at: datetime, span: timedelta) -> datetime:
    return later(at, span + COMMITTED_WITHIN)


def recorded_at(pool: NodePool, claim: NodeClaim, now: datetime) -> datetime | None:
    """When the start that the claim commits was recorded; None: it has to be."""
    found = (instant_of(s, now) for s in starts_of(pool) if s.claim == claim.uid)
    fresh = [at for at in found if at is not None and now < later(at, COMMITTED_WITHIN)]
    if is_commanded(claim) or is_replaced(claim):
        return max(fresh, default=None)
    if of_policies(pool):
        return None  # They are recorded once they are seen: this one is of a command that was rolled back.
    used = read_instant(claim.annotations.get(names.STARTED_AT, ""))
    if (
        used is not None and earlier(used, AHEAD_MAX) <= now
    ):  # One ahead of every clock is not ours.
        if used in fresh:
            fresh.remove(used)
        fresh = [at for at in fresh if at >= used]
    return max(fresh, default=None)


def used_by(pool: NodePool, claim: NodeClaim, settings: Settings, now: datetime) -> dict[str, str]:
    """The annotation of a claim that commits its start now: its record serves no second one.

    Beside Karpenter a start is remembered once it is seen, so a commit uses none.
    """
    needed = has_velocity(pool) and is_recorded(settings)
    at = recorded_at(pool, claim, now) if needed else None
    return {names.STARTED_AT: format_time(at)} if at is not None else {}


def is_full(pool: NodePool) -> bool:
    """What cannot be recorded does not start."""
    return len(starts_of(pool)) >= STARTS_MAX


def room_for(pool: NodePool) -> int:
    """How many more starts may be recorded and committed: a full record lets none be committed."""
    return max(STARTS_MAX - 1 - len(starts_of(pool)), 0)


def departures_in(pool: NodePool, snapshot: Snapshot) -> tuple[DisruptionStart, ...]:
    """Nodes that leave or reboot without a command, under the instant when that began."""
    if not has_velocity(pool):
        return ()
    claims = snapshot.claims_of_pool(pool.name)
    return tuple(_departures(pool, (claims[name] for name in sorted(claims)), snapshot))


def _departures(
    pool: NodePool, claims: Iterable[NodeClaim], snapshot: Snapshot
) -> Iterator[DisruptionStart]:
    for claim in claims:
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        counts = claim.initialized or any(uses_budgets(claim, node) for node in nodes.values())
        # Of a claim that cannot be read only the second mark is known.
        commanded = is_commanded(claim) or is_replaced(claim)
        if commanded or not (counts or claim.rebooting) or not is_ours(claim, snapshot):
            continue
        if _is_left_over(claim, snapshot):
            continue
        at = claim.metadata.deletion_timestamp
        if at is None and claim.rebooting:
            at = disrupted_since(claim)
        if at is not None:
            labels = next((nodes[name].labels for name in sorted(nodes)), claim.labels)
            start = new_start(pool, claim, _why(claim), labels)
            yield msgspec.structs.replace(start, at=format_time(at))


def seen(pool: NodePool, snapshot: Snapshot) -> NodePool:
    """The pool with the starts that can be seen in the cluster, beside those that are remembered."""
    if not has_velocity(pool):
        return pool
    found = list(departures_in(pool, snapshot))
    for _, claim in sorted(snapshot.claims_of_pool(pool.name).items()):
        at = disrupted_since(claim) or claim.metadata.deletion_timestamp
        if is_commanded(claim) and at is not None and claim.initialized:
            nodes = snapshot.nodes_with_provider(claim.provider_id)
            labels = next((nodes[name].labels for name in sorted(nodes)), claim.labels)
            start = new_start(pool, claim, reason_of(claim), labels)
            found.append(msgspec.structs.replace(start, at=format_time(at)))
    remembered = starts_of(pool)
    known = [(one.claim, read_instant(one.at)) for one in remembered]
    ours = {one.uid for one in snapshot.claims_of_pool(pool.name).values() if has_own_instant(one)}
    more = (
        one
        for one in found
        if not _is_known(one.claim, read_instant(one.at), known, exactly=one.claim in ours)
    )
    return with_starts(pool, (*remembered, *more))


def has_own_instant(claim: NodeClaim) -> bool:
    """Beside Karpenter: whether a command of ours says when it began, and so its record does."""
    return names.DISRUPTED_BY in claim.annotations and names.DISRUPTED_SINCE in claim.annotations


def _is_left_over(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether it was launched to replace a node of its pool that stays: it goes without its pods
    ever having come, and no budget is asked."""
    uids = frozenset(replaced_uids(claim))
    of_pool = snapshot.claims_of_pool(claim.pool_name).values() if uids else ()
    found = [one for one in of_pool if one.uid in uids]
    return bool(found) and not any(one.deleting or names_replacement(one, claim) for one in found)


def _why(claim: NodeClaim) -> str:
    said = claim.condition(REASON_CONDITION)
    return (said.reason if said is not None and said.status == "True" else "") or _DELETED


# -- write ---------------------------------------------------------------------------------


def new_start(
    pool: NodePool, claim: NodeClaim, reason: str, labels: Mapping[str, str]
) -> DisruptionStart:
    """A start without an instant: the executor sets that of the write."""
    counted_by = {key: labels.get(key, "") for key in label_keys(pool)}
    return DisruptionStart(claim=claim.uid, reason=reason, labels=counted_by)


def is_recorded(settings: Settings) -> bool:
    """Whether a start is written down before it is committed."""
    return not settings.beside_karpenter


def record(pool: NodePool, more: Sequence[DisruptionStart], settings: Settings) -> Patch | None:
    """Appends the starts, on the version of the pool that was evaluated; None: they are not ours to write."""
    if not is_recorded(settings):
        return None
    meta = pool.metadata
    starts = (*pool.status.disruption_starts, *more)
    return Patch(
        resource=NODE_POOLS,
        name=pool.name,
        uid=pool.uid,
        resource_version=meta.resource_version,
        body={
            "metadata": {"resourceVersion": meta.resource_version, "uid": pool.uid},
            "status": written(starts),
        },
        subresource="status",
        begins=True,
    )


def written(starts: Sequence[DisruptionStart]) -> dict[str, Any]:
    """As part of a status; an empty record is none."""
    return {DISRUPTION_STARTS: [_to_wire(start) for start in starts] or None}


def kept(
    pool: NodePool, departures: Sequence[DisruptionStart], now: datetime
) -> tuple[DisruptionStart, ...]:
    """What the pool has to remember now: recent starts, repaired ones, and new departures."""
    span = _longest(pool)
    if span is None:
        return ()
    found: list[DisruptionStart] = []
    for start in pool.status.disruption_starts:
        at = instant_of(start, now)
        if at is None:
            found.append(msgspec.structs.replace(start, at=""))
        elif now < counts_until(at, span):
            found.append(start)
    known = [(start.claim, instant_of(start, now)) for start in found]
    for start in departures:
        at = instant_of(start, now)
        recent = at is not None and now < counts_until(at, span)
        if recent and not _is_known(start.claim, at, known) and len(found) < STARTS_MAX:
            found.append(start)
    return tuple(found[:STARTS_MAX])


def _is_known(
    claim: str,
    began: datetime | None,
    known: Iterable[tuple[str, datetime | None]],
    *,
    exactly: bool = False,
) -> bool:
    """Whether that departure is recorded. A claim may have had a start before that was rolled back:
    that is another one. ``exactly``: its record has the very instant."""
    slack = timedelta() if exactly else COMMITTED_WITHIN
    return any(
        uid == claim and (at is None or began is None or earlier(began, slack) <= at)
        for uid, at in known
    )


def kept_until(
    pool: NodePool, departures: Sequence[DisruptionStart], now: datetime
) -> datetime | None:
    """When ``kept`` differs although nothing changes."""
    span = _longest(pool)
    if span is None:
        return None
    instants = []
    for start in (*pool.status.disruption_starts, *departures):
        if (at := read_instant(start.at)) is not None:
            instants += [earlier(at, AHEAD_MAX), counts_until(at, span)]
    return min((at for at in instants if at > now), default=None)


def _longest(pool: NodePool) -> timedelta | None:
    budgets = pool.spec.disruption.budgets
    return max((span_of(one) for one in budgets if one.within is not None), default=None)


def label_keys(pool: NodePool) -> Sequence[str]:
    """The labels that budgets of the pool select or group by, as this release names them."""
    keys: set[str] = set()
    for budget in pool.spec.disruption.budgets:
        if budget.per is not None:
            keys.add(budget.per)
        if budget.selector is not None:
            keys |= {one.key for one in budget.selector.match_expressions}
    return sorted(map(current_label, keys))


def current_label(label: str) -> str:
    """What it is called in this release of Kubernetes, and of Karpenter."""
    if label == names.PROVISIONER_NAME:
        return names.NODEPOOL
    return NORMALIZED_LABELS.get(label, label)


def _to_wire(start: DisruptionStart) -> dict[str, Any]:
    wire: dict[str, Any] = {"claim": start.claim, "reason": start.reason}
    if start.at:
        wire["at"] = start.at
    if start.labels:
        wire["labels"] = dict(start.labels)
    return wire
