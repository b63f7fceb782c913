"""Questions about objects, pods and instances: what an action must never do to them.

Each answers None, or the sentence that says which promise would be broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from tenure.model.api import names
from tenure.model.api.meta import earlier, format_time, later, seconds_of
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.api.pod import Pod
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.safety.pods import CREATION, protected_until, why_protected
from tenure.safety.times import span_of

Ours = frozenset[tuple[str, str]]


def foreign_class(ref: NodeClassRef, ours: Ours) -> str | None:
    """Pools and claims of another provider are never written to."""
    if (ref.group, ref.kind) in ours:
        return None
    return (
        f"its node class {ref.kind}.{ref.group} is not served here: nothing foreign is written to"
    )


def foreign_node(node: Node, claim: NodeClaim | None, ours: Ours) -> str | None:
    """Only Nodes of our claims, or that carry our node class's label, are written to."""
    if claim is not None:
        return foreign_class(claim.spec.node_class_ref, ours)
    labels = {f"{group}/{kind.lower()}" for group, kind in ours}
    if labels & set(node.labels):
        return None
    return f"Node {node.name} belongs to no claim of ours: nothing foreign is written to"


def foreign_status(pod: Pod, status: Mapping[str, object]) -> str | None:
    """Of a pod's status only ``nominatedNodeName`` is written, and only until the pod is bound."""
    key = f"{pod.namespace}/{pod.name}"
    if set(status) != {"nominatedNodeName"}:
        return f"of pod {key} nothing but its nomination is ours to write"
    if pod.spec.node_name:
        return f"pod {key} is bound to Node {pod.spec.node_name} already"
    return None


def early_node_deletion(node: Node, claim: NodeClaim) -> str | None:
    """We delete a Node only because its claim is being deleted."""
    if claim.deleting:
        return None
    return f"Node {node.name} would be deleted while its claim {claim.name} lives"


def undrained_deletion(node: Node, claim: NodeClaim) -> str | None:
    """A registered Node is deleted only while our finalizer holds it until it is drained."""
    if not claim.registered or names.FINALIZER in node.metadata.finalizers:
        return None
    return f"Node {node.name} lacks our finalizer: it would be gone before its pods are drained"


def early_eviction(
    pod: Pod, node: Node | None, claim: NodeClaim | None = None, *, forced: bool = False
) -> str | None:
    """Pods are taken only from a Node that is leaving, or reboots, and is closed for new pods.

    One that cannot be read is not closed; for its claim's deadline (``early_force``) they are taken.
    """
    if forced and node is not None and is_unreadable(node) and claim is not None and claim.deleting:
        return None
    if node is not None and not node.deleting and claim is not None and claim.rebooting:
        if node.has_taint(names.REBOOTING_TAINT, "NoSchedule"):
            return None
        return f"node {node.name} is not closed for new pods yet"
    if node is None or not node.deleting:
        return f"pod {pod.key} is not on a node that is being deleted"
    if not node.has_taint(names.DISRUPTED_TAINT, "NoSchedule"):
        return f"node {node.name} is not closed for new pods yet"
    return None


def protected_eviction(
    pod: Pod, now: datetime, *, cap: str | None = None, clock: str = CREATION
) -> str | None:
    """No pod is evicted before its protection ends; only a deadline overrules that."""
    until = protected_until(pod, cap=cap, clock=clock)
    if until is None or now >= until:
        return None
    return f"pod {pod.key} would be evicted although {why_protected(pod, until)}"


def early_force(pod: Pod, deadline: datetime | None, grace: int, now: datetime) -> str | None:
    """PDBs and protection are overruled only for a deadline, and only as late as it allows.

    And never with a grace of 0: the pod's successor could start while it still runs.
    """
    if grace < 1:
        return f"pod {pod.key} would be removed before it has stopped"
    if deadline is None:
        return f"pod {pod.key} would be forced from a node that has no deadline"
    if pod.deleting:
        return None
    seconds = pod.spec.termination_grace_period_seconds
    own = seconds_of(30 if seconds is None else seconds)
    if now < (begins := earlier(deadline, own)):
        at = format_time(begins)
        return f"pod {pod.key} may stay until {at}: it would be forced before it has to be"
    return None


def later_deadline(
    claim: NodeClaim, known: datetime | None, written: datetime | None
) -> str | None:
    """The deadline of a claim that is being deleted is never put off. ``written``: None takes it off."""
    if not claim.deleting or known is None:
        return None
    if written is not None and written <= known:
        return None
    return f"claim {claim.name} has to be gone by {format_time(known)}: that is never put off"


def unfounded_deadline(claim: NodeClaim, written: datetime | None) -> str | None:
    """A deadline that nothing else asks for is the one that the claim's grace period sets."""
    deleted, period = claim.metadata.deletion_timestamp, claim.spec.termination_grace_period
    span = span_of(period)
    known = later(deleted, span) if deleted is not None and span is not None else None
    # Written in whole seconds.
    if written is not None and known is not None and abs(written - known) < timedelta(seconds=1):
        return None
    return f"nothing asks for that deadline of claim {claim.name}"


def early_interruption(
    claim: NodeClaim, written: datetime | None, announced: datetime | None
) -> str | None:
    """The deadline of an interruption is what the cloud has announced, and not before."""
    # Written in whole seconds.
    if written is None or announced is None or written > earlier(announced, timedelta(seconds=1)):
        return None
    at = format_time(announced)
    return f"the cloud takes the instance of claim {claim.name} at {at}, and not before"


def early_release(what: str, instance_running: bool) -> str | None:
    """A finalizer goes only after the instance."""
    if instance_running:
        return f"the finalizer of {what} would go while its instance may still run"
    return None


def live_termination(claim: NodeClaim | None) -> str | None:
    """The instance of a claim that is not being deleted is never ended."""
    if claim is not None and not claim.deleting:
        return f"the instance of {claim.name} would be ended while the claim lives"
    return None


def uncalled_reboot(claim: NodeClaim | None, provider_id: str) -> str | None:
    """Only the instance of a claim that asks for it is rebooted."""
    if claim is None or claim.provider_id != provider_id:
        return f"instance {provider_id} belongs to no claim that could ask for its reboot"
    if claim.deleting or not claim.rebooting:
        return f"the instance of {claim.name} would be rebooted while its claim does not say so"
    return None


def untagged_termination(provider_id: str, claim_uid: str) -> str | None:
    """An instance that carries no claim's UID is not ours."""
    if claim_uid:
        return None
    return f"instance {provider_id} carries no claim's UID: it is not ours to end"


def late_launch(claim: NodeClaim | None) -> str | None:
    """Nothing is launched for a claim that is gone, leaving, without our finalizer, or launched."""
    if claim is None:
        return "there is no such claim to launch for"
    if claim.deleting:
        return f"claim {claim.name} is being deleted: nothing is launched for it"
    if names.FINALIZER not in claim.metadata.finalizers:
        return f"claim {claim.name} lacks our finalizer: its instance could outlive it unseen"
    if claim.launched:
        return f"claim {claim.name} has an instance already"
    return None
