"""Terminate a node whose replacements are initialized: the last step, and there is no way back.

The replacements took pods while they came up, and the cluster has changed. So of each command whose
replacements are all initialized and whose marks are all written, the first of these that applies:

1. tolerated   what the method wanted has changed and is not due: it waits for that;
2. pods came   to a node that goes only because it is empty: the command is rolled back;
   gates       asked again, all but the pause (``gates``). It waits;
3. capacity    a pod of it fits nowhere, or only on a node that is not initialized. It waits, and is
               rolled back with a pause where new capacity is still needed after a while, or was launched
               only after that while;
   rejected    its method does not take the plan any more: it is rolled back;
4. launch      its pods need more nodes after all. Provisioning launches them, as for every node that
               terminates; only where the pool's limits forbid that they are created here, because
               the terminating node frees its share of the limits, and marked as the others;
5. terminated  stamped with the deadline where its drain is bounded, then deleted on that version,
               and only if the Node is still as it was evaluated, and so are the pods there: those are
               listed right before the deletion, because a watch may be late.

Commands of one group are carried out together: one plan for all, and where one of them waits, all do;
where one is rolled back, all are. Once the first of them terminates, the method is not asked again: the
others follow, or stay, each by its gates.

A stamp that was not written just now for this is taken off, or written anew: it would cut the
drain short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.execution.member import Member
from tenure.core.disrupt.facts.candidates import (
    CapacityNotInitialized,
    NoCapacityInTime,
    ReservedCapacityTaken,
)
from tenure.core.disrupt.facts.consolidation import PodsHaveNoRoom
from tenure.core.disrupt.facts.groups import NotReplacedTogether, WaitsTogether
from tenure.core.disrupt.passes import Pass, launched, with_plan
from tenure.core.disrupt.ready import Ready, ReadyPool
from tenure.core.disrupt.simulate import LeavingNode, Plan
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.operations import LAST, PLAN_ONLY, Gate
from tenure.core.marks.command import replaced_uids
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, no_later, say
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.packing.demand.steps import Steps

_say = partial(say, Concern.DISRUPTION)

#: From so long after it began, or its last replacement was initialized, a command is rolled back
#: whose pods need capacity that is not there, or whose nodes cannot go together within a budget. A
#: new node registers by then, or never.
CAPACITY_WITHIN: Final = timedelta(minutes=15)


class Execution:
    """The commands of one group, or one alone, at one instant."""

    def __init__(
        self, group: Sequence[Ready], pools: Mapping[str, ReadyPool], shared: Pass
    ) -> None:
        self._shared, self._settings, self._now = shared, shared.settings, shared.now
        self._members = tuple(Member(one, pools, shared) for one in group)

    def verdicts(self) -> Iterator[Verdict | None]:
        """None: nothing is said yet, and it may be suspended."""
        if any(one.off for one in self._members):
            return  # ``orchestrate`` says so.
        facts = dict(self._gates())
        blocked = {one.claim.name: one.blocked(facts[one.claim.name]) for one in self._members}
        changes: datetime | None = None
        if (found := self._together(blocked)) is None:
            leaving = self._leaving()
            plan = yield from self._plan(leaving)
            found = self._rejected(leaving, plan)
            if found is None:
                reason = self._members[0].command.reason
                yield from launched(plan, [one.claim.name for one in self._members], reason)
                found = self._missing(plan, facts) or self._terminating(plan)
            changes = plan.changes_at
        instants = [at for one in self._members for at in one.instants(facts[one.claim.name])]
        for one, verdict in zip(self._members, found, strict=True):
            told = no_later(verdict, changes, *instants)
            yield from (one.without_stamp(told), also_of(one.node, told))

    # -- one for all -------------------------------------------------------------------

    def _together(self, found: Mapping[str, Verdict | None]) -> list[Verdict] | None:
        """What is said of each where something is to be said of one; None: there is nothing."""
        said_of = [(one, it) for one in self._members if (it := found[one.claim.name]) is not None]
        if not said_of:
            return None
        off = [pair for pair in said_of if pair[1].reason is Reason.DISRUPTION_CANCELLED]
        first, verdict = (*off, *said_of)[0]
        if len(self._members) > 1:
            verdict = self._within_budgets(first, verdict)
        said = []
        for one in self._members:
            own = verdict if one is first else found[one.claim.name]
            if verdict.reason is Reason.DISRUPTION_CANCELLED:
                why = NotReplacedTogether(first.claim.name, verdict.facts[:-1])
                own = verdict if one is first else one.rolled_back(why)
            elif own is None:
                own = self._waits_for(one, first, verdict)
            said.append(own)
        return said

    def _waits_for(self, one: Member, other: Member, verdict: Verdict) -> Verdict:
        facts = verdict.facts[len(other.said()) :] if verdict.gate else verdict.facts
        why = WaitsTogether(other.claim.name, facts)
        at = verdict.recheck_at
        return _say(one.claim, Reason.DISRUPTION_WAITS, *one.said(), why, recheck_at=at)

    def _within_budgets(self, first: Member, verdict: Verdict) -> Verdict:
        """A budget that was lowered may never let all of them go in the same turn."""
        if verdict.gate != Gate.BUDGET or (by := self._by()) is None:
            return verdict
        if self._now < by:
            return no_later(verdict, by)
        return first.rolled_back(*verdict.facts[len(first.said()) :])

    def _by(self) -> datetime | None:
        """When they have waited for long enough; None: since when is not known."""
        since = [one.ready_since() for one in self._members]
        known = [at for at in since if at is not None]
        return later(max(known), CAPACITY_WITHIN) if len(known) == len(since) else None

    # -- the gates and the plan --------------------------------------------------------

    def _gates(self) -> Iterator[tuple[str, GateFacts]]:
        """By claim. Each counts for the budgets of the next."""
        before: Counter[str] = Counter()
        for one in self._members:
            yield one.claim.name, one.gates(before[one.claim.pool_name])
            before[one.claim.pool_name] += one.claim.initialized

    def _came(self) -> dict[str, NodeClaim]:
        return {room: new for one in self._members for room, new in sorted(one.came.items())}

    def _leaving(self) -> tuple[LeavingNode, ...]:
        came = self._came()
        return tuple(one.leaving(came) for one in self._members)

    def _plan(self, leaving: Sequence[LeavingNode]) -> Steps[Plan]:
        if not self._members[0].method.traits.needs_replacement:
            return Plan()
        simulation, came = self._shared.simulation, tuple(self._came().values())
        plan_for = partial(
            simulation.plan,
            leaving,
            self._settings,
            self._now,
            reservations=self._shared.reservations,
        )
        plan = yield from plan_for(credit=False)
        if plan.claims:
            return Plan(
                why=ReservedCapacityTaken(), passing=True, changes_at=plan.changes_at, came=came
            )
        if plan.why is not None and not plan.passing:
            plan = yield from plan_for()
        return msgspec.structs.replace(plan, came=came)

    def _rejected(self, leaving: Sequence[LeavingNode], plan: Plan) -> list[Verdict] | None:
        if self._has_begun():
            return None  # There is no way back.
        method, simulation = self._members[0].method, self._shared.simulation
        why: Fact | None = None
        if plan.why is None:
            why = method.rejects(leaving, plan, simulation, self._settings, self._now)
        elif method.traits.only_fitting:  # Of the others a gate says so.
            full = not plan.passing or isinstance(plan.why, ReservedCapacityTaken)
            why = PodsHaveNoRoom() if full else None
        return None if why is None else [one.called_off(why) for one in self._members]

    def _has_begun(self) -> bool:
        """Whether a claim of the group terminates already, or is gone."""
        return any(len(replaced_uids(new)) > len(self._members) for new in self._came().values())

    def _missing(self, plan: Plan, facts: Mapping[str, GateFacts]) -> list[Verdict] | None:
        if plan.claims:
            taken = ReservedCapacityTaken(tuple(new.name for new in plan.claims))
            return [_say(one.claim, Reason.REPLACING, taken) for one in self._members]
        only = LAST - PLAN_ONLY
        blocked = {
            one.claim.name: one.first_blocked(with_plan(facts[one.claim.name], plan), only)
            for one in self._members
        }
        if any(blocked.values()):
            return self._without_capacity(plan, blocked)
        came = self._came()
        return self._together({one.claim.name: one.more(came) for one in self._members})

    def _without_capacity(
        self, plan: Plan, blocked: Mapping[str, Verdict | None]
    ) -> list[Verdict] | None:
        """What provisioning launches is no replacement that could fail: so time bounds the wait."""
        by, found = self._by(), self._together(blocked)
        if by is None or found is None:
            return found
        if self._now < by:
            return [no_later(verdict, by) for verdict in found]
        if plan.passing and self._is_coming(plan, by):
            return found
        return [
            one.failed(self._too_late(one, by), counted=one is self._members[0])
            for one in self._members
        ]

    def _is_coming(self, plan: Plan, by: datetime) -> bool:
        """Whether it may wait on. A node that was launched later than ``by`` does not count: where nodes do not
        register, the next is launched as soon as one has failed, and it would wait for each."""
        if isinstance(plan.why, CapacityNotInitialized):
            launched = self._shared.simulation.coming
            return all(launched[name] < by for name in plan.why.nodes)
        return not isinstance(plan.why, ReservedCapacityTaken)

    def _too_late(self, one: Member, by: datetime) -> Fact:
        since = max(at for other in self._members if (at := other.ready_since()) is not None)
        return NoCapacityInTime(one.node.name, since, by)

    def _terminating(self, plan: Plan) -> list[Verdict]:
        self._shared.reservations.counted_on |= plan.counts_on
        without = () if plan.without is None else (plan.without,)
        return [one.terminating(*without) for one in self._members]
