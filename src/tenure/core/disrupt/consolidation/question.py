"""What the search for moves is asked: all nodes as they will be, and those of them that may go.

Pods that wait for capacity, and pods of nodes that leave, are where they fit. Closed are nodes that
leave, are not initialized, late or cordoned, those within the ``consolidateAfter`` of their own
pool, and those that go because they are empty: their pods count, and none comes. A node that pending pods fit on is no candidate.

There is no question while pods wait for new nodes, which takes seconds, or while the instance types of
a pool are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.disrupt.consolidation.destinations import GoingEmpty, going_empty
from tenure.core.disrupt.consolidation.eligible import (
    UNDERUTILIZED,
    Eligible,
    EmptyNode,
    Excluded,
    could_be,
    eligible_nodes,
    settling_nodes,
)
from tenure.core.disrupt.consolidation.rejected import NONE_REJECTED, Rejected
from tenure.core.disrupt.consolidation.totals import balanced_totals
from tenure.core.disrupt.facts.candidates import PendingPodsFirst, PendingPodsFit
from tenure.core.disrupt.simulate import Simulation, simulation_in, waits_for_limits
from tenure.core.facts import Fact
from tenure.core.gates.budgets import UNLIMITED, limit
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.longest import Keeping
from tenure.core.gates.operations import Gate
from tenure.core.pool.lookup import capacity_of
from tenure.core.provision.knownnodes import reading_nodes
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.result import Packing

#: Nodes that are looked at in one step: some 10 ms.
STEP: Final = 50


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and what is known without an answer."""

    #: None: nothing is asked now.
    question: Question | None = None
    #: Why not; None where there is simply no candidate.
    waits: Fact | None = None
    #: By the name of a candidate: its claim.
    claims: Mapping[str, str] = {}
    #: By the name of a node that could be a candidate and is none: why.
    why: Mapping[str, tuple[Fact, ...]] = {}
    #: By the name of such a node: the gates that block it.
    kept: Mapping[str, Keeping] = {}
    #: Names of nodes without reschedulable pods: the method Empty takes them away.
    empty: tuple[str, ...] = ()
    #: Those of them that go: no pod is moved there.
    going: frozenset[str] = frozenset()
    #: When the question may be another one although nothing happens, whatever pods have done.
    changes_at: datetime | None = None
    #: When the pods of another node have been quiet for long enough.
    quiet_at: datetime | None = None


def ask(
    snapshot: Snapshot, settings: Settings, now: datetime, despite: Set[Gate] = frozenset()
) -> Asked:
    """The question of this instant, as if the gates in ``despite`` were open."""
    steps = asking(snapshot, settings, now, despite=despite)
    (asked,) = (step for step in steps if step is not None)
    return asked


def asking(
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
    rejected: Rejected = NONE_REJECTED,
    despite: Set[Gate] = frozenset(),
) -> Iterator[Asked | None]:
    """In steps: None is no answer yet. Where the cluster changes between two steps, some nodes are as they
    were, which does no harm: every move is checked again."""
    found: list[Eligible | EmptyNode | Excluded] = []
    for one in eligible_nodes(snapshot, settings, now, despite):
        found.append(one)
        if len(found) % STEP == 0:
            yield None
    excluded = [one for one in found if isinstance(one, Excluded)]
    eligible = [
        one
        for one in found
        if isinstance(one, Eligible) and could_be(one.claim, snapshot) is not None
    ]
    kept = {one.node.name: one.kept for one in excluded if one.kept is not None}
    excluded += [
        Excluded(claim=one.claim, node=one.node, why=rejected.alone[one.node.name])
        for one in eligible
        if one.node.name in rejected.alone
    ]
    eligible = [one for one in eligible if one.node.name not in rejected.alone]
    empty = tuple(one.node.name for one in found if isinstance(one, EmptyNode))
    yield None
    going = yield from going_empty(snapshot, settings, now, despite)
    for step in _asked(eligible, excluded, going, snapshot, settings, now):
        if step is None:
            yield None
            continue
        question = step.question
        if question is not None:
            question = msgspec.structs.replace(question, alone=rejected.together, last=empty)
        yield msgspec.structs.replace(step, question=question, kept=kept, empty=empty)


