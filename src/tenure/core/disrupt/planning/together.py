"""Plan candidates that are disrupted together, and write what the plan needs. Mostly it is one.

Steps 4 to 7 of ``plan``: capacity, launch, record, commit. Each of them is done for all candidates of
a group before the next one, and what keeps one of them back keeps back all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from tenure.core.decision import CommandCount, Concern, Decision, Verdict
from tenure.core.disrupt.candidates import NodeFacts, Wanted
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized
from tenure.core.disrupt.facts.groups import ReplacedTogether, WaitsTogether
from tenure.core.disrupt.facts.planning import (
    NoReschedulablePods,
    PodsFitElsewhere,
    ReplacedBy,
    ReplacementsCreated,
)
from tenure.core.disrupt.passes import Pass, launched, with_plan
from tenure.core.disrupt.planning.gating import Gating
from tenure.core.disrupt.planning.recording import Recording
from tenure.core.disrupt.ready import Ready
from tenure.core.disrupt.replacements import comes_up
from tenure.core.disrupt.simulate import LeavingNode, Plan, leaving_node
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.gates import changes_at
from tenure.core.gates.operations import LAST
from tenure.core.gates.velocity import fresh_until
from tenure.core.marks.command import begin
from tenure.core.marks.starts import used_by
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, no_later, say
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.packing.demand.steps import Steps

_say = partial(say, Concern.DISRUPTION)

#: What is said of each candidate; nothing, where it may be suspended before that.
Said = Iterator[tuple[Wanted, Sequence[Verdict]]]
V = TypeVar("V")


def nothing_said(
    steps: Steps[V], of: Wanted
) -> Generator[tuple[Wanted, Sequence[Verdict]], None, V]:
    """What the steps make; after each of them nothing is said of the candidate."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: V = end.value
            return value
        yield of, ()


class Together:
    """Candidates of one method, and what is committed of their group already."""

    def __init__(self, ways: Sequence[Wanted], begun: Sequence[Ready], shared: Pass) -> None:
        self.ways, self._begun, self._shared = tuple(ways), tuple(begun), shared
        self.method, self.reason = ways[0].method, ways[0].method.traits.reason
        self.names = sorted((*(one.claim.name for one in ways), *self.begun_names))
        self._came = {
            one.room: one.claim
            for facts in (one.facts for one in ways)
            for one in facts.replacements
            if one.replaces == set(self.names) and comes_up(one.claim, shared.now)
        }
        self.leaving = tuple(self._leaving())
        #: Why it is not planned, or its plan not carried out now, and whether that passes by itself.
        self.kept_back: Fact | None = None
        self.passing = False
        #: None of them has reschedulable pods.
        self.empty = not any(one.pods for one in self.leaving)

    @property
    def begun_names(self) -> list[str]:
        return [one.under_way.command.claim.name for one in self._begun]

    def _leaving(self) -> Iterator[LeavingNode]:
        found: list[tuple[NodeClaim, Node, NodeFacts]] = [
            (one.claim, one.candidate.node, one.facts) for one in self.ways
        ]
        for ready in self._begun:
            command = ready.under_way.command
            if command.node is not None:
                found.append((command.claim, command.node, ready.node))
        for claim, node, facts in sorted(found, key=lambda one: one[0].name):
            yield leaving_node(claim, node, (item.pod for item in facts.drain.pods), self._came)

    def plan(self) -> Steps[Plan]:
        """In steps, with the replacements that exist, and come up."""
        # Empty nodes wait for no replacement that was launched before their pods left.
        empty = self.method.traits.voluntary and self.empty
        came = () if empty else tuple(sorted(self._came.values(), key=lambda one: one.name))
        plan = msgspec.structs.replace((yield from self._plan(empty=empty)), came=came)
        if empty or not self.method.traits.needs_replacement:
            return plan
        settings, now = self._shared.settings, self._shared.now
        return self.method.revised(self.leaving, plan, self._shared.simulation, settings, now)

    def _plan(self, *, empty: bool) -> Steps[Plan]:
        simulation, shared = self._shared.simulation, self._shared
        common = (shared.settings, shared.now)
        if empty:
            found: list[Plan] = []
            for one in self.leaving:
                about = simulation.plan_empty(one.node.name, *common, shared.reservations)
                found.append((yield from about))
            return next((one for one in found if one.why is not None), found[0])
        if not self.method.traits.needs_replacement:
            return Plan()
        alone = self._is_alone
        if alone and (refused := shared.refused(self.leaving[0])) is not None:
            return refused
        plan = yield from simulation.plan(
            self.leaving,
            *common,
            reservations=shared.reservations,
            avoid=self.method.avoids(simulation, shared.now),
        )
        if alone:
            shared.remember(self.leaving[0], plan)
        return plan

    @property
    def _is_alone(self) -> bool:
        """Whether nothing follows from a refusal: a group that is committed in part is rolled back, and of
        consolidation another plan is made."""
        grouped = self._begun or len(self.ways[0].candidate.group) > 1
        return len(self.leaving) == 1 and not grouped and not self.method.traits.consolidates

    def others(self, one: Wanted) -> tuple[Fact, ...]:
        """Which claims are replaced together with this one."""
        names = tuple(name for name in self.names if name != one.claim.name)
        return (ReplacedTogether(names),) if names else ()

    def all_wait(self, found: Mapping[str, Verdict], *, passing: bool = False) -> Said:
        """``found``: what is said of some of them, by claim, and keeps back the others."""
        first = next(one for one in self.ways if one.claim.name in found)
        verdict = found[first.claim.name]
        why = WaitsTogether(first.claim.name, verdict.facts[len(first.candidate.why) :])
        self.kept_back, self.passing = why, passing
        for one in self.ways:
            said = found.get(one.claim.name)
            if said is None:
                facts, at = (*one.candidate.why, why), verdict.recheck_at
                said = _say(one.claim, Reason.DISRUPTION_WAITS, *facts, recheck_at=at)
            yield one, (said, also_of(one.candidate.node, said))


