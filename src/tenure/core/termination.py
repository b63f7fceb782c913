"""Decide the next step of a leaving claim and its Node.

Deleting either starts it; both are held by our finalizer until the instance is gone.
For the **Node**, the first of these that applies:

1. close      taint it and take it out of load balancers, before any pod leaves;
2. drain      wait for the pods (see ``drain``), naming those that remain;
3. settle     a few seconds from the start of the drain, so that everybody saw the taint;
4. terminate  ask the cloud to end the instance, until it says that it is gone;
5. release    take the finalizer off.

For the **claim**: delete its Node; repeat in its conditions what the Node's drain has
reached (``Drained``, ``InstanceTerminating``); when no Node is left, end the instance;
release. A claim whose launch may still be unanswered is released only after the cloud
has said that no instance carries its UID. A Node that is being deleted takes its claim
along. A Node without a claim is drained and released: its instance went with its claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from tenure.core.claims import claim_status, is_ours
from tenure.core.conditions import Wanted
from tenure.core.decision import (
    Action,
    Blocker,
    Concern,
    Delete,
    Patch,
    Subject,
    Terminate,
    Verdict,
)
from tenure.core.drain import holds_node, stuck_at
from tenure.core.reasons import Reason
from tenure.model import names
from tenure.model.meta import format_time
from tenure.model.node import Node, Taint
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import TerminationAnswer
from tenure.model.pod import Pod
from tenure.model.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot

#: Keys of Nodes that have no claim; a claim's name cannot contain a slash.
_ORPHAN = "node/"


class TerminationView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim | None
    nodes: tuple[Node, ...]
    #: Pods of each node, in the same order.
    pods: tuple[tuple[Pod, ...], ...]
    answer: TerminationAnswer | None = None
    #: The newest list of the cloud's instances lacks this claim's.
    vanished: bool = False


class TerminationDecider:
    concern = Concern.TERMINATION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        for name, claim in snapshot.claims.items():
            if claim.deleting:
                yield name
        for node in snapshot.leaving_nodes().values():
            yield from self._keys_of_node(node, snapshot)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
            for claim in change.versions():
                assert isinstance(claim, NodeClaim)
                for name in snapshot.nodes_with_provider(claim.provider_id):
                    yield _ORPHAN + name
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                yield from self._keys_of_node(node, snapshot)
        elif change.resource == PODS:
            for pod in change.versions():
                assert isinstance(pod, Pod)
                if (leaving := snapshot.leaving_nodes().get(pod.spec.node_name)) is not None:
                    yield from self._keys_of_node(leaving, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_CLAIMS.kind:
            yield subject.name

    def view(self, snapshot: Snapshot, key: str) -> TerminationView | None:
        if key.startswith(_ORPHAN):
            return _orphan_view(snapshot, key.removeprefix(_ORPHAN))
        claim = snapshot.claims.get(key)
        if claim is None or not is_ours(claim, snapshot):
            return None
        if names.FINALIZER not in claim.metadata.finalizers:
            return None
        found = snapshot.nodes_with_provider(claim.provider_id)
        nodes = tuple(found[name] for name in sorted(found))
        if not claim.deleting and not any(_held(node) for node in nodes):
            return None
        observations = snapshot.observations
        return TerminationView(
            claim=claim,
            nodes=nodes,
            pods=tuple(_pods_on(node, snapshot) for node in nodes),
            answer=observations.terminations.get(claim.uid),
            vanished=claim.uid in observations.vanished,
        )

    def decide(self, view: TerminationView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        verdicts = [
            _decide_node(view, node, pods, settings, now)
            for node, pods in zip(view.nodes, view.pods, strict=True)
            if _held(node)
        ]
        if view.claim is not None:
            verdicts.append(_decide_claim(view, view.claim, settings, now))
        return verdicts

    def _keys_of_node(self, node: Node, snapshot: Snapshot) -> Iterable[str]:
        yield _ORPHAN + node.name
        yield from snapshot.claims_with_provider(node.spec.provider_id)


def _held(node: Node) -> bool:
    return node.deleting and names.FINALIZER in node.metadata.finalizers


def _pods_on(node: Node, snapshot: Snapshot) -> tuple[Pod, ...]:
    if not node.deleting:
        return ()
    pods = snapshot.pods_on(node.name)
    return tuple(pods[key] for key in sorted(pods))


def _orphan_view(snapshot: Snapshot, name: str) -> TerminationView | None:
    node = snapshot.leaving_nodes().get(name)
    if node is None or not _held(node) or snapshot.claims_with_provider(node.spec.provider_id):
        return None
    labels = {f"{group}/{kind.lower()}" for group, kind in snapshot.ours}
    if not labels & set(node.labels):
        return None
    return TerminationView(claim=None, nodes=(node,), pods=(_pods_on(node, snapshot),))


# -- the Node ------------------------------------------------------------------------


def _decide_node(
    view: TerminationView, node: Node, pods: tuple[Pod, ...], settings: Settings, now: datetime
) -> Verdict:
    closing = _close(node)
    if closing is not None:
        return _of_node(node, Reason.TAINTING, "closed for new pods", action=closing)
    if view.vanished and not node.ready:
        message = "its instance is gone and it is not Ready"
        return _of_node(node, Reason.RELEASING, message, action=_release(NODES, node))
    waiting = [pod for pod in pods if holds_node(pod, now)]
    if waiting:
        return _draining(node, waiting)
    if view.claim is None:
        message = "it is empty and has no claim"
        return _of_node(node, Reason.RELEASING, message, action=_release(NODES, node))
    if view.claim.is_true("Drained"):
        return _end_instance(view, view.claim, settings, now, node)
    settled_at = _settled_at(view.claim, settings)
    if settled_at is None:
        return _of_node(node, Reason.SETTLING, "it is empty; its claim notes that the drain began")
    if now < settled_at:
        message = f"it is empty; the instance goes at {format_time(settled_at)}"
        return _of_node(node, Reason.SETTLING, message, recheck_at=settled_at)
    return _of_node(node, Reason.DRAINED, "it is empty; its claim notes that")


def _close(node: Node) -> Patch | None:
    """The patch that keeps new pods and load balancers away; None when it is in place."""
    tainted = node.has_taint(names.DISRUPTED_TAINT, "NoSchedule")
    if tainted and names.EXCLUDE_BALANCERS in node.labels:
        return None
    taints = [t for t in node.spec.taints if t.key != names.DISRUPTED_TAINT]
    taints.append(Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule"))
    return _patch(
        NODES,
        node,
        {"labels": {names.EXCLUDE_BALANCERS: "karpenter"}},
        spec={"taints": [msgspec.to_builtins(taint) for taint in taints]},
    )


def _draining(node: Node, waiting: list[Pod]) -> Verdict:
    named = ", ".join(pod.key for pod in waiting[:3])
    more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
    blockers = tuple(
        Blocker(
            subject=Subject.of(PODS.kind, pod),
            message="is stopping" if pod.deleting else "is still there",
            until=pod.metadata.deletion_timestamp,
        )
        for pod in waiting
    )
    stuck = [at for pod in waiting if (at := stuck_at(pod)) is not None]
    return _of_node(
        node,
        Reason.DRAINING,
        f"waiting for {len(waiting)} pods: {named}{more}",
        blockers=blockers,
        recheck_at=min(stuck, default=None),
    )


def _settled_at(claim: NodeClaim, settings: Settings) -> datetime | None:
    """When the shortest drain may end; None before its beginning was written down."""
    condition = claim.condition("Drained")
    if condition is None or condition.last_transition_time is None:
        return None
    return condition.last_transition_time + settings.drain_min


def _end_instance(
    view: TerminationView,
    claim: NodeClaim,
    settings: Settings,
    now: datetime,
    about: Node | NodeClaim,
) -> Verdict:
    """Ask until it is gone; then release ``about``."""
    answer = view.answer
    resource, speak = (NODES, _of_node) if isinstance(about, Node) else (NODE_CLAIMS, _of_claim)
    if answer is not None and answer.gone:
        return speak(
            about, Reason.RELEASING, "its instance is gone", action=_release(resource, about)
        )
    what = claim.provider_id or "whatever carries the claim's UID"
    if answer is not None and now < (again_at := answer.asked_at + settings.termination_poll):
        message = f"{what} is being ended; asked again at {format_time(again_at)}"
        return speak(about, Reason.INSTANCE_TERMINATING, message, recheck_at=again_at)
    return speak(
        about,
        Reason.INSTANCE_TERMINATING,
        f"asking the cloud to end {what}",
        action=Terminate(provider_id=claim.provider_id, claim_uid=claim.uid),
    )


# -- the claim -----------------------------------------------------------------------


def _decide_claim(
    view: TerminationView, claim: NodeClaim, settings: Settings, now: datetime
) -> Verdict:
    if not claim.deleting:
        action = Delete(
            resource=NODE_CLAIMS,
            name=claim.name,
            uid=claim.uid,
            resource_version=claim.metadata.resource_version,
        )
        names_ = ", ".join(node.name for node in view.nodes if node.deleting)
        return _of_claim(claim, Reason.NODE_DELETED, f"Node {names_} was deleted", action=action)
    for node in view.nodes:
        if not node.deleting:
            delete = Delete(resource=NODES, name=node.name, uid=node.uid)
            message = f"deleting its Node {node.name}"
            return _of_claim(claim, Reason.CLAIM_DELETED, message, action=delete)
    if view.nodes:
        return _follow_node(view, claim, settings, now)
    if view.answer is not None and not view.answer.gone and not claim.instance_terminating:
        said = claim_status(claim, Wanted("InstanceTerminating", "True", "InstanceTerminating"))
        return _of_claim(
            claim, Reason.INSTANCE_TERMINATING, "its instance is being ended", action=said
        )
    return _end_instance(view, claim, settings, now, claim)


def _follow_node(
    view: TerminationView, claim: NodeClaim, settings: Settings, now: datetime
) -> Verdict:
    """Write down how far the drain is; the Node's own verdict moves it on."""
    waiting = [pod for pods in view.pods for pod in pods if holds_node(pod, now)]
    listed = ", ".join(node.name for node in view.nodes)
    settled_at = _settled_at(claim, settings)
    if claim.condition("Drained") is None:
        said = claim_status(claim, Wanted("Drained", "Unknown", "Draining", "pods are leaving"))
        return _of_claim(claim, Reason.DRAINING, f"Node {listed} is being drained", action=said)
    if waiting:
        stuck = min((at for pod in waiting if (at := stuck_at(pod)) is not None), default=None)
        message = f"Node {listed} is being drained: {len(waiting)} pods remain"
        return _of_claim(claim, Reason.DRAINING, message, recheck_at=stuck)
    if not claim.is_true("Drained"):
        if settled_at is not None and now < settled_at:
            message = f"Node {listed} is empty; the instance goes at {format_time(settled_at)}"
            return _of_claim(claim, Reason.SETTLING, message, recheck_at=settled_at)
        said = claim_status(claim, Wanted("Drained", "True", "Drained"))
        return _of_claim(claim, Reason.DRAINED, f"Node {listed} is empty", action=said)
    said = claim_status(claim, Wanted("InstanceTerminating", "True", "InstanceTerminating"))
    return _of_claim(claim, Reason.INSTANCE_TERMINATING, "its instance is being ended", action=said)


