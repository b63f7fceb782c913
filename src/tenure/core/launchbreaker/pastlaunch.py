"""What became of a claim that was launched for pods: one entry for each of their owners.

It follows from the claim, its Node, the pods there, those that it was launched for and what was observed of it.
Of most claims none of these changes from one question to the next, so it is kept with the claim.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from tenure.core.launchbreaker.ledger import launched_of
from tenure.core.launchbreaker.owners import namespace_of, owner_of
from tenure.core.launchbreaker.removed import was_left_at_once, was_wasted
from tenure.core.marks.command import is_replaced
from tenure.core.marks.ownership import missing_after
from tenure.core.marks.timeout import lost
from tenure.model.api import names
from tenure.model.api.meta import condition_status
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.observations import TerminationAnswer
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: The reason of a pod that ran for longer than its own ``activeDeadlineSeconds``.
_OWN_DEADLINE: Final = "DeadlineExceeded"
#: The condition of a pod that is evicted, preempted or deleted with its node.
_DISRUPTED: Final = "DisruptionTarget"


class PastLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One claim, as seen by one owner that it was created for."""

    owner: str
    claim: str
    pool: str
    at: datetime
    #: When its Node appeared; only if the owner's pods are known to have been pending again after it.
    returned: datetime | None = None
    #: When its Node appeared; only if none of the owner's pods runs there now.
    deserted: datetime | None = None
    #: Names under which packing places pods there.
    places: frozenset[str] = frozenset()
    #: UIDs of the pods that it was created for and that are still pending.
    waiting: tuple[str, ...] = ()
    #: The revision of the owner's template: after a rollout, pods of another revision need nodes.
    revision: str = ""
    #: How long after its launch a list of instances lacked its own one.
    missing_after: timedelta | None = None
    #: Owners of other pods that run on its Node, if none of the owner's does.
    taken_by: frozenset[str] = frozenset()
    #: The claim was deleted soon after its creation, and no pod of the owner had ended by itself there.
    wasted: bool = False
    #: The claim is gone: Tenure removed it, because the pods had left it at once.
    left_at_once: bool = False
    #: Pods of the owner run there, or the pods that it was created for do elsewhere; of a claim that is
    #: gone: they did.
    helped: bool = False

    @property
    def useless(self) -> bool:
        """None of the owner's pods has stayed, and none that it was made for is still pending."""
        unused = self.deserted is not None and not self.waiting
        return self.wasted or self.left_at_once or unused


def launches_of(claim: NodeClaim, snapshot: Snapshot) -> tuple[PastLaunch, ...]:
    """One for each owner that the claim was launched for."""
    of, observations, uid = snapshot.derived.of, snapshot.observations, claim.uid
    node = _node_in_service(claim, snapshot)
    # An unreadable claim without a Node gets none: its launch was in vain from its creation on.
    since = node.created_at if node is not None else _stuck_since(claim, snapshot)
    place = None
    if since is not None:
        name = node.name if node is not None else ""
        mates = tuple(map(snapshot.pods.get, of(_MATES, claim)))
        place = _Place(name, since, mates, tuple(snapshot.pods_on(name).values()))
    served = observations.served_claims.get(uid, frozenset())
    vanished, terminated = observations.vanished.get(uid), observations.terminations.get(uid)
    return of(_LAUNCHES, claim, place, served, vanished, terminated)


class _Place(msgspec.Struct, frozen=True):
    """Where a claim's pods can run, and what became of them."""

    #: The name of its Node, where that is in service.
    node: str
    since: datetime
    #: The pods that it was launched for, in the order of ``_mates``; None: it does not exist.
    mates: tuple[Pod | None, ...]
    #: Those on the Node.
    pods: tuple[Pod, ...]


def _mates(claim: NodeClaim) -> tuple[str, ...]:
    """Keys of the pods that it was launched for."""
    said = launched_of(claim)
    return tuple(f"{namespace_of(one.owner)}/{name}" for one in said for name in one.names)


_MATES: Final = Derivation("pods that it was launched for", _mates)


def _launches(
    claim: NodeClaim,
    place: _Place | None,
    served: Collection[str],
    vanished: datetime | None,
    terminated: TerminationAnswer | None,
) -> tuple[PastLaunch, ...]:
    """One for each owner that it was launched for. ``served``: those of which a pod has ended by itself there."""
    mates = iter(place.mates if place is not None else ())
    on_node = [(owner_of(p), p) for p in place.pods] if place is not None else []
    settled = {owner for owner, pod in on_node if _has_settled(pod)}
    running = frozenset(owner for owner, pod in on_node if pod.active and not pod.daemon)
    wasted, missing = was_wasted(claim, terminated), missing_after(claim, vanished)
    node = place.node if place is not None else ""
    places = frozenset({claim.name, node}) if node else frozenset({claim.name})
    found: list[PastLaunch] = []
    for one in launched_of(claim):
        own = [pod for pod in islice(mates, len(one.names)) if pod is not None]
        used = one.served or one.owner in served
        helped = used or one.owner in settled or any(map(_has_settled, own))
        deserted = place.since if place is not None and not helped else None
        waits = deserted is not None
        found.append(
            PastLaunch(
                owner=one.owner,
                claim=claim.name,
                pool=claim.pool_name,
                at=claim.created_at,
                deserted=deserted,
                places=places,
                waiting=tuple(pod.uid for pod in own if waits and not pod.spec.node_name),
                revision=one.revision,
                taken_by=running - {one.owner} if waits else frozenset(),
                missing_after=missing,
                wasted=not used and wasted,
                helped=helped,
            )
        )
    return tuple(found)


_LAUNCHES: Final = Derivation("launches", _launches)


def _has_settled(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and (pod.active or has_used_its_node(pod))


def has_used_its_node(pod: Pod) -> bool:
    """Whether it ran to its own end there: it succeeded, or its containers failed by themselves.

    A pod that was evicted, preempted, deleted or refused by the kubelet has failed, too. Then its
    status has a reason or the condition ``DisruptionTarget``, it is being deleted, or it never
    started.
    """
    status = pod.status
    if status.phase == "Succeeded":
        return True
    return (
        status.phase == "Failed"
        and status.reason in ("", _OWN_DEADLINE)
        and status.start_time is not None
        and not pod.deleting
        and condition_status(status.conditions, _DISRUPTED) != "True"
    )


def _node_in_service(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    """The claim's Node, unless Tenure or the cloud is the cause of what happens there."""
    kept, empty = snapshot.derived.of(_KEPT, claim)
    nodes = snapshot.nodes_with_provider(claim.provider_id) if kept else {}
    if len(nodes) != 1:
        return None
    (node,) = nodes.values()
    return None if node.deleting and not empty else node


def _kept(claim: NodeClaim) -> tuple[bool, bool]:
    """Whether neither has removed or rebooted it, as far as it says; and whether its pods left it at once."""
    empty = was_left_at_once(claim)
    leaves = not empty and (claim.deleting or is_replaced(claim))
    ours = leaves or claim.rebooting or names.REBOOT_HISTORY in claim.annotations
    return not ours and lost(claim) is None, empty


_KEPT: Final = Derivation("kept", _kept)


def _stuck_since(claim: NodeClaim, snapshot: Snapshot) -> datetime | None:
    if not is_unreadable(claim) or claim.deleting or is_replaced(claim):
        return None
    return None if snapshot.nodes_with_provider(claim.provider_id) else claim.created_at