class Commands:
    """Of one pass."""

    def __init__(self, shared: Pass, gating: Gating, recording: Recording) -> None:
        self._shared, self._gating, self._recording = shared, gating, recording
        self._settings, self._now = shared.settings, shared.now
        #: The claim whose replacement is being planned.
        self.planned = ""

    def verdicts(self, group: Together) -> Said:
        plan = yield from nothing_said(group.plan(), group.ways[0])
        launches = self._shared.simulation.launches(plan, plan.came)
        facts = [with_plan(self._gating.facts(one), plan, launches) for one in group.ways]
        if found := self._kept_back(group, plan, facts):
            yield from group.all_wait(found, passing=plan.passing)
            return
        self._start(group, plan)
        at = [
            changes_at(one.candidate.operation, asked, self._now)
            for one, asked in zip(group.ways, facts, strict=True)
        ]
        recorded = {} if plan.claims else self._recorded(group)
        new = tuple(no_later(verdict, *at) for verdict in launched(plan, group.names, group.reason))
        for index, one in enumerate(group.ways):
            if plan.claims:
                verdict = self._created(one, group, plan)
            else:
                verdict = recorded.get(one.claim.name) or self._marked(one, group, plan)
                fresh = fresh_until(one.pool.pool, one.claim, self._now)
                verdict = no_later(verdict, plan.changes_at, fresh)
            verdict = no_later(verdict, *at)
            said = (verdict, also_of(one.candidate.node, verdict))
            yield one, said if index else (*new, *said)

    def _kept_back(
        self, group: Together, plan: Plan, facts: Sequence[GateFacts]
    ) -> dict[str, Verdict]:
        """By claim: the last gate that blocks it; of all claims, why the method rejects the plan."""
        blocked = {
            one.claim.name: self._gating.first_blocked(one, asked, LAST)
            for one, asked in zip(group.ways, facts, strict=True)
        }
        if found := {name: verdict for name, verdict in blocked.items() if verdict is not None}:
            return found
        simulation = self._shared.simulation
        why = group.method.rejects(group.leaving, plan, simulation, self._settings, self._now)
        return (
            {}
            if why is None
            else {one.claim.name: self._rejected(one, why, plan) for one in group.ways}
        )

    def _rejected(self, one: Wanted, why: Fact, plan: Plan) -> Verdict:
        facts = (*one.candidate.why, why)
        verdict = _say(one.claim, one.method.rejected_as, *facts, recheck_at=plan.changes_at)
        return no_later(verdict, self._gating.changes_at(one))

    def _start(self, group: Together, plan: Plan) -> None:
        if group.empty:
            self._shared.reservations.given_up |= {one.node.name for one in group.leaving}
        else:
            self.planned = group.names[0]
            self._shared.reservations.counted_on |= plan.counts_on
        for one in group.ways:
            self._gating.count(one)

    def _created(self, one: Wanted, group: Together, plan: Plan) -> Verdict:
        created = ReplacementsCreated(tuple(new.name for new in plan.claims))
        why = (*self._why(one, group, plan), *group.others(one), created)
        return _say(one.claim, Reason.REPLACING, *why, recheck_at=plan.changes_at)

    def _why(self, one: Wanted, group: Together, plan: Plan) -> tuple[Fact, ...]:
        simulation, now = self._shared.simulation, self._now
        return group.method.told(
            one.candidate, group.leaving, plan, simulation, self._settings, now
        )

    def _recorded(self, group: Together) -> dict[str, Verdict]:
        """By claim, where a start has to be recorded: none is committed before all are recorded."""
        found = {one.claim.name: self._recording.record(one) for one in group.ways}
        said = {name: verdict for name, verdict in found.items() if verdict is not None}
        return {
            one.claim.name: verdict[0] for one, verdict in (group.all_wait(said) if said else ())
        }

    def _marked(self, one: Wanted, group: Together, plan: Plan) -> Verdict:
        candidate, came = one.candidate, tuple(new.name for new in plan.came)
        what: tuple[Fact, ...] = (*group.others(one), ReplacedBy(came))
        if one.method.traits.only_empty or (not came and _says_where(candidate.why)):
            what = ()  # It says already that there are no pods, or where they go.
        elif not came:
            fits = plan.without or PodsFitElsewhere()
            what = (NoReschedulablePods() if group.empty else fits,)
        reason = one.method.traits.reason
        used = used_by(one.pool.pool, candidate.claim, self._shared.settings, self._now)
        verdict = _say(
            candidate.claim,
            Reason.REPLACING,
            *self._why(one, group, plan),
            *what,
            action=begin(
                candidate.claim,
                came,
                reason,
                {**candidate.marks, **used},
                by_marks=self._settings.beside_karpenter,
            ),
        )
        if came and one.claim.name != group.names[0]:
            return verdict  # One command, which counts once.
        decision = Decision.REPLACE if came else Decision.DELETE
        consolidates = one.method.traits.consolidates
        policy = one.pool.pool.spec.disruption.consolidation_policy if consolidates else ""
        count = CommandCount(reason=reason, decision=decision, policy=policy)
        return msgspec.structs.replace(verdict, command=count)


def _says_where(why: Iterable[Fact]) -> bool:
    return any(isinstance(fact, NodeUnderutilized) and not fact.launches for fact in why)
