"""Plan the disruption of one candidate: from its gates to the mark on its claim.

Of each candidate, the first of these that applies:

1. gates       the first that blocks it, with what blocks and until when. A node that several methods
               want is disrupted by the first of them that no gate blocks;
2. reboot      where that is what it needs: committed on the claim, and ``reboot`` carries it out;
   expiration  with ``expirationPolicy: Always``: the claim is deleted;
3. turn        one replacement is planned at a time, so that no capacity is counted on twice; nodes
               without reschedulable pods need none, and do not wait;
4. capacity    a pod of the node fits nowhere: why not, pool by pool. One of the last gates; the other
               is a window that closes before its replacements can be initialized;
   rejected    its method does not take the plan: what it launches is not cheaper, for example;
5. launch      its pods need new nodes: their claims are created, each marked as a replacement;
6. record      a budget of the pool counts starts: the start is recorded there before it happens;
7. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, and counts what exists: so a crash between any two
of these writes loses nothing and doubles nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import CommandCount, Concern, Decision, Verdict
from tenure.core.disrupt.candidates import Wanted
from tenure.core.disrupt.facts.planning import (
    NoReschedulablePods,
    PlannedFirst,
    PlannedLater,
    PodsFitElsewhere,
    ReplacedBy,
    ReplacementsCreated,
)
from tenure.core.disrupt.passes import Pass, launched, with_plan
from tenure.core.disrupt.planning.gating import Gating, Way, moves_pods
from tenure.core.disrupt.planning.quota import PlanningQuota, places_in_quota
from tenure.core.disrupt.planning.recording import Recording
from tenure.core.disrupt.planning.withoutreplacement import expire, reboot
from tenure.core.disrupt.replacements import comes_up
from tenure.core.disrupt.simulate import LeavingNode, Plan, leaving_node
from tenure.core.facts import Fact
from tenure.core.gates.gates import changes_at
from tenure.core.gates.operations import LAST, Operation
from tenure.core.gates.velocity import fresh_until
from tenure.core.marks.command import begin
from tenure.core.marks.starts import used_by
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, no_later, say
from tenure.model.api.nodeclaim import NodeClaim

_REBOOTS: Final = frozenset({Operation.REBOOT, Operation.FORCEFUL_REBOOT})

_say = partial(say, Concern.DISRUPTION)


class Planner:
    """All candidates of one pass, one after the other."""

    def __init__(self, shared: Pass, gating: Gating, recording: Recording) -> None:
        self._shared, self._gating, self._recording = shared, gating, recording
        self._settings, self._now = shared.settings, shared.now
        #: The claim whose replacement is being planned.
        self._planned = ""

    def verdicts(self, wanted: Iterable[Wanted]) -> Iterator[tuple[Wanted, Sequence[Verdict]]]:
        """On each candidate, the most urgent first.

        Those that a gate blocks take no share of the quota: a pool that is blocked must not delay
        another. A gate that blocks before anything is started still does so afterwards.
        """
        free: list[tuple[Wanted, Way]] = []
        for one in sorted(wanted, key=lambda one: one.sort_key):
            found = self._gating.first_way(one)
            if found[0] is None:
                yield one, tuple(_all_blocked(one, found[1]))
            else:
                free.append((one, found))
        quota, before = PlanningQuota(len(free), self._now), self._gating.started()
        places = places_in_quota(one.pool.pool.name for one, _ in free)
        for place, (one, found) in zip(places, free, strict=True):
            way, blocked = self._gating.still_first_way(one, found, before)
            if way is None:
                yield one, tuple(_all_blocked(one, blocked))
            else:
                instants = [other.recheck_at for other in blocked]
                said = self._unblocked(way, quota, place)
                yield one, tuple(no_later(verdict, *instants) for verdict in said)

    def _unblocked(self, one: Wanted, quota: PlanningQuota, place: int) -> Iterator[Verdict]:
        candidate, verdict = one.candidate, self._recording.waits(one)
        if verdict is not None:
            pass  # Its plan would keep others waiting, and come to nothing.
        elif candidate.operation in _REBOOTS:
            verdict = reboot(one, self._gating, self._recording.record, self._now)
        elif candidate.operation is Operation.EXPIRATION:
            verdict = expire(one, self._gating)
        elif self._planned and moves_pods(one):
            facts = (*candidate.why, PlannedFirst(self._planned))
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, *facts)
        elif not quota.has(place) and moves_pods(one):
            at = quota.next_at
            later_ = (*candidate.why, PlannedLater(at))
            verdict = _say(one.claim, Reason.DISRUPTION_WAITS, *later_, recheck_at=at)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        yield from self._command(one, *self._leaving(one))

    def _leaving(self, one: Wanted) -> tuple[LeavingNode, list[NodeClaim]]:
        """With its replacements that exist, and come up."""
        came = [(new, room) for new, room in one.facts.replacements if comes_up(new, self._now)]
        pods = (item.pod for item in one.facts.drain.pods)
        node = one.candidate.node
        leaving = leaving_node(one.claim, node, pods, (room for _, room in came))
        return leaving, [new for new, _ in came]

    @property
    def has_planned(self) -> bool:
        """Whether pods of a node were planned for in this pass: they may count on any capacity."""
        return bool(self._planned)

    def _command(
        self, one: Wanted, leaving: LeavingNode, came: Sequence[NodeClaim]
    ) -> Iterator[Verdict]:
        claim, candidate = one.claim, one.candidate
        if one.method.traits.voluntary and not leaving.pods:
            came = ()  # It waits for no replacement that was launched before its pods left.
        plan = msgspec.structs.replace(self._plan(one, leaving), came=tuple(came))
        launches = self._shared.simulation.launches(plan, came)
        facts = with_plan(self._gating.facts(one), plan, launches)
        verdict = self._gating.first_blocked(one, facts, LAST) or self._rejected(one, leaving, plan)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        if leaving.pods:
            self._planned = claim.name
            self._shared.reservations.counted_on |= plan.counts_on
        else:
            self._shared.reservations.given_up.add(leaving.node.name)
        self._gating.count(one)
        recheck_at = changes_at(candidate.operation, facts, self._now)
        for new in launched(plan, claim.name, one.method.traits.reason):
            yield no_later(new, recheck_at)
        if plan.claims:
            created = ReplacementsCreated(tuple(new.name for new in plan.claims))
            why = (*candidate.why, created)
            verdict = _say(claim, Reason.REPLACING, *why, recheck_at=plan.changes_at)
        else:
            verdict = self._recording.record(one)
            if verdict is None:
                verdict = self._marked(one, [new.name for new in came], leaving)
            fresh = fresh_until(one.pool.pool, claim, self._now)
            verdict = no_later(verdict, plan.changes_at, fresh)
        verdict = no_later(verdict, recheck_at)
        yield from (verdict, also_of(candidate.node, verdict))

    def _plan(self, one: Wanted, leaving: LeavingNode) -> Plan:
        traits = one.method.traits
        if traits.voluntary and not leaving.pods:
            return self._shared.simulation.plan_empty(
                leaving.node.name, self._settings, self._now, self._shared.reservations
            )
        if not traits.needs_replacement:
            return Plan()
        return self._shared.simulation.plan(
            (leaving,), self._settings, self._now, reservations=self._shared.reservations
        )

    def _rejected(self, one: Wanted, leaving: LeavingNode, plan: Plan) -> Verdict | None:
        simulation = self._shared.simulation
        why = one.method.rejects((leaving,), plan, simulation, self._settings, self._now)
        if why is None:
            return None
        facts = (*one.candidate.why, why)
        verdict = _say(one.claim, Reason.CONSOLIDATION_REJECTED, *facts, recheck_at=plan.changes_at)
        return no_later(verdict, self._gating.changes_at(one))

    def _marked(self, one: Wanted, came: Sequence[str], leaving: LeavingNode) -> Verdict:
        candidate = one.candidate
        what: tuple[Fact, ...] = (ReplacedBy(tuple(came)),)
        if one.method.traits.only_empty:
            what = ()  # It says already that there are no pods.
        elif not came:
            what = (PodsFitElsewhere() if leaving.pods else NoReschedulablePods(),)
        reason = one.method.traits.reason
        used = used_by(one.pool.pool, candidate.claim, self._now)
        verdict = _say(
            candidate.claim,
            Reason.REPLACING,
            *candidate.why,
            *what,
            action=begin(candidate.claim, came, reason, {**candidate.marks, **used}),
        )
        decision = Decision.REPLACE if came else Decision.DELETE
        return msgspec.structs.replace(
            verdict, command=CommandCount(reason=reason, decision=decision)
        )


def _all_blocked(one: Wanted, blocked: Sequence[Verdict]) -> Iterator[Verdict]:
    verdict = no_later(blocked[0], *(other.recheck_at for other in blocked))
    yield from (verdict, also_of(one.candidate.node, verdict))
