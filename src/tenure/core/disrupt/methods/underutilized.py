"""Underutilized nodes: their pods fit on other nodes, or on something cheaper.

Which nodes these are says the plan of consolidation, an observation that is made beside the loop. It only
proposes: a node of a move is a candidate while its pool consolidates, every pod of it would be created
again, and no pod has come or gone there for ``consolidateAfter``. Candidates come in the order of the
moves; only the first of each pool are watched, because the others wait for these.

No pod is moved onto a node within the ``consolidateAfter`` of its own pool, or onto one that goes because it is
empty. What is launched must be
cheaper by the price rules, which are asked again for each plan of a command, and once more before its
nodes terminate. A node without reschedulable pods is for the method Empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Commitment
from tenure.core.disrupt.consolidation.eligible import (
    UNDERUTILIZED,
    consolidates,
    could_be,
    quiet_at,
)
from tenure.core.disrupt.consolidation.made import unbalanced, underutilized
from tenure.core.disrupt.consolidation.offered import going_of, offered_in, prices_of
from tenure.core.disrupt.consolidation.podsthere import not_movable
from tenure.core.disrupt.consolidation.prices import Cheaper, cheaper
from tenure.core.disrupt.facts.commands import NoLongerDue
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized
from tenure.core.disrupt.method import AnyPlan, Candidate, Due, Validation, Watch
from tenure.core.disrupt.simulate import LeavingNode, Plan, Simulation, pods_of
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.marks.candidacy import is_open
from tenure.core.marks.command import Command, is_replaced, replacement_marks
from tenure.core.marks.undone import paused_until
from tenure.core.provision.demand import is_reschedulable
from tenure.core.reasons import Reason
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Disruption
from tenure.model.settings import Settings
from tenure.model.snapshot.consolidation import PlannedMove
from tenure.model.snapshot.snapshot import Snapshot

#: So many nodes of a pool are watched at the most. As they go, the next ones are.
AHEAD: Final = 32

_COMMITS: Final = Commitment(reason=UNDERUTILIZED.reason.lower())

_Member = tuple[NodeClaim, Node]


class _Proposed(msgspec.Struct, frozen=True):
    """A node that the plan takes away."""

    #: The place of its move in the plan.
    place: int
    move: PlannedMove
    #: From when on its pods have been quiet for long enough.
    due_at: datetime


class _Proposals(msgspec.Struct, frozen=True):
    """Of one pool, by the name of the claim."""

    by_claim: Mapping[str, _Proposed]


class UnderutilizedMethod(AnyPlan):
    traits = UNDERUTILIZED
    watched_as = "underutilized"
    rejected_as = Reason.CONSOLIDATION_REJECTED

    # -- planning ----------------------------------------------------------------------

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        found: dict[str, list[tuple[_Member, _Proposed]]] = {}
        for place, move in enumerate(_moves(snapshot)):
            if any(len(found.get(pool, ())) >= AHEAD for pool in _pools(move, snapshot)):
                continue
            for claim, node in _members(move, snapshot):
                _, at = quiet_at(claim, node, snapshot)
                if at is not None:
                    paused = paused_until(snapshot.claims_of_pool(claim.pool_name).values())
                    at = max(at, paused) if paused is not None else at
                    proposed = _Proposed(place, move, at)
                    found.setdefault(claim.pool_name, []).append(((claim, node), proposed))
        for pool, those in sorted(found.items()):
            by_claim = {claim.name: proposed for (claim, _), proposed in those}
            nodes = tuple(sorted((pair for pair, _ in those), key=lambda pair: pair[0].name))
            yield Watch(pool=pool, nodes=nodes, facts=_Proposals(by_claim))

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        by_claim = watch.facts.by_claim
        found = [(claim, node, by_claim[claim.name]) for claim, node in watch.nodes]
        return Due(
            candidates=tuple(
                self._of_move(claim, node, one) for claim, node, one in found if one.due_at <= now
            ),
            recheck_at=min((one.due_at for *_, one in found if one.due_at > now), default=None),
        )

    def _of_move(self, claim: NodeClaim, node: Node, one: _Proposed) -> Candidate:
        together = one.move.claims if len(one.move.claims) > 1 and one.move.launches else ()
        return Candidate(
            claim=claim,
            node=node,
            why=(NodeUnderutilized.of(node.name, one.move),),
            rank=-float(one.place),
            commits=_COMMITS,
            group=together,
        )

    # -- the plan of a command ---------------------------------------------------------

    def avoids(self, simulation: Simulation, now: datetime) -> Collection[str]:
        settling = (name for name, until in simulation.settling.items() if now < until)
        return simulation.going_empty.union(settling)

    def revised(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Plan:
        """With claims that list only what is cheaper; as it is where nothing is."""
        settles = [until for until in simulation.settling.values() if until > now]
        at = min((at for at in (*settles, plan.changes_at) if at is not None), default=None)
        plan = msgspec.structs.replace(plan, changes_at=at)
        found = _cheaper(leaving, plan, simulation, settings, now) if plan.claims else None
        if found is None or isinstance(found, Fact):
            return plan
        marks = replacement_marks(one.claim for one in leaving)
        claims = simulation.capacity.new_claims(found.claims, pods_of(leaving), marks)
        return msgspec.structs.replace(plan, claims=tuple(claims))

    def rejects(
        self,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> Fact | None:
        if plan.claims or plan.came:  # No price brings a node back that is not needed.
            found = _cheaper(leaving, plan, simulation, settings, now)
            if isinstance(found, Fact):
                return found
        if plan.came or any(is_replaced(one.claim) for one in leaving):
            return None  # It is begun: what was launched for it would be launched in vain.
        return unbalanced(leaving, plan, offered_in(simulation, settings, now), simulation.balanced)

    def told(
        self,
        candidate: Candidate,
        leaving: Sequence[LeavingNode],
        plan: Plan,
        simulation: Simulation,
        settings: Settings,
        now: datetime,
    ) -> tuple[Fact, ...]:
        offered = offered_in(simulation, settings, now)
        made = underutilized(candidate.node.name, leaving, plan, offered)
        return candidate.why if made is None else (made,)

    # -- carrying out ------------------------------------------------------------------

    def facts(self, command: Command, snapshot: Snapshot) -> Disruption | None:
        pool = snapshot.pools.get(command.claim.pool_name)
        return pool.spec.disruption if is_open(pool) else None

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        """Its pods were quiet when it began, and the Node takes none since."""
        block: Disruption | None = facts
        if block is None or not consolidates(block):
            why = NoLongerDue(command.claim.name, self.traits.reason, None)
            return Validation(unwanted=(why,))
        return Validation(commits=_COMMITS)

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        return iter(())

    def pool_facts(self, pool: str, snapshot: Snapshot) -> Any:
        return None

    def gates(
        self, command: Command, pool_facts: Any, settings: Settings, now: datetime
    ) -> GateFacts:
        return GateFacts(claim=command.claim, node=command.node)


def _cheaper(
    leaving: Sequence[LeavingNode],
    plan: Plan,
    simulation: Simulation,
    settings: Settings,
    now: datetime,
) -> Cheaper | Fact:
    """Its claims by the price rules, with what exists already; or why nothing is cheaper."""
    offered = offered_in(simulation, settings, now)
    going, came = going_of(leaving, offered), prices_of(plan.came, offered)
    if isinstance(going, Fact):
        return going
    if isinstance(came, Fact):
        return came
    return cheaper([one.planned for one in plan.claims], going, offered, came=came)


def _moves(snapshot: Snapshot) -> Sequence[PlannedMove]:
    plan = snapshot.observations.consolidation
    return plan.moves if plan is not None else ()


def _pools(move: PlannedMove, snapshot: Snapshot) -> Iterator[str]:
    claims = (snapshot.claims.get(name) for name in move.claims)
    return (claim.pool_name for claim in claims if claim is not None)


def _members(move: PlannedMove, snapshot: Snapshot) -> list[_Member]:
    """Its nodes that are still to go; empty where one of them may not any more."""
    found: list[_Member] = []
    for name in move.claims:
        claim = snapshot.claims.get(name)
        if claim is None:
            return []
        if len(move.claims) > 1 and is_replaced(claim):
            continue  # Committed already; the others follow.
        node = could_be(claim, snapshot)
        if node is None or node.name not in move.nodes or not_movable(node, snapshot) is not None:
            return []
        if not any(map(is_reschedulable, snapshot.pods_on(node.name).values())):
            return []
        found.append((claim, node))
    return found
