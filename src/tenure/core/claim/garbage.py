"""Decide what to do about instances without a claim, and claims without an instance.

**Instances** of ours whose claim UID is unknown are terminated, but only when they are older
than the grace and two live lists of claims, a period apart, both lacked the UID: a claim that was
just created, or a stale read, must never cost a running node. Nor are they terminated while pods
run on their Node that a drain would wait for (a user may remove a claim, with its finalizer, while
its Node is drained), or while their Node cannot be read. Instances without our tags are never listed, and would be ignored.

**Claims** that have registered and whose instance is missing from the cloud's newest list are
deleted, unless that list is about as old as the instance, or their Node is still Ready: then the
list is more likely wrong than the Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from tenure.core.claim.facts import (
    InstanceNotListed,
    InstanceNotOurs,
    ListTooEarly,
    NodeStillReady,
    NoNodeReady,
    Orphaned,
    OrphanInUse,
    OrphanSuspected,
    OrphanUnreadable,
)
from tenure.core.decision import Concern, Ground, Subject, Terminate, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.deadline import stops_at
from tenure.core.marks.ownership import is_missing, is_ours
from tenure.core.reasons import Reason
from tenure.core.terminate.drain import unfinished_pods
from tenure.core.terminate.pods import STUCK_AFTER, blocks_drain
from tenure.core.verdicts import say
from tenure.core.writes import delete_claim
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.cloud.instance import Instance
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import OrphanSighting, TerminationAnswer
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable, unreadable_object

INSTANCE = "Instance"
#: How many pods a message names.
NAMED_MAX: Final = 3
_INSTANCE_KEY = "instance/"
_say_of_claim = partial(say, Concern.GARBAGE)


class InstanceView(msgspec.Struct, frozen=True):
    sighting: OrphanSighting
    answer: TerminationAnswer | None
    #: The Nodes with its provider id, by name, and the pods there that have not finished.
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()


class VanishedView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    listed_at: datetime
    node_ready: bool


class GarbageDecider:
    concern = Concern.GARBAGE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        for provider_id in snapshot.observations.orphans:
            yield _INSTANCE_KEY + provider_id
        vanished = snapshot.observations.vanished
        if vanished:
            yield from (name for name, claim in snapshot.claims.items() if claim.uid in vanished)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource in (NODES, PODS):
            yield from _orphans_touched(change, snapshot)
        if change.resource == NODES and snapshot.observations.vanished:
            for node in change.versions():
                assert isinstance(node, Node)
                yield from snapshot.claims_with_provider(node.spec.provider_id)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == INSTANCE:
            yield _INSTANCE_KEY + subject.name
        elif subject.kind == NODE_CLAIMS.kind:
            yield subject.name

    def view(self, snapshot: Snapshot, key: str) -> InstanceView | VanishedView | None:
        observations = snapshot.observations
        if key.startswith(_INSTANCE_KEY):
            sighting = observations.orphans.get(key.removeprefix(_INSTANCE_KEY))
            if sighting is None:
                return None
            answer = observations.terminations.get(sighting.instance.claim_uid)
            found = snapshot.nodes_with_provider(sighting.instance.provider_id)
            nodes = tuple(found[name] for name in sorted(found))
            return InstanceView(sighting, answer, nodes, tuple(unfinished_pods(nodes, snapshot)))
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or not claim.registered or not is_ours(claim, snapshot):
            return None
        listed_at = observations.vanished.get(claim.uid)
        if listed_at is None:
            return None
        of_instance = snapshot.nodes_with_provider(claim.provider_id).values()
        return VanishedView(
            claim, listed_at, any(node.ready or is_unreadable(node) for node in of_instance)
        )

    def decide(
        self, view: InstanceView | VanishedView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        if isinstance(view, InstanceView):
            return (_orphan(view, settings, now),)
        return (_vanished(view, settings),)


def _orphans_touched(change: Change, snapshot: Snapshot) -> Iterable[str]:
    """The instances without a claim whose Node, or a pod there, has changed."""
    if not snapshot.observations.orphans:
        return  # Nearly always.
    for version in change.versions():
        node = snapshot.nodes.get(version.spec.node_name) if isinstance(version, Pod) else version
        provider_id = node.spec.provider_id if isinstance(node, Node) else ""
        if provider_id == UNKNOWN:  # It may be the Node of any of them.
            yield from (_INSTANCE_KEY + known for known in snapshot.observations.orphans)
        elif provider_id in snapshot.observations.orphans:
            yield _INSTANCE_KEY + provider_id


def _orphan(view: InstanceView, settings: Settings, now: datetime) -> Verdict:
    sighting, answer = view.sighting, view.answer
    instance = sighting.instance
    if not instance.claim_uid or instance.cluster != settings.cluster_name:
        return _say(instance, Reason.NOT_OURS, InstanceNotOurs(settings.cluster_name))
    seen_twice = sighting.last_at - sighting.first_at >= settings.garbage_period
    old_at = later(instance.launched_at, settings.garbage_grace)
    if not seen_twice or now < old_at:
        suspected = OrphanSuspected(instance.claim_uid, sighting.first_at, old_at)
        recheck_at = old_at if seen_twice else None
        return _say(instance, Reason.ORPHAN_SUSPECTED, suspected, recheck_at=recheck_at)
    if answer is None and (bad := next(filter(is_unreadable, view.nodes), None)):
        unreadable = OrphanUnreadable(instance.claim_uid, sighting.first_at, unreadable_object(bad))
        return _say(instance, Reason.BLOCKED_BY_UNREADABLE, unreadable)
    if answer is None and (pods := [pod for pod in view.pods if blocks_drain(pod, now)]):
        return _in_use(view, pods)
    orphaned = Orphaned(instance.claim_uid, sighting.first_at, sighting.last_at)
    if answer is not None and now < (again_at := later(answer.asked_at, settings.termination_poll)):
        return _say(instance, Reason.INSTANCE_ORPHANED, orphaned, recheck_at=again_at)
    action = Terminate(provider_id=instance.provider_id, claim_uid=instance.claim_uid)
    return _say(instance, Reason.INSTANCE_ORPHANED, orphaned, action=action)


def _in_use(view: InstanceView, pods: Sequence[Pod]) -> Verdict:
    instance = view.sighting.instance
    in_use = OrphanInUse(
        instance.claim_uid,
        view.sighting.first_at,
        nodes=tuple(node.name for node in view.nodes),
        pods=tuple(pod.key for pod in pods[:NAMED_MAX]),
        more=max(len(pods) - NAMED_MAX, 0),
        draining=all(node.deleting for node in view.nodes),
    )
    stops = (at for pod in pods if (at := stops_at(pod)) is not None)
    recheck_at = min((later(at, STUCK_AFTER) for at in stops), default=None)
    return _say(instance, Reason.INSTANCE_ORPHANED, in_use, recheck_at=recheck_at)


def _say(
    instance: Instance,
    reason: Reason,
    fact: Fact,
    *,
    action: Terminate | None = None,
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.GARBAGE,
        subject=Subject(INSTANCE, instance.provider_id),
        reason=reason,
        facts=(fact,),
        action=action,
        recheck_at=recheck_at,
    )


def _vanished(view: VanishedView, settings: Settings) -> Verdict:
    claim = view.claim
    not_listed = InstanceNotListed(claim.provider_id, view.listed_at)
    if not is_missing(claim, view.listed_at, settings):
        return _say_of_claim(claim, Reason.INSTANCE_KNOWN, not_listed, ListTooEarly())
    if view.node_ready:
        return _say_of_claim(claim, Reason.INSTANCE_KNOWN, not_listed, NodeStillReady())
    action = delete_claim(claim, Ground.INSTANCE_GONE)
    return _say_of_claim(claim, Reason.INSTANCE_VANISHED, not_listed, NoNodeReady(), action=action)
