"""Decide what to do about instances without a claim, and claims without an instance.

**Instances** of ours whose claim UID is unknown are ended, but only when they are older
than the grace and two live lists of claims, a period apart, both lacked the UID: a
claim that was just created, or a stale read, must never cost a running node. Instances
without our tags never get here.

**Claims** that have registered and whose instance is missing from the cloud's newest
list are deleted, unless their Node still says Ready: then the list is more likely
wrong than the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from tenure.core.claims import is_ours
from tenure.core.decision import Concern, Delete, Subject, Terminate, Verdict
from tenure.core.reasons import Reason
from tenure.model.meta import format_time
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import OrphanSighting, TerminationAnswer
from tenure.model.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot

INSTANCE = "Instance"
_INSTANCE_KEY = "instance/"


class InstanceView(msgspec.Struct, frozen=True):
    sighting: OrphanSighting
    answer: TerminationAnswer | None


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
        elif change.resource == NODES and snapshot.observations.vanished:
            for node in change.versions():
                provider_id: str = getattr(node, "spec").provider_id  # noqa: B009  # it is a Node
                yield from snapshot.claims_with_provider(provider_id)

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
            return InstanceView(sighting, answer)
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or not claim.registered or not is_ours(claim, snapshot):
            return None
        listed_at = observations.vanished.get(claim.uid)
        if listed_at is None:
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id).values()
        return VanishedView(claim, listed_at, any(node.ready for node in nodes))

    def decide(
        self, view: InstanceView | VanishedView, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        if isinstance(view, InstanceView):
            return (_orphan(view.sighting, view.answer, settings, now),)
        return (_vanished(view),)


def _orphan(
    sighting: OrphanSighting, answer: TerminationAnswer | None, settings: Settings, now: datetime
) -> Verdict:
    instance = sighting.instance
    subject = Subject(INSTANCE, instance.provider_id)
    seen_twice = sighting.last_at - sighting.first_at >= settings.garbage_period
    old_at = instance.launched_at + settings.garbage_grace
    if seen_twice and now >= old_at:
        again_at = answer.asked_at + settings.termination_poll if answer else None
        asked = again_at is not None and now < again_at
        return Verdict(
            concern=Concern.GARBAGE,
            subject=subject,
            reason=Reason.INSTANCE_ORPHANED,
            message=f"no claim has UID {instance.claim_uid}, looked at {format_time(sighting.first_at)} "
            f"and {format_time(sighting.last_at)}",
            action=None
            if asked
            else Terminate(provider_id=instance.provider_id, claim_uid=instance.claim_uid),
            recheck_at=again_at if asked else None,
        )
    return Verdict(
        concern=Concern.GARBAGE,
        subject=subject,
        reason=Reason.ORPHAN_SUSPECTED,
        message=f"no claim had UID {instance.claim_uid} at {format_time(sighting.first_at)}; "
        f"launched at {format_time(instance.launched_at)}",
        recheck_at=old_at if seen_twice else None,
    )


def _vanished(view: VanishedView) -> Verdict:
    claim = view.claim
    subject = Subject.of(NODE_CLAIMS.kind, claim)
    what = f"the cloud did not list {claim.provider_id} at {format_time(view.listed_at)}"
    if view.node_ready:
        return Verdict(
            concern=Concern.GARBAGE,
            subject=subject,
            reason=Reason.INSTANCE_KNOWN,
            message=f"{what}, but its Node is Ready",
        )
    action = Delete(
        resource=NODE_CLAIMS,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )
    return Verdict(
        concern=Concern.GARBAGE,
        subject=subject,
        reason=Reason.INSTANCE_VANISHED,
        message=what,
        action=action,
    )
