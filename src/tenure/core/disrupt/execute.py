"""Terminate a node whose replacements are initialized: the last step, and there is no way back.

The replacements took pods while they came up, and the cluster has changed. So of each command whose
replacements are all initialized and whose marks are all written, the first of these that applies:

1. tolerated   what the method wanted has changed and is not due: it waits for that;
2. pods came   to a node that goes only because it is empty: the command is rolled back;
   gates       asked again, all but the pause (``gates``). It waits;
3. capacity    a pod of it fits nowhere, or only on a node that is not initialized. It waits, and is
               rolled back with a pause where new capacity is still needed after a while;
   rejected    its method does not take the plan any more: it is rolled back;
4. launch      its pods need more nodes after all. Provisioning launches them, as for every node that
               terminates; only where the pool's limits forbid that they are created here, because
               the terminating node frees its share of the limits, and marked as the others;
5. terminated  stamped with the deadline where its drain is bounded, then deleted on that version,
               and only if the Node is still as it was evaluated, and so are the pods there: those are
               listed right before the deletion, because a watch may be late.

A stamp that was not written just now for this is taken off, or written anew: it would cut the
drain short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import (
    CommandCount,
    Concern,
    Decision,
    Delete,
    Ground,
    Patch,
    Verdict,
)
from tenure.core.disrupt.emptiness import occupies
from tenure.core.disrupt.facts.candidates import NoCapacityInTime, ReservedCapacityTaken
from tenure.core.disrupt.facts.commands import (
    MoreReplacements,
    PodsCame,
    ReplacementsInitialized,
    RolledBack,
    TerminatingWithin,
    ToleratedAgain,
)
from tenure.core.disrupt.facts.planning import NoReschedulablePods, PlannedLater
from tenure.core.disrupt.passes import Pass, launched, with_plan
from tenure.core.disrupt.ready import Ready, ReadyPool
from tenure.core.disrupt.replacements import (
    comes_up,
    fail_instants,
    failure_of,
    failures_of,
    roll_back_failed,
)
from tenure.core.disrupt.simulate import LeavingNode, Plan, leaving_node
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.gates import changes_at, first_blocked
from tenure.core.gates.operations import LAST, PLAN_ONLY, Gate
from tenure.core.marks.command import (
    Command,
    add_replacements,
    disrupted_since,
    mark_next,
    roll_back,
)
from tenure.core.marks.deadline import grace_period, written_between
from tenure.core.marks.stamp import stamp_claim, take_off_stamp
from tenure.core.provision.demand import is_reschedulable
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, no_later, say
from tenure.core.writes import as_evaluated, delete_unless_pods_came
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim

_say = partial(say, Concern.DISRUPTION)

#: How old a stamp may be that the claim is deleted with: a turn or two, and a slow API server. An
#: older one would cut the drain short: it is a user's, or of a leader that died in between.
STAMPED: Final = timedelta(minutes=1)

#: From so long after it began, or its last replacement was initialized, a command is rolled back
#: whose pods need capacity that is not there. A new node registers by then, or never.
CAPACITY_WITHIN: Final = timedelta(minutes=15)


def _ready_since(command: Command) -> datetime | None:
    """When it began, or its last replacement was initialized: that may have taken an hour."""
    began = disrupted_since(command.claim)
    found = (one.condition("Initialized") for _, one in command.replacements if one is not None)
    came = (one.last_transition_time for one in found if one is not None)
    return began and max((began, *(at for at in came if at is not None)))


class Execution:
    """One of them, at one instant."""

    def __init__(self, ready: Ready, pools: Mapping[str, ReadyPool], shared: Pass) -> None:
        self._shared = shared
        self._command, self._facts = ready.under_way.command, ready.node
        self._windows = ready.under_way.windows
        self._claim = self._command.claim
        self._pool = pools.get(self._claim.pool_name)
        self._settings, self._now = shared.settings, shared.now
        self._validation = shared.methods.validate(ready.under_way, self._settings, self._now)
        instants = (*fail_instants(self._command), *shared.methods.instants(ready.under_way))
        self._instants = [at for at in instants if at > self._now]

    def verdicts(self) -> Iterator[Verdict]:
        node = self._command.node
        # ``orchestrate`` rolls it back or marks it, and nothing may be done meanwhile.
        off = self._validation.unwanted or failure_of(self._command, self._now)
        if node is None or off or mark_next(self._command) is not None:
            return
        facts = self._gates()
        verdict = self._tolerated() or self._occupied(node) or self._blocked(facts)
        if verdict is None:
            leaving = self._leaving(node)
            plan = msgspec.structs.replace(self._plan(leaving), came=tuple(self._came()))
            verdict = self._rejected(leaving, plan)
            if verdict is None:
                yield from launched(plan, self._claim.name, self._command.reason)
                verdict = self._missing(plan, facts) or self._terminating(node, plan.counts_on)
            verdict = no_later(verdict, plan.changes_at)
        gates_change = changes_at(self._validation.operation, facts, self._now)
        verdict = no_later(verdict, gates_change, *self._instants)
        yield from (self._without_stamp(verdict), also_of(node, verdict))

    def waits(self, until: datetime) -> Iterator[Verdict]:
        """For its turn, where there are very many."""
        facts = (self._initialized(), PlannedLater(until))
        verdict = _say(self._claim, Reason.DISRUPTION_WAITS, *facts, recheck_at=until)
        node, told = self._command.node, self._without_stamp(verdict)
        yield from (told, also_of(node, verdict)) if node is not None else (told,)

    def _without_stamp(self, verdict: Verdict) -> Verdict:
        """It stays for now, so it has no deadline."""
        if verdict.action is not None or self._claim.termination_stamp is None:
            return verdict
        return msgspec.structs.replace(verdict, action=take_off_stamp(self._claim))

    def _tolerated(self) -> Verdict | None:
        at = self._validation.due_at
        if at is None:
            return None
        return _say(self._claim, Reason.DISRUPTION_WAITS, ToleratedAgain(at), recheck_at=at)

    def _occupied(self, node: Node) -> Verdict | None:
        if not self._shared.methods.named(self._command.reason).traits.only_empty:
            return None
        pods = (item.pod for item in self._facts.drain.pods)
        there = tuple(sorted(pod.key for pod in pods if occupies(pod)))
        return self._rolled_back(PodsCame(node.name, there)) if there else None

    def _rolled_back(self, *why: Fact) -> Verdict:
        assert self._command.node is not None, "else it is rolled back already"
        facts = (*why, RolledBack(self._command.node.name))
        return _say(self._claim, Reason.DISRUPTION_CANCELLED, *facts, action=roll_back(self._claim))

    # -- the gates, for the second time ------------------------------------------------

    def _gates(self) -> GateFacts:
        method, node = self._shared.methods.named(self._command.reason), self._command.node
        assert node is not None, "else it is rolled back"
        assert self._pool is not None, "there is one for every known reason"
        pool_facts = self._pool.facts[self._command.reason]
        found = method.gates(self._command, pool_facts, self._settings, self._now)
        return msgspec.structs.replace(
            found,
            pool=self._pool.pool,
            windows=self._windows,
            traits=method.traits,
            fleet=self._pool.fleet.before_terminating(node.name),
            started=self._shared.started.get(self._claim.pool_name, 0),
            drain=self._facts.drain,
            bound=self._validation.bound,
        )

    def _blocked(self, facts: GateFacts) -> Verdict | None:
        return self._first_blocked(facts, frozenset(Gate) - PLAN_ONLY - LAST)

    def _first_blocked(self, facts: GateFacts, only: frozenset[Gate]) -> Verdict | None:
        operation = self._validation.operation
        found = first_blocked(operation, facts, self._settings, self._now, only=only)
        if found is None:
            return None
        return _say(
            self._claim,
            found.reason,
            self._initialized(),
            *found.facts,
            blockers=found.blockers,
            recheck_at=found.recheck_at,
            gate=found.gate,
        )

    def _leaving(self, node: Node) -> LeavingNode:
        return leaving_node(
            self._claim,
            node,
            (item.pod for item in self._facts.drain.pods),
            (room for _, room in self._facts.replacements),
        )

    def _plan(self, leaving: LeavingNode) -> Plan:
        if not self._shared.methods.named(self._command.reason).traits.needs_replacement:
            return Plan()
        simulation, reservations = self._shared.simulation, self._shared.reservations
        plan = simulation.plan(
            (leaving,), self._settings, self._now, credit=False, reservations=reservations
        )
        if plan.claims:
            return Plan(why=ReservedCapacityTaken(), passing=True, changes_at=plan.changes_at)
        if plan.why is not None and not plan.passing:
            return simulation.plan((leaving,), self._settings, self._now, reservations=reservations)
        return plan

    def _rejected(self, leaving: LeavingNode, plan: Plan) -> Verdict | None:
        method, simulation = self._shared.methods.of(self._command), self._shared.simulation
        assert method is not None, "else it is rolled back"
        if plan.why is not None:
            return None  # A gate says so.
        why = method.rejects((leaving,), plan, simulation, self._settings, self._now)
        return None if why is None else self._rolled_back(why)

    def _missing(self, plan: Plan, facts: GateFacts) -> Verdict | None:
        if plan.claims:
            taken = ReservedCapacityTaken(tuple(new.name for new in plan.claims))
            return _say(self._claim, Reason.REPLACING, taken)
        blocked = self._first_blocked(with_plan(facts, plan), LAST - PLAN_ONLY)
        if blocked is not None:
            return self._without_capacity(plan, blocked)
        known = self._command.names
        came = [one.name for one in self._came() if one.name not in known]
        if not came:
            return None
        more, action = MoreReplacements(tuple(came)), add_replacements(self._command, came)
        return _say(self._claim, Reason.REPLACING, more, action=action)

    def _without_capacity(self, plan: Plan, blocked: Verdict) -> Verdict:
        """What provisioning launches is no replacement that could fail: so time bounds the wait."""
        node, since = self._command.node, _ready_since(self._command)
        coming = plan.passing and not isinstance(plan.why, ReservedCapacityTaken)
        if node is None or since is None or coming:
            return blocked
        by = later(since, CAPACITY_WITHIN)
        if self._now < by:
            return no_later(blocked, by)
        facts = (NoCapacityInTime(node.name, since, by), RolledBack(node.name, retried=True))
        action = roll_back_failed(self._claim, self._now)
        forgotten = failures_of(self._claim).forgotten_at
        recheck_at = forgotten if forgotten is not None and self._now < forgotten else None
        verdict = _say(
            self._claim,
            Reason.REPLACEMENT_FAILED,
            *facts,
            action=action,
            recheck_at=recheck_at,
        )
        decision = Decision.REPLACE if self._command.names else Decision.DELETE
        count = CommandCount(reason=self._command.reason, decision=decision, failed=1)
        return msgspec.structs.replace(verdict, command=count)

    def _came(self) -> list[NodeClaim]:
        found = (one for one, _ in self._facts.replacements)
        return [one for one in found if comes_up(one, self._now)]

    def _terminating(self, node: Node, counts_on: frozenset[str]) -> Verdict:
        bound, claim, started = self._validation.bound, self._claim, self._shared.started
        self._shared.reservations.counted_on |= counts_on
        if claim.initialized:
            started[claim.pool_name] = started.get(claim.pool_name, 0) + 1
        spans = [one for one in (bound, grace_period(claim)) if one is not None]
        span = min(spans) if bound is not None else None
        action: Delete | Patch = delete_unless_pods_came(claim, Ground.REPLACED, node)
        recheck_at = None
        if span is None and claim.termination_stamp is not None:
            action = take_off_stamp(claim)
        elif span is not None:
            began, until = written_between(claim, span, STAMPED)
            recheck_at = next((at for at in (began, until) if at > self._now), None)
            if not began <= self._now < until:
                action = stamp_claim(claim, Ground.REPLACED, span)
        verdict = _say(
            claim,
            Reason.REPLACED,
            self._initialized(),
            TerminatingWithin(min(spans, default=None)),
            action=action,
            recheck_at=recheck_at,
        )
        if isinstance(action, Patch):
            action = msgspec.structs.replace(action, precondition=as_evaluated(node))
            return msgspec.structs.replace(verdict, action=action)
        return msgspec.structs.replace(verdict, commits=self._validation.commits)

    def _initialized(self) -> Fact:
        pods = (item.pod for item in self._facts.drain.pods)
        if not self._command.names and not any(map(is_reschedulable, pods)):
            return NoReschedulablePods()
        return ReplacementsInitialized(tuple(self._command.names))