# -- sentences and patches -----------------------------------------------------------


def _of_node(
    node: Any,
    reason: Reason,
    message: str,
    *,
    action: Action | None = None,
    recheck_at: datetime | None = None,
    blockers: tuple[Blocker, ...] = (),
) -> Verdict:
    return Verdict(
        concern=Concern.TERMINATION,
        subject=Subject.of(NODES.kind, node),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
        blockers=blockers,
    )


def _of_claim(
    claim: Any,
    reason: Reason,
    message: str,
    *,
    action: Action | None = None,
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.TERMINATION,
        subject=Subject.of(NODE_CLAIMS.kind, claim),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
    )


def _release(resource: Any, thing: Node | NodeClaim) -> Patch:
    kept = [name for name in thing.metadata.finalizers if name != names.FINALIZER]
    return _patch(resource, thing, {"finalizers": kept})


def _patch(
    resource: Any,
    thing: Node | NodeClaim,
    metadata: dict[str, Any],
    spec: dict[str, Any] | None = None,
) -> Patch:
    version = thing.metadata.resource_version
    body: dict[str, Any] = {"metadata": {**metadata, "resourceVersion": version, "uid": thing.uid}}
    if spec is not None:
        body["spec"] = spec
    return Patch(
        resource=resource, name=thing.name, uid=thing.uid, resource_version=version, body=body
    )
