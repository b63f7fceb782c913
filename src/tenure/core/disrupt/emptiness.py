"""Report on each claim whether its node is empty: the clock of ``consolidateAfter``.

A node is empty when no pod is there that its removal would move or lose, and none is expected:

1. occupied   a pod is there; DaemonSet pods, mirror pods and finished pods do not count. A pod
              that cannot be read counts, wherever it is;
2. nominated  a pending pod is nominated to the claim, until the scheduler should have bound it; or
              one of a terminating node, which is still to be evicted;
3. reserved   the claim replaces another one that is still there: its pods are to come.

Then the claim has the condition ``Empty``, and its transition is the beginning of
``consolidateAfter``; when that is over the claim has Karpenter's ``Consolidatable``, too. In every
other case both are taken off. They are not kept where nothing reads them: for pools with
``consolidateAfter: Never``, and before the claim is initialized.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.disrupt.facts.candidates import (
    CandidateFrom,
    NodeIsEmpty,
    NodeNotEmpty,
    PodsNominated,
    ReservedForPods,
)
from tenure.core.facts import Fact
from tenure.core.marks.candidacy import said_since, says_consolidatable, says_empty
from tenure.core.marks.command import replaced_uids, replacements_by_uid
from tenure.core.marks.ownership import claim_status, claims_touched, is_ours
from tenure.core.marks.timeout import span_of
from tenure.core.nominated import nominated_pods, nominating_claims
from tenure.core.provision.demand import is_reschedulable
from tenure.core.provision.nominations import SCHEDULER_TAKES
from tenure.core.provision.supply import in_service_at
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.meta import FOR_EVER, find_condition, later
from tenure.model.api.names import CONSOLIDATABLE_CONDITION, EMPTY_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.duration import Duration

#: A node is empty for a moment whenever its last pod is replaced. Karpenter waits as long before it
#: looks a second time.
SETTLES: Final = timedelta(seconds=15)


class EmptinessView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    #: None: nothing reads whether it is empty.
    node: str | None
    #: The ``consolidateAfter`` of its pool.
    after: timedelta = timedelta()
    occupied: bool = False
    #: Why pods are expected, and until when that is so.
    expected: Fact | None = None
    until: datetime | None = None


class EmptinessDecider:
    concern = Concern.EMPTINESS

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == PODS:
            yield from _claims_of_pod(change, snapshot)
            return
        yield from claims_touched(change, snapshot)
        if change.resource == NODE_CLAIMS:
            replacements = snapshot.once(replacements_by_uid)
            for claim in change.versions():
                yield from (one.name for one in replacements.get(claim.uid, ()))
        elif change.resource == NODES:
            yield from _nominated_from(change, snapshot)
        elif change.resource == NODE_POOLS and not _is_same_rule(change):
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> EmptinessView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_unreadable(claim) or not is_ours(claim, snapshot):
            return None
        node = _asked_about(claim, snapshot)
        if node is None:
            said = claim.condition(EMPTY_CONDITION) is not None
            return EmptinessView(claim=claim, node=None) if said else None
        if is_occupied(node, snapshot):
            said = claim.condition(EMPTY_CONDITION) is not None
            return EmptinessView(claim=claim, node=node.name, occupied=True) if said else None
        expected, until = pods_expected(claim, node, snapshot)
        after = _rule_of(snapshot.pools.get(claim.pool_name)) or timedelta()
        return EmptinessView(
            claim=claim, node=node.name, after=after, expected=expected, until=until
        )

    def decide(self, view: EmptinessView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        claim = view.claim
        if view.node is None or view.occupied:
            return (_not_empty(claim, NodeNotEmpty(claim.name)),)
        if view.expected is not None and view.until is not None and now < view.until:
            return (_not_empty(claim, view.expected, view.until),)
        return (_empty(claim, view.node, view.after, now),)


def _empty(claim: NodeClaim, node: str, after: timedelta, now: datetime) -> Verdict:
    since = said_since(claim, EMPTY_CONDITION)
    over_at = later(since or now, after)
    message = str(NodeIsEmpty(node))
    if now < over_at:
        action = claim_status(claim, says_empty(message), drop=(CONSOLIDATABLE_CONDITION,))
    else:
        action = claim_status(claim, says_empty(message), says_consolidatable(message))
    # Until the condition is written, its clock does not run.
    recheck_at = over_at if since is not None and now < over_at else None
    facts: tuple[Fact, ...] = (NodeIsEmpty(node, since),)
    if since is not None:
        least = str(Duration.of(SETTLES)) if after < SETTLES else ""
        due = due_at(since, after)
        facts = (*facts, CandidateFrom(due, str(Duration.of(after)), least))
    reason = Reason.NODE_EMPTY
    return say(Concern.EMPTINESS, claim, reason, *facts, action=action, recheck_at=recheck_at)


def _not_empty(claim: NodeClaim, why: Fact, until: datetime | None = None) -> Verdict:
    action = None
    if claim.condition(EMPTY_CONDITION) is not None:
        action = claim_status(claim, drop=(EMPTY_CONDITION, CONSOLIDATABLE_CONDITION))
    recheck_at = until if until != FOR_EVER else None
    reason = Reason.NODE_NOT_EMPTY
    return say(Concern.EMPTINESS, claim, reason, why, action=action, recheck_at=recheck_at)


# -- what it depends on ----------------------------------------------------------------------


def _asked_about(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    """Its one Node; None where nothing reads whether it is empty."""
    if not claim.initialized or _rule_of(snapshot.pools.get(claim.pool_name)) is None:
        return None
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    shared = len(snapshot.claims_with_provider(claim.provider_id)) > 1
    return next(iter(nodes.values())) if len(nodes) == 1 and not shared else None


def _rule_of(pool: NodePool | None) -> timedelta | None:
    if pool is None or is_unreadable(pool) or pool.static:
        return None
    return consolidate_after(pool.spec.disruption.consolidate_after)


def _is_same_rule(change: Change) -> bool:
    """The status of a pool changes with each of its nodes."""
    old, new = change.old, change.new
    if not isinstance(old, NodePool) or not isinstance(new, NodePool):
        return False
    return _rule_of(old) == _rule_of(new)


def due_at(since: datetime, after: timedelta) -> datetime:
    """From when on a node that is empty since then is a candidate."""
    return later(since, max(after, SETTLES))


@lru_cache(256)  # A few pools, and thousands of nodes.
def consolidate_after(text: str) -> timedelta | None:
    """None for ``Never``, and for what cannot be read."""
    return span_of(text)


def is_occupied(node: Node, snapshot: Snapshot) -> bool:
    """By a pod that is there, is about to be bound there, or for which the scheduler preempts the pods that are."""
    if is_unreadable(node) or any(map(occupies, snapshot.pods_nowhere().values())):
        return True
    if node.name in snapshot.once(_preempted):
        return True
    there, coming = snapshot.pods_on(node.name), snapshot.pods_coming_to(node.name)
    return any(map(occupies, there.values())) or any(map(occupies, coming.values()))


def _preempted(snapshot: Snapshot) -> frozenset[str]:
    """Nodes where pods stop so that the scheduler's pods come, by name."""
    waiting = snapshot.unschedulable_pods().values()
    return frozenset(pod.status.nominated_node_name for pod in waiting)


