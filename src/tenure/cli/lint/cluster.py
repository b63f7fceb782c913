"""Everything there is to say about the objects of a living cluster: the same rules as for files.

Pods are told together where their controller is the same. A pod that runs is held against its own
node's claim; one that waits for a node, against every pool that it could come to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from tenure.cli.lint.annotations import duration_on_pod, durations_on
from tenure.cli.lint.costs import cost_findings, unreadable_costs
from tenure.cli.lint.oldannotations import old_annotation
from tenure.cli.lint.policies import dropped_findings, launched_by_karpenter, policy_findings
from tenure.cli.lint.remarks import Remark
from tenure.cli.lint.rotation import rotation_remarks
from tenure.cli.lint.windows import calendar_findings, lever_findings, selector_findings
from tenure.cli.lint.workloads import grounds_for, places
from tenure.core.marks.ownership import is_our_node, is_our_pool, is_ours
from tenure.core.protect.protection import protection_cap, protection_on
from tenure.core.terminate.outlook import living_workloads
from tenure.core.terminate.workloads import Ground, Workload, all_findings, invalid_protection
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR, NODEPOOL
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.governed import as_written
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object
from tenure.schema.advice import OLD_ANNOTATIONS, advice_for, foreign_class, missing_statuses
from tenure.schema.fields import used_by
from tenure.schema.findings import Code, Finding
from tenure.schema.problems import problems_of


def remarks_on_cluster(snapshot: Snapshot, now: datetime) -> tuple[list[Remark], int]:
    """What there is to say, and about how many objects in all."""
    remarks = [
        *_unreadable(snapshot),
        *_foreign(snapshot),
        *_custom(snapshot, now),
        *_annotated(snapshot),
    ]
    workloads = _workloads(snapshot)
    remarks += _old_annotations(snapshot, workloads)
    remarks += (
        Remark(about=one.name, finding=finding)
        for one in workloads
        for finding in cost_findings(one.template.metadata.annotations, "metadata.annotations")
    )
    for one in workloads if snapshot.ours is not EVERY_CLASS else ():
        for finding in duration_on_pod(one.template.metadata.annotations, "metadata"):
            remarks.append(Remark(about=one.name, finding=finding))
    remarks += rotation_remarks(snapshot, now)
    pdbs = [snapshot.pdbs[key] for key in sorted(snapshot.pdbs)]
    for about, finding in all_findings(workloads, pdbs):
        if isinstance(about, PodDisruptionBudget):
            remarks.append(Remark(about=f"PodDisruptionBudget/{about.key}", finding=finding))
        else:
            remarks.append(Remark(about=about.name, finding=finding))
    kinds = (snapshot.pools, snapshot.claims, snapshot.nodes, snapshot.pods, snapshot.windows)
    objects = sum(map(len, kinds)) + len(snapshot.pool_policies) + len(pdbs)
    return remarks, objects


def _unreadable(snapshot: Snapshot) -> Iterator[Remark]:
    for (resource, key), item in sorted(snapshot.unreadable().items(), key=lambda one: one[0][1]):
        finding = Finding(Code.INVALID, "", str(unreadable_object(item)))
        yield Remark(about=f"{resource.kind}/{key}", finding=finding)


def _foreign(snapshot: Snapshot) -> Iterator[Remark]:
    for name, pool in sorted(snapshot.pools.items()):
        for finding in foreign_class(pool, snapshot.ours):
            yield Remark(about=f"NodePool/{name}", finding=finding)
    for name, claim in sorted(snapshot.claims.items()):
        for finding in foreign_class(claim, snapshot.ours):
            yield Remark(about=f"NodeClaim/{name}", finding=finding)


def _custom(snapshot: Snapshot, now: datetime) -> Iterator[Remark]:
    pools = [one for one in snapshot.pools.values() if is_our_pool(one, snapshot)]
    claims = [one for one in snapshot.claims.values() if is_ours(one, snapshot)]
    kinds = (
        ("NodePool", pools),
        ("NodeClaim", claims),
        ("MaintenanceWindow", snapshot.windows.values()),
        ("NodePoolPolicy", snapshot.pool_policies.values()),
    )
    beside = snapshot.ours is EVERY_CLASS
    watched = {one.condition_type for one in snapshot.observations.repair_statements}
    for kind, items in kinds:
        for item in sorted(items, key=lambda one: one.name):
            # What a policy makes of a pool or claim is said of the policy.
            said = _about(as_written(item), now, watched)
            for finding in launched_by_karpenter(said) if beside else said:
                yield Remark(about=f"{kind}/{item.name}", finding=finding)
    if snapshot.ours is not EVERY_CLASS:
        yield from _fields(pools, claims)
    yield from _windows(snapshot, now)
    for pool in sorted(pools, key=lambda one: one.name) if beside else ():
        for finding in dropped_findings(as_written(pool)):
            yield Remark(about=f"NodePool/{pool.name}", finding=finding)
    policies = [snapshot.pool_policies[name] for name in sorted(snapshot.pool_policies)]
    pools = list(snapshot.pools.values())
    for policy, finding in policy_findings(policies, pools, beside=beside):
        yield Remark(about=f"NodePoolPolicy/{policy.name}", finding=finding)


def _fields(pools: Sequence[NodePool], claims: Sequence[NodeClaim]) -> Iterator[Remark]:
    """What is ignored, or differs from Karpenter. A claim of a pool repeats what its pool says."""
    alone = [claim for claim in claims if not claim.pool_name]
    for item in (*sorted(pools, key=_name), *sorted(alone, key=_name)):
        kind = "NodePool" if isinstance(item, NodePool) else "NodeClaim"
        for used in () if problems_of(item, None) else used_by(as_written(item)):
            yield Remark(about=f"{kind}/{item.name}", finding=used.finding)


def _name(item: ApiObject) -> str:
    return item.name


def _windows(snapshot: Snapshot, now: datetime) -> Iterator[Remark]:
    labels = [node.labels for node in snapshot.nodes.values()]
    pools = list(snapshot.pools.values())
    empty = [one for one in pools if not snapshot.nodes_of_pool(one.name)]
    for name, window in sorted(snapshot.windows.items()):
        if is_unreadable(window) or problems_of(window):
            continue
        found = (
            *calendar_findings(window, now),
            *selector_findings(window, labels, places(empty)),
            *(lever_findings(window, pools) if snapshot.ours is EVERY_CLASS else ()),
        )
        for finding in found:
            yield Remark(about=f"MaintenanceWindow/{name}", finding=finding)


def _about(item: ApiObject, now: datetime, watched: Collection[str]) -> Iterator[Finding]:
    problems = problems_of(item, watched)
    unsaid = list(missing_statuses(item, watched))
    fields = {f"{finding.at}.status" for finding in unsaid}
    if problems:
        yield from unsaid
    for problem in problems:
        if problem.at in fields:
            continue
        said = str(problem).removeprefix(f"{problem.at}: ")
        yield Finding(Code.INVALID, problem.at, said)
    if not problems:
        yield from advice_for(item, now, watched)


def _old_annotations(snapshot: Snapshot, workloads: Sequence[Workload]) -> Iterator[Remark]:
    """On our Nodes and claims, on the pods that run there, and on the templates of our pools."""
    pools = [one for one in snapshot.pools.values() if is_our_pool(one, snapshot)]
    claims = [one for one in snapshot.claims.values() if is_ours(one, snapshot)]
    nodes = [one for one in snapshot.nodes.values() if is_our_node(one, snapshot)]
    things: list[tuple[str, str, Mapping[str, str]]] = [
        *((f"NodePool/{one.name}", *_of_template(one)) for one in pools),
        *((f"NodeClaim/{one.name}", "metadata", one.annotations) for one in claims),
        *((f"Node/{one.name}", "metadata", one.annotations) for one in nodes),
        *((one.name, "metadata", one.template.metadata.annotations) for one in workloads),
    ]
    for about, at, written in things:
        for name in (one for one in OLD_ANNOTATIONS if one in written):
            yield Remark(about=about, finding=old_annotation(f"{at}.annotations.{name}", name))


def _of_template(pool: NodePool) -> tuple[str, Mapping[str, str]]:
    return "spec.template.metadata", pool.spec.template.metadata.annotations


def _annotated(snapshot: Snapshot) -> Iterator[Remark]:
    nodes = [one for one in snapshot.nodes.values() if is_our_node(one, snapshot)]
    claims = [one for one in snapshot.claims.values() if is_ours(one, snapshot)]
    things: list[Node | NodeClaim] = [*nodes, *claims]
    for thing in things:
        for name in (DO_NOT_DISRUPT, DO_NOT_REPAIR):
            protection = protection_on(thing, name)
            if protection is not None and protection.unreadable:
                kind = "Node" if isinstance(thing, Node) else "NodeClaim"
                finding = invalid_protection(protection.value, f"metadata.annotations.{name}")
                yield Remark(about=f"{kind}/{thing.name}", finding=finding)
    for thing in things:
        kind = "Node" if isinstance(thing, Node) else "NodeClaim"
        for finding in durations_on(thing.annotations, "metadata"):
            yield Remark(about=f"{kind}/{thing.name}", finding=finding)


def _workloads(snapshot: Snapshot) -> list[Workload]:
    """Each once, however many nodes it runs on, with every ground that it stands on."""
    seen: list[Workload] = []
    for name in sorted(snapshot.nodes):
        node = snapshot.nodes[name]
        if is_our_node(node, snapshot):
            seen += living_workloads(snapshot.pods_on(name), _ground(node, snapshot))
    everywhere = places(one for one in snapshot.pools.values() if is_our_pool(one, snapshot))
    for waiting in living_workloads(snapshot.unschedulable_pods(), Ground("no node")):
        grounds = grounds_for(waiting.template, everywhere)
        seen.append(msgspec.structs.replace(waiting, grounds=grounds))
    found: dict[tuple[object, ...], Workload] = {}
    for one in seen:
        asks = one.template.metadata.annotations.get(DO_NOT_DISRUPT)
        old = tuple(name for name in OLD_ANNOTATIONS if name in one.template.metadata.annotations)
        costs = unreadable_costs(one.template.metadata.annotations)
        key = (one.name, asks, old, costs, one.template.spec.termination_grace_period_seconds)
        known = found.get(key, one)
        grounds = tuple(dict.fromkeys((*known.grounds, *one.grounds)))
        found[key] = msgspec.structs.replace(known, grounds=grounds)
    return list(found.values())


def _ground(node: Node, snapshot: Snapshot) -> Ground:
    """What the node's claim grants; told by its pool, for there may be hundreds alike."""
    claim = snapshot.claim_of(node)
    pool = node.labels.get(NODEPOOL, "")
    name = f"NodePool {pool}" if pool else f"Node {node.name}"
    period = claim.spec.termination_grace_period if claim is not None else None
    return Ground(name, period, protection_cap(node, snapshot))
