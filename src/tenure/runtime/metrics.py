"""Counts and durations for Prometheus.

``karpenter_*`` where the meaning is the peer's, so that dashboards keep working;
``tenure_*`` for what is new. One registry per controller: tests and the simulator run
many in a process.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from tenure.core.decision import Create, Delete, Evict, Verdict
from tenure.core.reasons import Reason
from tenure.model.names import NODEPOOL
from tenure.model.nodeclaim import NodeClaim
from tenure.model.resource import NODE_CLAIMS
from tenure.model.snapshot import Change
from tenure.runtime.outcome import Outcome

#: Verdicts that delete a claim, and the peer's word for each.
_DISRUPTED: Final = {
    Reason.INSUFFICIENT_CAPACITY: "insufficient_capacity",
    Reason.NODE_CLASS_NOT_READY: "nodeclass_not_ready",
    Reason.INSTANCE_VANISHED: "garbage_collected",
}

#: Outcomes of actions that never left.
_UNSENT: Final = ("vetoed", "held")


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.claims_created = Counter(
            "karpenter_nodeclaims_created_total",
            "Claims created, by why and for which pool.",
            ["reason", "nodepool", "min_values_relaxed"],
            registry=self.registry,
        )
        self.claims_terminated = Counter(
            "karpenter_nodeclaims_terminated_total",
            "Claims that are gone for good.",
            ["nodepool", "capacity_type", "zone"],
            registry=self.registry,
        )
        self.claims_disrupted = Counter(
            "karpenter_nodeclaims_disrupted_total",
            "Claims that we deleted, by why.",
            ["reason", "nodepool", "capacity_type"],
            registry=self.registry,
        )
        self.nodes_created = Counter(
            "karpenter_nodes_created_total",
            "Nodes that registered.",
            ["nodepool", "zone"],
            registry=self.registry,
        )
        self.evictions = Counter(
            "karpenter_pods_eviction_requests_total",
            "Evictions asked for, by outcome.",
            ["code"],
            registry=self.registry,
        )
        self.verdicts = Counter(
            "tenure_verdicts_total",
            "Verdicts that were new or different, by concern and reason.",
            ["concern", "reason"],
            registry=self.registry,
        )
        self.actions = Counter(
            "tenure_actions_total",
            "Actions carried out, by verb and outcome.",
            ["verb", "outcome"],
            registry=self.registry,
        )
        self.turns = Counter("tenure_turns_total", "Turns of the loop.", registry=self.registry)
        self.in_flight = Gauge(
            "tenure_actions_in_flight", "Actions under way.", registry=self.registry
        )

    def judged(self, verdict: Verdict) -> None:
        self.verdicts.labels(verdict.concern.value, verdict.reason.value).inc()

    def acted(self, verdict: Verdict, outcome: Outcome, claim: NodeClaim | None) -> None:
        action = verdict.action
        self.actions.labels(type(action).__name__, outcome.word).inc()
        if isinstance(action, Evict) and outcome.word not in _UNSENT:
            self.evictions.labels(str(outcome.status)).inc()
        if outcome.word != "ok":
            return
        if isinstance(action, Create) and action.resource == NODE_CLAIMS:
            pool = action.body["metadata"]["labels"].get(NODEPOOL, "")
            self.claims_created.labels("provisioned", pool, "false").inc()
        elif isinstance(action, Delete) and (reason := _DISRUPTED.get(verdict.reason)):
            pool, terms = (claim.pool_name, claim.capacity_type) if claim else ("", "")
            self.claims_disrupted.labels(reason, pool, terms).inc()

    def changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if isinstance(old, NodeClaim) and new is None:
            self.claims_terminated.labels(old.pool_name, old.capacity_type, old.zone).inc()
        if isinstance(new, NodeClaim) and new.registered:
            registered_before = isinstance(old, NodeClaim) and old.registered
            if old is not None and not registered_before:
                self.nodes_created.labels(new.pool_name, new.zone).inc()

    def render(self) -> bytes:
        return generate_latest(self.registry)
