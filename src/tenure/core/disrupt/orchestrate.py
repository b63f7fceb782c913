"""Wait until the replacements of a command are initialized, or roll the command back.

Of each claim with a command, the first of these that applies:

1. rolled back  its method no longer wants it, a user has closed a gate, or its Node or claim cannot be
                marked, because the API server refuses that: the marks are taken off;
2. failed       a replacement does not come up (``replacements``): the marks are taken off, and the
                failure is noted, in one write;
3. stale        a deadline is stamped on it: taken off, because it is not being deleted yet. The
                stamp that it goes with is written once all its replacements are initialized;
4. marked       its Node is tainted, so that no new pod comes, and the claim says why;
5. waiting      for which replacements, and until when. Once all of them are initialized,
                ``execute`` asks the gates again and terminates the node.

Claims that are replaced together are rolled back together: what ends the command of one ends that of
each. Until all of them are committed, none is marked further (``planning``).

A taint or a ``DisruptionReason`` without a command is taken off: so the old node is as it was
after a roll back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from tenure.core.decision import Action, CommandCount, Concern, Decision, Patch, Subject, Verdict
from tenure.core.disrupt.facts.commands import (
    NodeClosed,
    ReplacementsAwaited,
    ReplacementsInitialized,
    RolledBack,
    RollsBackAt,
    StaysUntilReplaced,
)
from tenure.core.disrupt.facts.groups import CommitsAwaited, NotReplacedTogether, ReplacedTogether
from tenure.core.disrupt.facts.planning import StartRefused
from tenure.core.disrupt.method import Methods, UnderWay, is_readable
from tenure.core.disrupt.methods import METHODS
from tenure.core.disrupt.replacements import (
    awaited,
    fail_instants,
    failure_of,
    failures_of,
    roll_back_failed,
)
from tenure.core.disrupt.surroundings import IN_CHARGE, Surroundings
from tenure.core.facts import Fact
from tenure.core.marks.command import (
    Command,
    command_of,
    group_names,
    is_marked,
    is_replaced,
    left_over,
    mark_next,
    replaced_uids,
    roll_back,
)
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.ownership import claims_touched, is_ours
from tenure.core.marks.stamp import stale_stamp, take_off_stamp
from tenure.core.provision.placement import BATCH
from tenure.core.reasons import Reason
from tenure.core.verdicts import also_of, say
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    CRDS,
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable

_say = partial(say, Concern.REPLACEMENT)
#: Changes of windows and budgets that are asked ahead for one that ends the command.
_CHANGES_ASKED: Final = 4


class StandsStill(msgspec.Struct, frozen=True):
    """A command that nothing is done about now."""

    claim: NodeClaim
    why: Fact


class ReplacementDecider:
    concern = Concern.REPLACEMENT

    def __init__(self, methods: Methods = METHODS, surroundings: Surroundings = IN_CHARGE) -> None:
        self._methods, self._surroundings = methods, surroundings

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        found = set(self._touched(change, snapshot))
        if snapshot.replacing_claims():
            uids = {snapshot.claims[name].uid for name in found if name in snapshot.claims}
            if change.resource == NODE_CLAIMS:
                uids |= {claim.uid for claim in change.versions()}
            found |= group_names(uids, snapshot)
        return found

    def _touched(self, change: Change, snapshot: Snapshot) -> Iterator[str]:
        yield from claims_touched(change, snapshot)
        if change.resource == NODE_CLAIMS:
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                for uid in replaced_uids(claim):
                    yield from snapshot.claims_with_uid(uid)
        elif change.resource == NODE_POOLS:
            # A mark that is left over stays while the pool cannot be read.
            kinds = {is_unreadable(version) for version in (change.old, change.new)}
            for name, claim in snapshot.claims_of_pool(change.key).items():
                if is_replaced(claim) or len(kinds) > 1:
                    yield name
        elif change.resource in (MAINTENANCE_WINDOWS, POD_DISRUPTION_BUDGETS, DEPLOYMENTS, CRDS):
            yield from snapshot.replaced_claims()
        elif change.resource == PODS:
            yield from _commands_on(change.versions(), snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.replaced_claims() if subject == BATCH else ()

    def view(self, snapshot: Snapshot, key: str) -> UnderWay | StandsStill | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_interrupted(claim):
            return None  # An interrupted one is about to be deleted, and has marks of its own.
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        if not is_marked(claim, nodes.values()) or not is_ours(claim, snapshot):
            return None
        if (why := self._surroundings.stands_still(snapshot)) is not None:
            return StandsStill(claim, why) if is_replaced(claim) else None
        command = command_of(claim, snapshot)
        return (
            self._methods.under_way(command, snapshot) if is_readable(command, snapshot) else None
        )

    def decide(
        self, view: UnderWay | StandsStill, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        if isinstance(view, StandsStill):
            return (_say(view.claim, Reason.LEVER_WAITS, view.why),)
        claim, node = view.command.claim, view.command.node
        if not is_replaced(claim):
            # Beside Karpenter a taint or a condition is Karpenter's.
            return () if settings.beside_karpenter else tuple(_without_command(view))
        verdict = _Progress(view, self._methods, settings, now).next_step()
        return (verdict,) if node is None else (verdict, also_of(node, verdict))


def _commands_on(pods: Iterable[Any], snapshot: Snapshot) -> Iterator[str]:
    """Claims with a command whose nodes these pods are on."""
    for pod in pods:
        assert isinstance(pod, Pod)
        if pod.spec.node_name == UNKNOWN:
            yield from snapshot.replaced_claims()
        elif (node := snapshot.nodes.get(pod.spec.node_name)) is not None:
            claims = snapshot.claims_with_provider(node.spec.provider_id)
            yield from (name for name, claim in claims.items() if is_replaced(claim))


def _without_command(view: UnderWay) -> Iterable[Verdict]:
    claim = view.command.claim
    if claim.rebooting:
        return  # Its reason is that of the reboot.
    if (found := left_over(claim, view.command.node)) is not None:
        what, action = found
        yield _say(claim, Reason.DISRUPTION_FORGOTTEN, what, action=action)


class _Progress:
    """One command, at one instant."""

    def __init__(self, view: UnderWay, methods: Methods, settings: Settings, now: datetime) -> None:
        self._command, self._claim = view.command, view.command.claim
        self._members, self._now = (view, *view.others), now
        self._beside = settings.beside_karpenter
        self._validated = partial(methods.validate, view, settings)
        self._validation = self._validated(now)
        gates_change_at = self._validation.gates_change_at
        retried = [one.retry_at for member in self._members for one in member.refused.values()]
        late = [at for one in self._members for at in fail_instants(one.command)]
        instants = (*late, *methods.instants(view), *retried, gates_change_at)
        self._recheck_at = min((at for at in instants if at and at > now), default=None)

    def next_step(self) -> Verdict:
        claim, command = self._claim, self._command
        if unwanted := self._validation.unwanted:
            facts, action = (*unwanted, self._rolled_back()), roll_back(claim)
            return self._say(Reason.DISRUPTION_CANCELLED, *facts, action=action)
        failures = (failure_of(one.command, self._now) for one in self._members)
        if (why := next(filter(None, failures), None)) is not None:
            return self._failed(why)
        complete = all(one.command.complete for one in self._members)
        if claim.termination_stamp is not None and not (complete and not command.uncommitted):
            stale, stays = stale_stamp(claim), StaysUntilReplaced()
            return self._say(Reason.STALE_DEADLINE, stale, stays, action=self._no_stamp())
        if (refused := self._refused()) is not None:
            facts, action = (refused, self._rolled_back()), roll_back(claim)
            return self._say(Reason.DISRUPTION_CANCELLED, *facts, action=action)
        mark = self._mark_next(command)
        return self._say(Reason.REPLACING, *self._progress(), action=mark)

    def _no_stamp(self) -> Patch:
        return take_off_stamp(self._claim, beside=self._beside)

    def _mark_next(self, command: Command) -> Patch | None:
        return None if command.uncommitted or self._beside else mark_next(command)

    def _refused(self) -> Fact | None:
        """A mark that the API server refuses: its own, or that of another command of its group."""
        for member in self._members:
            mark = self._mark_next(member.command)
            why = self._refusal(mark, member)
            if why is not None and member.command is self._command:
                return why
            if why is not None:
                return NotReplacedTogether(member.command.claim.name, (why,))
        return None

    def _refusal(self, mark: Patch | None, member: UnderWay) -> Fact | None:
        """Of a mark without which it cannot go on; the plan waits before it is tried again."""
        refusal = member.refused.get(mark.uid) if mark is not None else None
        if mark is None or refusal is None or refusal.retry_at <= self._now:
            return None
        if refusal.subresource != mark.subresource:
            return None
        return StartRefused(mark.resource.kind, mark.name, refusal.message)

    def _failed(self, why: Fact) -> Verdict:
        forgotten_at = failures_of(self._claim).forgotten_at
        in_a_row = forgotten_at is not None and self._now < forgotten_at
        facts = (why, self._rolled_back(retried=True))
        verdict = self._say(
            Reason.REPLACEMENT_FAILED, *facts, action=roll_back_failed(self._claim, self._now)
        )
        instants = (forgotten_at if in_a_row else None, self._validation.gates_change_at)
        recheck_at = min((at for at in instants if at is not None), default=None)
        if self._claim.name != self._command.group[0]:  # Counted once.
            return msgspec.structs.replace(verdict, recheck_at=recheck_at)
        up = (one is not None and one.initialized for _, one in self._command.replacements)
        failed = max(sum(not one for one in up), 1)
        count = CommandCount(reason=self._command.reason, decision=Decision.REPLACE, failed=failed)
        return msgspec.structs.replace(verdict, recheck_at=recheck_at, command=count)

    def _progress(self) -> Iterator[Fact]:
        if len(self._command.group) > 1:
            yield ReplacedTogether(tuple(one.name for one in self._command.others))
        if missing := self._command.uncommitted:
            yield CommitsAwaited(missing)
            return
        found = {name: until for one in self._members for name, until in awaited(one.command)}
        if waiting := tuple(found.items()):
            yield ReplacementsAwaited(waiting, self._command.reason)
            yield from self._rolls_back_at(waiting)
            return
        assert self._command.node is not None, "else it is rolled back"
        yield ReplacementsInitialized(tuple(self._command.names))
        if not self._beside:
            yield NodeClosed(self._command.node.name)

    def _rolls_back_at(self, waiting: Sequence[tuple[str, datetime | None]]) -> Iterator[Fact]:
        """When a gate closes although nothing changes, if the replacements have time until then."""
        at = self._validation.gates_change_at
        for _ in range(_CHANGES_ASKED):
            if at is None or any(until is not None and until <= at for _, until in waiting):
                return
            then = self._validated(at)
            if then.unwanted:
                yield RollsBackAt(at, then.unwanted)
                return
            at = then.gates_change_at

    def _rolled_back(self, *, retried: bool = False) -> Fact:
        node = self._command.node
        return RolledBack(node.name if node is not None else "", retried)

    def _say(self, reason: Reason, *facts: Fact, action: Action | None) -> Verdict:
        return _say(self._claim, reason, *facts, action=action, recheck_at=self._recheck_at)
