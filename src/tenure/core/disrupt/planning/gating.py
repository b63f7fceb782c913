"""Ask the gates about a candidate for the first time, all but those that need its plan.

A disruption that is started uses a budget, for the candidates after it in the same pass, too: so what
is started is counted here. ``execute`` asks the gates for the second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.candidates import Wanted
from tenure.core.disrupt.passes import Pass
from tenure.core.gates.gatefacts import Blocked, GateFacts, LaunchTime
from tenure.core.gates.gates import changes_at, start_in_time
from tenure.core.gates.longest import keeping
from tenure.core.gates.operations import ASKED, BEFORE_PLAN, COUNTS_STARTED, Gate
from tenure.core.marks.starts import recorded_at
from tenure.core.provision.demand import is_reschedulable
from tenure.core.verdicts import say

_say = partial(say, Concern.DISRUPTION)

#: The first method that no gate blocks, None: there is none; and what blocks those before it.
Way = tuple[Wanted | None, Sequence[Verdict]]


def moves_pods(one: Wanted) -> bool:
    """Whether its disruption needs capacity for pods."""
    return any(is_reschedulable(item.pod) for item in one.facts.drain.pods)


class Gating:
    """Of all candidates of one pass."""

    def __init__(self, shared: Pass) -> None:
        self._settings, self._now = shared.settings, shared.now
        self._reservations = shared.reservations
        self._launch_times = shared.simulation.launch_times
        #: By pool: how many disruptions have been started in this pass.
        self._started: Counter[str] = Counter()
        #: Those of them whose start is recorded.
        self._started_recorded: Counter[str] = Counter()
        #: By claim: when the first of the gates that block it may let it pass.
        self._opens_at: dict[str, datetime] = {}
        #: By pool: when a command under way may be taken over that may not now, or is rolled back.
        self.recheck_at: dict[str, datetime] = {}

    def first_way(self, one: Wanted) -> Way:
        """Of the methods that want the node."""
        return self._first_way(one, None)

    def still_first_way(self, one: Wanted, found: Way, before: Counter[str]) -> Way:
        """``found``, unless a start in its pool changed that; ``before``: what was started by then."""
        pool = one.pool.pool.name
        return found if self._started[pool] == before[pool] else self._first_way(one, found[0])

    def _first_way(self, one: Wanted, passed: Wanted | None) -> Way:
        """``passed``: no gate blocked it before something was started in its pool."""
        blocked: list[Verdict] = []
        for way in (one, *one.others):
            only = BEFORE_PLAN & COUNTS_STARTED if way is passed else BEFORE_PLAN
            verdict = self.first_blocked(way, self.facts(way), only)
            if verdict is None:
                return way, blocked
            blocked.append(verdict)
        return None, blocked

    def first_blocked(self, one: Wanted, facts: GateFacts, only: frozenset[Gate]) -> Verdict | None:
        """Tells of the gate that lasts longest."""
        operation = one.candidate.operation
        found = keeping(operation, facts, self._settings, self._now, only=only)
        if found is None:
            return None
        blocked, pool = found.governing, one.claim.pool_name
        takes = self._launch_times.get(pool) if Gate.CLOSING in ASKED[operation] else None
        if takes is not None and moves_pods(one):
            blocked = start_in_time(blocked, facts, LaunchTime(pool, takes), self._now)
        return self.blocked(one, msgspec.structs.replace(blocked, blockers=found.blockers))

    def facts(self, one: Wanted) -> GateFacts:
        candidate, pool = one.candidate, one.pool
        known = candidate.gates or GateFacts(claim=one.claim, node=candidate.node)
        return msgspec.structs.replace(
            known,
            pool=pool.pool,
            windows=pool.windows,
            pauses=pool.pauses,
            traits=one.method.traits,
            fleet=pool.fleet,
            started=self._started[pool.pool.name],
            recorded=self._started_recorded[pool.pool.name],
            drain=one.facts.drain,
            bound=candidate.bound,
        )

    def changes_at(self, one: Wanted) -> datetime | None:
        """When a gate that lets it pass may block it although nothing changes."""
        return changes_at(one.candidate.operation, self.facts(one), self._now)

    def blocked(self, one: Wanted, blocked: Blocked) -> Verdict:
        name, until = one.claim.name, blocked.until
        if until is not None:
            self._opens_at[name] = min(until, self._opens_at.get(name, until))
        return _say(
            one.claim,
            blocked.reason,
            *one.candidate.why,
            *blocked.facts,
            blockers=blocked.blockers,
            recheck_at=blocked.recheck_at,
            gate=blocked.gate,
        )

    def next_chance(self, verdict: Verdict) -> datetime | None:
        """When what a candidate waits for may be over although nothing changes."""
        return self._opens_at.get(verdict.subject.name) if verdict.gate else verdict.recheck_at

    def ask_again(self, name: str, at: datetime | None) -> None:
        """Something else is said of a claim of the pool: so the pool is evaluated again then."""
        if at is not None:
            self.recheck_at[name] = min(at, self.recheck_at.get(name, at))

    def first_blocked_together(self, ways: Iterable[Wanted]) -> tuple[Wanted, Verdict] | None:
        """Of candidates that start together: the first that is one too many for a budget."""
        started, recorded = self._started.copy(), self._started_recorded.copy()
        try:
            for one in ways:
                only = BEFORE_PLAN & COUNTS_STARTED
                verdict = self.first_blocked(one, self.facts(one), only)
                if verdict is not None:
                    return one, verdict
                self.count(one)
        finally:
            self._started, self._started_recorded = started, recorded
        return None

    # -- what was started --------------------------------------------------------------

    def count(self, one: Wanted) -> None:
        """Its disruption is started."""
        claim, pool = one.claim, one.pool.pool
        if claim.initialized:
            self._started[pool.name] += 1
            self._started_recorded[pool.name] += recorded_at(pool, claim, self._now) is not None

    def give_up(self, one: Wanted) -> None:
        """Its Node is no capacity for the pods of other nodes any more."""
        self._reservations.given_up.add(one.candidate.node.name)

    def started(self) -> Counter[str]:
        """By pool, how many until now."""
        return self._started.copy()
