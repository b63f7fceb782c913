"""When a new node begins to take pods: once the pods that it was launched for are named.

kube-scheduler binds pods to whichever node takes them first. A pod of higher priority, whose own node
is still booting, takes the room of others; and a name that is written a moment after the node begins to take pods
comes too late. So a claim for pods that cannot change places with all others that wait has a startup taint of
our own (``tenure.dev/reserved``). It is removed as soon as one of these holds:

1. names are not written (``--nominate-pods=false``), or no pod waits any more that the node was launched for;
2. the node has been registered and Ready for ten seconds: no pod waits longer because of this;
3. nothing else keeps pods away from the node, the status of each of its pods names it, and no pod waits that
   may run there, would do harm there, and whose own node is still to come.

Two kinds of pods do harm on another node than their own. One of higher priority takes the room of others. One that must be
near others (required pod affinity) decides where all of them run, if it is the first of them that is bound; one that must be away from
others (anti-affinity) keeps them from their own node. And pods that are
spread over zones may not be bound before those of their workload in other zones: their nodes wait for each other.

All nodes that are ready begin together, those whose pods have the highest priority first: the scheduler tries these pods first, and
each goes to the node that its status names. So a node whose pods are named waits for the names of pods that would do harm there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from tenure.core.claim.initialize import why_not_initialized
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.taints import is_reserved, untaint_reserved, without_reserved
from tenure.core.opening.rivals import Rival, Waiting, may_run, rank_of, waiting_pods
from tenure.core.provision.facts import (
    HigherPriorityWaits,
    NameMissing,
    Opens,
    OpensAtLatest,
    PodWithAffinityWaits,
    SpreadPodWaits,
)
from tenure.core.reasons import Reason
from tenure.core.writes import subject_of
from tenure.model.api.meta import find_condition, later
from tenure.model.api.names import RESERVED_TAINT
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: How long a node that is registered and Ready keeps pods away for this.
CLOSED_AT_MOST: Final = timedelta(seconds=10)

#: There is one key: what a node waits for depends on all pods that wait.
_CLUSTER: Final = "cluster"


class ReservedNode(msgspec.Struct, frozen=True):
    node: Node
    #: How many pods wait that it was launched for; None: not counted, because it takes no pods yet.
    pods: int | None
    #: What it waits for; None: it takes pods now.
    waits_for: Fact | None = None
    #: When it takes pods at the latest; None while it is not registered and Ready.
    until: datetime | None = None


class OpeningView(msgspec.Struct, frozen=True):
    nodes: tuple[ReservedNode, ...]


class OpeningDecider:
    concern = Concern.OPENING

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (_CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == PODS:
            waits = any(isinstance(pod, Pod) and pod.unschedulable for pod in change.versions())
            return (_CLUSTER,) if waits else ()
        return (_CLUSTER,) if change.resource in (NODES, NODE_CLAIMS) else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> OpeningView | None:
        found = [(claim, node, lacks(claim, node)) for claim, node in _reserved_nodes(snapshot)]
        if not found:
            return None  # The usual case.
        if all(missing is not None for _, _, missing in found):
            waiting = Waiting({}, (), {})  # Whose pods wait does not matter yet.
        else:
            waiting = snapshot.once(waiting_pods)
        rivals = snapshot.once(rivals_of_reserved) if waiting.by_node else {}
        nameless = _nameless([node for _, node, _ in found], waiting, rivals)
        return OpeningView(
            tuple(
                ReservedNode(
                    node=node,
                    pods=len(waiting.of(node)) if missing is None else None,
                    waits_for=missing
                    or _waits_for(node, waiting, rivals.get(node.name))
                    or _name_missing(claim, node, waiting, nameless),
                    until=_until(claim, node),
                )
                for claim, node, missing in sorted(found, key=partial(_turn, waiting))
            )
        )

    def decide(self, view: OpeningView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return [_verdict(one, settings, now) for one in view.nodes]


def _turn(waiting: Waiting, found: tuple[NodeClaim, Node, Fact | None]) -> tuple[int, str]:
    """Whose taint is removed first: that is tried first, too."""
    pods = waiting.of(found[1])
    return -rank_of(pods[0]).priority if pods else 0, found[1].name


def _verdict(one: ReservedNode, settings: Settings, now: datetime) -> Verdict:
    late = one.until is not None and now >= one.until
    needless = one.pods == 0 or not settings.nominate_pods
    waits_for = None if late or needless else one.waits_for
    opens = waits_for is None
    return Verdict(
        concern=Concern.OPENING,
        subject=subject_of(one.node),
        reason=Reason.NODE_OPENED if opens else Reason.NODE_NOT_OPEN_YET,
        facts=(Opens(one.pods or 0),)
        if waits_for is None
        else (waits_for, OpensAtLatest(one.until)),
        action=untaint_reserved(one.node) if opens else None,
        recheck_at=None if opens else one.until,
    )


def _reserved_nodes(snapshot: Snapshot) -> Iterator[tuple[NodeClaim, Node]]:
    """Only new claims can have one: not many, and found by an index."""
    for name in sorted(snapshot.new_claims()):
        claim = snapshot.claims[name]
        if claim.deleting or is_unreadable(claim) or not is_ours(claim, snapshot):
            continue
        nodes = list(snapshot.nodes_with_provider(claim.provider_id).values())
        if len(nodes) == 1 and claim.registered and is_reserved(nodes[0], claim):
            node = nodes[0]
            if not node.deleting and not is_unreadable(node):
                yield claim, node


def rivals_of_reserved(snapshot: Snapshot) -> Mapping[str, Rival | None]:
    """By reserved node that lacks nothing else: whom it waits for; None: it is about to take pods."""
    waiting, ready = snapshot.once(waiting_pods), dict[str, bool]()
    return {
        node.name: _rival(claim, node, waiting, snapshot, ready) if waiting.of(node) else None
        for claim, node in _reserved_nodes(snapshot)
        if lacks(claim, node) is None
    }


def is_about_to_open(name: str, snapshot: Snapshot) -> bool:
    """Whether the node takes pods, or will as soon as the pods that it was launched for are named."""
    rivals = snapshot.once(rivals_of_reserved)
    if name in rivals:
        return rivals[name] is None
    node = snapshot.nodes.get(name)
    if node is None or node.has_taint(RESERVED_TAINT):
        return False
    return _is_ready(name, snapshot)


def closed_until(name: str, snapshot: Snapshot) -> datetime | None:
    """When a node with our taint takes pods at the latest; None where that is not known, or it has none."""
    node = snapshot.nodes.get(name)
    claim = snapshot.claim_of(node) if node is not None else None
    if node is None or claim is None or not claim.registered or not is_reserved(node, claim):
        return None
    return _until(claim, node) if lacks(claim, node) is None else None


def _waits_for(node: Node, waiting: Waiting, rival: Rival | None) -> Fact | None:
    pods = waiting.of(node)
    if rival is not None:
        named = f"{rival.pod.namespace}/{rival.pod.name}"
        if rival.spread:
            return SpreadPodWaits(named, rival.node)
        if rival.rank.priority > rank_of(pods[-1]).priority:
            return HigherPriorityWaits(named, rival.rank.priority, rival.node)
        return PodWithAffinityWaits(named, rival.node)
    return None


def _nameless(
    nodes: Iterable[Node], waiting: Waiting, rivals: Mapping[str, Rival | None]
) -> dict[str, Fact]:
    """By node that is about to take pods: a pod whose status does not name it yet."""
    return {
        node.name: NameMissing(f"{pod.namespace}/{pod.name}", node.name)
        for node in nodes
        if node.name in rivals and rivals[node.name] is None
        for pod in waiting.of(node)
        if pod.status.nominated_node_name != node.name
    }


def _name_missing(
    claim: NodeClaim, node: Node, waiting: Waiting, nameless: Mapping[str, Fact]
) -> Fact | None:
    """Of its own, or of a node that begins together with it and whose pods would do harm here."""
    pods = waiting.of(node)
    if node.name in nameless or not nameless or not pods:
        return nameless.get(node.name)
    labels = {**node.labels, **claim.labels}
    harmful = (one for one in waiting.harmful_to(pods) if one.node in nameless)
    return next((nameless[one.node] for one in harmful if may_run(one.pod, claim, labels)), None)


def _rival(
    claim: NodeClaim, node: Node, waiting: Waiting, snapshot: Snapshot, ready: dict[str, bool]
) -> Rival | None:
    """A pod that would be bound here, and should not.

    ``ready``: what is known of the others by now; there may be hundreds.
    """
    pods = waiting.of(node)
    labels = {**node.labels, **claim.labels}
    runs: dict[Hashable, bool] = {}
    for one in waiting.harmful_to(pods):
        if one.node == node.name:
            continue
        if one.node not in ready:
            ready[one.node] = _is_ready(one.node, snapshot)
        if ready[one.node]:
            continue
        if one.requires not in runs:
            runs[one.requires] = may_run(one.pod, claim, labels)
        if runs[one.requires]:
            return one
    for one in waiting.beside(pods, node.name):
        if one.node not in ready:
            ready[one.node] = _is_ready(one.node, snapshot)
        if not ready[one.node]:
            return one
    return None


def _is_ready(name: str, snapshot: Snapshot) -> bool:
    """Whether nothing but our own taint keeps pods away from the node."""
    node = snapshot.nodes.get(name)
    claim = snapshot.claim_of(node) if node is not None else None
    if node is None or claim is None:
        return node is not None
    return lacks(claim, node) is None


def lacks(claim: NodeClaim, node: Node) -> Fact | None:
    """What keeps pods away but for our own taint."""
    found = why_not_initialized(claim, without_reserved(node))
    return found[1] if found is not None else None


def _until(claim: NodeClaim, node: Node) -> datetime | None:
    """Ten seconds after it has been both registered and Ready."""
    if not node.ready:
        return None
    told = (claim.condition("Registered"), find_condition(node.status.conditions, "Ready"))
    instants = [one.last_transition_time for one in told if one and one.last_transition_time]
    return later(max([node.created_at, *instants]), CLOSED_AT_MOST)