def occupies(pod: Pod) -> bool:
    """Whether the pod would move, or be lost, with its node. One without a controller is lost."""
    awaited = pod.active or (pod.owner_kind == "StatefulSet" and not pod.finished)
    return awaited and not (pod.daemon or pod.mirror)


def pods_expected(
    claim: NodeClaim, node: Node, snapshot: Snapshot
) -> tuple[Fact | None, datetime | None]:
    """Why pods are expected on an empty node, and until when; None: they are not."""
    for uid in replaced_uids(claim):
        for name in snapshot.claims_with_uid(uid):
            return ReservedForPods(claim.name, name), FOR_EVER
    found = _nominated(claim, snapshot)
    usable = in_service_at(node, claim)
    if not found or usable is None:
        return None, None
    until = max(_expected_until(pod, usable) for pod in found)
    return PodsNominated(claim.name, tuple(sorted(pod.key for pod in found)), until), until


def _expected_until(pod: Pod, usable: datetime) -> datetime:
    if pod.spec.node_name:
        return FOR_EVER  # It comes when it is evicted.
    return later(max(usable, _since(pod)), SCHEDULER_TAKES)


def _nominated(claim: NodeClaim, snapshot: Snapshot) -> list[Pod]:
    named = nominated_pods(claim)
    if not named or not (snapshot.unschedulable_pods() or snapshot.leaving_nodes()):
        return []  # Nearly always.
    expected = snapshot.once(_expected_by_uid)
    return [expected[uid] for uid in named if uid in expected]


def _since(pod: Pod) -> datetime:
    condition = find_condition(pod.status.conditions, "PodScheduled")
    return (condition.last_transition_time if condition else None) or pod.created_at


def _expected_by_uid(snapshot: Snapshot) -> dict[str, Pod]:
    """Pending pods, and those of terminating nodes that will be created again."""
    found = {pod.uid: pod for pod in snapshot.unschedulable_pods().values()}
    for name in snapshot.leaving_nodes():
        pods = snapshot.pods_on(name).values()
        found |= {pod.uid: pod for pod in pods if is_reschedulable(pod)}
    return found


def _claims_of_pod(change: Change, snapshot: Snapshot) -> Iterator[str]:
    """Those of its Node, and those that it is nominated to."""
    old, new = change.old, change.new
    assert old is None or isinstance(old, Pod)
    assert new is None or isinstance(new, Pod)
    if old is not None and new is not None and _is_same(old, new):
        return  # Nearly always: its status has changed.
    for pod in (old, new):
        if pod is None:
            continue
        for name in (pod.spec.node_name, pod.status.nominated_node_name):
            if (node := snapshot.nodes.get(name)) is not None:
                yield from snapshot.claims_with_provider(node.spec.provider_id)
        yield from nominating_claims(snapshot).get(pod.uid, ())


def _nominated_from(change: Change, snapshot: Snapshot) -> Iterator[str]:
    """When a Node begins to terminate, or is gone: the claims that its pods are nominated to."""
    old, new = change.old, change.new
    if (old is not None and old.deleting) == (new is not None and new.deleting):
        return  # Nearly always.
    nominating = nominating_claims(snapshot)
    for pod in snapshot.pods_on(change.key).values():
        yield from nominating.get(pod.uid, ())


def _is_same(old: Pod, new: Pod) -> bool:
    same = (old.spec.node_name, old.uid) == (new.spec.node_name, new.uid)
    if not same or old.unschedulable or new.unschedulable or old.coming_to != new.coming_to:
        return False
    same = occupies(old) == occupies(new) and is_unreadable(old) == is_unreadable(new)
    return same and is_reschedulable(old) == is_reschedulable(new)
