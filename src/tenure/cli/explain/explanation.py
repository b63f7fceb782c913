"""Finds what there is to say about an object: its verdicts, and those that bear on it.

A pod that runs has no verdict of its own; then what is said about its node counts, and a
node is explained together with its claim. A pending pod is explained together with the node
that it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.cluster.question import Question
from tenure.cli.consolidation.outlook import Move, moves_of
from tenure.cli.explain.alike import claims_by_node
from tenure.cli.explain.budgettext import BudgetOutlook, budget_outlook
from tenure.cli.explain.keeps import kept_by, pdb_advice, pdb_state
from tenure.cli.explain.podtext import pod_state, why_no_verdict
from tenure.cli.explain.policytext import PolicyOutlook, policy_outlook
from tenure.cli.explain.repairtext import RepairOutlook, repair_outlook
from tenure.cli.explain.scheduletext import DrainOutlook, drain_outlook
from tenure.core.beside.facts.karpenter import DriftedByKarpenter
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.gates.explained import info_of
from tenure.core.marks.command import is_replaced, replaced_uids
from tenure.core.marks.deadline import requested_at
from tenure.core.marks.ownership import is_our_node
from tenure.core.provision.advice import advice_for, launches_nothing
from tenure.core.provision.facts import CapacityTaken, Fits, SchedulerDisagrees
from tenure.core.reasons import NO_ADVICE, REASONS, Reason
from tenure.core.repair.urgency import urgent_first
from tenure.model.api import resource as r
from tenure.model.api.meta import ApiObject, Condition, format_time
from tenure.model.api.names import DRIFTED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.api.policy import NodePoolPolicy
from tenure.model.api.resource import Resource
from tenure.model.api.window import MaintenanceWindow
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.kinds import Unreadable
from tenure.model.snapshot.snapshot import Snapshot

#: Facts that name the node that a pending pod waits for.
_TARGETED: Final = (Fits, SchedulerDisagrees, CapacityTaken)


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    subject: str
    at: datetime
    #: The same instant in other words.
    also_at: str
    #: Which clock the instants are of, where it is not the reader's.
    clock: str = ""
    #: Which replica acts, in words; empty where that is no question.
    leader: str = ""
    #: Whose wrong clock holds whatever takes away; empty: no replica's does.
    held: str = ""
    #: The visible state of the object, in one sentence.
    state: str
    #: Of a Node or claim beside Karpenter: that it has drifted, which Karpenter decides.
    drifted: Fact | None = None
    #: Why there is no verdict on the object itself, if there is none and it is known.
    silence: str = ""
    #: Of a pool: why it launches no node, where its verdicts do not say so; None if it can.
    launches_nothing: Fact | None = None
    #: On the object itself, the governing one first.
    verdicts: tuple[Verdict, ...]
    #: On what it stands on: a pod's node, or the one that it waits for, a node's claim, a claim's node.
    #: Of a window, a PDB or a policy: on what it keeps.
    around: tuple[Verdict, ...]
    #: The claim of each Node, by name.
    claims: Mapping[str, str] = {}
    #: Of a Node of ours, or of a claim's Nodes: how its drain goes, or would go.
    timetables: tuple[DrainOutlook, ...] = ()
    #: Of the same Nodes: by which rules each is, or would be, repaired.
    repairs: tuple[RepairOutlook, ...] = ()
    #: Of a pool or claim: what of it comes from a NodePoolPolicy.
    policy: PolicyOutlook | None = None
    #: Of a pool of ours: what its budgets allow now.
    budgets: BudgetOutlook | None = None
    #: Of a pool, Node or claim: the moves of consolidation that take nodes away.
    moves: tuple[Move, ...] = ()
    #: What to change about it, where no verdict is on the object itself; empty: nothing.
    advice: str = ""
    #: Of a pod that fits nowhere: changes that would place it, the smallest first.
    changes: tuple[Fact, ...] = ()


def explanation(question: Question, evaluated: EvaluatedCluster) -> Explanation | None:
    """None when there is no such object now."""
    item = evaluated.find(question.resource, question.namespace, question.name)
    if item is None:
        return None
    around = tuple(_verdicts_around(evaluated, item))
    return Explanation(
        subject=str(question),
        at=evaluated.at,
        also_at=evaluated.also_at,
        clock=evaluated.clock,
        leader=evaluated.leader,
        held=str(evaluated.clock_blocker or ""),
        state=_state(item, evaluated),
        drifted=_drifted(item, evaluated),
        silence=_silence(item, blocks=bool(around)),
        advice=pdb_advice(item) if isinstance(item, PodDisruptionBudget) else "",
        launches_nothing=(
            launches_nothing(item, evaluated.snapshot) if isinstance(item, NodePool) else None
        ),
        budgets=(
            budget_outlook(item, evaluated.snapshot, evaluated.at)
            if isinstance(item, NodePool)
            else None
        ),
        policy=policy_outlook(item),
        moves=moves_of(item, evaluated),
        changes=_changes(item, evaluated),
        verdicts=tuple(_governing_first(item, _about(evaluated, question.resource, item))),
        around=around,
        claims=claims_by_node(evaluated.snapshot),
        timetables=tuple(drain_outlook(node, evaluated) for node in _nodes(evaluated, item)),
        repairs=tuple(
            outlook
            for node in _nodes(evaluated, item)
            if (
                outlook := repair_outlook(
                    node, evaluated.snapshot, evaluated.settings, evaluated.at
                )
            )
        ),
    )


def _silence(item: ApiObject, *, blocks: bool) -> str:
    match item:
        case Pod():
            return why_no_verdict(item)
        case PodDisruptionBudget():
            found = "what it blocks is below" if blocks else "it blocks nothing now"
            return f"a PDB allows or refuses evictions; {found}"
        case _:
            return ""


def _changes(item: ApiObject, evaluated: EvaluatedCluster) -> tuple[Fact, ...]:
    """Computed only for a pod that is said to fit nowhere: it takes many packings."""
    if not isinstance(item, Pod):
        return ()
    found = _about(evaluated, r.PODS, item)
    if not any(one.reason is Reason.FAILED_SCHEDULING for one in found):
        return ()
    return advice_for(item, evaluated.snapshot, evaluated.settings, evaluated.at)


def _verdicts_around(evaluated: EvaluatedCluster, item: ApiObject) -> Iterator[Verdict]:
    match item:
        case NodePool():
            yield from _of_pool(evaluated, item)
        case MaintenanceWindow():
            yield from kept_by(r.MAINTENANCE_WINDOWS, item, evaluated)
        case NodePoolPolicy():
            yield from kept_by(r.NODE_POOL_POLICIES, item, evaluated)
        case PodDisruptionBudget():
            yield from kept_by(r.POD_DISRUPTION_BUDGETS, item, evaluated)
        case _:
            for resource, other in _around(evaluated, item):
                yield from _about(evaluated, resource, other)


def _about(evaluated: EvaluatedCluster, resource: Resource, item: ApiObject) -> list[Verdict]:
    return evaluated.about(resource, item)


def _governing_first(item: ApiObject, verdicts: list[Verdict]) -> list[Verdict]:
    """Of a pool, what an operator must know of: several deciders conclude about a pool, and what
    one of them merely watches says little. Of a Node or claim, what is under way leads, not what
    protects it from the next disruption."""
    match item:
        case NodePool():
            return sorted(verdicts, key=_urgency)
        case Node() | NodeClaim() if any(map(_is_under_way, verdicts)):
            return sorted(verdicts, key=lambda verdict: verdict.concern is Concern.PROTECTION)
        case Node() | NodeClaim():
            return urgent_first(verdicts)
        case _:
            return verdicts


def _is_under_way(verdict: Verdict) -> bool:
    how_far = verdict.concern in (Concern.LIFECYCLE, Concern.NODE)
    return how_far and verdict.reason not in (Reason.IN_SERVICE, Reason.NOT_OURS)


def _urgency(verdict: Verdict) -> int:
    if REASONS[verdict.reason].event == "Warning":
        return 0
    return 1 if needs_attention(verdict) else 2


def _around(evaluated: EvaluatedCluster, item: ApiObject) -> Iterator[tuple[Resource, ApiObject]]:
    snapshot = evaluated.snapshot
    match item:
        case Pod() if (node := snapshot.nodes.get(item.spec.node_name)) is not None:
            yield r.NODES, node
            yield from _around(evaluated, node)
        case Pod():
            yield from _nominated(evaluated, item)
        case Node():
            for claim in snapshot.claims_with_provider(item.spec.provider_id).values():
                yield r.NODE_CLAIMS, claim
        case NodeClaim() if (node := snapshot.nodes.get(item.node_name)) is not None:
            yield r.NODES, node
        case _:
            return


def _nominated(evaluated: EvaluatedCluster, pod: Pod) -> Iterator[tuple[Resource, ApiObject]]:
    """The node that a pending pod waits for."""
    facts = (fact for verdict in _about(evaluated, r.PODS, pod) for fact in verdict.facts)
    for target in (fact.target for fact in facts if isinstance(fact, _TARGETED)):
        resource = next(one for one in (r.NODES, r.NODE_CLAIMS) if one.kind == target.kind)
        thing = evaluated.find(resource, "", target.name)
        if thing is not None:
            yield resource, thing
            yield from _around(evaluated, thing)


def _of_pool(evaluated: EvaluatedCluster, pool: NodePool) -> Iterator[Verdict]:
    """What of the pool needs attention: its Nodes and claims, and pods that its limits keep waiting.

    Of a Node and its claim about which the same is said, the Node.
    """
    snapshot, shown = evaluated.snapshot, set()
    things: list[tuple[Resource, Node | NodeClaim]] = [
        *((r.NODES, one) for one in snapshot.nodes_of_pool(pool.name).values()),
        *((r.NODE_CLAIMS, one) for one in snapshot.claims_of_pool(pool.name).values()),
    ]
    for resource, thing in sorted(things, key=lambda one: (one[0] is not r.NODES, one[1].name)):
        for verdict in _about(evaluated, resource, thing):
            key = (_instance(thing), verdict.concern, verdict.reason, verdict.facts)
            # That nodes are not consolidated is the usual case, and the pool's choice: the node says why.
            usual = verdict.reason is Reason.UNCONSOLIDATABLE
            if needs_attention(verdict) and not usual and key not in shown:
                shown.add(key)
                yield verdict
    for name in sorted(snapshot.unschedulable_pods()):
        for verdict in _about(evaluated, r.PODS, snapshot.pods[name]):
            if any(_is(pool, blocker.subject) for blocker in verdict.blockers):
                yield verdict


def _instance(thing: Node | NodeClaim) -> str:
    """What a Node and its claim have in common; a claim that is not launched has only its name."""
    return (thing.spec.provider_id if isinstance(thing, Node) else thing.provider_id) or thing.name


def needs_attention(verdict: Verdict) -> bool:
    """A verdict that a user should know of, as something does not go on by itself."""
    info = info_of(verdict)
    return info.advice != NO_ADVICE or info.event == "Warning" or bool(verdict.blockers)


def _is(pool: NodePool, subject: Subject) -> bool:
    return (subject.kind, subject.name) == (r.NODE_POOLS.kind, pool.name)


def _nodes(evaluated: EvaluatedCluster, item: ApiObject) -> Iterator[Node]:
    """The Node itself, if it is ours, or the claim's."""
    snapshot = evaluated.snapshot
    match item:
        case Node() if is_our_node(item, snapshot):
            yield item
        case NodeClaim():
            nodes = snapshot.nodes_with_provider(item.provider_id)
            for name in sorted(nodes):
                yield from _nodes(evaluated, nodes[name])
        case _:
            return


