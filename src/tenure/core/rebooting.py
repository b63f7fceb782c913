"""Carry a reboot through, from the claim that says ``Rebooting`` to the node that is back.

Everything stands in the cluster. ``Rebooting`` is True from the request on; our own condition
``RebootIssued`` has the two instants that time-outs count from: it becomes Unknown when the drain
is over, True when the cloud has accepted, and False when the reboot has failed for good.

1. request      a bound that cannot be read: failed, and the claim stays;
2. close        the Node is tainted, so that nobody new comes;
3. drain        pods are asked to leave as in any drain, never forced: until the bound is over;
                whoever is left then stays. A bound of nothing: nobody is asked;
4. note         which boot this is, and that the drain is over;
5. issue        the cloud is asked, with one and the same operation, for five minutes;
6. watch        ``Initialized`` waits, its label is off the Node, until there is another boot: then
                the taint goes. Ready as well: succeeded. Twenty minutes at the longest;
7. failure      the taint goes, the claim is deleted, and its drain has the reboot's bound.

Whoever deletes the claim or the Node meanwhile ends this: the ordinary end takes over. What a
reboot has left behind on a claim that is not rebooting is taken off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from tenure.core.claims import claim_status, is_ours
from tenure.core.conditions import Wanted
from tenure.core.deadline import deadline_of
from tenure.core.decision import Action, Blocker, Concern, Reboot, Subject, Verdict, Witness
from tenure.core.drain import drain_until
from tenure.core.leaving import next_change, waiting_pods
from tenure.core.leavingnode import blockers_of, some
from tenure.core.leavingpods import DrainView, judge_pods, left_alone
from tenure.core.readiness import READY_ONCE, SPENT, was_ready
from tenure.core.reasons import Reason
from tenure.core.reboots import (
    DISRUPTION_REASON,
    FAILED,
    ISSUED,
    PROVIDER_ERROR,
    REBOOTING,
    RECOVERY_TIMEOUT,
    SUCCEEDED,
    bound_of,
    has_failed,
    mark_of,
    requested_at,
)
from tenure.core.writes import delete_claim, patch, subject_of
from tenure.errors import SpecError
from tenure.model.meta import format_time
from tenure.model.names import (
    INITIALIZED,
    REBOOT_PRE_BOOT_ID,
    REBOOTING_TAINT,
    TERMINATION_TIMESTAMP,
)
from tenure.model.node import Node, Taint
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import RebootAnswer
from tenure.model.pod import Pod
from tenure.model.resource import (
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot

#: How long the cloud is asked, from the end of the drain on.
ISSUE_MAX: Final = timedelta(minutes=5)
#: How long the node may take to be back, from when the cloud has accepted.
RECOVERY_MAX: Final = timedelta(minutes=20)
#: Boot ids are as long as a UUID; where one is longer, its digest stands for it.
_BOOT_ID_MAX: Final = 64


class RebootView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    #: The pods of the Node, as long as they are asked to leave.
    drain: DrainView | None = None
    answer: RebootAnswer | None = None

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None


class RebootDecider:
    concern = Concern.REBOOT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                yield from snapshot.claims_with_provider(node.spec.provider_id)
        elif change.resource == PODS:
            for pod in change.versions():
                assert isinstance(pod, Pod)
                yield from _rebooting_with(pod, snapshot)
        elif change.resource in (POD_DISRUPTION_BUDGETS, NODE_POOLS):
            yield from snapshot.rebooting_claims()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_CLAIMS.kind:
            yield subject.name
        elif subject.kind == PODS.kind:
            pod = snapshot.pods.get(f"{subject.namespace}/{subject.name}")
            yield from _rebooting_with(pod, snapshot) if pod is not None else ()

    def view(self, snapshot: Snapshot, key: str) -> RebootView | None:
        claim = snapshot.claims.get(key)
        if claim is None or not is_ours(claim, snapshot):
            return None
        found = snapshot.nodes_with_provider(claim.provider_id)
        nodes = tuple(found[name] for name in sorted(found))
        if any(node.deleting for node in nodes) or not _concerned(claim, nodes):
            return None
        if len(snapshot.claims_with_provider(claim.provider_id)) > 1:
            nodes = ()  # Whose they are, nobody knows.
        drained = not claim.rebooting or mark_of(claim) is not None
        return RebootView(
            claim=claim,
            nodes=nodes,
            drain=None if drained or len(nodes) != 1 else drain_until(nodes[0], None, snapshot),
            answer=snapshot.observations.reboots.get(claim.uid) if claim.rebooting else None,
        )

    def decide(self, view: RebootView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        if view.claim.rebooting:
            return list(_Reboot(view, settings, now).verdicts())
        verdict = _ended(view)
        return (verdict,) if verdict is not None else ()


def _rebooting_with(pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    """The rebooting claim whose Node the pod is on."""
    if not snapshot.rebooting_claims():
        return  # Nearly always, and pods change all the time.
    if (node := snapshot.nodes.get(pod.spec.node_name)) is not None:
        claims = snapshot.claims_with_provider(node.spec.provider_id)
        yield from (name for name, claim in claims.items() if claim.rebooting)


def _concerned(claim: NodeClaim, nodes: Sequence[Node]) -> bool:
    if claim.deleting:
        return has_failed(claim)
    if claim.rebooting or has_failed(claim) or REBOOT_PRE_BOOT_ID in claim.annotations:
        return True
    return any(node.has_taint(REBOOTING_TAINT) for node in nodes)


# -- while it reboots ----------------------------------------------------------------------


class _Reboot:
    """One claim that says ``Rebooting``, at one instant."""

    def __init__(self, view: RebootView, settings: Settings, now: datetime) -> None:
        self._view, self._claim, self._node = view, view.claim, view.node
        self._settings, self._now = settings, now
        self._since = requested_at(view.claim)
        self._mark = mark_of(view.claim)

    def verdicts(self) -> Iterator[Verdict]:
        match self._mark.status if self._mark is not None else "":
            case "":
                yield from self._requested()
            case "True":
                yield self._issued()
            case _:
                yield self._issuing()

    # -- until the drain is over -------------------------------------------------------

    def _requested(self) -> Iterator[Verdict]:
        try:
            bound = bound_of(self._claim)
        except SpecError as error:
            yield self._invalid(str(error))
            return
        if not self._claim.registered:
            yield self._invalid("it has no Node that could be rebooted")
        elif self._node is None or self._view.drain is None:
            yield self._no_node()
        elif not self._node.has_taint(REBOOTING_TAINT, "NoSchedule"):
            message = f"Node {self._node.name} is closed for new pods before it is rebooted"
            yield self._say(Reason.REBOOT_REQUESTED, message, _close(self._node))
        else:
            yield from self._drain(self._node, self._view.drain, bound)

    def _drain(self, node: Node, drain: DrainView, bound: timedelta | None) -> Iterator[Verdict]:
        settled = self._since + self._settings.drain_min
        ends = None if bound is None else max(self._since + bound, settled)
        if bound == timedelta() or (ends is not None and self._now >= ends):
            staying = [item.pod.key for item in drain.pods if not left_alone(item.pod)]
            yield self._noted(node, staying, None)
            return
        waiting = waiting_pods(drain, self._settings, self._now)
        if waiting:
            until = f", until {format_time(ends)} at the longest" if ends is not None else ""
            held = some(item.pod.key for item, _ in waiting)
            yield self._say(
                Reason.REBOOT_REQUESTED,
                f"Node {node.name} is drained before it is rebooted{until}; waiting for {held}",
                recheck_at=_first(next_change(drain, waiting), ends),
                blockers=blockers_of(waiting),
            )
        elif self._now < settled:
            message = f"Node {node.name} is empty; it is rebooted at {format_time(settled)}"
            yield self._say(Reason.REBOOT_REQUESTED, message, recheck_at=settled)
        else:
            yield self._noted(node, [], ends)
        yield from (
            _of_pod(verdict, node) for verdict in judge_pods(drain, self._settings, self._now)
        )

    def _noted(self, node: Node, left: list[str], recheck_at: datetime | None) -> Verdict:
        """Which boot this is, on the claim; then that the drain is over."""
        boot_id = node.status.node_info.boot_id
        message = f"the drain of Node {node.name} is over"
        message += f"; left, and taken along: {some(left)}" if left else ""
        action: Action | None = None
        if self._claim.annotations.get(REBOOT_PRE_BOOT_ID) != boot_id:
            action = patch(self._claim, {"annotations": {REBOOT_PRE_BOOT_ID: boot_id}})
        else:
            action = claim_status(self._claim, Wanted(ISSUED, "Unknown", "Drained", message))
        return self._say(Reason.REBOOT_REQUESTED, message, action, recheck_at)

    def _no_node(self) -> Verdict:
        due = self._since + ISSUE_MAX
        message = "it has no Node any more, or several"
        if self._now >= due:
            return self._failed(PROVIDER_ERROR, f"{message}; waited until {format_time(due)}")
        message = f"{message}; given up at {format_time(due)}"
        return self._say(Reason.REBOOT_REQUESTED, message, recheck_at=due)

    # -- until the cloud has accepted --------------------------------------------------

    def _issuing(self) -> Verdict:
        due = self._marked_at() + ISSUE_MAX
        answer, operation = self._view.answer, _operation(self._claim, self._since)
        if answer is not None and answer.operation_id != operation:
            answer = None
        if self._rebooted() or (answer is not None and not answer.refusal):
            message = f"the cloud has accepted that {self._claim.provider_id} is rebooted"
            return self._say(Reason.REBOOT_ISSUED, message, self._accepted(message))
        if answer is not None:
            return self._failed(PROVIDER_ERROR, f"the cloud will not: {answer.refusal}")
        if self._now >= due:
            message = f"the cloud has not accepted it until {format_time(due)}"
            return self._failed(PROVIDER_ERROR, message)
        until = f"until {format_time(due)} at the longest"
        if self._node is None:
            message = f"it has no Node any more, or several; waited for {until}"
            return self._say(Reason.REBOOT_REQUESTED, message, recheck_at=due)
        message = f"asking the cloud to reboot {self._claim.provider_id}, {until}"
        action = Reboot(
            provider_id=self._claim.provider_id,
            claim_uid=self._claim.uid,
            operation_id=operation,
            witness=_as_judged(self._claim),
        )
        return self._say(Reason.REBOOT_REQUESTED, message, action, due)

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
        due = self._marked_at() + RECOVERY_MAX
        node = self._node
        back = f"it has to be back by {format_time(due)}"
        if node is not None and self._rebooted():
            seen = f"Node {node.name} has rebooted: boot {node.status.node_info.boot_id}"
            if (opening := _open(node)) is not None:
                return self._say(Reason.REBOOT_OBSERVED, seen, opening, self._ahead(due))
            if node.ready:
                return self._succeeded(seen)
            if self._now < due:
                message = f"{seen}; not Ready yet, {back}"
                return self._say(Reason.REBOOT_OBSERVED, message, recheck_at=due)
        if self._now >= due:
            return self._failed(RECOVERY_TIMEOUT, f"the node was not back by {format_time(due)}")
        message = f"{self._claim.provider_id} is being rebooted; {back}"
        unready = _uninitialized(node) if node is not None else None
        return self._say(Reason.REBOOT_ISSUED, message, unready, due)

    def _succeeded(self, seen: str) -> Verdict:
        action = claim_status(
            self._claim,
            Wanted(REBOOTING, "False", SUCCEEDED, self._why()),
            drop=(ISSUED, DISRUPTION_REASON),
        )
        return self._say(Reason.REBOOT_SUCCEEDED, f"{seen}, and is Ready", action)

    # -- how it fails ------------------------------------------------------------------

    def _failed(self, result: str, why: str) -> Verdict:
        action = claim_status(
            self._claim,
            Wanted(REBOOTING, "False", FAILED, why),
            Wanted(ISSUED, "False", result, why),
        )
        return self._say(Reason.REBOOT_FAILED, f"{why}; it is replaced", action)

    def _invalid(self, why: str) -> Verdict:
        action = claim_status(
            self._claim,
            Wanted(REBOOTING, "False", FAILED, why),
            drop=(ISSUED, DISRUPTION_REASON),
        )
        return self._say(Reason.REBOOT_FAILED, f"{why}; it is not rebooted, and stays", action)

    # -- small things ------------------------------------------------------------------

    def _rebooted(self) -> bool:
        before = self._claim.annotations.get(REBOOT_PRE_BOOT_ID)
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
        message: str,
        action: Action | None = None,
        recheck_at: datetime | None = None,
        blockers: tuple[Blocker, ...] = (),
    ) -> Verdict:
        return _say(self._claim, reason, message, action, recheck_at, blockers)


def _of_pod(verdict: Verdict, node: Node) -> Verdict:
    message = verdict.message
    if verdict.reason is Reason.EVICTING:
        message = f"asked to leave node {node.name}, which is going to be rebooted"
    return msgspec.structs.replace(verdict, concern=Concern.REBOOT, message=message)


# -- when it has ended ---------------------------------------------------------------------


def _ended(view: RebootView) -> Verdict | None:
    claim, node = view.claim, view.node
    failed = has_failed(claim)
    reason = Reason.REBOOT_FAILED if failed else Reason.REBOOT_ENDED
    if claim.deleting:
        return _hurried(claim)
    if node is not None and node.has_taint(REBOOTING_TAINT):
        message = f"Node {node.name} is not being rebooted; its taint is taken off"
        return _say(claim, reason, message, _taints(node, []))
    if failed:
        condition = claim.condition(REBOOTING)
        why = condition.message if condition is not None else ""
        return _say(claim, reason, f"{why}; it is replaced", delete_claim(claim))
    if REBOOT_PRE_BOOT_ID in claim.annotations:
        action = patch(claim, {"annotations": {REBOOT_PRE_BOOT_ID: None}})
        return _say(claim, reason, "it is not being rebooted; what that left is taken off", action)
    return None


def _hurried(claim: NodeClaim) -> Verdict | None:
    """The bound of the reboot's drain is one for the node's end as well, from the failure on."""
    mark, deadline = mark_of(claim), deadline_of(claim)
    try:
        bound = bound_of(claim)
    except SpecError:
        return None
    if mark is None or mark.last_transition_time is None or bound is None:
        return None
    at = mark.last_transition_time + bound
    if deadline is not None and deadline.at <= at:
        return None
    written = format_time(at)
    message = f"its reboot has failed, and its drain may take no longer than until {written}"
    action = patch(claim, {"annotations": {TERMINATION_TIMESTAMP: written}})
    return _say(claim, Reason.REBOOT_FAILED, message, action)


# -- writes --------------------------------------------------------------------------------


def _operation(claim: NodeClaim, since: datetime) -> str:
    """The same for every try of one reboot, and for no other."""
    before = claim.annotations.get(REBOOT_PRE_BOOT_ID, "")
    if len(before) > _BOOT_ID_MAX:
        before = hashlib.sha256(before.encode()).hexdigest()[:32]
    return f"{claim.uid}-{int(since.timestamp())}-{before}"


def _as_judged(claim: NodeClaim) -> Witness:
    meta = claim.metadata
    return Witness(
        resource=NODE_CLAIMS, name=meta.name, uid=meta.uid, resource_version=meta.resource_version
    )


def _close(node: Node) -> Action:
    return _taints(node, [Taint(key=REBOOTING_TAINT, effect="NoSchedule")])


def _open(node: Node) -> Action | None:
    """Takes pods again; whether it is initialized is found out anew."""
    if node.has_taint(REBOOTING_TAINT):
        return _taints(node, [], {"labels": {INITIALIZED: None}})
    return _uninitialized(node)


def _uninitialized(node: Node) -> Action | None:
    if INITIALIZED not in node.labels:
        return None
    return patch(node, {"labels": {INITIALIZED: None}})


def _taints(node: Node, ours: list[Taint], metadata: dict[str, Any] | None = None) -> Action:
    others = [taint for taint in node.spec.taints if taint.key != REBOOTING_TAINT]
    written = [msgspec.to_builtins(taint) for taint in (*others, *ours)]
    return patch(node, metadata or {}, {"taints": written})


def _first(*instants: datetime | None) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)


def _say(
    claim: NodeClaim,
    reason: Reason,
    message: str,
    action: Action | None = None,
    recheck_at: datetime | None = None,
    blockers: tuple[Blocker, ...] = (),
) -> Verdict:
    return Verdict(
        concern=Concern.REBOOT,
        subject=subject_of(claim),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
        blockers=blockers,
    )
