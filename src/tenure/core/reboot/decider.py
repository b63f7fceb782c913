"""Decide which claims are being rebooted, and what becomes of those that no longer are.

``steps`` carries a reboot through while the claim says ``Rebooting``. Of one that has ended:

1. taint        it goes, however the reboot ended;
2. failed       the claim is deleted, and so replaced; or, where a gate blocks that, it is
                spared: from then on ``repair`` decides when it is replaced;
3. recovered    a spared one that is healthy: its failure is forgotten;
4. left over    what else the reboot has written on the claim is taken off.

The deletion of a claim ends its reboot, whatever step it is at:

1. ended        the condition says so;
2. failed       one that has failed before: its drain has the reboot's bound, as in Karpenter;
3. left over    the annotations go, and the taint once that of the leaving node is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

from tenure.core.conditions import Wanted
from tenure.core.decision import Concern, Ground, Subject, Verdict
from tenure.core.facts import sentence
from tenure.core.gates.gatefacts import Blocked
from tenure.core.gates.gates import first_blocked
from tenure.core.gates.operations import Operation
from tenure.core.health.health import unusable
from tenure.core.health.rules import rules_of
from tenure.core.marks.command import REASON_CONDITION
from tenure.core.marks.deadline import hurried_until, hurry
from tenure.core.marks.ownership import claim_status, claims_touched, is_ours
from tenure.core.marks.reboot import (
    ISSUED,
    REBOOTING,
    SPARED,
    bound_of,
    end,
    has_failed,
    is_issued,
    is_spared,
    mark_of,
    marks_left,
    take_off,
)
from tenure.core.marks.stamp import stamp_claim
from tenure.core.marks.taints import is_closed, is_tainted_rebooting, untaint_rebooting
from tenure.core.reasons import Reason
from tenure.core.reboot.facts import (
    DeadlineUnsafe,
    DrainBoundOfReboot,
    FailureForgotten,
    RebootEndedByDeletion,
    RebootFailure,
    RebootMarksLeftOver,
    RebootTaintLeftOver,
    ReplacedAfterFailure,
    ReplacementUnsafe,
    StaysAfterFailure,
)
from tenure.core.reboot.steps import RebootSteps
from tenure.core.reboot.view import RebootView
from tenure.core.terminate.drain import drain_until
from tenure.core.unreadable.decider import in_the_way
from tenure.core.verdicts import say
from tenure.core.writes import delete_claim
from tenure.errors import SpecError
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool, Repair
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, POD_DISRUPTION_BUDGETS, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable

_say = partial(say, Concern.REBOOT)


class RebootDecider:
    concern = Concern.REBOOT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        yield from claims_touched(change, snapshot)
        if change.resource == PODS:
            for pod in change.versions():
                assert isinstance(pod, Pod)
                yield from _rebooting_with(pod, snapshot)
                yield from _protected_by(pod, snapshot)
        elif change.resource == POD_DISRUPTION_BUDGETS:
            yield from snapshot.rebooting_claims()
        elif change.resource == NODE_POOLS:
            yield from snapshot.rebooting_claims()  # Its cap on the protection of their pods.
            if _rules_in(change.old) != _rules_in(change.new):
                yield from snapshot.claims_of_pool(change.key)

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
        if not claim.deleting and any(node.deleting for node in nodes):
            return None  # Its claim is about to be deleted, too.
        if not _concerned(claim, nodes):
            return None
        if len(snapshot.claims_with_provider(claim.provider_id)) > 1:
            nodes = ()  # To which claim they belong cannot be known.
        pool = snapshot.pools.get(claim.pool_name)
        # What ends with the claim depends on nothing else.
        around = () if claim.deleting else nodes
        if in_the_way(claim, around, None if claim.deleting else pool, snapshot, pods=False):
            return None  # It waits until that can be read.
        drained = not claim.rebooting or mark_of(claim) is not None or is_issued(claim)
        return RebootView(
            claim=claim,
            nodes=nodes,
            pool=pool,
            rules=rules_of(claim.pool_name, snapshot),
            broken=unusable(pool),
            drain=None if drained or len(nodes) != 1 else drain_until(nodes[0], None, snapshot),
            answer=snapshot.observations.reboots.get(claim.uid) if claim.rebooting else None,
            unreadable=in_the_way(None, nodes, None, snapshot),
        )

    def decide(self, view: RebootView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        if view.claim.deleting:
            leaving = _leaving(view, now)
            return (leaving,) if leaving is not None else ()
        if view.claim.rebooting:
            return list(RebootSteps(view, settings, now).verdicts())
        blocked = first_blocked(Operation.REBOOT_FAILED, view.gates, settings, now)
        verdict = _ended(view, blocked)
        return (verdict,) if verdict is not None else ()


def _rebooting_with(pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    """The rebooting claim whose Node the pod is on."""
    if not snapshot.rebooting_claims():
        return  # Nearly always, and pods change all the time.
    if (node := snapshot.nodes.get(pod.spec.node_name)) is not None:
        claims = snapshot.claims_with_provider(node.spec.provider_id)
        yield from (name for name, claim in claims.items() if claim.rebooting)


def _protected_by(pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    """The claims that a pod that cannot be read protects, also after their reboot has failed."""
    if not is_unreadable(pod):
        return
    node = snapshot.nodes.get(pod.spec.node_name)
    if node is not None:
        yield from snapshot.claims_with_provider(node.spec.provider_id)
    elif pod.spec.node_name == UNKNOWN:
        yield from snapshot.claims


def _rules_in(pool: ApiObject | None) -> tuple[bool, Repair | None]:
    """What of a pool makes a difference to a reboot of its nodes that has failed."""
    return pool is None, pool.spec.repair if isinstance(pool, NodePool) else None


def _concerned(claim: NodeClaim, nodes: Sequence[Node]) -> bool:
    if claim.rebooting or has_failed(claim) or (is_spared(claim) and not claim.deleting):
        return True
    if marks_left(claim, deleting=claim.deleting):
        return True
    return any(is_tainted_rebooting(node) for node in nodes)


# -- when it has ended ---------------------------------------------------------------------


def _ended(view: RebootView, blocked: Blocked | None) -> Verdict | None:
    claim, node = view.claim, view.node
    failed = has_failed(claim)
    reason = Reason.REBOOT_FAILED if failed else Reason.REBOOT_ENDED
    if node is not None and is_tainted_rebooting(node):
        left = RebootTaintLeftOver(node.name)
        return _say(claim, reason, left, action=untaint_rebooting(node))
    if failed:
        return _spared(claim, blocked) if blocked is not None else _replaced(view)
    if node is not None and is_spared(claim) and view.recovered:
        forgotten = FailureForgotten(node.name)
        return _say(claim, reason, forgotten, action=claim_status(claim, drop=(ISSUED,)))
    if marks := marks_left(claim):
        action = take_off(claim, marks)
        return _say(claim, reason, RebootMarksLeftOver(claim.name), action=action)
    return None


# -- when the claim is being deleted -------------------------------------------------------


def _leaving(view: RebootView, now: datetime) -> Verdict | None:
    claim, node = view.claim, view.node
    if claim.rebooting:
        ended = RebootEndedByDeletion(claim.name)
        return _say(claim, Reason.REBOOT_CANCELLED, ended, action=end(claim, str(ended)))
    left = marks_left(claim, deleting=True)
    if has_failed(claim):
        left = ()  # They say by when it has to be gone.
        if (hurried := _hurried(view, now)) is not None:
            return hurried
    marks = RebootMarksLeftOver(claim.name, deleting=True)
    if left:
        return _say(claim, Reason.REBOOT_ENDED, marks, action=take_off(claim, left))
    if node is None or not is_tainted_rebooting(node):
        return None
    # Not before the taint of a leaving node is there: no pod may come in between.
    closed = is_closed(node)
    opening = untaint_rebooting(node) if closed else None
    return _say(claim, Reason.REBOOT_ENDED, marks, action=opening)


def _replaced(view: RebootView) -> Verdict:
    claim = view.claim
    if view.unreadable:
        unsafe = ReplacementUnsafe(view.unreadable)
        return _say(claim, Reason.BLOCKED_BY_UNREADABLE, _why(claim), unsafe)
    action = delete_claim(claim, Ground.REBOOT_FAILED)
    facts = (_why(claim), ReplacedAfterFailure(claim.name))
    return _say(claim, Reason.REBOOT_FAILED, *facts, action=action)


def _spared(claim: NodeClaim, blocked: Blocked) -> Verdict:
    """It is an unhealthy node like others from now on, but it is not rebooted again."""
    facts = (_why(claim), *blocked.facts, StaysAfterFailure(claim.name))
    spared = Wanted(ISSUED, "False", SPARED, sentence(facts))
    action = claim_status(claim, spared, drop=(REASON_CONDITION,))
    return _say(claim, Reason.REBOOT_FAILED, *facts, action=action, recheck_at=blocked.until)


def _why(claim: NodeClaim) -> RebootFailure:
    condition = claim.condition(REBOOTING)
    return RebootFailure(condition.message if condition is not None else "")


def _hurried(view: RebootView, now: datetime) -> Verdict | None:
    """The bound of the reboot's drain is one for the node's termination as well. It counts from when that is
    written down: before, no pod has been evicted."""
    claim = view.claim
    try:
        span = hurry(claim, bound_of(claim), now)
    except SpecError:
        return None
    if span is None:
        return None
    if view.unreadable:
        at, unsafe = hurried_until(claim, span), DeadlineUnsafe(view.unreadable)
        return _say(claim, Reason.BLOCKED_BY_UNREADABLE, unsafe, recheck_at=at)
    # Then the deadline that it has is near enough.
    at = hurried_until(claim, span)
    action, bound = stamp_claim(claim, Ground.REBOOT_FAILED, span), DrainBoundOfReboot(span)
    return _say(claim, Reason.REBOOT_FAILED, bound, action=action, recheck_at=at)