def _state(item: ApiObject, evaluated: EvaluatedCluster) -> str:
    leaving = item.metadata.deletion_timestamp
    # The deletionTimestamp of a pod is when its grace period ends.
    since = requested_at(item) if isinstance(item, Pod) and leaving else leaving
    words = [f"being deleted since {format_time(since)}"] if since else []
    if isinstance(item, Unreadable):
        words.append(f"it cannot be read, and is left alone: {item.problem}")
    elif isinstance(item, Pod):
        words.append(pod_state(item, evaluated.at))
    elif isinstance(item, PodDisruptionBudget):
        words.append(pdb_state(item))
    else:
        conditions = _conditions(item)
        shown = ", ".join(f"{one.type}={one.status}" for one in conditions)
        words += [shown] if shown else []
    if isinstance(item, NodeClaim):
        words += _replaced_claims(item, evaluated.snapshot)
    return "; ".join(words) or "no status yet"


def _drifted(item: ApiObject, evaluated: EvaluatedCluster) -> Fact | None:
    """Where Tenure is in charge, a verdict says so."""
    snapshot = evaluated.snapshot
    claim = snapshot.claim_of(item) if isinstance(item, Node) else item
    if not evaluated.settings.beside_karpenter or not isinstance(claim, NodeClaim):
        return None
    found = claim.condition(DRIFTED_CONDITION)
    if found is None or found.status != "True":
        return None
    return DriftedByKarpenter(
        claim=claim.name,
        node=item.name if isinstance(item, Node) else claim.node_name,
        since=found.last_transition_time,
        reason=found.reason if found.reason != DRIFTED_CONDITION else "",
    )


def _replaced_claims(claim: NodeClaim, snapshot: Snapshot) -> Iterator[str]:
    """Also once the command was rolled back: until then it only reserves capacity."""
    for uid in replaced_uids(claim):
        for old in snapshot.claims_with_uid(uid).values():
            waits = "is being replaced" if is_replaced(old) else "has no command now"
            yield f"launched as a replacement of NodeClaim {old.name}, which {waits}"


def _conditions(item: Any) -> tuple[Condition, ...]:
    """Of a kind that has a status with conditions, as all but pods do here."""
    found: tuple[Condition, ...] = item.status.conditions
    return found
