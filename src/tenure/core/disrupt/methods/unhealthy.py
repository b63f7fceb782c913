"""Graceful repair: nodes whose repair is due, and nodes that are Ready but not initialized in time.

Which those are is ``repair``'s to say. Forceful repairs do not come here: they need no replacement.
A reboot is committed by the pipeline, too, and carried out by ``reboot``.

A command is still wanted while a condition of the Node means unhealthy, tolerated or not: one that
changes its status meanwhile has not recovered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from tenure.core.decision import Commitment
from tenure.core.disrupt.facts.commands import NodeRecovered, RepairNotAsked
from tenure.core.disrupt.method import AnyPlan, Candidate, Due, Validation, Watch
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.operations import Operation
from tenure.core.gates.reasons import REPAIR_TRAITS
from tenure.core.gates.traits import Traits
from tenure.core.health.health import Member, examine
from tenure.core.health.readiness import Stage, boot_of, initialization_ttl
from tenure.core.health.rules import FORCEFUL, Rules, UnhealthyCondition, rules_of
from tenure.core.marks.command import Command
from tenure.core.protect.protection import protection_on
from tenure.core.repair.breakers import PoolBreakers, pool_breakers
from tenure.core.repair.cause import merged
from tenure.core.repair.decider import health_of
from tenure.core.repair.due import GracefulRepair
from tenure.core.repair.evaluate import diagnose
from tenure.core.repair.force import COUNTED_AS
from tenure.model.api import names
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot


class UnhealthyMethod(AnyPlan):
    traits: Final[Traits] = REPAIR_TRAITS
    watched_as: Final = "unhealthy or not up yet"

    # -- planning ----------------------------------------------------------------------

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        for name in sorted(_pools(snapshot) & snapshot.pools.keys()):
            health = health_of(name, snapshot)
            if health is None:
                continue
            members = [one for one in health.members if _may_be_due(one, health.rules)]
            if members:
                nodes = tuple((member.claim, member.nodes[0]) for member in members)
                yield Watch(pool=name, nodes=nodes, facts=health, takes_over=True)

    def candidates(self, watch: Watch, settings: Settings, now: datetime) -> Due:
        diagnosis = diagnose(watch.facts, settings, now)
        instants = [verdict.recheck_at for verdict in diagnosis.verdicts]
        return Due(
            candidates=tuple(map(_candidate, diagnosis.candidates)),
            recheck_at=min((at for at in instants if at is not None), default=None),
        )

    # -- carrying out ------------------------------------------------------------------

    def facts(self, command: Command, snapshot: Snapshot) -> Rules:
        return rules_of(command.claim.pool_name, snapshot)

    def validate(
        self, command: Command, facts: Any, settings: Settings, now: datetime
    ) -> Validation:
        unhealthy, overdue = _unhealthy(command, facts), _is_overdue(command, now)
        operation = Operation.GRACEFUL_TIMEOUT if overdue else Operation.GRACEFUL_REPAIR
        if not unhealthy and not overdue:
            return Validation(unwanted=(_recovered(command, facts),))
        due = [one for one in unhealthy if one.due_at is not None and one.due_at <= now]
        bounds = (one.bound for one in due)
        bound = min((span for span in bounds if span is not None), default=None)
        commits = Commitment(reason=Stage.INITIALIZATION, bound=bound)
        if due:
            cause = merged(due, (one.priority for one in facts.statements))
            commits = Commitment(reason=COUNTED_AS, condition=cause.condition, bound=bound)
        elif not overdue:
            at = min(one.due_at for one in unhealthy if one.due_at is not None)
            return Validation(due_at=at, operation=operation)
        return Validation(bound=bound, commits=commits, operation=operation)

    def instants(self, command: Command, facts: Any) -> Iterator[datetime]:
        """When a veto ends, or a policy falls due."""
        assert command.node is not None, "else it is rolled back"
        vetoes = (protection_on(one, names.DO_NOT_REPAIR) for one in (command.node, command.claim))
        yield from (veto.until for veto in vetoes if veto is not None)
        yield from (one.due_at for one in _unhealthy(command, facts) if one.due_at is not None)
        boot = None if command.claim.initialized else boot_of(command.claim, command.node)
        if boot is not None:
            yield boot.due_at

    def pool_facts(self, pool: str, snapshot: Snapshot) -> PoolBreakers:
        return pool_breakers(pool, health_of(pool, snapshot), snapshot)

    def gates(
        self, command: Command, pool_facts: Any, settings: Settings, now: datetime
    ) -> GateFacts:
        breakers: PoolBreakers = pool_facts
        return breakers.facts(command.claim, command.node, settings, now)


def _pools(snapshot: Snapshot) -> set[str]:
    """Those with a node that may come to be due. By its claim: a Node may have lost its label."""
    unhealthy = map(snapshot.claim_of, snapshot.suspect_nodes().values())
    pools = {claim.pool_name for claim in unhealthy if claim is not None}
    bounded = (c for c in snapshot.new_claims().values() if initialization_ttl(c) is not None)
    return pools | {claim.pool_name for claim in bounded}


def _may_be_due(member: Member, rules: Rules) -> bool:
    """Whether it may become a candidate, if it is not one already, as long as nothing changes."""
    claim, node = member.claim, member.node
    if node is None or not claim.registered or claim.deleting:
        return False
    health = examine(claim, node, rules)
    graceful = rules.repair is None or rules.repair.termination_mode != FORCEFUL
    late = health.boot is not None and health.boot.stage is Stage.INITIALIZATION and graceful
    return late or any(map(_is_graceful, health.unhealthy))


def _is_graceful(unhealthy: UnhealthyCondition) -> bool:
    forceful = unhealthy.mode == FORCEFUL and unhealthy.action is not RepairAction.REBOOT
    return unhealthy.counts and not forceful


def _candidate(repair: GracefulRepair) -> Candidate:
    cause = repair.cause
    return Candidate(
        claim=repair.claim,
        node=repair.node,
        why=cause.facts,
        rank=cause.urgency,
        bound=cause.bound,
        operation=repair.operation,
        gates=repair.gates,
        marks=repair.marks,
        commits=Commitment(reason=COUNTED_AS, condition=cause.condition, bound=cause.bound),
    )


def _unhealthy(command: Command, rules: Rules) -> list[UnhealthyCondition]:
    assert command.node is not None, "else it is rolled back"
    found = examine(command.claim, command.node, rules).unhealthy
    return [one for one in found if one.counts]


def _is_overdue(command: Command, now: datetime) -> bool:
    """Ready, and not initialized in time."""
    boot = None if command.claim.initialized else boot_of(command.claim, command.node)
    return boot is not None and boot.stage is Stage.INITIALIZATION and boot.due_at <= now


def _recovered(command: Command, rules: Rules) -> Fact:
    node = command.node
    assert node is not None, "else it is rolled back"
    if any((c.type, c.status) in rules.watched for c in node.status.conditions):
        return RepairNotAsked(node.name, command.claim.pool_name)
    return NodeRecovered(node.name)
