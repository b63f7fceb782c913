"""Plan the disruption of one candidate: from its gates to the mark on its claim.

Of each candidate, the first of these that applies:

1. gates       the first that blocks it, with what blocks and until when;
2. reboot      where that is what it needs: committed on the claim, and ``reboot`` carries it out;
3. turn        one replacement is planned at a time, so that no capacity is counted on twice;
4. capacity    a pod of the node fits nowhere: why not, pool by pool. The last of the gates;
5. launch      its pods need new nodes: their claims are created, each marked as a replacement;
6. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, and counts what exists: so a crash between any two
of these writes loses nothing and doubles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Concern, Patch, Verdict
from tenure.core.disrupt.candidates import NodeFacts, PoolCandidates
from tenure.core.disrupt.facts import (
    NoReschedulablePods,
    PlannedFirst,
    PlannedLater,
    PodsFitElsewhere,
    RebootCommitted,
    ReplacedBy,
    ReplacementsCreated,
)
from tenure.core.disrupt.method import Candidate, Method
from tenure.core.disrupt.passes import Pass, launched, with_plan
from tenure.core.disrupt.replacements import comes_up
from tenure.core.disrupt.simulate import LeavingNode, Plan, leaving_node
from tenure.core.facts import Fact, sentence
from tenure.core.gates.gates import LAST, Blocked, Gate, GateFacts, Operation, first_blocked
from tenure.core.marks.command import begin
from tenure.core.marks.deadline import grace_period
from tenure.core.marks.reboot import commit
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say
from tenure.model.api.meta import later
from tenure.model.api.nodeclaim import NodeClaim

_REBOOTS: Final = frozenset({Operation.REBOOT, Operation.FORCEFUL_REBOOT})

#: So many of the most urgent are planned in each pass, and as many of the others.
FIRST: Final = 8

_say = partial(say, Concern.DISRUPTION)


class PlanningQuota:
    """Which candidates are planned in this minute: a plan reads every node, and the loop must not stop.

    The first few always, of the others a few at a time, minute by minute.
    """

    def __init__(self, count: int, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        self._groups = max(1, -(-(count - FIRST) // FIRST))
        self._group = int(minute.timestamp()) // 60 % self._groups
        self.next_at: Final = later(minute, timedelta(minutes=1))

    def has(self, index: int) -> bool:
        return index < FIRST or (index - FIRST) // FIRST == self._group


class Wanted(msgspec.Struct, frozen=True):
    """A candidate, and what its disruption depends on."""

    method: Method
    candidate: Candidate
    pool: PoolCandidates
    #: The index of the method in the list.
    order: int

    @property
    def claim(self) -> NodeClaim:
        return self.candidate.claim

    @property
    def facts(self) -> NodeFacts:
        return self.pool.nodes[self.claim.name]

    @property
    def sort_key(self) -> tuple[int, float, int, str]:
        pods, node = self.facts.drain.pods, self.candidate.node
        return self.order, -self.candidate.rank, len(pods), node.name


class Planner:
    """All candidates of one pass, one after the other."""

    def __init__(self, shared: Pass) -> None:
        self._shared = shared
        self._settings, self._now = shared.settings, shared.now
        #: By pool: how many disruptions have been started in this pass.
        self._started: dict[str, int] = {}
        #: The claim whose replacement is being planned.
        self._planned = ""

    def verdicts(self, one: Wanted, quota: PlanningQuota, index: int) -> Iterator[Verdict]:
        candidate, verdict = one.candidate, self._gated(one)
        if verdict is None and candidate.operation in _REBOOTS:
            verdict = self._reboot(one)
        if verdict is None and self._planned:
            facts = (*candidate.why, PlannedFirst(self._planned))
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, *facts)
        if verdict is None and not quota.has(index):
            at = quota.next_at
            later_ = (*candidate.why, PlannedLater(at))
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, *later_, recheck_at=at)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        yield from self._command(one)

    # -- the gates, for the first time -------------------------------------------------

    def _gated(self, one: Wanted, plan: Plan | None = None) -> Verdict | None:
        """Without a plan all but the last, with it the last."""
        operation, facts = one.candidate.operation, self._facts(one)
        only = frozenset(Gate) - LAST
        if plan is not None:
            facts, only = with_plan(facts, plan), LAST
        blocked = first_blocked(operation, facts, self._settings, self._now, only=only)
        return self._blocked(one, blocked) if blocked is not None else None

    def _facts(self, one: Wanted) -> GateFacts:
        candidate, pool = one.candidate, one.pool
        known = candidate.gates or GateFacts(claim=one.claim, node=candidate.node)
        return msgspec.structs.replace(
            known,
            pool=pool.pool,
            windows=pool.windows,
            pauses=pool.pauses,
            traits=one.method.traits,
            fleet=pool.fleet,
            started=self._started.get(pool.pool.name, 0),
            drain=one.facts.drain,
            bound=candidate.bound,
        )

    def _blocked(self, one: Wanted, blocked: Blocked) -> Verdict:
        return _say(
            one.claim,
            blocked.reason,
            *one.candidate.why,
            *blocked.facts,
            blockers=blocked.blockers,
            recheck_at=blocked.until,
            gate=blocked.gate,
        )

    # -- what is done ------------------------------------------------------------------

    def _count(self, claim: NodeClaim) -> None:
        if claim.initialized:
            self._started[claim.pool_name] = self._started.get(claim.pool_name, 0) + 1

    def _reboot(self, one: Wanted) -> Verdict:
        claim, candidate = one.claim, one.candidate
        self._count(claim)
        bounds = [span for span in (candidate.bound, grace_period(claim)) if span is not None]
        forceful = candidate.operation is Operation.FORCEFUL_REBOOT
        bound = timedelta() if forceful else min(bounds, default=None)
        why = sentence(candidate.why)
        action = commit(claim, bound, one.method.traits.reason, why, self._now)
        facts = (*candidate.why, RebootCommitted(candidate.node.name))
        verdict = _say(claim, Reason.REBOOT_DUE, *facts, action=action)
        if not isinstance(action, Patch) or not action.subresource or candidate.commits is None:
            return verdict
        commits = msgspec.structs.replace(candidate.commits, bound=bound)
        return msgspec.structs.replace(verdict, commits=commits)

    def _command(self, one: Wanted) -> Iterator[Verdict]:
        claim, candidate, facts = one.claim, one.candidate, one.facts
        came = [(new, room) for new, room in facts.replacements if comes_up(new, self._now)]
        pods = (item.pod for item in facts.drain.pods)
        leaving = leaving_node(claim, candidate.node, pods, (room for _, room in came))
        plan = self._plan(one, leaving)
        verdict = self._gated(one, plan)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        self._planned = claim.name
        self._count(claim)
        yield from launched(plan, claim.name, one.method.traits.reason)
        if plan.claims:
            created = ReplacementsCreated(tuple(new.name for new in plan.claims))
            why = (*candidate.why, created)
            verdict = _say(claim, Reason.REPLACING, *why, recheck_at=plan.changes_at)
        else:
            verdict = self._marked(one, [new.name for new, _ in came], leaving, plan)
        yield from (verdict, also_of(candidate.node, verdict))

    def _plan(self, one: Wanted, leaving: LeavingNode) -> Plan:
        if not one.method.traits.needs_replacement:
            return Plan()
        return self._shared.simulation.plan(
            leaving, self._settings, self._now, reservations=self._shared.reservations
        )

    def _marked(
        self, one: Wanted, came: Sequence[str], leaving: LeavingNode, plan: Plan
    ) -> Verdict:
        candidate = one.candidate
        what: Fact = ReplacedBy(tuple(came))
        if not came:
            what = PodsFitElsewhere() if leaving.pods else NoReschedulablePods()
        return _say(
            candidate.claim,
            Reason.REPLACING,
            *candidate.why,
            what,
            action=begin(candidate.claim, came, one.method.traits.reason, candidate.marks),
            recheck_at=plan.changes_at,
        )