def _asked(
    eligible: list[Eligible],
    excluded: list[Excluded],
    going: GoingEmpty,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
) -> Iterator[Asked | None]:
    why = {one.node.name: one.why for one in excluded}
    quiet = [one.recheck_at for one in excluded if one.is_not_quiet]
    instants = [one.recheck_at for one in excluded if not one.is_not_quiet]
    instants += going.instants
    quiet_at = _next(quiet, now)
    if not eligible:
        yield Asked(why=why, changes_at=_next(instants, now), quiet_at=quiet_at)
        return
    yield from reading_nodes(snapshot)
    simulation = simulation_in(snapshot, settings.protection_clock)
    zones = simulation.capacity.zones.at(settings, now)
    instants += [*simulation.capacity.instants(zones), *simulation.late_at.values()]
    unknown = simulation.capacity.unknown
    if unknown is not None:
        yield Asked(why=why, waits=unknown, changes_at=_next(instants, now), quiet_at=quiet_at)
        return
    yield None
    nodes, packing = yield from simulation.settled(settings, now)
    if packing.claims:
        waits = PendingPodsFirst()
        yield Asked(why=why, waits=waits, changes_at=_next(instants, now), quiet_at=quiet_at)
        return
    awaiting = frozenset(packing.placed.values())
    why |= {
        one.node.name: (PendingPodsFit(one.node.name),)
        for one in eligible
        if one.node.name in awaiting
    }
    eligible = [one for one in eligible if one.node.name not in awaiting]
    yield None
    settling = yield from settling_nodes(snapshot)
    closed = {name: at for name, at in settling.items() if now < at}
    without = closed.keys() | simulation.coming.keys() | (going.nodes - awaiting)
    nodes = tuple(_closed(node, without) for node in nodes)
    allowed: dict[str, int] = {}
    for pool in sorted({one.claim.pool_name for one in eligible}):
        yield None
        allowed |= _allowed(pool, snapshot, now)
    yield None
    yield Asked(
        question=_question(eligible, nodes, allowed, packing, simulation, snapshot, settings, now),
        claims={one.node.name: one.claim.name for one in eligible},
        why=why,
        going=going.nodes - awaiting,
        changes_at=_next(instants, now),
        quiet_at=_next((*quiet, *closed.values()), now),
    )


def _next(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    return min((at for at in instants if at is not None and at > now), default=None)


def _closed(node: ExistingNode, without: Set[str]) -> ExistingNode:
    if node.closed or node.name not in without:
        return node
    return msgspec.structs.replace(node, closed=True)


def _question(
    eligible: Iterable[Eligible],
    nodes: tuple[ExistingNode, ...],
    allowed: Mapping[str, int],
    packing: Packing,
    simulation: Simulation,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
) -> Question:
    """``packing``: of the pods that wait for capacity."""
    candidates = tuple(map(_candidate, eligible))
    going = {one.name for one in candidates}
    moving = [pod for node in nodes if node.name in going for pod in node.pods]
    capacity = simulation.capacity
    zones = capacity.zones.at(settings, now)
    problem = capacity.problem(moving, zones, settings, now, nodes=nodes)
    # One may be gone since the first step.
    pools = sorted({one.pool for one in candidates} & snapshot.pools.keys())
    return Question(
        nodes=problem.nodes,
        candidates=candidates,
        templates=problem.templates,
        daemons=problem.daemons,
        dry=problem.dry,
        avoid=problem.avoid,
        volumes=problem.volumes,
        namespaces=problem.namespaces,
        node_fee_cpus=problem.node_fee_cpus,
        preferences=problem.preferences,
        spot_to_spot=settings.spot_to_spot_consolidation,
        balanced=balanced_totals(pools, snapshot),
        allowed=allowed,
        awaited=frozenset(name for name in pools if waits_for_limits(packing, name)),
        derived=snapshot.derived,
    )


def _candidate(one: Eligible) -> Candidate:
    labels = one.node.labels
    return Candidate(
        name=one.node.name,
        pool=one.claim.pool_name,
        price=one.price,
        instance_type=labels[INSTANCE_TYPE],
        capacity_type=labels[CAPACITY_TYPE],
        cost=one.cost,
        capacity=capacity_of(one.claim, one.node.capacity),
    )


def _allowed(pool: str, snapshot: Snapshot, now: datetime) -> dict[str, int]:
    """How many nodes one move may take of the pool; empty: any number.

    A budget that is closed or used up now is a gate of each candidate, which says until when.
    """
    known = snapshot.pools.get(pool)  # The cluster may change between two steps.
    if known is None:
        return {}
    most = limit(known, UNDERUTILIZED, fleet_of(pool, snapshot), now)
    return {pool: max(most, 1)} if most < UNLIMITED else {}
