"""One command whose replacements are initialized, at one instant: may its node terminate, and how.

A command alone is a group of one. What its group shares, ``execute`` decides: the plan, and that no
node terminates before all of them may.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import CommandCount, Concern, Decision, Delete, Ground, Patch, Verdict
from tenure.core.disrupt.emptiness import occupies
from tenure.core.disrupt.facts.commands import (
    MoreReplacements,
    PodsCame,
    ReplacementsInitialized,
    RolledBack,
    TerminatingWithin,
    ToleratedAgain,
)
from tenure.core.disrupt.facts.groups import ReplacedTogether
from tenure.core.disrupt.facts.planning import NoReschedulablePods
from tenure.core.disrupt.method import Method
from tenure.core.disrupt.passes import Pass
from tenure.core.disrupt.ready import Ready, ReadyPool
from tenure.core.disrupt.replacements import (
    comes_up,
    fail_instants,
    failure_of,
    failures_of,
    roll_back_failed,
)
from tenure.core.disrupt.simulate import LeavingNode, leaving_node
from tenure.core.facts import Fact
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.gates import changes_at
from tenure.core.gates.longest import keeping
from tenure.core.gates.operations import LAST, PLAN_ONLY, Gate
from tenure.core.marks.command import add_replacements, disrupted_since, mark_next, roll_back
from tenure.core.marks.deadline import grace_period, written_between
from tenure.core.marks.repaired import repair_mark
from tenure.core.marks.stamp import stamp_claim, take_off_stamp
from tenure.core.provision.demand import is_reschedulable
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.core.writes import as_evaluated, delete_unless_pods_came
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim

_say = partial(say, Concern.DISRUPTION)

#: How old a stamp may be that the claim is deleted with: a turn or two, and a slow API server. An
#: older one would cut the drain short: it is a user's, or of a leader that died in between.
STAMPED: Final = timedelta(minutes=1)


class Member:
    def __init__(self, ready: Ready, pools: Mapping[str, ReadyPool], shared: Pass) -> None:
        self._shared = shared
        self.command, self._facts = ready.under_way.command, ready.node
        self._windows = ready.under_way.windows
        self.claim: Final[NodeClaim] = self.command.claim
        self._pool = pools.get(self.claim.pool_name)
        self._settings, self._now = shared.settings, shared.now
        self._validation = shared.methods.validate(ready.under_way, self._settings, self._now)
        instants = (*fail_instants(self.command), *shared.methods.instants(ready.under_way))
        self._instants = [at for at in instants if at > self._now]

    @property
    def off(self) -> bool:
        """Whether ``orchestrate`` rolls it back or marks it: nothing may be done meanwhile."""
        ends = self._validation.unwanted or failure_of(self.command, self._now)
        if self.command.node is None or ends:
            return True
        # Beside Karpenter there are no marks but those that begin it.
        return not self._settings.beside_karpenter and mark_next(self.command) is not None

    @property
    def node(self) -> Node:
        assert self.command.node is not None, "else it is rolled back"
        return self.command.node

    @property
    def method(self) -> Method:
        return self._shared.methods.named(self.command.reason)

    # -- before the plan ---------------------------------------------------------------

    def blocked(self, facts: GateFacts) -> Verdict | None:
        """What makes it wait, or rolls it back, whatever the plan is."""
        if (at := self._validation.due_at) is not None:
            return _say(self.claim, Reason.DISRUPTION_WAITS, ToleratedAgain(at), recheck_at=at)
        return self._occupied() or self.first_blocked(facts, frozenset(Gate) - PLAN_ONLY - LAST)

    def _occupied(self) -> Verdict | None:
        if not self.method.traits.only_empty:
            return None
        pods = (item.pod for item in self._facts.drain.pods)
        there = tuple(sorted(pod.key for pod in pods if occupies(pod)))
        return self.rolled_back(PodsCame(self.node.name, there)) if there else None

    def gates(self, beside: int) -> GateFacts:
        """``beside``: nodes of its pool that terminate with it, and come before it."""
        assert self._pool is not None, "there is one for every known reason"
        pool_facts = self._pool.facts[self.command.reason]
        found = self.method.gates(self.command, pool_facts, self._settings, self._now)
        return msgspec.structs.replace(
            found,
            pool=self._pool.pool,
            windows=self._windows,
            traits=self.method.traits,
            fleet=self._pool.fleet.before_terminating(self.node.name),
            started=self._shared.started.get(self.claim.pool_name, 0) + beside,
            drain=self._facts.drain,
            bound=self._validation.bound,
        )

    def first_blocked(self, facts: GateFacts, only: frozenset[Gate]) -> Verdict | None:
        """Tells of the gate that lasts longest."""
        operation = self._validation.operation
        found = keeping(operation, facts, self._settings, self._now, only=only)
        if found is None:
            return None
        blocked = found.governing
        return _say(
            self.claim,
            blocked.reason,
            *self.said(),
            *blocked.facts,
            blockers=found.blockers,
            recheck_at=blocked.recheck_at,
            gate=blocked.gate,
        )

    def instants(self, facts: GateFacts) -> list[datetime | None]:
        """When what was said may differ although nothing changes."""
        return [changes_at(self._validation.operation, facts, self._now), *self._instants]

    # -- the plan ----------------------------------------------------------------------

    @property
    def came(self) -> dict[str, NodeClaim]:
        """By the names by which packing knows them: the replacements of its group that come up."""
        names, group = self.command.names, set(self.command.group)
        return {
            one.room: one.claim
            for one in self._facts.replacements
            if one.claim.name in names or (one.replaces == group and comes_up(one.claim, self._now))
        }

    def leaving(self, own: Mapping[str, NodeClaim]) -> LeavingNode:
        pods = (item.pod for item in self._facts.drain.pods)
        return leaving_node(self.claim, self.node, pods, own)

    def more(self, came: Mapping[str, NodeClaim]) -> Verdict | None:
        """Where there are replacements that its mark does not name."""
        known = self.command.names
        names = [
            one.name for one in came.values() if one.name not in known and comes_up(one, self._now)
        ]
        if not names:
            return None
        more, action = MoreReplacements(tuple(names)), add_replacements(self.command, names)
        return _say(self.claim, Reason.REPLACING, more, action=action)

    def ready_since(self) -> datetime | None:
        """When it began, or its last replacement was initialized: that may have taken an hour."""
        began = disrupted_since(self.claim)
        news = (one for _, one in self.command.replacements if one is not None)
        found = (one.condition("Initialized") for one in news)
        came = (one.last_transition_time for one in found if one is not None)
        return began and max((began, *(at for at in came if at is not None)))

    # -- what is done ------------------------------------------------------------------

    def rolled_back(self, *why: Fact) -> Verdict:
        facts = (*why, RolledBack(self.node.name))
        return _say(self.claim, Reason.DISRUPTION_CANCELLED, *facts, action=roll_back(self.claim))

    def called_off(self, why: Fact) -> Verdict:
        """Rolled back because the plan does not hold any more.

        Where replacements were launched in vain the pool pauses, longer each time: else the next plan
        would launch them again at once.
        """
        verdict = self.rolled_back(why)
        if not self.command.names:
            return verdict
        action, at = self._pausing()
        return msgspec.structs.replace(verdict, action=action, recheck_at=at)

    def _pausing(self) -> tuple[Patch, datetime | None]:
        """Takes the marks off and notes a failure; when earlier ones are forgotten."""
        forgotten = failures_of(self.claim).forgotten_at
        at = forgotten if forgotten is not None and self._now < forgotten else None
        return roll_back_failed(self.claim, self._now), at

    def failed(self, why: Fact, *, counted: bool) -> Verdict:
        """Rolled back with a pause of its pool; ``counted``: as a failed command."""
        facts = (why, RolledBack(self.node.name, retried=True))
        action, at = self._pausing()
        verdict = _say(self.claim, Reason.REPLACEMENT_FAILED, *facts, action=action, recheck_at=at)
        decision = Decision.REPLACE if self.command.names else Decision.DELETE
        count = CommandCount(reason=self.command.reason, decision=decision, failed=1)
        return msgspec.structs.replace(verdict, command=count) if counted else verdict

    def terminating(self, *more: Fact) -> Verdict:
        """``more``: why it goes without a replacement."""
        bound, claim, started = self._validation.bound, self.claim, self._shared.started
        if claim.initialized:
            started[claim.pool_name] = started.get(claim.pool_name, 0) + 1
        spans = [one for one in (bound, grace_period(claim)) if one is not None]
        span = min(spans) if bound is not None else None
        action: Delete | Patch = delete_unless_pods_came(claim, Ground.REPLACED, self.node)
        recheck_at = None
        if span is None and claim.termination_stamp is not None:
            action = take_off_stamp(claim, beside=self._settings.beside_karpenter)
        elif span is not None:
            began, until = written_between(claim, span, STAMPED)
            recheck_at = next((at for at in (began, until) if at > self._now), None)
            if not began <= self._now < until:
                action = stamp_claim(claim, Ground.REPLACED, span, self._marks())
        verdict = _say(
            claim,
            Reason.REPLACED,
            *self.said(),
            *more,
            TerminatingWithin(min(spans, default=None)),
            action=action,
            recheck_at=recheck_at,
        )
        if isinstance(action, Patch):
            action = msgspec.structs.replace(action, precondition=as_evaluated(self.node))
            return msgspec.structs.replace(verdict, action=action)
        return msgspec.structs.replace(verdict, commits=self._validation.commits)

    def without_stamp(self, verdict: Verdict) -> Verdict:
        """It stays for now, so it has no deadline."""
        if verdict.action is not None or self.claim.termination_stamp is None:
            return verdict
        action = take_off_stamp(self.claim, beside=self._settings.beside_karpenter)
        return msgspec.structs.replace(verdict, action=action)

    def _marks(self) -> dict[str, str]:
        """Beside Karpenter a deadline without our marks is another program's."""
        beside = self._settings.beside_karpenter
        return repair_mark(Reason.REPLACED.value, beside=True) if beside else {}

    def said(self) -> tuple[Fact, ...]:
        """What is the case: what it waited for is there."""
        pods = (item.pod for item in self._facts.drain.pods)
        if not self.command.names and not any(map(is_reschedulable, pods)):
            return (NoReschedulablePods(),)
        initialized = ReplacementsInitialized(tuple(self.command.names))
        if not self.command.others:
            return (initialized,)
        return ReplacedTogether(tuple(one.name for one in self.command.others)), initialized
