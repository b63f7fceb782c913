"""Decide the next step of a claim and its Node that are being deleted.

Deleting either starts the termination; our finalizer keeps both until the instance is terminated.
The steps of the Node are in ``node``, those of the claim in ``claim``, those of the pods in
``drain``. This module finds out what belongs together: a claim and every Node with its
provider id. A Node with no claim, or with several, is evaluated without a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.marks.ownership import is_our_node, is_ours
from tenure.core.terminate.claim import decide_claim
from tenure.core.terminate.drain import (
    drain_of,
    drains_touched,
    is_finalizing,
    leaving_node_of,
    unfinished_pods,
)
from tenure.core.terminate.node import decide_node
from tenure.core.terminate.view import TerminationView
from tenure.core.unreadable.decider import in_the_way
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: Keys of Nodes that are evaluated without a claim; a claim's name cannot contain a slash.
_ALONE: Final = "node/"


class TerminationDecider:
    concern = Concern.TERMINATION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        for name, claim in snapshot.claims.items():
            if claim.deleting:
                yield name
        for node in snapshot.leaving_nodes().values():
            yield from _keys_of(node, snapshot)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                for node in snapshot.nodes_with_provider(claim.provider_id).values():
                    yield from _keys_of(node, snapshot)
        elif change.resource == NODES:
            for version in change.versions():
                assert isinstance(version, Node)
                yield from _keys_of(version, snapshot)
            if change.old is None or change.new is None:
                yield from snapshot.claims_of_node(change.key)
        else:
            for name in drains_touched(change, snapshot):
                if (leaving := snapshot.leaving_nodes().get(name)) is not None:
                    yield from _keys_of(leaving, snapshot)
            if change.resource == PODS:
                yield from _claims_of_lost_nodes(change, snapshot)
            for pod in filter(is_unreadable, change.versions()):
                # It also blocks where nothing is drained: on a Node that never registered.
                its_node = snapshot.nodes.get(pod.spec.node_name) if isinstance(pod, Pod) else None
                yield from _keys_of(its_node, snapshot) if its_node is not None else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_CLAIMS.kind:
            yield subject.name
        elif (node := leaving_node_of(subject, snapshot)) is not None:
            yield from _keys_of(node, snapshot)

    def view(self, snapshot: Snapshot, key: str) -> TerminationView | None:
        if key.startswith(_ALONE):
            return _view_of_node(snapshot, key.removeprefix(_ALONE))
        claim = snapshot.claims.get(key)
        if claim is None or not is_ours(claim, snapshot):
            return None
        return _view_of_claim(snapshot, claim)

    def decide(self, view: TerminationView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        verdicts = [
            decide_node(view, drain, settings, now)
            for drain in view.drains
            if is_finalizing(drain.node) and not view.shared
        ]
        if view.claim is not None:
            verdicts.append(decide_claim(view, view.claim, settings, now))
        return verdicts


def _keys_of(node: Node, snapshot: Snapshot) -> Iterable[str]:
    yield _ALONE + node.name
    yield from snapshot.claims_with_provider(node.spec.provider_id)


def _claims_of_lost_nodes(change: Change, snapshot: Snapshot) -> Iterable[str]:
    """The claims whose Node is gone while the changed pod was or is bound to it."""
    for pod in change.versions():
        assert isinstance(pod, Pod)
        if pod.spec.node_name and pod.spec.node_name not in snapshot.nodes:
            yield from snapshot.claims_of_node(pod.spec.node_name)


def _pods_of_lost_node(claim: NodeClaim, snapshot: Snapshot) -> Iterable[Pod]:
    """The pods bound to a Node that is gone; if another Node has its name, they belong to that."""
    if claim.node_name and claim.node_name not in snapshot.nodes:
        pods = snapshot.pods_on(claim.node_name)
        yield from (pods[key] for key in sorted(pods) if not pods[key].finished)


def _view_of_claim(snapshot: Snapshot, claim: NodeClaim) -> TerminationView | None:
    if names.FINALIZER not in claim.metadata.finalizers:
        return None  # Not adopted yet, or released.
    found = snapshot.nodes_with_provider(claim.provider_id)
    nodes = [found[name] for name in sorted(found)]
    shared = len(snapshot.claims_with_provider(claim.provider_id)) > 1
    # With several claims for one Node, it is unknown which one to delete with it.
    if not claim.deleting and (shared or not any(is_finalizing(node) for node in nodes)):
        return None
    observations = snapshot.observations
    return TerminationView(
        claim=claim,
        drains=tuple(drain_of(node, snapshot) for node in nodes),
        shared=shared,
        answer=observations.terminations.get(claim.uid),
        instance=observations.instances.get(claim.uid),
        unlisted_at=observations.vanished.get(claim.uid),
        inspection=observations.inspections.get(claim.uid),
        unreadable=in_the_way(claim, nodes, None, snapshot, pods=False),
        unreadable_pods=tuple(filter(is_unreadable, unfinished_pods(nodes, snapshot))),
        bound_pods=tuple(_pods_of_lost_node(claim, snapshot)),
    )


def _view_of_node(snapshot: Snapshot, name: str) -> TerminationView | None:
    node = snapshot.leaving_nodes().get(name)
    if node is None or not is_finalizing(node) or not is_our_node(node, snapshot):
        return None
    if snapshot.claim_of(node) is not None:
        return None  # Evaluated together with its claim.
    unreadable = in_the_way(None, (node,), None, snapshot, pods=False)
    return TerminationView(claim=None, drains=(drain_of(node, snapshot),), unreadable=unreadable)
