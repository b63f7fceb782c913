"""How a reboot is carried through, from the claim that says ``Rebooting`` to the node that is back.

Everything stands in the cluster. ``Rebooting`` is True from the request on; our own condition
``RebootIssued`` has the two instants that time-outs count from: it becomes Unknown when the drain
is over, True when the cloud has accepted, and False when the reboot has failed for good. A reboot
that Karpenter has begun has no such condition: the reason of ``Rebooting`` says whether the cloud
has accepted, and a boot that is another than the noted one that it was asked.

1. request      a bound that cannot be read: failed, and the claim stays. Until the end of the
                drain it may be called off (``core/gates``), a recovery of the Node does not do so;
2. close        the Node is tainted, so that no new pod comes;
3. drain        pods are evicted as in any drain, never force deleted: until the bound is over;
                what is left then stays. A bound of zero: no pod is evicted;
4. note         which boot this is, and that the drain is over;
5. issue        the cloud is asked, with one and the same operation, for five minutes from the first
                call on; not while a pod there cannot be read, and that time does not count;
6. watch        ``Initialized`` waits, its label is off the Node, until there is another boot: then
                the taint goes. Ready as well: succeeded. Twenty minutes at the longest;
7. failure      is noted; what follows from it is ``decider``'s.

The deletion of the claim or the Node ends this (``decider``): the ordinary termination takes over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Action, Blocker, Concern, Reboot, Verdict
from tenure.core.facts import Fact, sentence
from tenure.core.gates.gatefacts import Blocked
from tenure.core.gates.gates import first_blocked
from tenure.core.gates.operations import Operation
from tenure.core.health.readiness import SPENT, was_ready
from tenure.core.marks.command import REASON_CONDITION
from tenure.core.marks.ownership import READY_ONCE, claim_status
from tenure.core.marks.reboot import (
    FAILED,
    ISSUED,
    PROVIDER_ERROR,
    REBOOTING,
    RECOVERY_TIMEOUT,
    SUCCEEDED,
    bound_of,
    call_off,
    is_called_off,
    is_issued,
    issued_at,
    mark_of,
    note_boot,
    requested_at,
)
from tenure.core.marks.taints import (
    is_closed_for_reboot,
    is_tainted_rebooting,
    taint_rebooting,
    untaint_rebooting,
)
from tenure.core.reasons import Reason
from tenure.core.reboot.facts import (
    AskingForReboot,
    ClosedForReboot,
    DrainedBeforeReboot,
    DrainOver,
    EmptyBeforeReboot,
    EvictedForReboot,
    InstanceRebooting,
    NodeRebooted,
    NotBackInTime,
    NotRebooted,
    NotRegistered,
    RebootAccepted,
    RebootInvalid,
    RebootNotAccepted,
    RebootNotIssued,
    RebootRefused,
    RebootUnreadable,
    RebootWithoutNode,
    ReplacedAfterFailure,
    StaysAfterFailure,
)
from tenure.core.reboot.view import RebootView
from tenure.core.terminate.node import blockers_of
from tenure.core.terminate.pods import DrainView, evaluate_pods, left_alone
from tenure.core.terminate.view import next_change, waiting_pods
from tenure.core.verdicts import say
from tenure.core.writes import as_evaluated, patch
from tenure.errors import SpecError
from tenure.model.api.meta import later
from tenure.model.api.names import INITIALIZED, REBOOT_PRE_BOOT_ID
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import RebootAnswer
from tenure.model.values.unreadable import UnreadableObject

#: How long the cloud is asked, from the first call on that left; delays of our own do not count.
ISSUE_MAX: Final = timedelta(minutes=5)
#: How long the node may take to be back, from when the cloud has accepted.
RECOVERY_MAX: Final = timedelta(minutes=20)
_NANOS: Final = 1_000_000_000
#: Boot ids are as long as a UUID; where one is longer, its digest stands for it.
_BOOT_ID_MAX: Final = 64


_say = partial(say, Concern.REBOOT)


class RebootSteps:
    """One claim that says ``Rebooting``, at one instant."""

    def __init__(self, view: RebootView, settings: Settings, now: datetime) -> None:
        self._view, self._claim, self._node = view, view.claim, view.node
        self._settings, self._now = settings, now
        self._since = requested_at(view.claim)
        self._mark = mark_of(view.claim)

    def verdicts(self) -> Iterator[Verdict]:
        if is_issued(self._claim):
            yield self._issued()
        elif self._mark is None and not self._rebooted():
            yield from self._requested()
        else:
            yield self._issuing()

    # -- until the drain is over -------------------------------------------------------

    def _requested(self) -> Iterator[Verdict]:
        blocked = self._blocked_by(Operation.REBOOT_UNDER_WAY)
        if blocked is not None or is_called_off(self._claim):
            yield self._called_off(blocked)
            return
        try:
            bound = bound_of(self._claim)
        except SpecError as error:
            yield self._invalid(RebootInvalid(str(error)))
            return
        if not self._claim.registered:
            yield self._invalid(NotRegistered(self._claim.name))
        elif self._node is None or self._view.drain is None:
            yield self._no_node(self._since)
        elif not is_closed_for_reboot(self._node):
            action, closed = taint_rebooting(self._node), ClosedForReboot(self._node.name)
            yield self._say(Reason.REBOOT_REQUESTED, closed, action=action)
        else:
            yield from self._drain(self._node, self._view.drain, bound)

    def _blocked_by(self, operation: Operation) -> Blocked | None:
        return first_blocked(operation, self._view.gates, self._settings, self._now)

    def _called_off(self, blocked: Blocked | None) -> Verdict:
        """Once that is written down it stays so, even if there is no reason for it any more."""
        why = blocked.facts if blocked is not None else ()
        facts = (*why, RebootNotIssued(self._claim.name))
        action = call_off(self._claim, sentence(facts))
        until = blocked.until if blocked is not None else None
        return self._say(Reason.REBOOT_CANCELLED, *facts, action=action, recheck_at=until)

    def _drain(self, node: Node, drain: DrainView, bound: timedelta | None) -> Iterator[Verdict]:
        settled = later(self._since, self._settings.drain_min)
        ends = None if bound is None else max(later(self._since, bound), settled)
        if bound == timedelta() or (ends is not None and self._now >= ends):
            if (why := self._view.unreadable) is not None:
                yield self._blocked(why)
                return
            staying = [item.pod.key for item in drain.pods if not left_alone(item.pod)]
            yield self._noted(node, tuple(staying), None)
            return
        waiting = waiting_pods(drain, self._settings, self._now)
        if waiting:
            pods = tuple(item.pod.key for item, _ in waiting)
            yield self._say(
                Reason.REBOOT_REQUESTED,
                DrainedBeforeReboot(node.name, pods, ends),
                recheck_at=_first(next_change(drain, waiting), ends),
                blockers=blockers_of(waiting),
            )
        elif self._now < settled:
            empty = EmptyBeforeReboot(node.name, settled)
            yield self._say(Reason.REBOOT_REQUESTED, empty, recheck_at=settled)
        else:
            yield self._noted(node, (), ends)
        yield from (
            _of_pod(verdict, node) for verdict in evaluate_pods(drain, self._settings, self._now)
        )

    def _noted(self, node: Node, left: tuple[str, ...], recheck_at: datetime | None) -> Verdict:
        """Which boot this is, on the claim; then that the drain is over."""
        boot_id = node.status.node_info.boot_id
        over = DrainOver(node.name, left)
        action: Action | None = None
        if self._claim.annotations.get(REBOOT_PRE_BOOT_ID) != boot_id:
            action = note_boot(self._claim, boot_id)
        else:
            action = claim_status(self._claim, Wanted(ISSUED, "Unknown", "Drained", str(over)))
            assert action is not None, "it is not said yet"
            # From here on it cannot be called off, so by the Node as it is right then.
            action = msgspec.structs.replace(action, precondition=as_evaluated(node))
        return self._say(Reason.REBOOT_REQUESTED, over, action=action, recheck_at=recheck_at)

    def _no_node(self, since: datetime) -> Verdict:
        due, over = later(since, ISSUE_MAX), self._now >= later(since, ISSUE_MAX)
        none = RebootWithoutNode(self._claim.name, len(self._view.nodes), due, over)
        if over:
            return self._failed(PROVIDER_ERROR, none)
        return self._say(Reason.REBOOT_REQUESTED, none, recheck_at=due)

    # -- until the cloud has accepted --------------------------------------------------

    def _issuing(self) -> Verdict:
        answer, operation = self._view.answer, _operation(self._claim, self._since)
        if answer is not None and answer.operation_id != operation:
            answer = None
        final = answer is not None and answer.failed_at is None
        if self._rebooted() or (answer is not None and final and not answer.refusal):
            accepted = RebootAccepted(self._claim.provider_id)
            action = self._accepted(str(accepted))
            return self._say(Reason.REBOOT_ISSUED, accepted, action=action)
        if answer is not None and final:
            return self._failed(PROVIDER_ERROR, RebootRefused(answer.refusal))
        if answer is not None and (why := _too_long(answer)) is not None:
            return self._failed(PROVIDER_ERROR, why)
        if self._node is None:
            return self._no_node(self._marked_at())
        if (odd := self._view.unreadable) is not None:
            return self._blocked(odd)
        failed = (answer.failure, later(answer.at, ISSUE_MAX)) if answer is not None else ("", None)
        asking = AskingForReboot(self._claim.provider_id, *failed)
        reboot = Reboot(
            provider_id=self._claim.provider_id,
            claim_uid=self._claim.uid,
            operation_id=operation,
            precondition=as_evaluated(self._claim),
        )
        return self._say(Reason.REBOOT_REQUESTED, asking, action=reboot)

    def _blocked(self, why: UnreadableObject) -> Verdict:
        return self._say(Reason.BLOCKED_BY_UNREADABLE, RebootUnreadable(why))

    def _accepted(self, message: str) -> Action | None:
        wanted = [
            Wanted(REBOOTING, "True", ISSUED, self._why()),
            Wanted(ISSUED, "True", ISSUED, message),
            Wanted("Initialized", "Unknown", REBOOTING, "the node is being rebooted"),
        ]
        # What else says so is about to go.
        if self._claim.initialized:
            wanted.append(Wanted(READY_ONCE, "True", SPENT))
        elif was_ready(self._claim, self._node) and not self._claim.ready_once:
            wanted.append(Wanted(READY_ONCE, "True", "NodeReady"))
        return claim_status(self._claim, *wanted)

    # -- until it is back --------------------------------------------------------------

    def _issued(self) -> Verdict:
        due = later(issued_at(self._claim), RECOVERY_MAX)
        node = self._node
        if node is not None and self._rebooted(noted=False):
            seen = NodeRebooted(node.name, node.status.node_info.boot_id)
            if (opening := _open(node)) is not None:
                at = self._ahead(due)
                return self._say(Reason.REBOOT_OBSERVED, seen, action=opening, recheck_at=at)
            if node.ready:
                return self._succeeded(msgspec.structs.replace(seen, ready=True))
            if self._now < due:
                seen = msgspec.structs.replace(seen, until=due)
                return self._say(Reason.REBOOT_OBSERVED, seen, recheck_at=due)
        if self._now >= due:
            return self._failed(RECOVERY_TIMEOUT, NotBackInTime(due))
        rebooting = InstanceRebooting(self._claim.provider_id, due)
        unready = _uninitialized(node) if node is not None else None
        return self._say(Reason.REBOOT_ISSUED, rebooting, action=unready, recheck_at=due)

    def _succeeded(self, seen: NodeRebooted) -> Verdict:
        action = claim_status(
            self._claim,
            Wanted(REBOOTING, "False", SUCCEEDED, self._why()),
            drop=(ISSUED, REASON_CONDITION),
        )
        return self._say(Reason.REBOOT_SUCCEEDED, seen, action=action)

    # -- how it fails ------------------------------------------------------------------

    def _failed(self, result: str, why: Fact) -> Verdict:
        action = claim_status(
            self._claim,
            Wanted(REBOOTING, "False", FAILED, str(why)),
            Wanted(ISSUED, "False", result, str(why)),
        )
        blocked = self._blocked_by(Operation.REBOOT_FAILED)
        if blocked is not None:
            facts = (why, *blocked.facts, StaysAfterFailure(self._claim.name))
            until = blocked.until
            return self._say(Reason.REBOOT_FAILED, *facts, action=action, recheck_at=until)
        replaced = ReplacedAfterFailure(self._claim.name)
        return self._say(Reason.REBOOT_FAILED, why, replaced, action=action)

    def _invalid(self, why: Fact) -> Verdict:
        action = claim_status(
            self._claim,
            Wanted(REBOOTING, "False", FAILED, str(why)),
            drop=(ISSUED, REASON_CONDITION),
        )
        return self._say(Reason.REBOOT_FAILED, why, NotRebooted(), action=action)

    # -- small things ------------------------------------------------------------------

    def _rebooted(self, *, noted: bool = True) -> bool:
        """``noted``: only if it is known which boot it had; Karpenter notes none that is empty."""
        before = self._claim.annotations.get(REBOOT_PRE_BOOT_ID, None if noted else "")
        if self._node is None or before is None:
            return False
        return self._node.status.node_info.boot_id not in ("", before)

    def _marked_at(self) -> datetime:
        at = self._mark.last_transition_time if self._mark is not None else None
        return at if at is not None else self._since

    def _ahead(self, at: datetime) -> datetime | None:
        return at if at > self._now else None

    def _why(self) -> str:
        """What is said of the request stays: it names the condition that asked for it."""
        condition = self._claim.condition(REBOOTING)
        return condition.message if condition is not None else ""

    def _say(
        self,
        reason: Reason,
        *facts: Fact,
        action: Action | None = None,
        recheck_at: datetime | None = None,
        blockers: tuple[Blocker, ...] = (),
    ) -> Verdict:
        return _say(
            self._claim, reason, *facts, action=action, recheck_at=recheck_at, blockers=blockers
        )


def _of_pod(verdict: Verdict, node: Node) -> Verdict:
    facts = verdict.facts
    if verdict.reason is Reason.EVICTING:
        facts = (EvictedForReboot(node.name),)
    return msgspec.structs.replace(verdict, concern=Concern.REBOOT, facts=facts)


# -- writes --------------------------------------------------------------------------------


def _operation(claim: NodeClaim, since: datetime) -> str:
    """The same for every try of one reboot, and for no other: as Karpenter writes it, so that a
    reboot which it has asked for is not done twice."""
    before = claim.annotations.get(REBOOT_PRE_BOOT_ID, "")
    if len(before) > _BOOT_ID_MAX:
        before = hashlib.sha256(before.encode()).hexdigest()[:32]
    return f"{claim.uid}-{int(since.timestamp()) * _NANOS}-{before}"


def _too_long(answer: RebootAnswer) -> RebootNotAccepted | None:
    """Why it is not asked for any more; None while it is. By calls that left, so that nothing is
    given up because of delays of our own."""
    if answer.failed_at is None or answer.failed_at < later(answer.at, ISSUE_MAX):
        return None
    return RebootNotAccepted(answer.at, answer.failed_at, answer.failure)


def _open(node: Node) -> Action | None:
    """Takes pods again; whether it is initialized is found out anew."""
    if is_tainted_rebooting(node):
        return untaint_rebooting(node, {"labels": {INITIALIZED: None}})
    return _uninitialized(node)


def _uninitialized(node: Node) -> Action | None:
    if INITIALIZED not in node.labels:
        return None
    return patch(node, {"labels": {INITIALIZED: None}})


def _first(*instants: datetime | None) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)
