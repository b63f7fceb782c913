"""Which pods need capacity: provisionable pods, and reschedulable pods of terminating Nodes.

A pod of a terminating Node counts before it is evicted, so that its new node is launched while
the old one drains. It counts only if a controller will create it again, and only once its
protection has ended or its Node's deadline forces its deletion: until then it stays where it is.
Without a deadline, so does a pod whose PDB can never allow an eviction.
Where its node is being replaced, its replacement exists already, and is reserved for it
from then on, protected or not. A node that the cloud takes back is gone in minutes: its pods count at
once, protected or not.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from tenure.core.gates.reasons import ONLY_FITTING
from tenure.core.marks.command import (
    Command,
    commands_under_way,
    disrupted_since,
    is_replaced,
)
from tenure.core.marks.deadline import deadline_of, force_at
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.ownership import is_our_node
from tenure.core.nominated import awaits_preemption
from tenure.core.protect.protection import CREATION, protection_cap, protection_of
from tenure.core.terminate.drain import is_finalizing, unmarked_nodes
from tenure.core.terminate.pdb import bars
from tenure.model.api.meta import BEGINNING, FOR_EVER, controller_of, find_condition
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.matching.selectors import matches
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import first_unreadable


class Demand(msgspec.Struct, frozen=True):
    """A pod that needs capacity, now or later."""

    pod: Pod
    #: From when on it has needed one.
    since: datetime
    #: The Node that it runs on, which terminates or is replaced; empty for a pod that is not bound.
    leaves: str = ""
    #: That Node is replaced, and nothing deletes it yet.
    replaced: bool = False
    #: The scheduler's message about a pod that is not bound.
    said: str = ""
    #: When we first saw it pending, if known: watches may be late.
    seen_at: datetime | None = None
    #: Nothing is launched for it: its node stays if it has no room elsewhere.
    only_fitting: bool = False

    def needs_capacity(self, now: datetime) -> bool:
        """The end of a protection may lie in the future."""
        return not self.leaves or self.since <= now


def may_need_capacity(snapshot: Snapshot) -> bool:
    """Whether there may be such pods."""
    return bool(
        snapshot.unschedulable_pods()
        or snapshot.leaving_nodes()
        or unmarked_nodes(snapshot)
        or snapshot.replaced_claims()
    )


def pods_to_schedule(snapshot: Snapshot, clock: str = CREATION) -> list[Demand]:
    """In the order of their UIDs. ``clock``: what a protection counts from."""
    seen = snapshot.observations.waiting_seen
    of = snapshot.derived.of
    demands = [
        of(_UNSCHEDULED, pod, seen.get(pod.uid))
        for pod in snapshot.unschedulable_pods().values()
        if is_provisionable(pod, snapshot)
    ]
    unmarked = unmarked_nodes(snapshot)
    for node in {**snapshot.leaving_nodes(), **unmarked}.values():
        if (is_finalizing(node) or node.name in unmarked) and is_our_node(node, snapshot):
            demands += _leaving(node, snapshot, clock)
    for command in commands_under_way(snapshot):
        demands += _replaced(command, snapshot)
    demands.sort(key=lambda demand: demand.pod.uid)
    return demands


def is_provisionable(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a new node would help a pod that the scheduler found none for.

    A pod that the scheduler has nominated waits for others to be preempted; a daemon pod belongs to a node
    that exists, and so does a mirror pod; a gated one is not to be scheduled yet.
    """
    if pod.spec.scheduling_gates or pod.owner_kind in ("DaemonSet", "Node"):
        return False
    return not (pod.status.nominated_node_name and awaits_preemption(pod, snapshot))


def is_reschedulable(pod: Pod) -> bool:
    """Whether a drain evicts it, and a controller will create it again elsewhere.

    A StatefulSet creates its pod again only when the old one is gone, so a terminating one still
    needs capacity; other controllers have created the new pod already.
    """
    awaited = pod.active or (pod.owner_kind == "StatefulSet" and not pod.finished)
    stays = pod.daemon or pod.mirror or pod.tolerates_disruption
    return awaited and not stays and controller_of(pod.metadata) is not None


def _leaving(node: Node, snapshot: Snapshot, clock: str) -> list[Demand]:
    claim = snapshot.claim_of(node)
    told = claim.metadata.deletion_timestamp if claim is not None else None
    deleted_at = node.metadata.deletion_timestamp or told or BEGINNING
    blocked = first_unreadable((node, claim))
    deadline, cap = deadline_of(claim), protection_cap(node, snapshot)
    kept = claim is not None and (is_replaced(claim) or is_interrupted(claim))
    demands = []
    for pod in snapshot.pods_on(node.name).values():
        if not is_reschedulable(pod):
            continue
        if deadline is None and not kept and pod.active and _is_barred(pod, snapshot):
            continue
        protection = protection_of(pod, cap=cap, clock=clock) if not kept else None
        until = protection.until if protection else deleted_at
        until = FOR_EVER if blocked else until  # Not evicted, only force deleted.
        if deadline is not None:
            until = min(until, force_at(pod, deadline))
        if until != FOR_EVER:
            demands.append(Demand(pod, max(deleted_at, until), node.name))
    return demands


def _is_barred(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a PDB can never allow its eviction: without a deadline, it stays where it is."""
    pdbs = snapshot.pdbs_in(pod.namespace).values()
    return any(bars(pdb, pod) and matches(pdb.spec.selector, pod.labels) for pdb in pdbs)


def _replaced(command: Command, snapshot: Snapshot) -> list[Demand]:
    """The pods of a node that is being replaced, before it is deleted; none if that has failed."""
    claim, node = command.claim, command.node
    since = disrupted_since(claim)
    lost = any(one is None or one.deleting for _, one in command.replacements)
    if claim.deleting or node is None or node.deleting or since is None or lost:
        return []
    pods = filter(is_reschedulable, snapshot.pods_on(node.name).values())
    stays = command.reason in ONLY_FITTING
    return [Demand(pod, since, node.name, replaced=True, only_fitting=stays) for pod in pods]


def unscheduled(pod: Pod, seen_at: datetime | None) -> Demand:
    """``seen_at``: when we first saw it pending, if known."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    since = condition.last_transition_time if condition else None
    since = since or pod.created_at
    if seen_at is not None:
        since = min(since, seen_at)  # The scheduler's clock may be ahead of ours.
    said = condition.message if condition else ""
    return Demand(pod, since, said=said, seen_at=seen_at)


_UNSCHEDULED: Final = Derivation("demand of a pod that is not bound", unscheduled)
