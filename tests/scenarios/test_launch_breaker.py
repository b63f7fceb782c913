"""A node that is no use to the pods it was launched for: how many are launched all the same.

Each story is a cluster in which something takes pods off their nodes again and again. Without the
launch breaker each of them costs a node every few seconds. Counted are the NodeClaims that were
created within the hour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.model.api.resource import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    Resource,
)
from tenure.sim.actors.kubelet.kubelet import KubeletTimings
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_cluster,
    a_deployment,
    a_job,
    a_node_class,
    a_pod,
    a_pool,
    apart,
    pod_spec,
)
from tests.runtime.worlds import Tapped

#: Three before the breaker opens, then after 1m, 2m, 4m, 8m, 16m: the next is after the hour.
WHEN_OPEN = 8

#: Nodes that are there in no time: what goes wrong does so as fast as it can.
QUICK = WorldOptions(
    infrastructure=InfrastructureOptions(
        cloud=CloudTimings(boot_for=SECOND, boot_spread=0 * SECOND),
        kubelet=KubeletTimings(ready_for=SECOND),
    )
)
AGENT = "example.com/agent=on:NoExecute"


def launched(story: Story) -> int:
    """How many NodeClaims were ever created."""
    return len({e.subject for e in story.history.entries if e.reason == "NeededForPods"})


def conditions(story: Story) -> dict[str, str]:
    pool = story.the(NODE_POOLS)
    return {c["type"]: c["status"] for c in pool["status"]["conditions"]}


def warned(story: Story, kind: str) -> list[str]:
    return [
        event["message"]
        for event in story.store.list(EVENTS)
        if (event["reason"], event["type"]) == ("LaunchBreakerOpen", "Warning")
        and event["involvedObject"]["kind"] == kind
    ]


def test_an_agent_that_taints_every_node_costs_eight_nodes_an_hour() -> None:
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        story.run(HOUR)
        assert 3 < launched(story) <= WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/web-*")
        assert "LaunchBreakerOpen" in story.reasons("NodePool/general")
        assert conditions(story)["LaunchBreakerOpen"] == "True"
        assert conditions(story)["Ready"] == "True"
        assert "Deployment default/web" in warned(story, "Pod")[0]
        assert warned(story, "NodePool")


def test_a_controller_that_deletes_pods_and_taints_their_nodes() -> None:
    """As a descheduler does that cordons what it has emptied: the room it frees is of no use."""
    with Story(*a_cluster(a_deployment(cpu="1")), options=QUICK) as story:
        story.infrastructure.faults.set(pod_deleter_app="web", pod_deleter_after=5 * SECOND)
        story.store.subscribe(NODES, cordon_when_used(story), replay=True)
        story.run(HOUR)
        assert 3 < launched(story) <= WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/web-*")


def cordon_when_used(story: Story) -> Any:
    def cordon(name: str) -> None:
        node = story.store.find(NODES, "", name)
        if node is not None and not node["spec"].get("unschedulable"):
            story.store.patch(NODES, "", name, {"spec": {"unschedulable": True}})

    def told(type_: str, node: Manifest, _old: Manifest | None) -> None:
        if type_ == "ADDED":
            story.environment.after(MINUTE, cordon, node["metadata"]["name"])

    return told


def test_a_controller_that_only_deletes_pods_costs_one_node() -> None:
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:
        story.infrastructure.faults.set(pod_deleter_app="web", pod_deleter_after=5 * SECOND)
        story.run(HOUR)
        assert launched(story) == 1, "the next pod goes where the last one was"
        assert "LaunchBreakerOpen" not in story.reasons("*")


DAEMONS_FIRST: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "daemons-first"},
    "value": 1_000_000,
}
LIMITS: Manifest = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "limits"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}}]},
}


def without_requests(daemon_set: Manifest) -> Manifest:
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    del container["resources"]
    return daemon_set


def test_a_daemon_that_gets_its_requests_from_a_limit_range_costs_one_node() -> None:
    agent = without_requests(a_daemon_set(priorityClassName="daemons-first"))
    with Story(*a_cluster(DAEMONS_FIRST, LIMITS, agent, a_deployment()), options=QUICK) as story:
        story.run(HOUR)
        assert launched(story) == 1
        assert story.running("web") == story.running("agent") == 1
        assert "PodsPendingAgain" not in story.reasons("*")


def test_a_daemon_that_preempts_silently_costs_one_node_more() -> None:
    """A webhook has let it grow: the first pod of it tells what the next node has to hold."""
    agent = a_daemon_set(cpu="100m", memory="64Mi", priorityClassName="daemons-first")
    manifests = a_cluster(DAEMONS_FIRST, agent, a_deployment())
    with Story(*manifests, options=QUICK) as story:
        story.infrastructure.faults.set(daemon_growth_share=0.5)
        story.run(HOUR)
        assert launched(story) <= 3
        assert story.running("web") == 1


def a_daemon_set(name: str = "agent", **spec: Any) -> Manifest:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(**spec)},
        },
    }


def test_a_webhook_that_lets_daemons_take_the_whole_node() -> None:
    agent = a_daemon_set(cpu="100m", memory="64Mi", priorityClassName="daemons-first")
    with Story(*a_cluster(DAEMONS_FIRST, agent, a_deployment()), options=QUICK) as story:
        story.infrastructure.faults.set(daemon_growth_share=1.0)
        story.run(HOUR)
        assert 3 <= launched(story) <= WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/web-*")


def test_a_webhook_that_grows_pods_each_time_they_are_created() -> None:
    """And the controller that evicts them for it: a vertical autoscaler gone wrong."""
    with Story(*a_cluster(a_deployment(cpu="1")), options=QUICK) as story:
        story.infrastructure.faults.set(
            pod_growth_app="web",
            pod_growth=1.6,
            pod_deleter_app="web",
            pod_deleter_after=5 * SECOND,
        )
        story.run(HOUR)
        assert 3 <= launched(story) <= WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/web-*")


def test_kubelets_that_refuse_pods_cost_one_node() -> None:
    """The scheduler sees room there: the next pod goes where the last one was refused."""
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:
        story.pace("", start_takes=MINUTE)
        story.infrastructure.faults.set(kubelet_refuses_app="web")
        story.run(HOUR)
        assert refused(story) > 3
        assert launched(story) == 1


def test_kubelets_that_refuse_pods_on_nodes_that_are_cordoned_for_it() -> None:
    """As node problem detectors do: no room is left where the pod was refused."""
    # The refused pods are counted: they would go with their nodes, which are empty.
    pool = a_pool(disruption={"consolidateAfter": "Never"})
    with Story(a_node_class(), pool, a_deployment(cpu="1"), options=QUICK) as story:
        story.infrastructure.faults.set(kubelet_refuses_app="web")
        story.store.subscribe(PODS, cordon_when_refused(story))
        story.run(HOUR)
        assert refused(story) >= 3
        assert 3 <= launched(story) <= WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/web-*")


def refused(story: Story) -> int:
    return sum(pod["status"].get("reason") == "OutOfcpu" for pod in story.all(PODS))


def cordon_when_refused(story: Story) -> Any:
    def told(_type: str, pod: Manifest, _old: Manifest | None) -> None:
        name = pod["spec"].get("nodeName", "")
        if pod["status"].get("reason") == "OutOfcpu" and story.store.find(NODES, "", name):
            story.environment.soon(
                story.store.patch, NODES, "", name, {"spec": {"unschedulable": True}}
            )

    return told


def test_nodes_that_turn_not_ready_after_a_minute() -> None:
    """Their pods are evicted after five: too seldom for the breaker, and bounded by that."""
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:
        story.infrastructure.faults.set(kubelet_dies_after=MINUTE)
        story.run(HOUR)
        assert launched(story) <= 12


# -- who wants nodes launched in vain ----------------------------------------------------

TYPES = [
    f"{family}.{size}"
    for size in ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")
    for family in ("c7i", "m7i", "r7i", "c7g", "m7g", "r7g")
]


def a_picky_pod(name: str, number: int, **labels: str) -> Manifest:
    """It fits none of the nodes that were launched for those before it."""
    zone = "abc"[number // len(TYPES) % 3]
    selector = {
        "node.kubernetes.io/instance-type": TYPES[number % len(TYPES)],
        "topology.kubernetes.io/zone": f"zone-{zone}",
    }
    pod = a_pod(name, nodeSelector=selector)
    pod["metadata"]["labels"] |= labels
    return pod


def create_again_once_running(story: Story, made: Callable[[int], Manifest]) -> None:
    """For an hour: one pod at a time, which is deleted as soon as it runs."""
    for number in range(int(HOUR / (10 * SECOND))):
        pods = story.all(PODS)
        if all(pod["status"].get("phase") == "Running" for pod in pods):
            for pod in pods:
                name = pod["metadata"]["name"]
                story.store.delete(PODS, "default", name, grace_period_seconds=0)
            story.apply(made(number))
        story.run(10 * SECOND)


def test_a_pod_that_names_another_revision_each_time_costs_eight_nodes() -> None:
    """No controller has made it: the label is only a claim."""

    def made(number: int) -> Manifest:
        return a_picky_pod("p", number, **{"controller-revision-hash": f"h{number}"})

    with Story(*a_cluster(), options=QUICK) as story:
        create_again_once_running(story, made)
        assert 3 <= launched(story) <= WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/p")


#: Of all owners of a namespace, while one pod waits.
OF_NAMESPACE = 64


def test_pods_with_names_of_their_own_are_bounded_together() -> None:
    with Story(*a_cluster(), options=QUICK) as story:
        create_again_once_running(story, lambda n: a_picky_pod(f"p-{word(n)}", n))
        assert launched(story) == OF_NAMESPACE
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/p-*")
        held = warned(story, "Pod")[0]
        assert held.startswith("namespace default has reached its limit for launches in vain")


def test_jobs_with_names_of_their_own_are_bounded_together() -> None:
    """An agent taints every node, and each time a user creates another Job."""
    with Story(*a_cluster(), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        for number in range(120):
            for job in story.all(JOBS):
                name = job["metadata"]["name"]
                story.store.delete(JOBS, "default", name, propagation_policy="Background")
            story.apply(a_job(f"build-{word(number)}"))
            story.run(9 * SECOND)
        story.run(42 * MINUTE)
        assert launched(story) <= OF_NAMESPACE + WHEN_OPEN
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/build-*")


def word(number: int) -> str:
    """As a person may call it: nothing about it looks generated."""
    return "".join("aeiou"[number // 5**place % 5] for place in range(5))


# -- what survives, and what must not be held ------------------------------------------


def test_a_restart_forgets_nothing() -> None:
    """Every two minutes, and once after all claims of before are gone."""
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        for _ in range(10):
            story.run(2 * MINUTE)
            story.crash()
        for claim in story.all(NODE_CLAIMS):
            story.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
        story.run(2 * MINUTE)
        story.crash()
        story.run(38 * MINUTE)
        assert launched(story) <= WHEN_OPEN


def test_a_controller_that_deletes_every_node_is_bounded_across_restarts() -> None:
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:

        def delete(name: str) -> None:
            if story.store.find(NODES, "", name):
                story.store.delete(NODES, "", name)

        def told(type_: str, node: Manifest, _old: Manifest | None) -> None:
            if type_ == "ADDED":
                story.environment.after(5 * SECOND, delete, node["metadata"]["name"])

        story.store.subscribe(NODES, told, replay=True)
        for _ in range(6):
            story.run(3 * MINUTE)
            story.crash()
        assert launched(story) <= 66
        assert "LaunchBreakerOpen" in story.reasons("Pod/default/web-*")


def test_fifty_pods_that_no_node_helps_cost_three_times_their_nodes_and_twelve() -> None:
    needed = 3
    with Story(*a_cluster(a_deployment(replicas=50)), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        story.run(HOUR)
        assert needed < launched(story) <= 3 * needed + 12


def test_the_limit_of_an_hour_does_not_close_the_breaker() -> None:
    """The twelve nodes of an hour are launched together: the next follow exactly an hour later."""
    with Story(*a_cluster(a_deployment(replicas=12, cpu="3")), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        story.run(30 * MINUTE)
        before = launched(story)
        story.run(4 * HOUR)
        assert launched(story) <= before + 4 * 12
        assert conditions(story)["LaunchBreakerOpen"] == "True"


def test_one_owners_trouble_is_not_anothers() -> None:
    tolerant = a_deployment("tolerant", replicas=5, tolerations=[{"operator": "Exists"}])
    with Story(*a_cluster(a_deployment()), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        story.run(5 * MINUTE)
        story.apply(tolerant)
        story.run(MINUTE)
        assert story.running("tolerant") == 5
        assert "LaunchBreakerOpen" not in story.reasons("Pod/default/tolerant-*")


def one_for_each_node(app: str) -> Manifest:
    term = {
        "labelSelector": {"matchLabels": {"app": app}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_an_owner_that_runs_well_does_not_wait_for_one_of_a_similar_name() -> None:
    """Both names end as if they were generated."""
    well = a_deployment("shop-89245", cpu="6", tolerations=[{"operator": "Exists"}])
    bad = a_deployment("shop-24567", replicas=30, affinity=one_for_each_node("shop-24567"))
    with Story(*a_cluster(well), options=QUICK) as story:
        story.run(30 * MINUTE)
        story.infrastructure.faults.set(node_taint=AGENT)
        story.apply(bad)
        story.run(6 * MINUTE)
        assert launched(story) > OF_NAMESPACE
        for name, replicas in (("shop-24567", 1), ("shop-89245", 2)):
            story.store.patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": replicas}})
            story.run(MINUTE)
        assert story.running("shop-89245") == 2


def test_an_owner_does_not_wait_for_a_deleted_one_of_a_similar_name() -> None:
    bad = a_deployment("report-202601", replicas=30, affinity=one_for_each_node("report-202601"))
    with Story(*a_cluster(bad), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        story.run(6 * MINUTE)
        assert launched(story) > OF_NAMESPACE
        story.store.delete(DEPLOYMENTS, "default", "report-202601")
        story.run(MINUTE)
        story.infrastructure.faults.set(node_taint="")
        story.apply(a_deployment("report-202602", cpu="6"))
        story.run(MINUTE)
        assert story.running("report-202602") == 1


def test_a_workload_that_grows_all_the_time_is_never_held() -> None:
    with Story(*a_cluster(a_deployment(replicas=1), a_deployment("other"))) as story:
        for number in range(1, 31):
            story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 3 * number}})
            story.store.patch(DEPLOYMENTS, "default", "other", {"spec": {"replicas": 2 * number}})
            story.run(20 * SECOND)
        story.run(3 * MINUTE)
        assert (story.running("web"), story.running("other")) == (90, 60)
        assert not {"LaunchBreakerOpen", "PodsPendingAgain"} & set(story.reasons("*"))


def test_a_rollout_that_needs_larger_nodes_is_never_held() -> None:
    with Story(*a_cluster(a_deployment(replicas=8)), options=QUICK) as story:
        story.run(MINUTE)
        for cpu in ("1200m", "2300m", "4500m"):
            story.apply(a_deployment(replicas=8, cpu=cpu))
            story.run(2 * MINUTE)
        assert story.running("web") == 8
        assert "LaunchBreakerOpen" not in story.reasons("*")


@pytest.mark.parametrize("crashes", [False, True])
def test_jobs_that_finish_are_never_held(crashes: bool) -> None:
    """They are gone before a replica that starts after them could see them."""
    with Story(*a_cluster(), options=QUICK) as story:
        story.pace("", run_takes=5 * SECOND)
        for number in range(10):
            if crashes:
                story.crash()
            cpu = f"{1 + number}"
            story.apply(a_job(f"sum-{28930000 + number}", cpu=cpu))
            story.run(40 * SECOND)
            for job in story.all(JOBS):
                story.store.delete(
                    JOBS, "default", job["metadata"]["name"], propagation_policy="Background"
                )
        assert not {"LaunchBreakerOpen", "PodsPendingAgain"} & set(story.reasons("*"))


@pytest.mark.parametrize("keeps", [True, False])
def test_a_workflow_whose_steps_fail_is_never_held(keeps: bool) -> None:
    """Each step is a pod of its own that ran on its node; some controllers delete it then."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "flow", "controller": True}
    flow = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flow"}}
    with Story(*a_cluster(), options=QUICK) as story:
        uid = story.apply(flow)["metadata"]["uid"]
        for number in range(8):
            step = a_picky_pod(f"step-{number}", number)
            step["spec"]["restartPolicy"] = "Never"
            step["metadata"]["ownerReferences"] = [{**owner, "uid": uid}]
            step["metadata"]["annotations"] = {
                "sim.tenure.dev/run-seconds": "60",
                "sim.tenure.dev/exit-code": "1",
            }
            story.apply(step)
            story.run(2 * MINUTE)
            if not keeps:
                name = step["metadata"]["name"]
                story.store.delete(PODS, "default", name, grace_period_seconds=0)
        assert launched(story) == 8
        assert not {"LaunchBreakerOpen", "PodsPendingAgain"} & set(story.reasons("*"))


