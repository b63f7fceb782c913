"""The last look before an action leaves: asks ``safety`` about what we believe now.

Verdicts are made at the beginning of a turn; an action may start later. The guard reads
the newest cache and knowledge, and says no with a sentence.
"""

from __future__ import annotations

from tenure import safety
from tenure.core.decision import Action, Create, Delete, Evict, Launch, Patch, Terminate
from tenure.model import names
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.nodepool import NodePool
from tenure.model.resource import NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.snapshot import Snapshot


def veto(action: Action, snapshot: Snapshot) -> str | None:
    """Why this must not be done; None when it may."""
    match action:
        case Patch() | Delete():
            return _write(action, snapshot)
        case Evict():
            pod = snapshot.pods.get(f"{action.namespace}/{action.name}")
            if pod is None or pod.uid != action.uid:
                return f"pod {action.namespace}/{action.name} is gone or another one"
            return safety.early_eviction(pod, snapshot.nodes.get(pod.spec.node_name))
        case Launch():
            return safety.late_launch(_claim(action.request.claim_uid, snapshot))
        case Terminate():
            return safety.live_termination(_claim(action.claim_uid, snapshot))
        case Create():
            return None


def _write(action: Patch | Delete, snapshot: Snapshot) -> str | None:
    if action.resource == NODES:
        node = snapshot.nodes.get(action.name)
        if node is None or node.uid != action.uid:
            return f"Node {action.name} is gone or another one"
        return safety.foreign_node(node, snapshot.claim_of(node), snapshot.ours) or _release(
            action, node, snapshot.claim_of(node), snapshot
        )
    if action.resource == NODE_CLAIMS:
        claim = snapshot.claims.get(action.name)
        if claim is None or claim.uid != action.uid:
            return f"claim {action.name} is gone or another one"
        return safety.foreign_class(claim.spec.node_class_ref, snapshot.ours) or _release(
            action, claim, claim, snapshot
        )
    if action.resource == NODE_POOLS and isinstance(
        pool := snapshot.pools.get(action.name), NodePool
    ):
        return safety.foreign_class(pool.spec.template.spec.node_class_ref, snapshot.ours)
    return None


def _release(
    action: Patch | Delete, thing: Node | NodeClaim, claim: NodeClaim | None, snapshot: Snapshot
) -> str | None:
    """Taking our finalizer off is the one patch that cannot be taken back."""
    if isinstance(action, Delete) or claim is None:
        return None
    finalizers = action.body.get("metadata", {}).get("finalizers")
    if finalizers is None or names.FINALIZER in finalizers:
        return None
    if names.FINALIZER not in thing.metadata.finalizers:
        return None
    answer = snapshot.observations.terminations.get(claim.uid)
    gone = (answer is not None and answer.gone) or claim.uid in snapshot.observations.vanished
    return safety.early_release(thing.name, instance_running=not gone)


def _claim(uid: str, snapshot: Snapshot) -> NodeClaim | None:
    return next((claim for claim in snapshot.claims.values() if claim.uid == uid), None)
