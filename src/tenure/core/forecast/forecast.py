"""What will happen to the nodes of a cluster in the next days, and when it may not.

Computed from one look at the cluster: nothing is played. Instants of the calendar and of objects
(windows, budgets, expiries, protections, deadlines) are exact. Starts and ends follow from them and from
what ``schedule`` assumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.disrupt.facts.candidates import ExpiresByForce
from tenure.core.facts import counted, some
from tenure.core.forecast.calendar import ForeseenWindow, foreseen
from tenure.core.forecast.candidates import Candidacy, Unsaid, candidacies_in
from tenure.core.forecast.launches import usual_launches
from tenure.core.forecast.moments import moments_in
from tenure.core.forecast.result import (
    BudgetForecast,
    Expiry,
    Forecast,
    Moment,
    Peak,
    PoolForecast,
    WindowForecast,
)
from tenure.core.forecast.rotation import rotations_of
from tenure.core.forecast.schedule import STARTS_MAX, Plan, Schedule
from tenure.core.gates.budgets import applies, broken_budget
from tenure.core.gates.reasons import Disruption
from tenure.core.marks.ownership import is_our_pool
from tenure.core.windows.windows import windows_for_commands
from tenure.model.api.meta import format_time, later
from tenure.model.api.nodepool import NodePool
from tenure.model.api.window import ACTIONS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, problem_of

#: Changes of one budget that are listed.
_CHANGES_MAX: Final = 1000


class Horizon(msgspec.Struct, frozen=True):
    span: timedelta = timedelta(days=14)
    #: How long the drain of a node takes that nothing blocks; None: as long as it takes at least.
    drains_for: timedelta | None = None


DEFAULT_HORIZON: Final = Horizon()


def forecast(
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
    horizon: Horizon = DEFAULT_HORIZON,
    unsaid: Unsaid | None = None,
) -> Forecast:
    """``unsaid``: claims that no replica has written a condition on yet, by its type."""
    until = later(now, horizon.span)
    windows = tuple(
        foreseen(one, now, until) for one in windows_for_commands(frozenset(ACTIONS), snapshot)
    )
    beside = settings.beside_karpenter
    candidacies = tuple(candidacies_in(snapshot, now, until, unsaid or {}, beside=beside))
    schedule = Schedule(
        Plan(
            snapshot=snapshot,
            settings=settings,
            now=now,
            until=until,
            windows=windows,
            candidacies=candidacies,
            drains_for=horizon.drains_for or settings.drain_min,
        )
    )
    schedule.run()
    moments = moments_in(snapshot, settings, now, until)
    return Forecast(
        at=now,
        until=schedule.ends_at,
        windows=tuple(_window(one, snapshot, until) for one in windows if one.name),
        budgets=tuple(_budgets(snapshot, now, until)),
        expiries=tuple(_expiries(candidacies, now)),
        moments=moments,
        starts=tuple(schedule.starts),
        pools=tuple(_pools(snapshot, candidacies, schedule, now, _forced(moments, snapshot))),
        peak=schedule.peak,
        notes=tuple(_notes(snapshot, settings, windows, schedule)),
    )


def _window(window: ForeseenWindow, snapshot: Snapshot, until: datetime) -> WindowForecast:
    return WindowForecast(
        name=window.name,
        type="Block" if window.blocks else "Allow",
        actions=tuple(sorted(window.actions)),
        nodes=sum(window.covers(node.labels) for node in snapshot.nodes.values()),
        active=window.active,
        changes=window.changes,
        known_until=min(window.known_until, until),
        never=window.never and not window.problem,
        problem=window.problem,
    )


def _budgets(snapshot: Snapshot, now: datetime, until: datetime) -> Iterator[BudgetForecast]:
    for name, pool in sorted(snapshot.pools.items()):
        budgets = pool.spec.disruption.budgets
        if not _is_forecast(pool, snapshot) or broken_budget(pool):
            continue
        for index, budget in enumerate(budgets):
            if budget.schedule is None:
                continue
            phase = applies(budget, now)
            active, changes = phase.on, list[datetime]()
            while phase.changes_at is not None and phase.changes_at <= until:
                if len(changes) >= _CHANGES_MAX:
                    break
                on, at = phase.on, phase.changes_at
                phase = applies(budget, at)
                if phase.on != on:
                    changes.append(at)
            yield BudgetForecast(
                pool=name, index=index, nodes=budget.nodes, active=active, changes=tuple(changes)
            )


def _expiries(candidacies: Sequence[Candidacy], now: datetime) -> Iterator[Expiry]:
    found = [
        Expiry(at=one.due_at, pool=one.claim.pool_name, claim=one.claim.name)
        for one in candidacies
        if one.traits.reason == Disruption.EXPIRED and one.due_at > now
    ]
    yield from sorted(found, key=lambda one: (one.at, one.claim))


def _forced(moments: Sequence[Moment], snapshot: Snapshot) -> Counter[str]:
    """How many nodes of each pool Karpenter expires."""
    facts = (one.what for one in moments if isinstance(one.what, ExpiresByForce))
    return Counter(snapshot.claims[one.claim].pool_name for one in facts)


def _pools(
    snapshot: Snapshot,
    candidacies: Sequence[Candidacy],
    schedule: Schedule,
    now: datetime,
    forced: Mapping[str, int],
) -> Iterator[PoolForecast]:
    launches: Mapping[str, timedelta] = usual_launches(snapshot)
    for name, pool in sorted(snapshot.pools.items()):
        if not _is_forecast(pool, snapshot) and not is_unreadable(pool):
            continue
        yield PoolForecast(
            name=name,
            nodes=len(snapshot.nodes_of_pool(name)),
            launch_takes=launches.get(name),
            peak=schedule.peaks.get(name, Peak()),
            rotations=tuple(
                rotations_of(
                    name, candidacies, schedule.starts, schedule.waiting, now, schedule.ends_at
                )
            ),
            expired_by_force=forced.get(name, 0),
            problem=_problem(pool),
        )


def _is_forecast(pool: NodePool, snapshot: Snapshot) -> bool:
    return not is_unreadable(pool) and is_our_pool(pool, snapshot)


def _problem(pool: NodePool) -> str:
    if is_unreadable(pool):
        return problem_of(pool)
    if pool.static:
        return "spec.replicas is set: its nodes are candidates of nothing"
    problem = broken_budget(pool)
    return str(problem) if problem is not None else ""


def _notes(
    snapshot: Snapshot,
    settings: Settings,
    windows: Sequence[ForeseenWindow],
    schedule: Schedule,
) -> Iterator[str]:
    if settings.beside_karpenter:
        yield (
            "drift, emptiness and consolidation are Karpenter's: the forecast says when windows and "
            "protections block them, and not when Karpenter starts them"
        )
    if not settings.voluntary_disruption:
        yield "voluntary disruption is switched off (--voluntary-disruption): nothing starts"
    for one in windows:
        if not one.name:
            yield f"MaintenanceWindows cannot be listed: {one.problem}; nothing starts"
        elif one.problem:
            counts = "blocks for ever" if one.blocks else "never allows anything"
            yield f"MaintenanceWindow {one.name} is invalid and {counts}: {one.problem}"
    for name, pool in sorted(snapshot.pools.items()):
        if is_unreadable(pool):
            yield f"NodePool {name} cannot be read, and none of its nodes is disrupted: {problem_of(pool)}"
    if schedule.endless:
        stuck = counted(len(schedule.endless), "drain")
        yield f"{stuck} may never end: {', '.join(schedule.endless[:3])}; tenure explain says why"
    if coming := schedule.coming:
        are = "it is" if len(coming) == 1 else "they are"
        new = counted(len(coming), "new node")
        yield f"nothing is foreseen of {new} until {are} initialized: {some(coming)}"
    if len(schedule.starts) >= STARTS_MAX:
        at = format_time(schedule.ends_at)
        yield f"after {STARTS_MAX} starts the forecast ends at {at}"
