"""What the end of a claim and its Node depends on, and the steps that both share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from tenure.core.claims import is_missing
from tenure.core.decision import Action, Blocker, Concern, Terminate, Verdict
from tenure.core.drain import PodView
from tenure.core.reasons import Reason
from tenure.core.writes import release, subject_of
from tenure.model.instance import Instance
from tenure.model.meta import format_time
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import TerminationAnswer
from tenure.model.settings import Settings


class TerminationView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim | None
    #: Every Node with the claim's provider id, by name.
    nodes: tuple[Node, ...]
    #: Pods of each node, in the same order; of leaving nodes only.
    pods: tuple[tuple[PodView, ...], ...]
    #: Another claim has the same provider id, so the Nodes are judged by themselves.
    shared: bool = False
    answer: TerminationAnswer | None = None
    #: The instance that a launch was answered with and that is not written down yet.
    instance: Instance | None = None
    #: The newest list of the cloud's instances lacks this claim's; when it was made.
    unlisted_at: datetime | None = None


def say(
    about: Node | NodeClaim,
    reason: Reason,
    message: str,
    *,
    action: Action | None = None,
    recheck_at: datetime | None = None,
    blockers: tuple[Blocker, ...] = (),
) -> Verdict:
    return Verdict(
        concern=Concern.TERMINATION,
        subject=subject_of(about),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
        blockers=blockers,
    )


def next_change(pods: Iterable[Verdict]) -> datetime | None:
    """When the drain may look different because of these pods. That a refused one is asked
    again does not count: until the answer comes, it is as refused as before."""
    instants = (v.recheck_at for v in pods if v.reason is not Reason.EVICTION_REFUSED)
    return min((at for at in instants if at is not None), default=None)


def settled_at(claim: NodeClaim, settings: Settings) -> datetime | None:
    """When the shortest drain may end; None before its beginning was written down."""
    condition = claim.condition("Drained")
    if condition is None or condition.last_transition_time is None:
        return None
    return condition.last_transition_time + settings.drain_min


def lost_instance(view: TerminationView, claim: NodeClaim, settings: Settings) -> bool:
    """The cloud no longer lists the instance, so there is nothing that could be drained."""
    return claim.deleting and is_missing(claim, view.unlisted_at, settings)


def end_instance(
    view: TerminationView,
    claim: NodeClaim,
    about: Node | NodeClaim,
    settings: Settings,
    now: datetime,
) -> Verdict:
    """Ask the cloud until it says that the instance is gone; then release ``about``."""
    answer = view.answer
    provider_id = claim.provider_id or (view.instance.provider_id if view.instance else "")
    what = f"instance {provider_id}" if provider_id else "whatever carries the claim's UID"
    if answer is not None and answer.gone:
        message = f"the cloud said at {format_time(answer.asked_at)} that {what} is gone"
        return say(about, Reason.RELEASING, message, action=release(about))
    if answer is not None and now < (again_at := answer.asked_at + settings.termination_poll):
        message = f"{what} is being ended; asked again at {format_time(again_at)}"
        return say(about, Reason.INSTANCE_TERMINATING, message, recheck_at=again_at)
    return say(
        about,
        Reason.INSTANCE_TERMINATING,
        f"asking the cloud to end {what}",
        action=Terminate(provider_id=provider_id, claim_uid=claim.uid),
    )