@pytest.mark.parametrize("late", [NODE_CLAIMS, PODS], ids=["claims", "pods"])
def test_what_tenure_removes_as_empty_is_known_as_its_own_however_late_the_watch_is(
    late: Resource,
) -> None:
    pool = a_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})
    web = a_deployment(replicas=6, cpu="1500m")
    with Tapped(a_node_class(), pool, web, options=QUICK) as story:
        story.run(2 * MINUTE)
        before = len(story.store.list(NODES))
        story.api_tap.lag[late] = 45.0
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        story.run(8 * MINUTE)
        assert (before > 0, story.store.list(NODES)) == (True, [])
        gone = story.controller.snapshot().observations.departed_claims.values()
        assert [one.name for one in gone if not one.left_at_once] == [], "others deleted none"
        story.api_tap.lag.clear()
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 6}})
        story.run(2 * MINUTE)
        assert story.running("web") == 6
        assert not {"LaunchBreakerOpen", "PodsPendingAgain"} & set(story.reasons("*"))


def test_an_open_breaker_does_not_hold_back_an_owner_whose_nodes_help() -> None:
    """It opened by what is over now. Its pods are young, so it stays open."""
    pods = a_deployment(affinity=apart(), cpu="1")
    with Story(*a_cluster(pods), options=QUICK) as story:
        story.infrastructure.faults.set(node_taint=AGENT)
        story.run(5 * MINUTE)
        assert conditions(story)["LaunchBreakerOpen"] == "True"
        story.infrastructure.faults.set(node_taint="")
        story.run_while(lambda: story.running("web") == 0, at_most=10 * MINUTE, step=SECOND)
        before = launched(story)
        story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 31}})
        story.run(6 * MINUTE)
        assert conditions(story)["LaunchBreakerOpen"] == "True", "no pod has run for 10m"
        assert story.running("web") == 31
        assert launched(story) == before + 30, "one for each pod"
