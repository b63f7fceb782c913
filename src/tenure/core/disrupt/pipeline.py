"""Decide who may be disrupted with care now, and what has to be there first.

One way for every reason: candidates → what is in their way → budgets → where their pods would
go → replacements. ``replacing`` carries it through from there. So far the one reason is
``Unhealthy``. Candidates in the order of their urgency; of each, the first of these that applies:

1. pause       a replacement of the pool has failed lately: not before the pause is over;
2. budget      the pool's budgets allow no more (a node that is not initialized needs none);
3. obstacles   pods that must not be moved, and nothing that would bound the wait for them;
4. reboot      where that is the cure: committed on the claim, and ``rebooting`` carries it out;
5. turn        one replacement is planned at a time, so that no room is counted on twice;
6. no place    a pod of the node fits nowhere: why not, pool by pool;
7. launch      its pods need new nodes: their claims are created, each marked with whom it
               replaces;
8. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, and counts what exists: so a crash between any two
of these writes loses nothing and doubles nothing. Once all that was launched for it is there, the
same look says whether its pods still have their places, and lets it go (``releasing``). Every pool
with a sick node has one verdict, too, that says when to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.decision import Blocker, Commitment, Concern, Patch, Subject, Verdict
from tenure.core.disrupt.blockers import Disruption, in_the_way, obstacles
from tenure.core.disrupt.budgets import allowance
from tenure.core.disrupt.candidates import PAUSE_MAX, Contender, Contest, contests_in
from tenure.core.disrupt.command import comes_up
from tenure.core.disrupt.execute import Release, UnderWay, launched, ready_commands
from tenure.core.disrupt.simulate import (
    LeavingNode,
    Plan,
    Reservations,
    Simulation,
    leaving_node,
    simulation_in,
)
from tenure.core.protect.protection import CREATION
from tenure.core.provision.nodecache import Rooms
from tenure.core.provision.placement import CLUSTER, moves_places, tells_of_places
from tenure.core.reasons import Reason
from tenure.core.reboot.history import commit
from tenure.core.repair.evaluate import Candidate, Diagnosis, diagnose
from tenure.core.terminate.deadline import grace_period
from tenure.core.verdicts import also_of, say
from tenure.core.writes import patch
from tenure.model.api import names
from tenure.model.api.meta import earlier, format_time, later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import (
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.cloud.repairs import RepairAction
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot

#: So many of the most urgent are planned for at each look, and as many of the others.
FIRST: Final = 8

_say = partial(say, Concern.DISRUPTION)


class DisruptionView(msgspec.Struct, frozen=True, kw_only=True):
    contests: tuple[Contest, ...]
    #: Whose replacements are there.
    ready: tuple[UnderWay, ...]
    simulation: Simulation


class DisruptionDecider:
    concern = Concern.DISRUPTION

    def __init__(self, protection_clock: str = CREATION) -> None:
        self._rooms = Rooms()
        self._protection_clock = protection_clock

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        budgets = change.resource == POD_DISRUPTION_BUDGETS
        return (CLUSTER,) if budgets or moves_places(change, snapshot) else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (CLUSTER,) if tells_of_places(subject) else ()

    def view(self, snapshot: Snapshot, key: str) -> DisruptionView | None:
        contests = tuple(contests_in(snapshot))
        ready = tuple(ready_commands(snapshot))
        if not contests and not ready:
            return None  # The usual case, and it must stay cheap.
        simulation = simulation_in(snapshot, self._rooms, self._protection_clock)
        return DisruptionView(contests=contests, ready=ready, simulation=simulation)

    def decide(self, view: DisruptionView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        found = list(_Pass(view, settings, now).verdicts())
        return sorted(found, key=lambda verdict: verdict.subject)


def may_wait(change: Change) -> bool:
    """Pods and nodes come and go by the hundred; a claim is what we write to."""
    return change.resource in (PODS, NODES)


class Turns:
    """Who is planned for in this minute: a plan looks at every node, and the loop must not stop.

    The first few always, of the others a few at a time, minute by minute.
    """

    def __init__(self, count: int, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        self._groups = max(1, -(-(count - FIRST) // FIRST))
        self._group = int(minute.timestamp()) // 60 % self._groups
        self.next_at: Final = later(minute, timedelta(minutes=1))

    def has(self, place: int) -> bool:
        return place < FIRST or (place - FIRST) // FIRST == self._group


class _Pass:
    def __init__(self, view: DisruptionView, settings: Settings, now: datetime) -> None:
        self._view, self._settings, self._now = view, settings, now
        #: By pool: how many have been let go in this look.
        self._started: dict[str, int] = {}
        #: Whose replacement is being planned.
        self._planned = ""
        self._reservations = Reservations()

    def verdicts(self) -> Iterator[Verdict]:
        found: list[tuple[Contest, Candidate]] = []
        for contest in self._view.contests:
            diagnosis = diagnose(contest.health, self._settings, self._now)
            # Whoever is being replaced already is still due, and no contender any more.
            found += [
                (contest, c) for c in diagnosis.candidates if c.claim.name in contest.contenders
            ]
            yield _watched(contest, diagnosis, self._now)
        turns = Turns(len(self._view.ready), self._now)
        for place, under_way in enumerate(self._view.ready):
            release = Release(
                under_way, self._view.simulation, self._settings, self._now, self._reservations
            )
            yield from release.verdicts() if turns.has(place) else release.waits(turns.next_at)
        self._turns = Turns(len(found), self._now)
        ordered = sorted(found, key=lambda pair: _order(*pair))
        for place, (contest, candidate) in enumerate(ordered):
            yield from self._of(contest, candidate, place)

    def _of(self, contest: Contest, candidate: Candidate, place: int) -> Iterator[Verdict]:
        claim = candidate.claim
        contender = contest.contenders[claim.name]
        verdict = self._pause(contest, candidate)
        if not candidate.cause.forceful:
            verdict = verdict or self._budget(contest, candidate)
            verdict = verdict or self._obstacles(contender, candidate)
        if verdict is None and candidate.cause.action is RepairAction.REBOOT:
            verdict = self._reboot(candidate)
        if verdict is None and self._planned:
            message = f"{candidate.cause.message}; {self._planned} comes first"
            verdict = _say(claim, Reason.DISRUPTION_WAITS, message)
        if verdict is None and not self._turns.has(place):
            at = self._turns.next_at
            message = f"{candidate.cause.message}; others are tried now, and more of them from "
            message += format_time(at)
            verdict = _say(claim, Reason.DISRUPTION_WAITS, message, recheck_at=at)
        if verdict is not None:
            yield from (verdict, also_of(candidate.node, verdict))
            return
        yield from self._command(contender, candidate)

    # -- what holds it -----------------------------------------------------------------

    def _pause(self, contest: Contest, candidate: Candidate) -> Verdict | None:
        # One that ends later than any pause lasts was written by nobody of us.
        near = [(until, name) for until, name in contest.pauses if until - self._now <= PAUSE_MAX]
        until, name = max(near, default=(self._now, ""))
        if until <= self._now:
            return None
        what = f"the replacement of {name} has failed, and the pool pauses until"
        return _say(
            candidate.claim,
            Reason.DISRUPTION_WAITS,
            f"{candidate.cause.message}; {what} {format_time(until)}",
            recheck_at=until,
        )

    def _budget(self, contest: Contest, candidate: Candidate) -> Verdict | None:
        if not candidate.claim.initialized:
            return None  # It neither needs nor uses one.
        pool = contest.pool.name
        found = allowance(
            contest.pool, Disruption.UNHEALTHY, candidate.node, contest.fleet, self._now
        )
        if found.allowed > self._started.get(pool, 0):
            return None
        why = found.why if found.allowed == 0 else f"{found.why}; others go first"
        return self._blocked(candidate, why, recheck_at=found.changes_at)

    def _obstacles(self, contender: Contender, candidate: Candidate) -> Verdict | None:
        claim, cause = candidate.claim, candidate.cause
        found = obstacles(
            Disruption.UNHEALTHY,
            claim,
            contender.drain,
            self._settings,
            self._now,
            bound=cause.bound,
        )
        if not found:
            return None
        until = min((one.until for one in found if one.until is not None), default=None)
        why = in_the_way(found)
        return self._blocked(candidate, why, blockers=tuple(found), recheck_at=until)

    def _blocked(
        self,
        candidate: Candidate,
        why: str,
        *,
        blockers: tuple[Blocker, ...] = (),
        recheck_at: datetime | None = None,
    ) -> Verdict:
        return _say(
            candidate.claim,
            Reason.DISRUPTION_BLOCKED,
            f"{candidate.cause.message}; {why}",
            blockers=blockers,
            recheck_at=recheck_at,
        )

    # -- what is done ------------------------------------------------------------------

    def _count(self, claim: NodeClaim) -> None:
        if claim.initialized:
            self._started[claim.pool_name] = self._started.get(claim.pool_name, 0) + 1

    def _reboot(self, candidate: Candidate) -> Verdict:
        claim, cause = candidate.claim, candidate.cause
        self._count(claim)
        bounds = [span for span in (cause.bound, grace_period(claim)) if span is not None]
        bound = timedelta() if cause.forceful else min(bounds, default=None)
        action = commit(claim, bound, cause.message, self._now)
        verdict = _say(claim, Reason.REBOOT_DUE, f"{cause.message}; it is rebooted", action=action)
        if not isinstance(action, Patch) or not action.subresource:
            return verdict
        commits = Commitment(reason="unhealthy", condition=cause.condition, bound=bound)
        return msgspec.structs.replace(verdict, commits=commits)

    def _command(self, contender: Contender, candidate: Candidate) -> Iterator[Verdict]:
        claim, why = candidate.claim, candidate.cause.message
        came = [(one, room) for one, room in contender.replacements if comes_up(one, self._now)]
        pods = (item.pod for item in contender.drain.pods)
        leaving = leaving_node(claim, candidate.node, pods, (room for _, room in came))
        plan = self._view.simulation.plan(
            leaving, self._settings, self._now, reservations=self._reservations
        )
        if plan.why:
            reason = Reason.DISRUPTION_WAITS if plan.passing else Reason.DISRUPTION_BLOCKED
            verdict = _say(claim, reason, f"{why}; {plan.why}", recheck_at=plan.changes_at)
            yield from (verdict, also_of(candidate.node, verdict))
            return
        self._planned = claim.name
        self._count(claim)
        yield from launched(plan, claim.name)
        if plan.claims:
            awaited = ", ".join(new.name for new in plan.claims)
            message = f"{why}; its pods need {awaited}, which is being created"
            verdict = _say(claim, Reason.REPLACING, message, recheck_at=plan.changes_at)
        else:
            verdict = self._marked(candidate, [one.name for one, _ in came], leaving, plan)
        yield from (verdict, also_of(candidate.node, verdict))

    def _marked(
        self, candidate: Candidate, came: Sequence[str], leaving: LeavingNode, plan: Plan
    ) -> Verdict:
        mark = {
            names.REPLACED_BY: ",".join(came),
            names.DISRUPTION_REASON: str(Disruption.UNHEALTHY),
            **candidate.marks,
        }
        what = f"it is replaced by {', '.join(came)}"
        if not came:
            what = "its pods fit on other nodes" if leaving.pods else "no reschedulable pods"
        return _say(
            candidate.claim,
            Reason.REPLACING,
            f"{candidate.cause.message}; {what}",
            action=patch(candidate.claim, {"annotations": mark}),
            recheck_at=plan.changes_at,
        )


def _watched(contest: Contest, diagnosis: Diagnosis, now: datetime) -> Verdict:
    """When any of its nodes may become a candidate, or cease to be one."""
    instants = [verdict.recheck_at for verdict in diagnosis.verdicts]
    instants += [earlier(u, PAUSE_MAX) for u, _ in contest.pauses if u > later(now, PAUSE_MAX)]
    recheck_at = min((at for at in instants if at is not None), default=None)
    count, named = len(contest.contenders), ", ".join(sorted(contest.contenders))
    message = (
        f"{count} {'NodeClaim' if count == 1 else 'NodeClaims'} unhealthy or not up yet: {named}"
    )
    return _say(contest.pool, Reason.DISRUPTION_WATCHED, message, recheck_at=recheck_at)


def _order(contest: Contest, candidate: Candidate) -> tuple[float, int, str]:
    pods = contest.contenders[candidate.claim.name].drain.pods
    return -candidate.cause.urgency, len(pods), candidate.node.name
