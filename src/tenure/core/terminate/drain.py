"""Decide for each pod of a terminating Node of ours whether to evict or delete it.

A Node is drained once it has the taint that keeps new pods away. The verdict on each pod is made
in ``pods``; this module collects what that verdict depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.marks.deadline import Deadline, deadline_of
from tenure.core.marks.ownership import is_our_node
from tenure.core.marks.taints import is_closed
from tenure.core.protect.protection import protection_cap
from tenure.core.terminate.pods import Attachment, DrainView, PodView, evaluate_pods
from tenure.core.unreadable.decider import in_the_way
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
)
from tenure.model.api.workload import PodDisruptionBudget, VolumeAttachment
from tenure.model.matching.selectors import matches
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import UNKNOWN, is_unreadable

#: Those that select a pod, by name.
Pdbs = tuple[PodDisruptionBudget, ...]


class DrainDecider:
    concern = Concern.DRAIN

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return {**snapshot.leaving_nodes(), **unmarked_nodes(snapshot)}

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return drains_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if (node := leaving_node_of(subject, snapshot)) is not None:
            yield node.name

    def view(self, snapshot: Snapshot, key: str) -> DrainView | None:
        node = snapshot.nodes.get(key)
        if node is None or not is_our_node(node, snapshot):
            return None
        if is_unmarked(node, snapshot):
            return drain_until(node, deadline_of(snapshot.claim_of(node)), snapshot)
        if not is_finalizing(node):
            return None
        if not is_closed(node):
            return None  # No pod is evicted before the Node is tainted.
        return drain_of(node, snapshot)

    def decide(self, view: DrainView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return evaluate_pods(view, settings, now)


def drains_touched(change: Change, snapshot: Snapshot) -> Iterable[str]:
    """The Nodes whose drain a change may concern, by name."""
    if change.resource == NODES:
        yield change.key
    elif change.resource == PODS:
        for pod in change.versions():
            assert isinstance(pod, Pod)
            if pod.spec.node_name == UNKNOWN:
                yield from {**snapshot.leaving_nodes(), **unmarked_nodes(snapshot)}
            elif pod.spec.node_name in snapshot.leaving_nodes() or (
                (node := snapshot.nodes.get(pod.spec.node_name)) and is_unmarked(node, snapshot)
            ):
                yield pod.spec.node_name
    elif change.resource == NODE_CLAIMS:
        for claim in change.versions():
            assert isinstance(claim, NodeClaim)
            yield from snapshot.nodes_with_provider(claim.provider_id)
    elif change.resource == VOLUME_ATTACHMENTS:
        for attachment in change.versions():
            assert isinstance(attachment, VolumeAttachment)
            if attachment.spec.node_name == UNKNOWN:
                yield from snapshot.leaving_nodes()
            yield attachment.spec.node_name
    elif change.resource in (POD_DISRUPTION_BUDGETS, PERSISTENT_VOLUMES, NODE_POOLS):
        yield from {**snapshot.leaving_nodes(), **unmarked_nodes(snapshot)}


def leaving_node_of(subject: Subject, snapshot: Snapshot) -> Node | None:
    """The terminating Node that a pod runs on; None for any other subject."""
    if subject.kind != PODS.kind:
        return None
    pod = snapshot.pods.get(f"{subject.namespace}/{subject.name}")
    return snapshot.leaving_nodes().get(pod.spec.node_name) if pod is not None else None


def is_finalizing(node: Node) -> bool:
    """It is being deleted, and our finalizer keeps it."""
    return node.deleting and names.FINALIZER in node.metadata.finalizers


def is_unmarked(node: Node, snapshot: Snapshot) -> bool:
    """Its claim has a deadline, but the Node is neither deleted nor tainted: it cannot be read, so
    Tenure does not write to it. Its pods are force deleted in time all the same."""
    if not is_unreadable(node):
        return False
    return deadline_of(snapshot.claim_of(node)) is not None


def unmarked_nodes(snapshot: Snapshot) -> dict[str, Node]:
    """By name."""
    found = (one for one in snapshot.unreadable().values() if isinstance(one, Node))
    return {node.name: node for node in found if is_unmarked(node, snapshot)}


def drain_of(node: Node, snapshot: Snapshot) -> DrainView:
    """What the drain of a Node depends on; empty for a Node that is not terminating."""
    if not node.deleting and not is_unmarked(node, snapshot):
        return DrainView(node=node)
    return drain_until(node, deadline_of(snapshot.claim_of(node)), snapshot)


def drain_until(node: Node, deadline: Deadline | None, snapshot: Snapshot) -> DrainView:
    pods = {**snapshot.pods_on(node.name), **snapshot.pods_nowhere()}
    claim = snapshot.claim_of(node)
    return DrainView(
        node=node,
        unreadable=in_the_way(claim, (node,), None, snapshot, pods=False),
        pods=tuple(_pod_views([pods[name] for name in sorted(pods)], snapshot)),
        deadline=deadline,
        cap=protection_cap(node, snapshot),
        attachments=tuple(_attachments(node, snapshot)),
    )


def before_drain(node: Node, snapshot: Snapshot) -> DrainView:
    """What may block a drain that has not begun: no eviction was tried, no volume is detached yet."""
    pods = {**snapshot.pods_on(node.name), **snapshot.pods_nowhere()}
    known = snapshot.once_of(POD_DISRUPTION_BUDGETS, _no_pdbs_known)
    return DrainView(
        node=node,
        unreadable=in_the_way(snapshot.claim_of(node), (node,), None, snapshot, pods=False),
        pods=tuple(
            PodView(pods[name], pdbs=_pdbs_of(pods[name], known, snapshot)) for name in sorted(pods)
        ),
        cap=protection_cap(node, snapshot),
    )


def unfinished_pods(nodes: Iterable[Node], snapshot: Snapshot) -> Iterable[Pod]:
    """The pods that would lose work if the instance stopped."""
    for node in nodes:
        pods = snapshot.pods_on(node.name)
        yield from (pods[name] for name in sorted(pods) if not pods[name].finished)


def _pod_views(pods: Iterable[Pod], snapshot: Snapshot) -> Iterable[PodView]:
    """All pods of a thousand candidates, in one view of disruption."""
    evictions = snapshot.observations.evictions
    failed = snapshot.observations.failed_deletions
    known = snapshot.once_of(POD_DISRUPTION_BUDGETS, _no_pdbs_known)
    for pod in pods:
        uid = pod.uid
        yield PodView(pod, evictions.get(uid), _pdbs_of(pod, known, snapshot), failed.get(uid))


def _pdbs_of(pod: Pod, known: _PdbsKnown, snapshot: Snapshot) -> Pdbs:
    """A thousand candidates may have the pods of a few workloads, which all have the same labels."""
    if not (there := snapshot.pdbs_in(pod.namespace)):
        return ()
    key = pod.namespace, frozenset(pod.labels.items())
    found = known.get(key)
    if found is None:
        if len(known) >= _PDBS_KNOWN_MAX:
            known.clear()
        pdbs = (pdb for _, pdb in sorted(there.items()))
        found = known[key] = tuple(b for b in pdbs if matches(b.spec.selector, pod.labels))
    return found


#: By namespace and labels.
_PdbsKnown = dict[tuple[str, frozenset[tuple[str, str]]], Pdbs]
#: Labels of pods differ with each rollout.
_PDBS_KNOWN_MAX: Final = 10_000


def _no_pdbs_known(_: object) -> _PdbsKnown:
    """Filled as they are asked for, until a PDB changes."""
    return {}


def _attachments(node: Node, snapshot: Snapshot) -> Iterable[Attachment]:
    attached = {**snapshot.attachments_on(node.name), **snapshot.attachments_nowhere()}
    users = _users(node, snapshot) if attached else {}
    for name in sorted(attached):
        volume = attached[name].spec.source.persistent_volume_name
        if is_unreadable(attached[name]):
            yield Attachment(name, volume or UNKNOWN)
        elif volume:  # Inline volumes are detached by the driver itself.
            persistent = snapshot.persistent_volumes.get(volume)
            claim = persistent.spec.claim_ref if persistent is not None else None
            key = (claim.namespace, claim.name) if claim is not None else ("", "")
            yield Attachment(name, volume, tuple(users.get(key, ())))


def _users(node: Node, snapshot: Snapshot) -> dict[tuple[str, str], list[Pod]]:
    """The pods on the node by the namespaces and names of the volume claims that they have."""
    pods = snapshot.pods_on(node.name)
    users: dict[tuple[str, str], list[Pod]] = {}
    for name in sorted(pods):
        for claim in pods[name].volume_claims:
            users.setdefault((pods[name].namespace, claim), []).append(pods[name])
    return users
