"""Clusters that nobody has: what a server would send of them, as large and as odd as a test needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tenure.core.decision import Concern
from tenure.dashboard.fleet import values as v
from tenure.model.api.meta import format_time
from tenure.runtime.telemetry.ring import Entry

AT: Final = datetime(2026, 1, 5, 20, 10, tzinfo=UTC)
SINCE: Final = AT - timedelta(hours=3)
POOLS: Final = ("batch", "general", "gpu", "web")
ZONES: Final = ("zone-a", "zone-b", "zone-c")
#: Of a hundred nodes: how many look how.
MIX: Final = ((82, 0), (88, 1), (93, 2), (96, 3), (98, 4), (100, 5))
TYPES: Final = (("m5.large", 96_000), ("m5.xlarge", 192_000), ("c5.2xlarge", 340_000))

_SAID: Final[dict[v.Tone, tuple[str, str, str]]] = {
    v.Tone.SERVING: ("in service", "InService", "initialized at 2026-01-05T17:12:30Z"),
    v.Tone.COMING: (
        "booting",
        "Launched",
        "instance i-0a1b is launched; its Node has not registered",
    ),
    v.Tone.WAITING: (
        "drifted",
        "DisruptionBlocked",
        "drifted (spec.template.spec.requirements); PDB default/web allows 0 more disruptions (maxUnavailable 1, 7 of 8 healthy)",
    ),
    v.Tone.LEAVING: ("draining", "Draining", "evicting 3 of 9 pods; 6 have left"),
    v.Tone.UNHEALTHY: (
        "unhealthy",
        "RepairBlocked",
        "Ready is False since 2026-01-05T19:58:00Z; repair is blocked by the circuit breaker",
    ),
    v.Tone.FOREIGN: ("foreign", "NotOurs", "Node has no NodeClaim of a NodePool"),
}
BUDGET: Final = "PodDisruptionBudget/default/web"
ADVICE: Final = "Wait until another pod of PodDisruptionBudget default/web is healthy, or raise its maxUnavailable."
PDB_SAYS: Final = "PDB default/web allows 0 more disruptions (maxUnavailable 1, 7 of 8 healthy)"


def node(index: int, chance: Random, tone: v.Tone) -> v.NodeView:
    phase, reason, because = _SAID[tone]
    pool = POOLS[index % len(POOLS)]
    kind, price = TYPES[index % len(TYPES)]
    name = f"{pool}-{index:04d}"
    foreign = tone is v.Tone.FOREIGN
    blocked = tone is v.Tone.WAITING
    return v.NodeView(
        key=f"Node/{name}" if foreign else f"NodeClaim/{name}",
        name=name,
        node="" if tone is v.Tone.COMING else f"node-{name}",
        pool="" if foreign else pool,
        zone=ZONES[chance.randrange(3)],
        instance_type=kind,
        capacity_type="spot" if index % 3 else "on-demand",
        phase=phase,
        tone=tone,
        reason=reason,
        because=because,
        next_at=AT + timedelta(minutes=7 * (1 + index % 40)) if blocked else None,
        created_at=AT - timedelta(hours=1 + index % 90),
        deadline=AT + timedelta(minutes=20) if tone is v.Tone.LEAVING else None,
        price=None if foreign else price,
        pods=0 if tone is v.Tone.COMING else 4 + index % 22,
        cpu=v.Share(requested=400 + 37 * (index % 40), allocatable=1930),
        memory=v.Share(requested=(1 + index % 6) << 30, allocatable=7 << 30),
        blockers=(v.BlockerView(subject=BUDGET, message=PDB_SAYS, until=None),) if blocked else (),
    )


def nodes(count: int) -> tuple[v.NodeView, ...]:
    chance = Random(7)
    tones = tuple(v.Tone)

    def tone() -> v.Tone:
        drawn = chance.randrange(100)
        return tones[next(which for below, which in MIX if drawn < below)]

    return tuple(node(index, chance, tone()) for index in range(count))


def frame(count: int, *, pending: int = 3, at: datetime = AT) -> v.Frame:
    return framed(nodes(count), pending=pending, at=at)


def framed(known: tuple[v.NodeView, ...], *, pending: int = 0, at: datetime = AT) -> v.Frame:
    waiting = tuple(pending_pod(index) for index in range(min(pending, 100)))
    return v.Frame(
        at=at,
        cluster="staging",
        leader="tenure-6c9d leads",
        totals=totals(known, pending),
        pools=tuple(pool_view(name, known) for name in sorted({one.pool for one in known} - {""})),
        nodes=known,
        pending=waiting,
    )


def totals(known: tuple[v.NodeView, ...], pending: int) -> v.Totals:
    return v.Totals(
        nodes=dict(Counter(one.tone for one in known)),
        running=sum(one.pods for one in known),
        pending=pending,
        price=sum(one.price or 0 for one in known),
        unpriced=sum(one.price is None for one in known),
    )


def pool_view(name: str, known: tuple[v.NodeView, ...]) -> v.PoolView:
    ours = [one for one in known if one.pool == name]
    return v.PoolView(
        name=name,
        nodes=dict(Counter(one.tone for one in ours)),
        price=sum(one.price or 0 for one in ours),
        unpriced=sum(one.price is None for one in ours),
        reason="PoolReady",
        because=f"NodePool {name} is ready",
    )


def pending_pod(index: int) -> v.PendingPod:
    return v.PendingPod(
        key=f"Pod/default/report-{index}",
        name=f"report-{index}",
        namespace="default",
        reason="FailedScheduling",
        because="no instance type of NodePool batch has 96 CPU; the largest has 8",
        since=AT - timedelta(minutes=4 + index),
    )


def history(known: tuple[v.NodeView, ...]) -> v.History:
    return v.History(
        since=SINCE, at=AT, lanes=tuple(lane(one) for one in known), cost=tuple(costs(known))
    )


def lane(one: v.NodeView) -> v.Lane:
    born = max(one.created_at, SINCE + timedelta(minutes=len(one.name) + one.pods))
    ready = born + timedelta(minutes=2)
    turned = AT - timedelta(minutes=12)
    serving = _SAID[v.Tone.SERVING]
    segments = [
        v.Segment(begin=born, end=ready, phase="booting", tone=v.Tone.COMING, reason="Launched", because="launched"),
        v.Segment(
            begin=ready,
            end=None if one.tone is v.Tone.SERVING else turned,
            phase=serving[0],
            tone=v.Tone.SERVING,
            reason=serving[1],
            because=serving[2],
        ),
    ]  # fmt: skip
    if one.tone is not v.Tone.SERVING:
        segments.append(
            v.Segment(begin=turned, phase=one.phase, tone=one.tone, reason=one.reason, because=one.because)
        )  # fmt: skip
    marks = [v.Mark(at=born, what="launched"), v.Mark(at=ready, what="ready")]
    if one.deadline is not None:
        marks.append(v.Mark(at=one.deadline, what="deadline", foreseen=True))
    return v.Lane(
        key=one.key,
        name=one.name,
        pool=one.pool,
        zone=one.zone,
        segments=tuple(segments),
        marks=tuple(marks),
    )


def costs(known: tuple[v.NodeView, ...]) -> Iterator[v.Cost]:
    full = sum(one.price or 0 for one in known)
    for step in range(60):
        part = 0.55 + 0.45 * min(1.0, step / 25) + (0.06 if 30 < step < 44 else 0)
        yield v.Cost(
            at=SINCE + timedelta(minutes=3 * step),
            price=round(full * part),
            nodes=round(len(known) * part),
        )


def entries(count: int = 40) -> list[Entry]:
    some = nodes(count)
    return [
        Entry(
            at=AT - timedelta(minutes=count - index),
            concern=Concern.LIFECYCLE,
            subject=one.key,
            reason=one.reason,
            because=one.because,
        )
        for index, one in enumerate(some)
    ]


# -- the calendar ----------------------------------------------------------------------


def calendar(known: tuple[v.NodeView, ...]) -> dict[str, Any]:
    """As ``tenure forecast --json``: nights from 22:00 to 02:00 UTC, Sundays for batch."""
    tonight = AT.replace(hour=22, minute=0)
    drifted = [one for one in known if one.tone is v.Tone.WAITING]
    starts = [
        {
            "at": format_time(tonight + timedelta(minutes=6 * index)),
            "pool": one.pool,
            "reason": "Drifted",
            "claim": one.name,
            "generation": 0,
            "dueAt": format_time(AT),
            "endsAt": format_time(tonight + timedelta(minutes=6 * index + 5)),
            "replaced": True,
            "approximate": False,
        }
        for index, one in enumerate(drifted)
    ]
    expiring = [one for one in known if one.pool == "batch" and one.tone is v.Tone.SERVING][:9]
    return {
        "at": format_time(AT),
        "until": format_time(AT + timedelta(days=14)),
        "where": "staging",
        "leader": None,
        "windows": [
            window("nights", "Drift", len(known), [tonight + timedelta(days=day, hours=4 * end) for day in range(14) for end in (0, 1)]),
            window("sundays", "Expiration", len(known), [AT.replace(hour=2, minute=0) + timedelta(days=day, hours=end) for day in (6, 13) for end in (0, 3)]),
        ],
        "budgets": [
            {"pool": "web", "index": 1, "nodes": "0", "active": False,
             "changes": [format_time(AT.replace(hour=8, minute=0) + timedelta(days=day, hours=9 * end)) for day in (1, 2, 3, 4, 7, 8, 9, 10, 11) for end in (0, 1)]},
        ],
        "expiries": [
            {"at": format_time(AT + timedelta(hours=9 + 11 * index)), "pool": one.pool, "claim": one.name}
            for index, one in enumerate(expiring)
        ],
        "moments": [
            {"at": format_time(AT + timedelta(hours=8)), "kind": "protection ends", "subject": "Pod/default/report-1",
             "message": "Pod default/report-1 is protected until 2026-01-06T04:10:00Z"},
        ],
        "starts": starts,
        "pools": [_pool(name, known, len([one for one in drifted if one.pool == name])) for name in POOLS],
        "peak": {"nodes": 1, "at": format_time(tonight)},
        "notes": [],
    }  # fmt: skip


def window(name: str, action: str, many: int, changes: list[datetime]) -> dict[str, Any]:
    return {
        "name": name,
        "type": "Allow",
        "actions": [action],
        "nodes": many,
        "active": False,
        "changes": [format_time(at) for at in changes],
        "knownUntil": format_time(AT + timedelta(days=14)),
        "never": False,
        "problem": None,
    }


def _pool(name: str, known: tuple[v.NodeView, ...], drifted: int) -> dict[str, Any]:
    rotation = {
        "reason": "Drifted", "now": drifted, "due": drifted, "again": 0, "started": drifted, "late": 0,
        "lateBySeconds": 0, "waiting": 0, "never": 0, "otherwise": 0, "overdue": 0,
        "longestWaitSeconds": 7200, "lastStart": format_time(AT + timedelta(hours=3)), "why": [],
    }  # fmt: skip
    late = rotation | {
        "reason": "Expired", "due": 9, "started": 5, "late": 4, "lateBySeconds": 520_000, "waiting": 4, "overdue": 4,
        "why": [{"nodes": 4, "message": "Expiration of Node node-batch-0008 is allowed by MaintenanceWindow sundays only, "
                 "which is not active before 2026-01-18T02:00:00Z"}],
    }  # fmt: skip
    return {
        "name": name,
        "nodes": sum(one.pool == name for one in known),
        "launchSeconds": 95,
        "peak": {"nodes": 1, "at": format_time(AT + timedelta(hours=2))},
        "rotations": ([rotation] if drifted else []) + ([late] if name == "batch" else []),
        "expiredByForce": 0,
        "problem": None,
    }


# -- why -------------------------------------------------------------------------------


def why(subject: str, known: tuple[v.NodeView, ...]) -> dict[str, Any] | None:
    one = next((one for one in known if one.key == subject), None)
    if subject == BUDGET:
        return _said(subject, "PDB default/web selects 8 pods, 7 of them healthy", "", PDB_SAYS, [])
    if subject == "Pod/default/report-0":
        pod = pending_pod(0)
        change = {
            "message": "raise the largest instance type of NodePool batch to 96 CPU",
            "fact": {},
        }
        return _said(subject, "pending", pod.reason, pod.because, []) | {
            "smallestChanges": [change]
        }
    if one is None:
        return None
    blockers: list[Any] = [
        {"subject": b.subject, "message": b.message, "until": None, "fact": {}}
        for b in one.blockers
    ]
    return _said(subject, f"{one.phase} in {one.zone}", one.reason, one.because, blockers)


def _said(
    subject: str, state: str, reason: str, message: str, blockers: list[Any]
) -> dict[str, Any]:
    lines = [subject, f"  state     {state}", f"  {reason}: {message}"]
    lines += [f"  blocked   {one['message']}" for one in blockers]
    return {
        "subject": subject, "concern": "drift" if reason else None, "reason": reason or None, "message": message,
        "facts": [], "blockers": blockers, "action": None,
        "advice": ADVICE if blockers else "", "recheckAt": format_time(AT + timedelta(minutes=7)),
        "at": format_time(AT), "leader": None, "held": None, "state": state, "drifted": None,
        "savesPerHour": 0, "also": [], "around": [], "text": "\n".join(lines) + "\n",
    }  # fmt: skip
