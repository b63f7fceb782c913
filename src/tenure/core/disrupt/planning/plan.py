"""Plan the disruption of candidates: from their gates to the marks on their claims.

Of each candidate, the first of these that applies:

1. gates       the one that blocks it longest, with all that block and until when. A node that several methods
               want is disrupted by the first of them that no gate blocks;
   group       candidates that are replaced together go on together: what keeps back one of them
               keeps back all, and their budgets count all;
2. reboot      where that is what it needs: committed on the claim, and ``reboot`` carries it out;
   expiration  with ``expirationPolicy: Always``: the claim is deleted;
3. turn        one command is planned at a time, so that no capacity is counted on twice; nodes
               without reschedulable pods need none, and do not wait;
4. capacity    a pod of the node fits nowhere: why not, pool by pool. One of the last gates; the other
               is a window that closes before its replacements can be initialized;
   rejected    its method does not take the plan: what it launches is not cheaper, for example;
5. launch      its pods need new nodes: their claims are created, each marked as a replacement;
6. record      a budget of the pool counts starts: the start is recorded there before it happens;
7. commit      everything its pods need exists: the claim is marked with its replacements.

The plan is made again until it is committed, on all claims of a group, and counts what exists: so a
crash between any two of these writes loses nothing and doubles nothing. A group that is committed in
part, and cannot be committed on the others now, is rolled back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from tenure.core.decision import Concern, Verdict
from tenure.core.disrupt.candidates import Wanted
from tenure.core.disrupt.facts.groups import NoCandidateTogether, WaitsTogether
from tenure.core.disrupt.facts.planning import PlannedFirst
from tenure.core.disrupt.passes import Pass
from tenure.core.disrupt.planning.gating import Gating, Way
from tenure.core.disrupt.planning.recording import Recording
from tenure.core.disrupt.planning.together import Commands, Said, Together
from tenure.core.disrupt.planning.unfinished import (
    UnfinishedGroup,
    roll_back_unfinished,
    waits_until,
)
from tenure.core.disrupt.planning.withoutreplacement import expire, reboot
from tenure.core.facts import Fact
from tenure.core.gates.operations import Operation
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, no_later, say

_WITHOUT_REPLACEMENT: Final = frozenset(
    {Operation.REBOOT, Operation.FORCEFUL_REBOOT, Operation.EXPIRATION}
)

_say = partial(say, Concern.DISRUPTION)


class Planner:
    """All candidates of one pass, one after the other."""

    def __init__(
        self,
        shared: Pass,
        gating: Gating,
        recording: Recording,
        unfinished: Sequence[UnfinishedGroup],
        unwanted: Mapping[str, Fact],
    ) -> None:
        """``unwanted``: by claim of these groups, why it is no candidate any more."""
        self._shared, self._gating, self._recording = shared, gating, recording
        self._now = shared.now
        self._commands = Commands(shared, gating, recording)
        self._unfinished = {one.group: one for one in unfinished}
        #: By claim: those that no gate blocks, until something is said of them.
        self._free: dict[str, tuple[Wanted, Way]] = {}
        #: By claim: why a gate blocks it, and when that may differ.
        self._blocked: dict[str, tuple[Fact, datetime | None]] = {
            name: (why, None) for name, why in unwanted.items()
        }
        #: Why groups are not planned now, and whether that passes by itself; None: they are.
        self._kept_back: dict[tuple[str, ...], tuple[Fact | None, bool]] = {}

    def verdicts(self, wanted: Iterable[Wanted]) -> Said:
        """On each candidate, the most urgent first; nothing where it is said later.

        A gate that blocks before anything is started still does so afterwards.
        """
        for one in sorted(wanted, key=lambda one: one.sort_key):
            found = self._gating.first_way(one)
            if found[0] is None:
                yield one, self._all_blocked(one, found[1])
            else:
                self._free[one.claim.name] = (one, found)
                yield one, ()
        before = self._gating.started()
        for one, found in list(self._free.values()):
            if one.claim.name not in self._free:
                continue  # It was planned with others.
            way, blocked = self._gating.still_first_way(one, found, before)
            if way is None:
                yield one, self._all_blocked(one, blocked)
                continue
            instants = [other.recheck_at for other in blocked]
            for member, said in self._unblocked(way, before):
                yield member, tuple(no_later(verdict, *instants) for verdict in said)

    def _all_blocked(self, one: Wanted, blocked: Sequence[Verdict]) -> Sequence[Verdict]:
        verdict = no_later(blocked[0], *(other.recheck_at for other in blocked))
        facts = blocked[0].facts[len(one.candidate.why) :]
        self._blocked[one.claim.name] = WaitsTogether(one.claim.name, facts), verdict.recheck_at
        self._free.pop(one.claim.name, None)
        return verdict, also_of(one.candidate.node, verdict)

    def _unblocked(self, way: Wanted, before: Counter[str]) -> Said:
        if way.candidate.operation in _WITHOUT_REPLACEMENT:
            verdict = self._recording.waits(way) or self._without_replacement(way)
            yield way, (verdict, also_of(way.candidate.node, verdict))
            return
        names = way.candidate.group
        ways = self._members(way, before) if len(names) > 1 else [way]
        for one in ways:
            self._free.pop(one.claim.name, None)
        unfinished = self._unfinished.get(names)
        group = Together(ways, unfinished.begun if unfinished is not None else (), self._shared)
        if missing := sorted(set(names) - set(group.names)):
            yield from group.all_wait(self._without(missing[0], group))
            group.kept_back = self._why_without(missing[0], group.reason)[0]
        elif waits := self._waiting(group):
            yield from group.all_wait(waits)
        elif turn := self._turn(group):
            yield from group.all_wait(turn, passing=True)
        else:
            yield from self._commands.verdicts(group)
        self._kept_back[names] = group.kept_back, group.passing

    def _without_replacement(self, way: Wanted) -> Verdict:
        if way.candidate.operation is Operation.EXPIRATION:
            return expire(way, self._gating)
        return reboot(way, self._gating, self._recording.record, self._now)

    def _members(self, way: Wanted, before: Counter[str]) -> list[Wanted]:
        """The candidates that it is replaced together with, itself included."""
        found = [way]
        for name in way.candidate.group:
            if name == way.claim.name or name not in self._free:
                continue
            other, _ = self._gating.still_first_way(*self._free[name], before)
            same = other is not None and other.method is way.method
            if other is not None and same and other.candidate.group == way.candidate.group:
                found.append(other)
        return sorted(found, key=lambda one: one.claim.name)

    def _without(self, missing: str, group: Together) -> dict[str, Verdict]:
        """Where a gate blocks one of them, or it is no candidate now."""
        return _all_say(group, *self._why_without(missing, group.reason))

    def _why_without(self, missing: str, reason: str) -> tuple[Fact, datetime | None]:
        none: Fact = NoCandidateTogether(missing, reason)
        return self._blocked.get(missing, (none, None))

    def _waiting(self, group: Together) -> dict[str, Verdict]:
        """By claim: a budget that has not enough for all, or a start that cannot be recorded now."""
        if len(group.ways) > 1:
            over = self._gating.first_blocked_together(group.ways)
            if over is not None:
                return {over[0].claim.name: over[1]}
        found: dict[str, Verdict] = {}
        before: Counter[str] = Counter()
        for one in group.ways:
            verdict = self._recording.waits(one, before[one.pool.pool.name])
            before[one.pool.pool.name] += 1
            if verdict is not None:  # A plan would keep others waiting, and come to nothing.
                found[one.claim.name] = verdict
        return found

    def _turn(self, group: Together) -> dict[str, Verdict]:
        if group.empty or not self._commands.planned:
            return {}
        return _all_say(group, PlannedFirst(self._commands.planned), None)

    def rolled_back(self) -> Iterator[Verdict]:
        """On the claims of groups that are committed in part, and cannot be on the others now."""
        for names, group in self._unfinished.items():
            why, passing = self._kept_back.get(names, (self._unwanted(group), False))
            until = waits_until(group, self._now)
            if why is not None and passing and self._now < until:
                for one in group.missing:
                    self._gating.ask_again(one.claim.pool_name, until)
            elif why is not None:
                yield from roll_back_unfinished(group, why, self._shared)

    def _unwanted(self, group: UnfinishedGroup) -> Fact:
        """Why none of the others could be planned."""
        reason = group.begun[0].under_way.command.reason
        return self._why_without(group.missing[0].claim.name, reason)[0]

    @property
    def has_planned(self) -> bool:
        """Whether pods of a node were planned for in this pass: they may count on any capacity."""
        return bool(self._commands.planned)


def _all_say(group: Together, fact: Fact, at: datetime | None) -> dict[str, Verdict]:
    return {
        one.claim.name: _say(
            one.claim, Reason.DISRUPTION_WAITS, *one.candidate.why, fact, recheck_at=at
        )
        for one in group.ways
    }
