"""Decide what a claim and its Nodes report about the deadline, the first of these that applies:

1. unreadable    the annotation cannot be parsed: it is ignored, and a Warning reports that;
2. stamp         the claim has a grace period and no annotation: write it, so that users see it;
3. expiring      report the deadline.

The annotation on a claim that is not being deleted belongs to ``repair``: it is the first of two
writes, or stale.

Each terminating Node also reports the deadline, and from when on pods are force deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.marks.deadline import Deadline, deadline_of, grace_of, stamp_of
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.stamp import stamp_with
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.deadlines import (
    DeadlineUnreadable,
    ForceDeletionsBegin,
    MustBeDrained,
    RecordingDeadline,
)
from tenure.core.terminate.pods import left_alone
from tenure.core.verdicts import say
from tenure.errors import shown
from tenure.model.api.meta import BEGINNING
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot


class DeadlineView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    #: The claim's Nodes that are being deleted, each with the longest grace of its pods.
    nodes: tuple[tuple[Node, timedelta], ...]


class DeadlineDecider:
    concern = Concern.DEADLINE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                if node.deleting:
                    yield from snapshot.claims_with_provider(node.spec.provider_id)
        elif change.resource == PODS:
            for pod in change.versions():
                assert isinstance(pod, Pod)
                if (leaving := snapshot.leaving_nodes().get(pod.spec.node_name)) is not None:
                    yield from snapshot.claims_with_provider(leaving.spec.provider_id)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> DeadlineView | None:
        claim = snapshot.claims.get(key)
        if claim is None or not is_ours(claim, snapshot):
            return None
        if not claim.deleting or (claim.termination_stamp is None and deadline_of(claim) is None):
            return None
        found = snapshot.nodes_with_provider(claim.provider_id)
        leaving = (
            found[name]
            for name in sorted(found)
            # With several claims for one Node, it is unknown whose deadline applies.
            if found[name].deleting and snapshot.claim_of(found[name]) is not None
        )
        return DeadlineView(claim, tuple((node, _longest(node, snapshot)) for node in leaving))

    def decide(self, view: DeadlineView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        deadline = deadline_of(view.claim)
        verdicts = [_of_claim(view.claim, deadline)]
        if deadline is not None:
            verdicts += [_of_node(node, longest, deadline) for node, longest in view.nodes]
        return verdicts


def _longest(node: Node, snapshot: Snapshot) -> timedelta:
    pods = (pod for pod in snapshot.pods_on(node.name).values() if not left_alone(pod))
    return max(map(grace_of, pods), default=timedelta())


def _of_claim(claim: NodeClaim, deadline: Deadline | None) -> Verdict:
    written = claim.termination_stamp
    if written is not None and stamp_of(claim) is None:
        return _say(claim, Reason.DEADLINE_UNREADABLE, DeadlineUnreadable(shown(written)))
    assert deadline is not None, "view() returns None without a deadline and a stamp"
    due = MustBeDrained(NODE_CLAIMS.kind, claim.name, deadline)
    if written is None:
        action = stamp_with(claim, deadline.at)
        return _say(claim, Reason.DEADLINE_SET, due, RecordingDeadline(), action=action)
    return _say(claim, Reason.DEADLINE_SET, due)


def _of_node(node: Node, longest: timedelta, deadline: Deadline) -> Verdict:
    due = MustBeDrained(NODES.kind, node.name, deadline)
    if not longest:
        return _say(node, Reason.GRACE_PERIOD_EXPIRING, due)
    begins = max(deadline.before(longest), node.metadata.deletion_timestamp or BEGINNING)
    return _say(node, Reason.GRACE_PERIOD_EXPIRING, due, ForceDeletionsBegin(begins))


_say = partial(say, Concern.DEADLINE)
