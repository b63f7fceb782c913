"""A drain's timetable as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.view import columns
from tenure.cli.view.instants import at_clock
from tenure.core.facts import Fact, counted, sentence, some
from tenure.core.repair.foresight import Foresight, foresee
from tenure.core.terminate.facts.pods import PdbAllowsNoMore
from tenure.core.terminate.facts.termination import PodsBlocked, VolumeAttached
from tenure.core.terminate.podtimes import EvictionBlocker, PodTimes, never_ends
from tenure.core.terminate.schedule import Timetable, timetable
from tenure.model.api.meta import format_time
from tenure.model.api.node import Node

_HEADINGS: Final = ("POD", "TIER", "EVICTION", "FORCED", "STOPPED BY", "BLOCKED BY")


class DrainOutlook(msgspec.Struct, frozen=True):
    table: Timetable
    #: What repair does to the deadline.
    repair: Foresight
    #: It drains: what Tenure knows of it is an estimate.
    karpenter: bool = False


def drain_outlook(node: Node, evaluated: EvaluatedCluster) -> DrainOutlook:
    snapshot, settings, now = evaluated.snapshot, evaluated.settings, evaluated.at
    repair = foresee(node, snapshot, settings, now)
    table = timetable(node, snapshot, settings, now, repair.deadlines)
    return DrainOutlook(table, repair, settings.beside_karpenter)


def timetable_lines(
    outlook: DrainOutlook, now: datetime, *, held: str = "", width: int | None = None
) -> Iterator[str]:
    """``held``: whose wrong clock holds the drain; empty: no replica's does."""
    table = outlook.table
    began = format_time(table.began_at)
    if table.leaving:
        yield f"Drain of Node/{table.node}, since {began}"
    else:
        yield f"Drain of Node/{table.node}, if it were deleted at {began}"
    if outlook.karpenter:
        yield "  drains    Karpenter, not Tenure: the times below are an estimate by Tenure's rules"
    yield f"  deadline  {table.deadline or 'none: there is no terminationGracePeriod'}"
    if held:
        yield f"  blocked   {held}; no time below is kept before that"
    yield from (f"  repair    {said}" for said in _repair(outlook, now))
    yield f"  gone      {_gone(table, now)}"
    yield from (f"  volume    {one.attachment} ({one.volume})" for one in table.volumes)
    yield from (f"  ignored   {said}" for said in _ignored(table))
    if table.pods:
        yield ""
        zone = f"Times are of {now:%Y-%m-%d}, in UTC; eviction tried at the earliest, stopped at the latest."
        yield from columns.table(_HEADINGS, list(_rows(table.pods, now)), width)
        yield f"  {zone}"


def _ignored(table: Timetable) -> Iterator[str]:
    """What is true of several pods is said once."""
    pods: dict[str, list[str]] = {}
    for one in table.bystanders:
        pods.setdefault(str(one.why), []).append(one.pod)
    for why, names in pods.items():
        many = f"{len(names)} pods ({some(names)})" if len(names) > 1 else names[0]
        yield f"{many}: {why}"


def _repair(outlook: DrainOutlook, now: datetime) -> Iterator[str]:
    """When repair brings the deadline forward, or why it does not."""
    repair = outlook.repair
    for index, coming in enumerate(repair.deadlines):
        due = "is due" if coming.since <= now else f"falls due at {format_time(coming.since)}"
        if repair.blocked and not index:
            due = f"is blocked until {format_time(coming.since)}"
        moved = f"from then on the deadline is {format_time(coming.deadline.at)}"
        yield f"{due}: {moved}, unless the Node recovers before"
    if not repair.unset or not (repair.blocked or outlook.table.deadline is None):
        return
    when = (
        "" if repair.unset_at is None else f" when it falls due at {format_time(repair.unset_at)}"
    )
    if when and repair.ends_reboot:
        when += " (to delete the Node ends the reboot, and tolerations count from then on)"
    blocked = " while it is blocked" if repair.blocked else ""
    yield f"sets no deadline{when}{blocked}: {sentence(repair.unset)}"


def _gone(table: Timetable, now: datetime) -> str:
    if table.ends_by is None:
        return _endless(table.endless)
    # By the second: what is due in this one is due now.
    due = table.ends_by.replace(microsecond=0) <= now
    until = "now" if due else f"by {format_time(table.ends_by)} at the latest"
    return f"empty {until}; then the instance is terminated"


