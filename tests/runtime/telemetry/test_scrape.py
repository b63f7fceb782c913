"""Gauges over the cluster, computed at each scrape."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from prometheus_client.parser import text_string_to_metric_families

from tenure.kube.cache.informer import Informer
from tenure.model.api.names import DO_NOT_DISRUPT, NODEPOOL, ZONE
from tenure.model.api.resource import NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.scrape import ClusterCollector
from tenure.sim.world import World
from tests.builders import (
    HOUR,
    MINUTE,
    Manifest,
    a_cluster,
    a_deployment,
    a_node_class,
    a_pod,
    a_pool,
)
from tests.runtime.worlds import Tapped
from tests.scenarios.fleets import a_window

#: A sample's labels come with its name.
Samples = dict[str, list[tuple[dict[str, str], float]]]


class Onlooker:
    """How the Tenure of an embedded cluster stands."""

    leading = True
    held_back = False
    has_second = False
    role = "leading"
    waits_for = ""
    events_dropped = 0
    loop_lag = 0.25

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def snapshot(self) -> Snapshot:
        return self._world.controller.snapshot()

    @property
    def informers(self) -> Iterable[Informer]:
        return self._world.controller.view.informers

    @property
    def synced(self) -> bool:
        return self._world.controller.view.synced

    @property
    def evaluator(self) -> Evaluator:
        return self._world.controller.evaluator

    def now(self) -> datetime:
        return self._world.now

    @property
    def overdue(self) -> float:
        return self._world.controller.heartbeat.overdue()

    @property
    def provider_problem(self) -> str:
        return self._world.controller.inventory.problem

    @property
    def stuck(self) -> str:
        return self._world.controller.heartbeat.stuck()

    def monotonic(self) -> float:
        return self._world.loop.time()


def scraped(world: World, *, per_object: bool = True, settings: Settings | None = None) -> Samples:
    metrics = world.controller.metrics
    collector = ClusterCollector(Onlooker(world), per_object=per_object, settings=settings)
    metrics.registry.register(collector)
    try:
        collector.look()
        text = metrics.render().decode()
    finally:
        metrics.registry.unregister(collector)
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def value(samples: Samples, name: str, **labels: str) -> float:
    (found,) = (v for has, v in samples[name] if labels.items() <= has.items())
    return found


def test_every_metric_is_in_the_table_with_the_labels_that_it_has() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        story.run(5 * MINUTE)
        samples = scraped(story)
    described = {named.name: named for named in names.ALL}
    for name, found in samples.items():
        base = name
        for suffix in ("_bucket", "_sum", "_count", "_created"):
            base = base if base in described else base.removesuffix(suffix)
        base = base if base in described else f"{base}_total"
        for labels, _ in found:
            assert set(described[base].labels) == set(labels) - {"le"}, name


def test_pools_tell_their_limits_and_what_they_use() -> None:
    manifests = [a_node_class(), a_pool(limits={"cpu": "100", "memory": "1Ti"})]
    with Tapped(*manifests, a_deployment(replicas=2, cpu="500m")) as story:
        story.run(3 * MINUTE)
        samples = scraped(story)
        pool = {"nodepool": "general"}
        assert value(samples, "karpenter_nodepools_limit", resource_type="cpu", **pool) == 100
        memory = value(samples, "karpenter_nodepools_limit", resource_type="memory", **pool)
        assert memory == 2**40
        (node,) = story.controller.snapshot().nodes.values()
        cpu = value(samples, "karpenter_nodepools_usage", resource_type="cpu", **pool)
        assert cpu == node.capacity["cpu"] / 1e9 > 0
        assert value(samples, "karpenter_nodepools_usage", resource_type="nodes", **pool) == 1


def test_pools_tell_what_their_budgets_allow_and_who_uses_them() -> None:
    budgets = [{"nodes": "2"}, {"nodes": "0", "reasons": ["Drifted", "Empty"]}]
    pool = a_pool(disruption={"budgets": budgets})
    web = a_deployment(replicas=1, annotations={DO_NOT_DISRUPT: "true"})
    with Tapped(a_node_class(), pool, web) as story:
        story.run(3 * MINUTE)
        story.kubelets.silence(story.the(NODES)["metadata"]["name"])
        story.run(2 * MINUTE)
        not_ready = by_reason(scraped(story), "karpenter_nodepools_nodes_consuming_budgets")
        assert not_ready.pop("unhealthy") == 0
        assert set(not_ready.values()) == {1}
        story.delete_claim()
        story.run(MINUTE)
        samples = scraped(story)
        leaving = by_reason(samples, "karpenter_nodepools_nodes_consuming_budgets")
        assert set(leaving.values()) == {1}
        allowed = by_reason(samples, "karpenter_nodepools_allowed_disruptions")
        assert allowed == {reason: 0 if reason in ("drifted", "empty") else 2 for reason in leaving}
        left = by_reason(samples, "tenure_nodepools_disruptions_remaining")
        assert left == {reason: max(number - 1, 0) for reason, number in allowed.items()}


def test_pools_tell_how_many_starts_are_left_and_until_when() -> None:
    pool = a_pool(disruption={"budgets": [{"nodes": "2", "within": "1h"}]})
    with Tapped(a_node_class(), pool, a_deployment(replicas=1)) as story:
        story.run(3 * MINUTE)
        story.delete_claim()
        deleted = story.environment.now()
        story.run(MINUTE)
        samples = scraped(story)
        assert value(samples, "tenure_nodepools_disruption_starts", nodepool="general") == 1
        left = by_reason(samples, "tenure_nodepools_disruptions_remaining")
        assert set(left.values()) == {1}
        allowed = by_reason(samples, "karpenter_nodepools_allowed_disruptions")
        assert set(allowed.values()) == {2}, "the starts that were included"
        change = by_reason(samples, "tenure_nodepools_disruptions_next_change_timestamp_seconds")
        within = 60 * 60 + 15
        assert {int(at - deleted.timestamp()) for at in change.values()} <= {within - 1, within}


def test_windows_tell_whether_they_are_active_and_what_waits_for_them() -> None:
    night = {"cron": "0 22 * * *", "duration": "1h"}
    bad = {"cron": "0 0 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}
    windows = [
        a_window("morning", actions=["Drift"]),
        a_window("nights", type="Allow", actions=["Drift"], schedules=[night]),
        a_window("mars", actions=["Rebalance"], schedules=[bad]),
    ]
    drifted = {"metadata": {"labels": {"example.com/release": "two"}}}
    with Tapped(*a_cluster(a_deployment(replicas=1)), *windows) as story:
        story.run(3 * MINUTE)
        story.store.patch(NODE_POOLS, "", "general", {"spec": {"template": drifted}})
        story.run(MINUTE)
        samples = scraped(story)
        assert by(samples, "tenure_maintenance_window_active", "window") == {
            "mars": 1,
            "morning": 1,
            "nights": 0,
        }
        valid = by(samples, "tenure_maintenance_window_valid", "window")
        assert valid == {"mars": 0, "morning": 1, "nights": 1}
        blocked = "tenure_maintenance_window_blocked_nodeclaims"
        assert by(samples, blocked, "window") == {"mars": 0, "morning": 1, "nights": 0}
        change = by(samples, "tenure_maintenance_window_next_change_timestamp_seconds", "window")
        began = story.options.epoch.timestamp()
        assert change == {"morning": began + 3600, "nights": began + 14 * 3600}
        eligible = by_reason(samples, "karpenter_voluntary_disruption_eligible_nodes")
        assert {reason for reason, count in eligible.items() if count} == {"drifted"}
        waiting = by(samples, "tenure_disruption_candidates_waiting", "gate")
        assert waiting == {"maintenance windows": 1}
        story.run(HOUR)
        assert by(scraped(story), blocked, "window") == {"mars": 0, "morning": 0, "nights": 1}


def by(samples: Samples, name: str, label: str) -> dict[str, float]:
    return {labels[label]: number for labels, number in samples[name]}


def test_breakers_tell_which_pools_and_which_zones_are_not_repaired() -> None:
    lone = [a_claim("general", i) for i in range(4)] + [a_claim("other", 4)]
    stay = {"budgets": [{"nodes": "0"}]}
    pools = a_pool(disruption=stay), a_pool("other", disruption=stay)
    with Tapped(a_node_class(), *pools, *lone) as story:
        story.run(3 * MINUTE)
        well = scraped(story)
        assert well["tenure_repair_breaker_tripped"] == [
            ({"nodepool": "general"}, 0.0),
            ({"nodepool": "other"}, 0.0),
        ]
        assert "tenure_repair_domain_held" not in well
        for name in ("node-c1", "node-c2", "node-c4"):
            story.kubelets.silence(name)
        story.run(2 * MINUTE)
        samples = scraped(story)
        assert value(samples, "tenure_repair_breaker_tripped", nodepool="general") == 1
        assert value(samples, "tenure_repair_breaker_tripped", nodepool="other") == 0
        held = [labels for labels, _ in samples["tenure_repair_domain_held"]]
        assert {"domain": "zone", "value": "zone-b"} in held
        assert "tenure_repair_domain_held" not in scraped(story, settings=OFF)


def test_the_breaker_is_told_by_the_nodes_that_the_repair_counts() -> None:
    lone = [a_claim("general", i) for i in range(5)]
    pool = a_pool(disruption={"budgets": [{"nodes": "0"}]})
    with Tapped(a_node_class(), pool, *lone) as story:
        story.run(3 * MINUTE)
        for i in range(5):
            story.store.patch(NODES, "", f"node-c{i}", {"metadata": {"labels": {NODEPOOL: "x"}}})
        story.kubelets.silence("node-c1")
        story.run(2 * MINUTE)
        # One of five is within maxUnhealthy 20%; one of none would not be.
        assert not story.controller.snapshot().nodes_of_pool("general")
        tripped = value(scraped(story), "tenure_repair_breaker_tripped", nodepool="general")
        assert tripped == 0


OFF = Settings(repair_domain_breaker=False)


def a_claim(pool: str, number: int) -> Manifest:
    claim = a_pool()["spec"]["template"]["spec"]
    zone = {"key": ZONE, "operator": "In", "values": ["zone-b"]}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"c{number}", "labels": {NODEPOOL: pool}},
        "spec": {**claim, "requirements": [zone]},
    }


def by_reason(samples: Samples, name: str) -> dict[str, float]:
    return {labels["reason"]: count for labels, count in samples[name]}


def test_protected_pods_are_counted_by_pool_and_by_how() -> None:
    apps = {"a": "true", "b": "4h", "c": "1m", "d": "soon", "e": "false"}
    deployments = [
        a_deployment(name, replicas=2, annotations={DO_NOT_DISRUPT: how})
        for name, how in apps.items()
    ]
    with Tapped(*a_cluster(*deployments)) as story:
        story.run(5 * MINUTE)
        samples = scraped(story)
        kinds = {has["kind"]: count for has, count in samples["tenure_protected_pods"]}
        assert kinds == {"forever": 2, "until": 2, "unreadable": 2}


def test_nodes_and_pods_tell_what_they_have_and_where_they_are() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=2, cpu="500m"))) as story:
        story.run(3 * MINUTE)
        samples = scraped(story)
        (node,) = story.controller.snapshot().nodes.values()
        of_cpu = {"node_name": node.name, "resource_type": "cpu", "managed": "true"}
        assert value(samples, "karpenter_nodes_total_pod_requests", **of_cpu) == 1
        allocatable = value(samples, "karpenter_nodes_allocatable", **of_cpu)
        overhead = value(samples, "karpenter_nodes_system_overhead", **of_cpu)
        assert allocatable + overhead == node.capacity["cpu"] / 1e9
        percent = value(samples, "karpenter_cluster_utilization_percent", resource_type="cpu")
        assert percent == 100 * 1 / allocatable
        pods = [labels for labels, _ in samples["karpenter_pods_state"]]
        assert len(pods) == 2
        assert {pod["node"] for pod in pods} == {node.name}
        assert {(pod["phase"], pod["ready"], pod["nodepool"]) for pod in pods} == {
            ("Running", "true", "general")
        }


def test_pods_that_wait_are_told_with_how_long_and_others_are_not() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1), a_pod("huge", cpu="900"))) as story:
        story.run(3 * MINUTE)
        samples = scraped(story)
        huge = {"name": "huge", "namespace": "default"}
        for series in (
            "karpenter_pods_unbound_time_seconds",
            "karpenter_pods_unstarted_time_seconds",
        ):
            assert samples[series] == [(huge, 180)]


def test_series_for_each_node_and_pod_can_be_left_out() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=1))) as story:
        story.run(3 * MINUTE)
        samples = scraped(story, per_object=False)
        assert not {named.name for named in names.PER_OBJECT} & samples.keys()
        assert "karpenter_cluster_utilization_percent" in samples
        assert value(samples, "karpenter_cluster_state_node_count") == 1


def test_pods_that_nothing_can_take_are_counted_while_they_wait() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=2, cpu="9000"))) as story:
        story.run(MINUTE)
        samples = scraped(story)
        assert value(samples, "karpenter_scheduler_unschedulable_pods_count") == 2
        assert value(samples, "karpenter_scheduler_queue_depth") == 2
        assert value(samples, "karpenter_scheduler_ignored_pods_count") == 0
        waited = value(samples, "tenure_pods_waiting_oldest_seconds")
        assert 50 <= waited <= 60
        story.run(MINUTE)
        assert value(scraped(story), "tenure_pods_waiting_oldest_seconds") == waited + 60
        held = value(samples, "tenure_verdicts_in_force", reason="FailedScheduling")
        assert held == 2


def test_the_watch_of_each_kind_tells_how_it_is() -> None:
    with Tapped(*a_cluster()) as story:
        story.run(MINUTE)
        samples = scraped(story)
        assert value(samples, "karpenter_cluster_state_synced") == 1
        assert value(samples, "tenure_informer_lists_total", resource="pods") == 1
        assert value(samples, "tenure_informer_connected", resource="nodepools.karpenter.sh") == 1
        assert 0 <= value(samples, "tenure_informer_silence_seconds", resource="pods") <= 60
        assert value(samples, "tenure_loop_lag_seconds") == 0.25
        assert value(samples, "tenure_recheck_lag_seconds") == 0


def test_the_end_of_a_node_is_told_with_how_long_everything_took() -> None:
    with Tapped(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(10 * MINUTE)
        story.delete_claim()
        story.run(5 * MINUTE)
        samples, pool = scraped(story), {"nodepool": "general"}
        assert value(samples, "karpenter_nodes_terminated_total", **pool) == 1
        assert value(samples, "karpenter_nodes_drained_total", **pool) == 1
        lifetime = value(samples, "karpenter_nodes_lifetime_duration_seconds_sum", **pool)
        assert 9 * 60 < lifetime < 15 * 60
        ending = value(samples, "karpenter_nodes_termination_duration_seconds_sum", **pool)
        whole = value(samples, "karpenter_nodeclaims_termination_duration_seconds_sum", **pool)
        assert 5 <= ending <= whole < 5 * 60
        assert value(samples, "karpenter_pods_startup_duration_seconds_count") == 4
        assert value(samples, "karpenter_pods_bound_duration_seconds_count") == 4
