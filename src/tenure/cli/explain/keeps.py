"""Whom an object keeps: the verdicts that name it as a blocker; and the state of a PodDisruptionBudget."""

from __future__ import annotations

from typing import Final

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import counted, told
from tenure.core.terminate.facts.pods import PdbNeverAllows, PdbUnreadable
from tenure.core.terminate.pdb import refusal, setting_of
from tenure.core.windows.facts import blocking_windows
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES, Resource
from tenure.model.api.workload import PodDisruptionBudget
from tenure.model.snapshot.unreadable import is_unreadable

_BOUND: Final = "terminationGracePeriod of the NodePool bounds the drain of new NodeClaims."
_UNREADABLE: Final = "Correct or delete the PodDisruptionBudget."
_USED_UP: Final = (
    "Wait until pods of the workload are healthy again, raise maxUnavailable, or add replicas."
)


def kept_by(resource: Resource, item: ApiObject, evaluated: EvaluatedCluster) -> list[Verdict]:
    """In the order of their subjects; of a Node and its claim about which the same is said, the claim.

    That a node is not consolidated is told only where the object keeps the node from nothing else.
    """
    found = [one for one in evaluated.in_force() if _names(one, resource, item)]
    disrupted = {one.subject for one in found if one.concern is not Concern.CONSOLIDATION}
    found = [
        one
        for one in found
        if one.concern is not Concern.CONSOLIDATION or one.subject not in disrupted
    ]
    of_claims = {_said(one) for one in found if one.subject.kind == NODE_CLAIMS.kind}
    return sorted(
        (one for one in found if one.subject.kind != NODES.kind or _said(one) not in of_claims),
        key=lambda one: one.subject,
    )


def _said(verdict: Verdict) -> object:
    return verdict.concern, verdict.reason, verdict.facts


def _names(verdict: Verdict, resource: Resource, item: ApiObject) -> bool:
    if any(_is(one.subject, resource, item) for one in verdict.blockers):
        return True
    if resource is not MAINTENANCE_WINDOWS or verdict.subject.kind == resource.kind:
        return False
    return any(item.name in blocking_windows(fact) for fact in told(verdict.facts))


def _is(subject: Subject, resource: Resource, item: ApiObject) -> bool:
    named = (subject.kind, subject.namespace, subject.name)
    return named == (resource.kind, item.namespace, item.name)


def pdb_state(pdb: PodDisruptionBudget) -> str:
    """What it allows now."""
    if is_unreadable(pdb):
        return ""  # Its problem is told in place of a state.
    status = pdb.status
    allows = counted(status.disruptions_allowed, "eviction")
    return (
        f"{setting_of(pdb)} of {counted(status.expected_pods, 'pod')}, {status.current_healthy} healthy, "
        f"{status.desired_healthy} must be: it allows {allows} now"
    )


def pdb_advice(pdb: PodDisruptionBudget) -> str:
    """What to change; empty: it allows an eviction."""
    if not is_unreadable(pdb) and pdb.status.disruptions_allowed > 0:
        return ""
    match refusal(pdb):
        case PdbUnreadable():
            return _UNREADABLE
        case PdbNeverAllows():
            return f"{_loosen(pdb)}. {_BOUND}"
        case _:
            return "" if not pdb.status.expected_pods else _USED_UP


def _loosen(pdb: PodDisruptionBudget) -> str:
    about = f"of PodDisruptionBudget {pdb.key}"
    if pdb.spec.max_unavailable is not None:
        return f"Raise maxUnavailable {about}"
    more = "" if pdb.spec.min_available == "100%" else ", or run more pods"
    return f"Lower minAvailable {about}{more}"
