"""What is counted as it happens; ``metricsnames`` says what each means.

One registry for each controller: tests and the simulator run many in a process. How long
something took is measured with a stopwatch that is given: in virtual time nothing takes any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tenure.core.decision import CommandCount, Commitment, Concern, Create, Delete, Evict, Verdict
from tenure.core.marks.deadline import grace_period, stamp_of
from tenure.core.marks.reboot import mark_of, rebooted_at, requested_at, result_of
from tenure.core.reasons import Reason
from tenure.model.api.meta import find_condition
from tenure.model.api.names import FINALIZER, NODEPOOL, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.cloud.notice import Notice
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.model.snapshot.consolidation import ConsolidationPlan
from tenure.model.snapshot.snapshot import Change
from tenure.ports.outcome import Ended, Outcome
from tenure.runtime.cloud.notices import NoticeOutcome
from tenure.runtime.cloud.registrations import TIMEOUTS
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.metricnames import Named

#: Verdicts that delete a claim, and Karpenter's word for each.
_DISRUPTED: Final = {
    Reason.INSUFFICIENT_CAPACITY: "insufficient_capacity",
    Reason.NODE_CLASS_NOT_READY: "nodeclass_not_ready",
    Reason.INSTANCE_VANISHED: "garbage_collected",
    **TIMEOUTS,
    Reason.NODE_LOST: "node_lost",
}

#: Karpenter's words for the ways of consolidation; other reasons have none.
_CONSOLIDATION_TYPES: Final = {"empty": "empty", "underutilized": "single"}

#: Outcomes of actions that never left.
_UNSENT: Final = (Ended.VETOED, Ended.HELD)


class Metrics:
    def __init__(self, stopwatch: Callable[[], float] = lambda: 0.0) -> None:
        self.stopwatch = stopwatch
        self.registry = CollectorRegistry()
        self.claims_created = self._counter(names.CLAIMS_CREATED)
        self.claims_terminated = self._counter(names.CLAIMS_TERMINATED)
        self.claims_disrupted = self._counter(names.CLAIMS_DISRUPTED)
        self.pods_disrupted = self._counter(names.PODS_DISRUPTED)
        self.claims_unhealthy = self._counter(names.CLAIMS_UNHEALTHY)
        self.decisions = self._counter(names.DECISIONS)
        self.decisions_by_pool = self._counter(names.DECISIONS_BY_POOL)
        self.queue_failures = self._counter(names.QUEUE_FAILURES)
        self.decision_evaluation = self._histogram(names.DECISION_EVALUATION)
        self.claim_termination = self._histogram(names.CLAIM_TERMINATION)
        self.instance_termination = self._histogram(names.INSTANCE_TERMINATION)
        self.nodes_created = self._counter(names.NODES_CREATED)
        self.nodes_terminated = self._counter(names.NODES_TERMINATED)
        self.nodes_drained = self._counter(names.NODES_DRAINED)
        self.node_termination = self._histogram(names.NODE_TERMINATION)
        self.node_lifetime = self._histogram(names.NODE_LIFETIME)
        self.reboots = self._counter(names.REBOOTS)
        self.reboot = self._histogram(names.REBOOT)
        self.reboot_recovery = self._histogram(names.REBOOT_RECOVERY)
        self.evictions = self._counter(names.EVICTIONS)
        self.pod_startup = self._histogram(names.POD_STARTUP)
        self.pod_bound = self._histogram(names.POD_BOUND)
        self.scheduling = self._histogram(names.SCHEDULING)
        self.cloud_calls = self._histogram(names.CLOUD_CALLS)
        self.cloud_errors = self._counter(names.CLOUD_ERRORS)
        self.notices_received = self._counter(names.NOTICES_RECEIVED)
        self.notices_deleted = self._counter(names.NOTICES_DELETED)
        self.notices_duration = self._histogram(names.NOTICES_DURATION)
        self.notices_settled = self._counter(names.NOTICES_SETTLED)
        self.verdicts = self._counter(names.VERDICTS)
        self._verdicts: dict[tuple[Concern, Reason], Counter] = {}
        self.actions = self._counter(names.ACTIONS)
        self.turns = self._counter(names.TURNS)
        self.turn_duration = self._histogram(names.TURN)
        self.slice_duration = self._histogram(names.SLICE)
        self.moves = self._counter(names.MOVES)
        self.scores = self._histogram(names.SCORES)
        self.plan_duration = self._histogram(names.PLAN)
        self.plan_slice_duration = self._histogram(names.PLAN_SLICE)
        self.plan_savings = self._gauge(names.PLAN_SAVINGS)
        self.plan_moves = self._gauge(names.PLAN_MOVES)
        self.index_rebuilds = self._counter(names.INDEX_REBUILDS)
        self.index_disagreements = self._counter(names.INDEX_DISAGREEMENTS)
        self.evaluation = self._histogram(names.EVALUATION)
        self.over_budget = self._counter(names.OVER_BUDGET)
        self.clock_steps = self._counter(names.CLOCK_STEPS)
        self.clock_skew = self._gauge(names.CLOCK_SKEW)
        self.in_flight = self._gauge(names.IN_FLIGHT)
        self.api_calls = self._histogram(names.API_CALLS)
        self.api_answers = self._counter(names.API_ANSWERS)
        self.errors = self._counter(names.ERRORS)
        self.withheld = self._counter(names.WITHHELD)
        self.reviews = self._counter(names.REVIEWS)

    def decided(self, verdict: Verdict) -> None:
        kind = verdict.concern, verdict.reason
        child = self._verdicts.get(kind)
        if child is None:  # Kept, because finding it takes longer than counting.
            child = self._verdicts[kind] = self.verdicts.labels(kind[0].value, kind[1].value)
        child.inc()

    def acted(
        self, verdict: Verdict, outcome: Outcome, claim: NodeClaim | None, pods: int = 0
    ) -> None:
        """``pods``: reschedulable ones on the claim's node."""
        action = verdict.action
        self.actions.labels(type(action).__name__, outcome.ended).inc()
        if isinstance(action, Evict) and outcome.ended not in _UNSENT:
            self.evictions.labels(str(outcome.status)).inc()
        if outcome.ended is not Ended.OK:
            return
        if verdict.command is not None:
            self._commanded(verdict.command, claim)
        if isinstance(action, Create) and action.resource == NODE_CLAIMS:
            pool = action.body["metadata"]["labels"].get(NODEPOOL, "")
            # A replacement is counted by the reason of its method, any other claim is for pods.
            why = _snake_case(action.disrupts_for) or "provisioned"
            self.claims_created.labels(why, pool, "false").inc()
        elif verdict.commits is not None:
            self._disrupted(verdict.commits, claim, pods)
        elif isinstance(action, Delete) and (reason := _DISRUPTED.get(verdict.reason)):
            self._disrupted(Commitment(reason=reason, bound=_stamped(claim)), claim)

    def _commanded(self, command: CommandCount, claim: NodeClaim | None) -> None:
        reason = command.reason.lower()
        labels = command.decision.value, reason, _CONSOLIDATION_TYPES.get(reason, "")
        if command.failed:
            self.queue_failures.labels(*labels).inc(command.failed)
            return
        self.decisions.labels(*labels).inc()
        pool = claim.pool_name if claim else ""
        self.decisions_by_pool.labels(pool, *labels).inc()
        if command.policy:
            self.moves.labels(command.decision.value, pool, command.policy).inc()

    def _disrupted(self, what: Commitment, claim: NodeClaim | None, pods: int = 0) -> None:
        pool, terms, image = _whose(claim)
        mode = _mode(what.bound, claim)
        self.claims_disrupted.labels(what.reason, pool, terms, "", mode).inc()
        self.pods_disrupted.labels(what.reason, pool, terms, "", mode).inc(pods)
        if what.condition:
            condition = _snake_case(what.condition)
            self.claims_unhealthy.labels(condition, pool, terms, image, mode).inc()

    def changed(self, change: Change, now: datetime) -> None:
        if change.resource == PODS:
            self._pod_changed(change, now)
        elif change.resource == NODE_CLAIMS:
            self._claim_changed(change, now)
        elif change.resource == NODES:
            self._node_changed(change, now)

    def _claim_changed(self, change: Change, now: datetime) -> None:
        old, new = change.old, change.new
        if not isinstance(old, NodeClaim):
            return
        if new is None:
            self._claim_gone(old, now)
        elif isinstance(new, NodeClaim):
            if new.registered and not old.registered:
                self.nodes_created.labels(new.pool_name, new.zone).inc()
            if new.is_true("Drained") and not old.is_true("Drained"):
                self.nodes_drained.labels(new.pool_name).inc()
            if old.rebooting and (ended := rebooted_at(new)) is not None:
                self._reboot_ended(old, new, ended)

    def _reboot_ended(self, old: NodeClaim, new: NodeClaim, ended: datetime) -> None:
        result = result_of(new)
        self.reboots.labels(result).inc()
        self.reboot.labels(result).observe(_seconds(requested_at(old), ended))
        accepted = mark_of(old)
        if result == "succeeded" and accepted is not None and accepted.last_transition_time:
            self.reboot_recovery.observe(_seconds(accepted.last_transition_time, ended))

    def _claim_gone(self, claim: NodeClaim, now: datetime) -> None:
        pool = claim.pool_name
        self.claims_terminated.labels(pool, claim.capacity_type, claim.zone).inc()
        if (asked_at := claim.metadata.deletion_timestamp) is not None:
            self.claim_termination.labels(pool).observe(_seconds(asked_at, now))
        ending = find_condition(claim.status.conditions, "InstanceTerminating")
        if ending is not None and ending.status == "True" and ending.last_transition_time:
            since = _seconds(ending.last_transition_time, now)
            self.instance_termination.labels(pool).observe(since)

    def _node_changed(self, change: Change, now: datetime) -> None:
        node = change.old
        if change.new is not None or not isinstance(node, Node):
            return
        pool = node.labels.get(NODEPOOL, "")
        if not pool and FINALIZER not in node.metadata.finalizers:
            return  # Not one of ours.
        self.nodes_terminated.labels(pool, node.labels.get(ZONE, "")).inc()
        self.node_lifetime.labels(pool).observe(_seconds(node.created_at, now))
        if (asked_at := node.metadata.deletion_timestamp) is not None:
            self.node_termination.labels(pool).observe(_seconds(asked_at, now))

    def _pod_changed(self, change: Change, now: datetime) -> None:
        old, new = change.old, change.new
        if not isinstance(old, Pod) or not isinstance(new, Pod):
            return
        if new.spec.node_name and not old.spec.node_name:
            self.pod_bound.observe(_seconds(new.created_at, now))
        if old.status.phase == "Pending" and new.status.phase == "Running":
            self.pod_startup.observe(_seconds(new.created_at, now))

    def notice_settled(self, notice: Notice | None, outcome: NoticeOutcome) -> None:
        """None: it could not be read."""
        kind = _snake_case(notice.kind) if notice is not None else outcome.value
        self.notices_received.labels(kind).inc()
        self.notices_settled.labels(kind, outcome).inc()

    def notice_acknowledged(self, notice: Notice, now: datetime) -> None:
        self.notices_deleted.inc()
        self.notices_duration.observe(_seconds(notice.at, now))

    def consolidation_planned(self, plan: ConsolidationPlan, took: float) -> None:
        self.plan_duration.observe(took)
        self.plan_savings.set(plan.saves / MICRO_DOLLARS)
        self.plan_moves.set(len(plan.moves))
        for move in plan.moves:
            for score in move.scores.values():
                self.scores.observe(score)

    @contextmanager
    def timed(self, histogram: Histogram) -> Iterator[None]:
        began = self.stopwatch()
        try:
            yield
        finally:
            histogram.observe(self.stopwatch() - began)

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def _gauge(self, named: Named) -> Gauge:
        return Gauge(named.name, named.meaning, registry=self.registry)

    def _counter(self, named: Named) -> Counter:
        return Counter(named.name, named.meaning, named.labels, registry=self.registry)

    def _histogram(self, named: Named) -> Histogram:
        return Histogram(
            named.name, named.meaning, named.labels, buckets=named.buckets, registry=self.registry
        )


def _whose(claim: NodeClaim | None) -> tuple[str, str, str]:
    if claim is None:
        return "", "", ""
    return claim.pool_name, claim.capacity_type, claim.status.image_id


def _stamped(claim: NodeClaim | None) -> timedelta | None:
    """A claim that is deleted with a deadline on it already has none to lose."""
    return timedelta(0) if claim is not None and stamp_of(claim) is not None else None


def _mode(bound: timedelta | None, claim: NodeClaim | None) -> str:
    if bound is None and claim is not None:
        bound = grace_period(claim)
    if bound is None:
        return "graceful"
    return "eventual" if bound > timedelta(0) else "forceful"


def _snake_case(name: str) -> str:
    """``GPUUnhealthy`` is ``gpu_unhealthy``, as Karpenter spells conditions in this metric."""
    apart = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", apart).lower()


def _seconds(since: datetime, now: datetime) -> float:
    """Never less than none: the API server's clock is not ours."""
    return max((now - since).total_seconds(), 0.0)
