"""What would be done now, and why not the rest: every verdict in force, in three heaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.consolidation.outlook import ConsolidationOutlook, consolidation_outlook
from tenure.cli.explain.alike import SETTLED, claims_by_node
from tenure.core.decision import Concern, Subject, Terminate, Verdict
from tenure.core.disrupt.facts.planning import CandidatesWait
from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.snapshot.snapshot import Snapshot

_ORDER: Final = {concern: position for position, concern in enumerate(Concern)}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime
    also_at: str
    #: In order of authority, then by name.
    to_do: tuple[Verdict, ...]
    #: By pool: candidates for voluntary disruption, and what they wait for.
    waiting: tuple[tuple[str, CandidatesWait], ...] = ()
    not_now: tuple[Verdict, ...]
    settled: Mapping[Reason, int]
    settled_by_kind: Mapping[tuple[Reason, str], int]
    #: Objects about which nothing else is said.
    settled_objects: Mapping[str, int]
    #: The claim of each Node, by name.
    claims: Mapping[str, str]
    #: When the earliest verdict can change by itself.
    next_at: datetime | None
    #: What could be consolidated; None: that could not be found out.
    consolidation: ConsolidationOutlook | None = None
    #: Whose wrong clock holds whatever takes away; empty: no replica's does.
    held: str = ""


def plan_of(evaluated: EvaluatedCluster) -> Plan:
    verdicts = sorted(evaluated.in_force(), key=lambda v: (_ORDER[v.concern], v.subject))
    verdicts = [_unless_under_way(verdict, evaluated.snapshot) for verdict in verdicts]
    to_do = [verdict for verdict in verdicts if verdict.action is not None]
    quiet = [verdict for verdict in verdicts if verdict.action is None]
    not_now = [v for v in quiet if v.reason not in SETTLED or _is_kept(v)]
    # What is told of above is not settled, whatever another decider says of it.
    told = {v.subject for v in (*to_do, *not_now)}
    settled = [v for v in quiet if v.reason in SETTLED and v.subject not in told]
    return Plan(
        at=evaluated.at,
        also_at=evaluated.also_at,
        to_do=tuple(to_do),
        waiting=tuple(
            (verdict.subject.name, fact)
            for verdict in verdicts
            for fact in verdict.facts
            if isinstance(fact, CandidatesWait)
        ),
        not_now=tuple(not_now),
        settled=Counter(v.reason for v in settled),
        settled_by_kind=Counter((v.reason, v.subject.kind) for v in settled),
        settled_objects=Counter(subject.kind for subject in {v.subject for v in settled}),
        claims=claims_by_node(evaluated.snapshot),
        next_at=_earliest(verdicts),
        held=str(evaluated.clock_blocker or ""),
        consolidation=consolidation_outlook(evaluated),
    )


def _is_kept(verdict: Verdict) -> bool:
    """Why nodes are not consolidated is told with the moves."""
    return bool(verdict.blockers) and verdict.concern is not Concern.CONSOLIDATION


def _unless_under_way(verdict: Verdict, snapshot: Snapshot) -> Verdict:
    """Without the action if the claim says that its instance is terminating already.

    Only the replica that acts knows what it has asked the cloud for; a claim says it to all.
    """
    action = verdict.action
    if not isinstance(action, Terminate):
        return verdict
    claims = snapshot.claims_with_uid(action.claim_uid).values()
    under_way = any(claim.instance_terminating for claim in claims)
    return msgspec.structs.replace(verdict, action=None) if under_way else verdict


Key = tuple[Concern, Subject]


def key_of(verdict: Verdict) -> Key:
    return verdict.concern, verdict.subject


def twins_of(plan: Plan) -> dict[Key, Verdict]:
    """Verdicts on Nodes with the same facts as those on their claims, by the claims' keys."""
    on_claims = {
        (v.subject.name, v.concern, v.reason, v.facts): v
        for v in plan.not_now
        if v.subject.kind == NODE_CLAIMS.kind
    }
    found = {}
    for verdict in plan.not_now:
        if verdict.subject.kind != NODES.kind:
            continue
        claim = plan.claims.get(verdict.subject.name, "")
        same = on_claims.get((claim, verdict.concern, verdict.reason, verdict.facts))
        if same is not None:
            found[key_of(same)] = verdict
    return found


def _earliest(verdicts: Iterable[Verdict]) -> datetime | None:
    instants = (verdict.recheck_at for verdict in verdicts if verdict.recheck_at is not None)
    return min(instants, default=None)
