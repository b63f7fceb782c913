"""Decide the next step of a claim that is not being deleted, up to a Node that accepts pods.

One verdict per claim, the first of these that applies:

1. not ours       its node class belongs to another provider: ignore it;
2. adopt          our finalizer or the node class's label is missing: nothing is launched
                  before both are set;
   fields         a claim without a pool sets fields that do nothing, or differ from Karpenter:
                  its condition ``FieldsAct`` and an event say so, once;
3. launch         no instance is known: ask the cloud, or report its answer (``launch``);
4. register       find the one Node with the provider id; give it the claim's labels,
                  taints, owner and finalizer; then write ``Registered`` (``register``);
   restore        the Node has lost our finalizer or a label: set it again;
5. reboot         a node that is being rebooted is not evaluated further;
6. initialize     Ready, no startup or ephemeral taints, requested resources present; label
                  the Node, then write ``Initialized`` (``initialize``);
7. in service     nothing to do, unless its Node is no longer Ready.

Every step is one write, and each is repeated until the cluster shows it, so after a crash between
two steps the next evaluation continues. Time-outs are not decided here: ``repair`` decides all of
them, together with readiness.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tenure.core.claim.facts import Adopting, Initialized, NodeGone, NodeNotReady
from tenure.core.claim.initialize import initialize
from tenure.core.claim.launch import launch
from tenure.core.claim.register import register, restore
from tenure.core.claim.view import ClaimView, readiness_of, rebooting, say, several
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import NodeClassNotServed
from tenure.core.fieldsact import fields_told
from tenure.core.marks.ownership import claim_status, claims_touched, class_label, is_ours
from tenure.core.reasons import Reason
from tenure.core.writes import patch, with_finalizer
from tenure.model.api import names
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable


class LifecycleDecider:
    concern = Concern.LIFECYCLE

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        return claims_touched(change, snapshot)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        if subject.kind == NODE_CLAIMS.kind:
            yield subject.name

    def view(self, snapshot: Snapshot, key: str) -> ClaimView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or is_unreadable(claim):
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
        # A pool tells its user; a claim that a user has made has none.
        reason = Reason.NOT_OURS if claim.pool_name else Reason.NODE_CLASS_NOT_SERVED
        return say(claim, reason, NodeClassNotServed(ref.kind, ref.group))
    adoption = _adopt(claim)
    if adoption is not None:
        return say(claim, Reason.ADOPTING, Adopting(), action=adoption)
    if not claim.pool_name and (told := fields_told(claim)) is not None:
        reason, facts, wanted = told
        return say(claim, reason, *facts, action=claim_status(claim, wanted))
    if not claim.launched:
        return launch(view, settings, now)
    if not claim.registered:
        return register(view)
    if len(view.nodes) == 1 and (restored := restore(claim, view.nodes[0])) is not None:
        return restored
    if claim.rebooting:
        return say(claim, Reason.REBOOTING, rebooting(claim, claim.node_name))
    if not claim.initialized:
        return initialize(view)
    return _in_service(view)


def _adopt(claim: NodeClaim) -> Patch | None:
    """Adds our finalizer and label to a claim that a user created; None if both are set."""
    label = class_label(claim.spec.node_class_ref)
    metadata: dict[str, object] = {}
    if names.FINALIZER not in claim.metadata.finalizers:
        metadata["finalizers"] = with_finalizer(claim)
    if not label.keys() <= claim.labels.keys():
        metadata["labels"] = label
    return patch(claim, metadata) if metadata else None


def _in_service(view: ClaimView) -> Verdict:
    claim = view.claim
    if not view.nodes:
        return say(claim, Reason.NODE_NOT_FOUND, NodeGone(claim.node_name))
    if len(view.nodes) > 1:
        return say(claim, Reason.MULTIPLE_NODES_FOUND, several(view.nodes))
    (node,) = view.nodes
    condition = claim.condition("Initialized")
    since = condition.last_transition_time if condition else None
    initialized = Initialized(since, node=node.name)
    if not node.ready:
        not_ready = NodeNotReady(node.name, readiness_of(node))
        return say(claim, Reason.NODE_NOT_READY, initialized, not_ready)
    return say(claim, Reason.IN_SERVICE, initialized)
