"""When a new node begins to take pods: once the pods that it was launched for are named.

kube-scheduler binds pods to whichever node takes them first. A pod of higher priority, whose own node
is still booting, takes the room of others; and a name that is written a moment after the node begins to take pods
comes too late. So a claim for pods that cannot change places with all others that wait has a startup taint of
our own (``tenure.dev/reserved``). It is removed as soon as one of these holds:

1. names are not written (``--nominate-pods=false``), or no pod waits any more that the node was launched for;
2. the node has been registered and Ready for ten seconds: no pod waits longer because of this;
3. nothing else keeps pods away from the node, the status of each of its pods names it, and no pod waits that
   may run there, would do harm there, and whose own node is still to come, or comes first.

Two kinds of pods do harm on another node than their own. One of higher priority takes the room of others. One that must be
near others (required pod affinity) decides where all of them run, if it is the first of them that is bound. Of several
nodes that are ready, those whose pods have the highest priority take pods first; nodes with pods of the same priority
begin together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from tenure.core.claim.initialize import why_not_initialized
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.ownership import is_ours
from tenure.core.marks.taints import is_reserved, untaint_reserved, without_reserved
from tenure.core.provision.demand import Demand, is_provisionable, unscheduled
from tenure.core.provision.facts import (
    HigherPriorityWaits,
    NameMissing,
    Opens,
    OpensAtLatest,
    PodWithAffinityWaits,
)
from tenure.core.provision.nominations import nominations_in
from tenure.core.reasons import Reason
from tenure.core.writes import subject_of
from tenure.model.api.meta import find_condition, later
from tenure.model.api.names import RESERVED_TAINT
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import pod_alternatives
from tenure.model.settings import Settings
from tenure.model.snapshot.derived import Derivation
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
            waiting = Waiting({}, ())  # Whose pods wait does not matter yet.
        else:
            waiting = snapshot.once(waiting_pods)
        rivals = snapshot.once(rivals_of_reserved) if waiting.by_node else {}
        return OpeningView(
            tuple(
                ReservedNode(
                    node=node,
                    pods=len(waiting.of(node)) if missing is None else None,
                    waits_for=missing or _waits_for(node, waiting, rivals.get(node.name)),
                    until=_until(claim, node),
                )
                for claim, node, missing in found
            )
        )

    def decide(self, view: OpeningView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return [_verdict(one, settings, now) for one in view.nodes]


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


class Rank(NamedTuple):
    """Whose node takes pods first."""

    priority: int
    #: It must be near other pods.
    follows: bool


class Rival(msgspec.Struct, frozen=True):
    """Pods of one node that require the same of it: the one of the highest rank stands for them."""

    rank: Rank
    pod: Pod
    requires: Hashable
    #: The Node that was launched for the pod, or its claim.
    node: str
    #: The highest rank of the pods of that node.
    highest: Rank


class Waiting(msgspec.Struct, frozen=True):
    """The pods that wait and have a node that was launched for them."""

    #: By Node, or by claim that has none yet: those of the highest rank first.
    by_node: Mapping[str, Sequence[Pod]]
    #: Those of the highest rank first.
    rivals: Sequence[Rival]

    def harmful_to(self, pods: Sequence[Pod]) -> Iterator[Rival]:
        """Those that should not be bound to the node of these pods."""
        lowest = rank_of(pods[-1]).priority
        yield from takewhile(lambda one: one.rank.priority > lowest, self.rivals)
        yield from (one for one in self.rivals if one.rank.follows)

    def of(self, node: Node) -> Sequence[Pod]:
        return self.by_node.get(node.name, ())


def waiting_pods(snapshot: Snapshot) -> Waiting:
    unbound = snapshot.unschedulable_pods().values()
    demands = [unscheduled(pod, None) for pod in unbound if is_provisionable(pod, snapshot)]
    nominations = nominations_in(snapshot, demands)
    by_node: dict[str, list[Pod]] = {}
    for demand in sorted(demands, key=_by_rank):
        if (nomination := nominations.get(demand.pod.uid)) is not None:
            by_node.setdefault(nomination.node, []).append(demand.pod)
    rivals: dict[tuple[str, Hashable], Rival] = {}
    for name, pods in by_node.items():
        for pod in pods:
            requires = snapshot.derived.of(_REQUIRES, pod)
            if (name, requires) not in rivals:
                highest = rank_of(pods[0])
                rivals[name, requires] = Rival(rank_of(pod), pod, requires, name, highest)
    return Waiting(by_node, sorted(rivals.values(), key=lambda rival: rival.rank, reverse=True))


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


def _waits_for(node: Node, waiting: Waiting, rival: Rival | None) -> Fact | None:
    pods = waiting.of(node)
    if rival is not None:
        named = f"{rival.pod.namespace}/{rival.pod.name}"
        if rival.rank.priority > rank_of(pods[-1]).priority:
            return HigherPriorityWaits(named, rival.rank.priority, rival.node)
        return PodWithAffinityWaits(named, rival.node)
    for pod in pods:
        if pod.status.nominated_node_name != node.name:
            return NameMissing(f"{pod.namespace}/{pod.name}", node.name)
    return None


def _rival(
    claim: NodeClaim, node: Node, waiting: Waiting, snapshot: Snapshot, ready: dict[str, bool]
) -> Rival | None:
    """A pod that would be bound here, and should not.

    ``ready``: what is known of the others by now; there may be hundreds.
    """
    pods = waiting.of(node)
    highest = rank_of(pods[0])
    labels = {**node.labels, **claim.labels}
    may_run: dict[Hashable, bool] = {}
    for one in waiting.harmful_to(pods):
        if one.node == node.name:
            continue
        if one.node not in ready:
            ready[one.node] = _is_ready(one.node, snapshot)
        if ready[one.node] and one.highest <= highest:
            continue
        if one.requires not in may_run:
            may_run[one.requires] = _may_run(one.pod, claim, labels)
        if may_run[one.requires]:
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


def rank_of(pod: Pod) -> Rank:
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    return Rank(pod.spec.priority or 0, bool(terms))


def _by_rank(demand: Demand) -> tuple[int, bool, str]:
    priority, follows = rank_of(demand.pod)
    return -priority, not follows, demand.pod.uid


def _may_run(pod: Pod, claim: NodeClaim, labels: Mapping[str, str]) -> bool:
    """As far as the node decides; whether there is room depends on what else comes."""
    if untolerated(claim.spec.taints, pod.spec.tolerations) is not None:
        return False
    return any(wanted.matches(labels) for wanted in pod_alternatives(pod))


def _requires(pod: Pod) -> Hashable:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return frozenset(pod.spec.node_selector.items()), required, pod.spec.tolerations


_REQUIRES: Final = Derivation("what a pod requires of its node", _requires)