def _endless(facts: Sequence[Fact]) -> str:
    """What may block the drain without end: for ever, or for as long as a PDB paces it."""
    lasting = sum(isinstance(one, PodsBlocked) and never_ends(one.why) for one in facts)
    if lasting:
        holds = "1 thing below blocks it" if lasting == 1 else f"{lasting} things below block it"
        return f"never by itself: there is no terminationGracePeriod, and {holds} for ever"
    return f"no guaranteed end: {'; '.join(_waits(facts))}; there is no terminationGracePeriod"


def _waits(facts: Sequence[Fact]) -> Iterator[str]:
    pods: dict[str, int] = {}
    for fact in facts:
        if isinstance(fact, PodsBlocked):
            cause = _cause(fact.why)
            pods[cause] = pods.get(cause, 0) + len(fact.pods)
    for cause, count in pods.items():
        yield f"{counted(count, 'pod')} {'waits' if count == 1 else 'wait'} for {cause}"
    if volumes := sum(isinstance(one, VolumeAttached) for one in facts):
        yield f"{counted(volumes, 'volume')} must be detached"


def _cause(why: Fact) -> str:
    if not isinstance(why, PdbAllowsNoMore):
        return f"the API server to allow the eviction ({why})"
    allowed = why.pods - why.must_be_healthy
    pace = f"which allows {allowed} at a time" if allowed > 0 else f"{why.setting}"
    return f"PDB {why.pdb}, {pace}"


def _rows(pods: Sequence[PodTimes], now: datetime) -> Iterator[tuple[str, ...]]:
    stays = False
    for row in pods:
        # Evictions that a PDB can never allow are still tried, as its status may be stale.
        never = any(never_ends(one.fact) or (stays and one.tier) for one in row.blocked_by)
        stays = stays or (never and row.forced_at is None)
        yield _row(row, None if never else row.asked_at, now)


def _row(row: PodTimes, asked: datetime | None, now: datetime) -> tuple[str, ...]:
    def at(instant: datetime | None, otherwise: str = "-") -> str:
        return otherwise if instant is None else at_clock(instant, now)

    forced = row.forced_at
    if forced is not None and row.stopped_by is not None and forced > row.stopped_by:
        forced = None  # It has stopped by then.
    never = "-" if row.forced_at else "never"
    return (
        row.pod,
        row.tier,
        "terminating" if row.terminating else at(asked, never),
        "at once" if forced and forced <= now else at(forced),
        at(row.stopped_by, "unknown"),
        "; ".join(blocker.message for blocker in row.blocked_by) or "-",
    )


def timetable_json(outlook: DrainOutlook) -> dict[str, Any]:
    table, deadline = outlook.table, outlook.table.deadline
    return {
        "node": table.node,
        "leaving": table.leaving,
        "drainedBy": "Karpenter" if outlook.karpenter else "Tenure",
        "beganAt": table.began_at,
        "deadline": None if deadline is None else {"at": deadline.at, "why": deadline.why},
        "comingDeadlines": [
            {"since": one.since, "at": one.deadline.at, "why": one.deadline.why}
            for one in table.coming
        ],
        "noDeadlineByRepair": sentence(outlook.repair.unset),
        "pods": [
            {
                "pod": row.pod,
                "tier": row.tier,
                "heldBy": [_blocker_json(blocker) for blocker in row.blocked_by],
                "terminating": row.terminating,
                "askedAt": row.asked_at,
                "forcedAt": row.forced_at,
                "stoppedBy": row.stopped_by,
            }
            for row in table.pods
        ],
        "notWaitedFor": [
            {"pod": one.pod, "why": str(one.why), "fact": msgspec.to_builtins(one.why)}
            for one in table.bystanders
        ],
        "volumes": [f"{one.attachment} ({one.volume})" for one in table.volumes],
        "goneBy": table.ends_by,
        "endless": list(map(str, table.endless)),
    }


def _blocker_json(blocker: EvictionBlocker) -> dict[str, Any]:
    fact = msgspec.to_builtins(blocker.fact)
    return {"message": blocker.message, "fact": fact, "until": blocker.until}
