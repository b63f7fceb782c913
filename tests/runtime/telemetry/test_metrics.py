"""What is counted, counted right."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tenure.core.decision import Commitment, Concern, Delete, Subject, Verdict
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.facts import Quoted
from tenure.core.provision.decider import ProvisionDecider
from tenure.core.reasons import Reason
from tenure.model.api.meta import BEGINNING
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.ports.outcome import OK, Ended, Outcome
from tenure.runtime.telemetry.metered import timed
from tenure.runtime.telemetry.metrics import Metrics
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import World
from tests.builders import (
    HOUR,
    MINUTE,
    a_cluster,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pool,
)
from tests.core.build import a_claim
from tests.runtime.worlds import Tapped

DECISIONS = "karpenter_voluntary_disruption_decisions_total"


def counted(of: World | Metrics, name: str, **labels: str) -> float:
    metrics = of if isinstance(of, Metrics) else of.controller.metrics
    text = metrics.render().decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_a_life_from_creation_to_the_end_is_counted_once() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(3 * MINUTE)
        pool = {"nodepool": "general"}
        assert (
            counted(story, "karpenter_nodeclaims_created_total", reason="provisioned", **pool) == 1
        )
        assert counted(story, "karpenter_nodes_created_total", **pool) == 1
        story.delete_claim()
        story.run(5 * MINUTE)
        assert counted(story, "karpenter_nodeclaims_terminated_total", **pool) == 1
        assert counted(story, "karpenter_nodes_created_total", **pool) == 2
        assert counted(story, "karpenter_pods_eviction_requests_total", code="200") == 3
        assert counted(story, "tenure_actions_total", verb="Launch", outcome="ok") == 2


def test_a_budgets_no_is_a_429_not_a_success() -> None:
    manifests = a_cluster(a_deployment(replicas=2), a_pdb("web", minAvailable=2))
    with Tapped(*manifests) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        story.run(MINUTE)
        refused = counted(story, "karpenter_pods_eviction_requests_total", code="429")
        assert refused == len(story.api_tap.of("EVICT")) >= 5
        assert counted(story, "karpenter_pods_eviction_requests_total", code="200") == 0
        assert counted(story, "tenure_actions_total", verb="Evict", outcome="refused") == refused


def test_a_claim_that_could_not_be_had_is_counted_as_disrupted() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.infrastructure.faults.set(cloud_dry=(("*", "*", "*"),))
        story.run(MINUTE)
        gone = counted(
            story, "karpenter_nodeclaims_disrupted_total", reason="insufficient_capacity"
        )
        assert gone == counted(story, "karpenter_nodeclaims_terminated_total") >= 1
        assert counted(story, "tenure_actions_total", verb="Launch", outcome="refused") == gone


def test_verdicts_turns_and_what_is_under_way_are_there() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        assert counted(story, "tenure_verdicts_total", concern="pool") >= 2
        assert counted(story, "tenure_turns_total") >= 10
        assert counted(story, "tenure_actions_in_flight") == 0
        assert story.store.get(NODE_POOLS, "", "general")["status"]["nodes"] == 1


def silent(story: Story) -> str:
    """One node's kubelet stops; the node's name."""
    node: str = story.all(NODES)[0]["metadata"]["name"]
    story.kubelets.silence(node)
    return node


REPAIRED = {"defaultTolerationDuration": "10m", "maxUnhealthy": "100%"}


def test_a_forceful_repair_is_counted_once_with_its_condition_and_mode() -> None:
    manifests = [a_node_class(), a_pool(repair=REPAIRED), a_deployment(replicas=1)]
    with Tapped(*manifests) as story:
        story.run(3 * MINUTE)
        silent(story)
        story.run(HOUR)
        once = {"nodepool": "general", "termination_mode": "forceful"}
        disrupted = "karpenter_nodeclaims_disrupted_total"
        assert counted(story, disrupted, reason="unhealthy", **once) == 1
        assert counted(story, disrupted) == 1
        unhealthy = "karpenter_nodeclaims_unhealthy_disrupted_total"
        assert counted(story, unhealthy, condition="ready", **once) == 1
        assert counted(story, unhealthy) == 1


def test_an_unhealthy_node_that_a_user_deletes_is_no_repair_of_ours() -> None:
    """The deadline is brought forward all the same, once its condition is due."""
    web = a_deployment(replicas=1, annotations={DO_NOT_DISRUPT: "true"})
    manifests = [a_node_class(), a_pool(repair=REPAIRED), web]
    with Tapped(*manifests) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        silent(story)
        story.run(HOUR)
        assert counted(story, "karpenter_nodeclaims_terminated_total") == 1
        assert counted(story, "karpenter_nodeclaims_unhealthy_disrupted_total") == 0
        assert counted(story, "karpenter_nodeclaims_disrupted_total") == 0


def becomes_unhealthy(story: Story, condition: str) -> None:
    story.kubelets.set_condition(story.all(NODES)[0]["metadata"]["name"], condition, "True", "Bad")


def test_a_graceful_repair_is_counted_once_it_cannot_be_taken_back() -> None:
    """Its first replacement fails, and it is tried again: one repair all the same."""
    pool = a_pool(template={"readinessTTL": "2m"})
    with Tapped(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        story.infrastructure.faults.set(never_ready_rate=1.0)
        becomes_unhealthy(story, "KWOKUnhealthy")
        story.run(3 * MINUTE)
        unhealthy = "karpenter_nodeclaims_unhealthy_disrupted_total"
        created = "karpenter_nodeclaims_created_total"
        assert counted(story, created, reason="unhealthy") >= 1
        assert counted(story, unhealthy) == 0
        story.infrastructure.faults.clear()
        story.run(HOUR)
        labels = {"condition": "kwok_unhealthy", "termination_mode": "eventual"}
        assert counted(story, unhealthy, **labels) == counted(story, unhealthy) == 1
        disrupted = "karpenter_nodeclaims_disrupted_total"
        assert counted(story, disrupted, reason="unhealthy", termination_mode="eventual") == 1
        assert counted(story, disrupted) == counted(story, created, reason="unhealthy")


def test_a_reboot_is_counted_once_when_it_is_committed() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        becomes_unhealthy(story, "KWOKRebootRequired")
        story.run(MINUTE)
        labels = {"condition": "kwok_reboot_required", "termination_mode": "eventual"}
        assert counted(story, "karpenter_nodeclaims_unhealthy_disrupted_total", **labels) == 1
        assert counted(story, "karpenter_nodeclaims_disrupted_total", reason="unhealthy") == 1
        assert counted(story, "karpenter_nodeclaims_terminated_total") == 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"never_ready_rate": 1.0}, "readiness_timeout"),
        ({"never_registers_rate": 1.0}, "registration_timeout"),
    ],
)
def test_a_node_that_does_not_come_up_is_counted_by_what_it_did_not_manage(
    fault: dict[str, float], reason: str
) -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.infrastructure.faults.set(**fault)
        story.run(16 * MINUTE)
        story.infrastructure.faults.clear()
        story.run(10 * MINUTE)
        labels = {"reason": reason, "nodepool": "general", "termination_mode": "forceful"}
        assert counted(story, "karpenter_nodeclaims_disrupted_total", **labels) == 1
        assert counted(story, "karpenter_nodeclaims_disrupted_total") == 1
        assert counted(story, "karpenter_nodeclaims_unhealthy_disrupted_total") == 0


@pytest.mark.parametrize(
    ("grace", "bound", "mode"),
    [
        (None, None, "graceful"),
        ("15m", None, "eventual"),
        ("0s", None, "forceful"),
        (None, timedelta(minutes=1), "eventual"),
        ("15m", timedelta(0), "forceful"),
    ],
)
def test_the_mode_is_that_of_the_bound_and_else_of_the_claim(
    grace: str | None, bound: timedelta | None, mode: str
) -> None:
    metrics = Metrics()
    claim = a_claim(spec={"termination_grace_period": grace}, status={"image_id": "image-1"})
    verdict = Verdict(
        concern=Concern.REPAIR,
        subject=Subject.of("NodeClaim", claim),
        reason=Reason.REPAIRING,
        facts=(Quoted(""),),
        action=Delete(resource=NODE_CLAIMS, name=claim.name, uid=claim.uid),
        commits=Commitment(reason="unhealthy", condition="KWOKUnhealthy", bound=bound),
    )
    metrics.acted(verdict, Outcome(Ended.FAILED), claim)
    metrics.acted(verdict, OK, claim)
    labels = {"condition": "kwok_unhealthy", "image_id": "image-1", "termination_mode": mode}
    assert counted(metrics, "karpenter_nodeclaims_unhealthy_disrupted_total", **labels) == 1
    assert counted(metrics, "karpenter_nodeclaims_unhealthy_disrupted_total") == 1


def test_voluntary_disruptions_are_counted_by_their_reason() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        labels = {"metadata": {"labels": {"example.com/release": "two"}}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": labels}})
        story.run(5 * MINUTE)
        disrupted = "karpenter_nodeclaims_disrupted_total"
        assert counted(story, "karpenter_nodeclaims_created_total", reason="drifted") == 1
        assert counted(story, disrupted, reason="drifted", termination_mode="graceful") == 1
        drifted = {"decision": "replace", "reason": "drifted", "consolidation_type": ""}
        assert counted(story, DECISIONS, **drifted) == 1
        pods = "karpenter_pods_disruption_initiated_total"
        assert counted(story, pods, reason="drifted", nodepool="general") == 1
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        story.run(5 * MINUTE)
        assert counted(story, disrupted, reason="empty", termination_mode="graceful") == 1
        assert counted(story, disrupted) == 2
        empty = {"decision": "delete", "reason": "empty", "consolidation_type": "empty"}
        assert counted(story, DECISIONS, **empty) == 1
        by_pool = "karpenter_voluntary_disruption_decisions_by_nodepool_total"
        assert counted(story, by_pool, nodepool="general", **empty) == 1
        assert counted(story, DECISIONS) == 2
        assert counted(story, pods) == 1, "none was on the empty node"


def test_a_replacement_that_fails_is_counted_by_the_reason_of_its_command() -> None:
    pool = a_pool(template={"readinessTTL": "2m"})
    with Tapped(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)

        def on_node(type_: str, node: Any, _old: Any) -> None:
            if type_ == "ADDED":
                story.environment.soon(story.kubelets.silence, node["metadata"]["name"])

        story.store.subscribe(NODES, on_node)
        labels = {"metadata": {"labels": {"example.com/release": "two"}}}
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": labels}})
        story.run(4 * MINUTE)
        failures = "karpenter_voluntary_disruption_queue_failures_total"
        drifted = {"decision": "replace", "reason": "drifted", "consolidation_type": ""}
        assert counted(story, failures, **drifted) == counted(story, failures) == 1
        assert counted(story, "karpenter_nodeclaims_disrupted_total", reason="drifted") == 0


@pytest.mark.parametrize(
    ("decider", "name"),
    [
        (
            DisruptionDecider(),
            "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
        ),
        (ProvisionDecider(), "karpenter_scheduler_scheduling_duration_seconds"),
    ],
)
def test_passes_over_candidates_and_placements_are_timed(decider: Any, name: str) -> None:
    ticks = iter(range(2))
    metrics = Metrics(lambda: float(next(ticks)))
    (one,) = timed((decider,), metrics)
    with pytest.raises(AttributeError):  # Also one that fails took its time.
        one.decide(None, Settings(), BEGINNING)
    assert (counted(metrics, f"{name}_count"), counted(metrics, f"{name}_sum")) == (1, 1)
