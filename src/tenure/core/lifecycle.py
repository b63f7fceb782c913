"""Decide the next step of a living claim: from the request to a node that takes pods.

One verdict per claim, the first of these that applies:

1. not ours       its node class belongs to another provider: hands off;
2. adopt          our finalizer is missing: nothing is launched before it is there;
3. launch         no instance is known: ask the cloud, or say what it answered;
4. write down     labels of the instance first, then ``Launched`` with its identity;
5. register       find the one Node with the provider id; give it the claim's labels,
                  taints, owner and finalizer; then write ``Registered``;
6. initialize     Ready, no startup or ephemeral taints, requested resources there; label
                  the Node, then write ``Initialized``;
7. in service     nothing to do.

Every step is one write, and each is repeated until the cluster shows it, so a crash
between any two of them heals in the next turn. Time-outs are not decided here: there
is one decision for all of them, with readiness and repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from tenure.core.claims import claim_status, is_ours
from tenure.core.conditions import Wanted
from tenure.core.decision import Concern, Delete, Launch, Patch, Subject, Verdict
from tenure.core.reasons import Reason
from tenure.errors import SpecError
from tenure.model import names
from tenure.model.instance import Instance, LaunchRequest
from tenure.model.meta import format_time
from tenure.model.node import Node, Taint
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import LaunchFailure, LaunchProblem
from tenure.model.quantity import parse_resources
from tenure.model.requirements import Requirements
from tenure.model.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    ours: bool
    nodes: tuple[Node, ...] = ()
    instance: Instance | None = None
    failure: LaunchFailure | None = None


class LifecycleDecider:
    concern = Concern.LIFECYCLE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource == NODES:
            for node in change.versions():
                assert isinstance(node, Node)
                yield from snapshot.claims_with_provider(node.spec.provider_id)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_CLAIMS.kind:
            yield subject.name

    def view(self, snapshot: Snapshot, key: str) -> ClaimView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting:
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        return ClaimView(
            claim=claim,
            ours=is_ours(claim, snapshot),
            nodes=tuple(nodes[name] for name in sorted(nodes)),
            instance=snapshot.observations.instances.get(claim.uid),
            failure=snapshot.observations.launch_failures.get(claim.uid),
        )

    def decide(self, view: ClaimView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return (_decide(view, settings, now),)


def _decide(view: ClaimView, settings: Settings, now: datetime) -> Verdict:
    claim = view.claim
    if not view.ours:
        ref = claim.spec.node_class_ref
        return _verdict(claim, Reason.NOT_OURS, f"{ref.kind}.{ref.group} is not served here")
    if names.FINALIZER not in claim.metadata.finalizers:
        return _verdict(claim, Reason.ADOPTING, "adding the finalizer", action=_adopt(claim))
    if not claim.launched:
        return _launch(view, settings, now)
    if not claim.registered:
        return _register(view)
    if not claim.initialized:
        return _initialize(view)
    return _in_service(view)


def _verdict(
    claim: NodeClaim,
    reason: Reason,
    message: str,
    *,
    action: Launch | Patch | Delete | None = None,
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.LIFECYCLE,
        subject=Subject.of(NODE_CLAIMS.kind, claim),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
    )


def _adopt(claim: NodeClaim) -> Patch:
    return _claim_patch(claim, {"finalizers": [*claim.metadata.finalizers, names.FINALIZER]})


def _claim_patch(claim: NodeClaim, metadata: dict[str, Any]) -> Patch:
    version = claim.metadata.resource_version
    return Patch(
        resource=NODE_CLAIMS,
        name=claim.name,
        uid=claim.uid,
        resource_version=version,
        body={"metadata": {**metadata, "resourceVersion": version, "uid": claim.uid}},
    )


# -- launch --------------------------------------------------------------------------


def _launch(view: ClaimView, settings: Settings, now: datetime) -> Verdict:
    claim, failure = view.claim, view.failure
    if view.instance is not None:
        return _write_down(claim, view.instance)
    if failure is None:
        return _ask_cloud(claim, settings)
    if failure.problem is LaunchProblem.OUT_OF_CAPACITY:
        return _verdict(
            claim, Reason.INSUFFICIENT_CAPACITY, failure.message, action=_give_up(claim)
        )
    if failure.problem is LaunchProblem.MISCONFIGURED:
        return _verdict(claim, Reason.NODE_CLASS_NOT_READY, failure.message, action=_give_up(claim))
    if failure.retry_at is None or now >= failure.retry_at:
        return _ask_cloud(claim, settings)
    said = claim_status(
        claim, Wanted("Launched", "Unknown", Reason.LAUNCH_FAILED, failure.message[:1024])
    )
    message = f"{failure.message}; asked again at {format_time(failure.retry_at)}"
    return _verdict(claim, Reason.LAUNCH_FAILED, message, action=said, recheck_at=failure.retry_at)


def _ask_cloud(claim: NodeClaim, settings: Settings) -> Verdict:
    try:
        request = launch_request(claim, settings.cluster_name)
    except SpecError as error:
        said = claim_status(
            claim, Wanted("Launched", "Unknown", Reason.LAUNCH_FAILED, str(error)[:1024])
        )
        return _verdict(claim, Reason.LAUNCH_FAILED, str(error), action=said)
    return _verdict(
        claim, Reason.LAUNCHING, "asking the cloud for an instance", action=Launch(request=request)
    )


def _give_up(claim: NodeClaim) -> Delete:
    return Delete(
        resource=NODE_CLAIMS,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )


def launch_request(claim: NodeClaim, cluster: str) -> LaunchRequest:
    """What the claim asks of the cloud. Raises ``SpecError`` for what slipped past admission."""
    return LaunchRequest(
        cluster=cluster,
        claim_name=claim.name,
        claim_uid=claim.uid,
        pool=claim.pool_name,
        node_class=claim.spec.node_class_ref,
        requirements=Requirements.from_wire(claim.spec.requirements, "spec.requirements"),
        requests=parse_resources(claim.spec.resources.requests, "spec.resources.requests"),
        labels=dict(claim.labels),
        taints=(*claim.spec.taints, *claim.spec.startup_taints),
    )


def _write_down(claim: NodeClaim, instance: Instance) -> Verdict:
    """Labels before status: once ``Launched`` is True nobody asks the cloud for them again."""
    what = f"{instance.instance_type} in {instance.zone}, {instance.capacity_type}"
    missing = {k: v for k, v in sorted(instance.labels.items()) if k not in claim.labels}
    if missing:
        return _verdict(
            claim,
            Reason.LAUNCHED,
            f"launched {what}",
            action=_claim_patch(claim, {"labels": missing}),
        )
    status = {
        "providerID": instance.provider_id,
        "imageID": instance.image_id,
        "capacity": dict(instance.capacity),
        "allocatable": dict(instance.allocatable),
    }
    said = claim_status(
        claim,
        Wanted("Launched", "True", "Launched"),
        Wanted("Registered", "Unknown", Reason.NODE_NOT_FOUND, "its Node has not appeared yet"),
        status=status,
    )
    return _verdict(claim, Reason.LAUNCHED, f"launched {what}", action=said)


# -- registration --------------------------------------------------------------------


def _register(view: ClaimView) -> Verdict:
    claim = view.claim
    if not view.nodes:
        since = claim.condition("Launched")
        message = "the instance runs; its Node has not appeared yet"
        if since is not None and since.last_transition_time is not None:
            message = f"launched at {format_time(since.last_transition_time)}; its Node has not appeared yet"
        said = claim_status(
            claim,
            Wanted("Registered", "Unknown", Reason.NODE_NOT_FOUND, "its Node has not appeared yet"),
        )
        return _verdict(claim, Reason.NODE_NOT_FOUND, message, action=said)
    if len(view.nodes) > 1:
        listed = ", ".join(node.name for node in view.nodes)
        message = f"{len(view.nodes)} Nodes carry its provider id: {listed}"
        said = claim_status(
            claim, Wanted("Registered", "False", Reason.MULTIPLE_NODES_FOUND, message)
        )
        return _verdict(claim, Reason.MULTIPLE_NODES_FOUND, message, action=said)
    (node,) = view.nodes
    if node.labels.get(names.REGISTERED) != "true":
        tainted = node.has_taint(names.UNREGISTERED_TAINT)
        reason = Reason.REGISTERING if tainted else Reason.UNREGISTERED_TAINT_MISSING
        message = f"Node {node.name} appeared" + (
            "" if tainted else f" without the taint {names.UNREGISTERED_TAINT}"
        )
        return _verdict(claim, reason, message, action=_register_node(claim, node))
    said = claim_status(
        claim,
        Wanted("Registered", "True", "Registered"),
        Wanted("Initialized", "Unknown", Reason.NODE_NOT_READY, "the Node is not Ready yet"),
        status={"nodeName": node.name},
    )
    return _verdict(claim, Reason.REGISTERED, f"Node {node.name} belongs to it", action=said)


def _register_node(claim: NodeClaim, node: Node) -> Patch:
    """One patch on the version judged: lists that others write too keep their elements."""
    owner = {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "name": claim.name,
        "uid": claim.uid,
        "blockOwnerDeletion": True,
    }
    owners = [msgspec.to_builtins(o) for o in node.metadata.owner_references if o.uid != claim.uid]
    finalizers = [f for f in node.metadata.finalizers if f != names.FINALIZER]
    version = node.metadata.resource_version
    body = {
        "metadata": {
            "resourceVersion": version,
            "uid": node.uid,
            "labels": {**claim.labels, names.REGISTERED: "true"},
            "annotations": dict(claim.annotations),
            "ownerReferences": [*owners, owner],
            "finalizers": [*finalizers, names.FINALIZER],
        },
        "spec": {"taints": [msgspec.to_builtins(t) for t in _taints_when_registered(claim, node)]},
    }
    return Patch(resource=NODES, name=node.name, uid=node.uid, resource_version=version, body=body)


def _taints_when_registered(claim: NodeClaim, node: Node) -> list[Taint]:
    taints = [t for t in node.spec.taints if t.key != names.UNREGISTERED_TAINT]
    if node.labels.get(names.DO_NOT_SYNC_TAINTS) == "true":
        return taints
    present = {(t.key, t.effect) for t in taints}
    for taint in (*claim.spec.taints, *claim.spec.startup_taints):
        if (taint.key, taint.effect) not in present:
            present.add((taint.key, taint.effect))
            taints.append(taint)
    return taints


# -- initialization ------------------------------------------------------------------


def _initialize(view: ClaimView) -> Verdict:
    claim = view.claim
    if len(view.nodes) != 1:
        message = f"Node {claim.node_name} is gone while its claim remains"
        said = claim_status(claim, Wanted("Initialized", "Unknown", Reason.NODE_NOT_FOUND, message))
        return _verdict(claim, Reason.NODE_NOT_FOUND, message, action=said)
    (node,) = view.nodes
    waiting = why_not_initialized(claim, node)
    if waiting is not None:
        reason, message = waiting
        said = claim_status(claim, Wanted("Initialized", "Unknown", reason, message))
        return _verdict(claim, reason, message, action=said)
    if node.labels.get(names.INITIALIZED) != "true":
        return _verdict(
            claim,
            Reason.INITIALIZING,
            f"Node {node.name} is Ready and complete",
            action=_label_initialized(node),
        )
    said = claim_status(claim, Wanted("Initialized", "True", "Initialized"))
    return _verdict(
        claim, Reason.INITIALIZING, f"Node {node.name} is Ready and complete", action=said
    )


def why_not_initialized(claim: NodeClaim, node: Node) -> tuple[Reason, str] | None:
    """What the node still lacks, as reason and sentence; None when it is complete."""
    if not node.ready:
        return Reason.NODE_NOT_READY, f"Node {node.name} is not Ready"
    startup = {(t.key, t.effect) for t in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in startup:
            return (
                Reason.STARTUP_TAINTS_EXIST,
                f"startup taint {describe_taint(taint)} is still there",
            )
    for taint in node.spec.taints:
        if is_ephemeral(taint):
            return Reason.EPHEMERAL_TAINTS_EXIST, f"taint {describe_taint(taint)} is still there"
    for resource, amount in sorted(claim.spec.resources.requests.items()):
        if _positive(amount) and not _positive(node.status.allocatable.get(resource, "0")):
            return (
                Reason.RESOURCE_NOT_REGISTERED,
                f"{resource} was requested and Node {node.name} does not offer it yet",
            )
    return None


def _positive(amount: object) -> bool:
    try:
        return parse_resources({"amount": amount}, "amount")["amount"] > 0  # type: ignore[dict-item]  # any JSON scalar
    except SpecError:
        return False


def is_ephemeral(taint: Taint) -> bool:
    """A taint that every node starts with and that Kubernetes takes off by itself."""
    return (
        taint.key
        in (names.NOT_READY_TAINT, names.UNREGISTERED_TAINT, names.CLOUD_UNINITIALIZED_TAINT)
        or (taint.key == names.UNREACHABLE_TAINT and taint.effect == "NoSchedule")
        or taint.key.startswith(names.READINESS_TAINT_PREFIX)
    )


def describe_taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _label_initialized(node: Node) -> Patch:
    version = node.metadata.resource_version
    body = {
        "metadata": {
            "resourceVersion": version,
            "uid": node.uid,
            "labels": {names.INITIALIZED: "true"},
        }
    }
    return Patch(resource=NODES, name=node.name, uid=node.uid, resource_version=version, body=body)


def _in_service(view: ClaimView) -> Verdict:
    claim = view.claim
    if not view.nodes:
        return _verdict(
            claim,
            Reason.NODE_NOT_FOUND,
            f"Node {claim.node_name} is gone while its claim remains",
        )
    condition = claim.condition("Initialized")
    since = condition.last_transition_time if condition else None
    when = f" since {format_time(since)}" if since else ""
    return _verdict(claim, Reason.IN_SERVICE, f"Node {claim.node_name} is in service{when}")
