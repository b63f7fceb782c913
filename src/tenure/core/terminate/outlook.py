"""Report for every initialized claim whether a drain of its Node would be graceful.

A wrong configuration shows only when the Node terminates, which may be in a month. So the claim's
condition ``GracefulDrain`` reports it now, and one Warning event does. It is False where

- a pod's grace period is longer than the claim's ``terminationGracePeriod``: it would be cut;
- a pod's protection is longer than that: it would be cut, too;
- a PDB can never allow an eviction.

A claim that never had such a finding has no such condition. The message names workloads instead of
pods, so that it does not change with every new pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import NAMED_MAX, Fact, sentence
from tenure.core.marks.deadline import grace_of
from tenure.core.marks.ownership import claim_status, claims_touched, is_ours
from tenure.core.protect.protection import cap_of, protection_cap
from tenure.core.reasons import Reason
from tenure.core.terminate.facts.workloads import DrainFinding, DrainGraceful, MoreFindings
from tenure.core.terminate.pdb import never_allows
from tenure.core.terminate.pods import left_alone
from tenure.core.terminate.workloads import (
    Found,
    Ground,
    Workload,
    covers,
    pdb_finding,
    workload_findings,
)
from tenure.core.writes import subject_of
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, controller_of
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_POOLS, POD_DISRUPTION_BUDGETS, PODS
from tenure.model.api.workload import PodDisruptionBudget, PodTemplate
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.schema.findings import Code

CONDITION: Final = "GracefulDrain"

#: The findings that the condition reports, in this order; ``tenure lint`` reports more.
_REPORTED: Final = (Code.GRACE_LONGER, Code.PROTECTION_LONGER, Code.BUDGET_NEVER_ALLOWS)


class OutlookView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    #: Each with its workload or PDB.
    findings: tuple[tuple[str, Found], ...]


class OutlookDecider:
    concern = Concern.OUTLOOK

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        yield from claims_touched(change, snapshot)
        if change.resource == PODS:
            affected = [key for pod in change.versions() for key in _claims_affected(pod, snapshot)]
            if affected and _relevant(change.old) != _relevant(change.new):
                yield from affected
        elif change.resource == POD_DISRUPTION_BUDGETS:
            if _blocking(change.old) != _blocking(change.new):
                yield from snapshot.claims
        elif change.resource == NODE_POOLS and cap_of(change.old) != cap_of(change.new):
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> OutlookView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or not claim.initialized:
            return None
        if not is_ours(claim, snapshot) or names.FINALIZER not in claim.metadata.finalizers:
            return None
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        if len(nodes) != 1 or len(snapshot.claims_with_provider(claim.provider_id)) != 1:
            return None
        findings = tuple(_findings(claim, next(iter(nodes.values())), snapshot))
        said = claim.condition(CONDITION)
        if not findings and (said is None or said.status == "True"):
            return None
        return OutlookView(claim, findings)

    def decide(self, view: OutlookView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return (_decide(view.claim, view.findings),)


def _decide(claim: NodeClaim, findings: Sequence[tuple[str, Found]]) -> Verdict:
    facts: tuple[Fact, ...] = (DrainGraceful(),)
    wanted, reason = Wanted(CONDITION, "True", CONDITION), Reason.DRAIN_GRACEFUL
    if findings:
        facts = tuple(DrainFinding(about, found.fact) for about, found in findings[:NAMED_MAX])
        if len(findings) > NAMED_MAX:
            facts = (*facts, MoreFindings(len(findings) - NAMED_MAX))
        wanted = Wanted(CONDITION, "False", str(findings[0][1].code), sentence(facts))
        reason = Reason.DRAIN_NOT_GRACEFUL
    return Verdict(
        concern=Concern.OUTLOOK,
        subject=subject_of(claim),
        reason=reason,
        facts=facts,
        action=claim_status(claim, wanted),
    )


def _findings(claim: NodeClaim, node: Node, snapshot: Snapshot) -> Iterable[tuple[str, Found]]:
    cap = protection_cap(node, snapshot)
    ground = Ground(f"NodeClaim {claim.name}", claim.spec.termination_grace_period, cap)
    never, span = snapshot.once(_never_allowing), ground.span
    if not never and span is None:
        return ()  # The usual case, and there are many nodes.
    pods = snapshot.pods_on(node.name)
    stuck = {name: never[name] for name in {pod.namespace for pod in pods.values()} & never.keys()}
    # Most pods have neither a long grace period nor protection, and pods change all the time.
    relevant = {
        key: pod
        for key, pod in pods.items()
        if pod.namespace in stuck
        or (span is not None and (_protection(pod) or grace_of(pod) > span))
    }
    workloads = living_workloads(relevant, ground)
    found = [(one.name, finding) for one in workloads for finding in workload_findings(one)]
    for namespace in sorted(stuck):
        for pdb in stuck[namespace]:
            covered = [one for one in workloads if covers(pdb, one)]
            if (finding := pdb_finding(pdb, covered)) is not None:
                found.append((f"PodDisruptionBudget/{pdb.key}", finding))
    reported = [item for item in found if item[1].code in _REPORTED]
    return sorted(
        reported, key=lambda item: (_REPORTED.index(item[1].code), item[0], repr(item[1].fact))
    )


def _never_allowing(snapshot: Snapshot) -> dict[str, list[PodDisruptionBudget]]:
    """The PDBs that can never allow an eviction, by namespace."""
    found: dict[str, list[PodDisruptionBudget]] = {}
    for _, pdb in sorted(snapshot.objects(POD_DISRUPTION_BUDGETS).items()):
        if never_allows(pdb):
            found.setdefault(pdb.namespace, []).append(pdb)
    return found


def living_workloads(pods: Mapping[str, Pod], ground: Ground) -> list[Workload]:
    """The pods that a drain would evict, grouped by controller."""
    found: dict[tuple[str, bytes], Workload] = {}
    for key in sorted(pods):
        pod = pods[key]
        if pod.deleting or left_alone(pod):
            continue
        template = PodTemplate(metadata=pod.metadata, spec=pod.spec)
        # Pods of one controller may differ during a rollout.
        asks = msgspec.json.encode((pod.spec.termination_grace_period_seconds, _protection(pod)))
        name = _owner(pod)
        found.setdefault(
            (name, asks),
            Workload(name=name, namespace=pod.namespace, template=template, grounds=(ground,)),
        )
    return list(found.values())


def _owner(pod: Pod) -> str:
    owner = controller_of(pod.metadata)
    return f"{owner.kind}/{pod.namespace}/{owner.name}" if owner else f"Pod/{pod.key}"


def _protection(pod: Pod) -> str | None:
    return pod.annotations.get(names.DO_NOT_DISRUPT)


def _claims_affected(pod: ApiObject, snapshot: Snapshot) -> Iterable[str]:
    """The claims whose findings the pod may change: those with a grace period, and those of a pod
    in a namespace that has PDBs."""
    assert isinstance(pod, Pod)
    if (node := snapshot.nodes.get(pod.spec.node_name)) is None:
        return
    held = snapshot.pdbs_in(pod.namespace)
    for key, claim in snapshot.claims_with_provider(node.spec.provider_id).items():
        if held or claim.spec.termination_grace_period is not None:
            yield key


def _relevant(pod: ApiObject | None) -> object:
    """The fields of a pod that findings depend on; other changes are ignored."""
    if not isinstance(pod, Pod):
        return None
    spec = pod.spec
    return (
        *(spec.node_name, spec.termination_grace_period_seconds, _protection(pod), pod.labels),
        *(pod.deleting, pod.finished, spec.tolerations),
    )


def _blocking(pdb: ApiObject | None) -> object:
    """The fields of a PDB that findings depend on; None if it can allow an eviction."""
    if not isinstance(pdb, PodDisruptionBudget) or not never_allows(pdb):
        return None
    return pdb.spec, pdb.status.expected_pods
