"""Whom kube-scheduler takes a node's room from for a pod of higher priority, embedded and real."""

from __future__ import annotations

import asyncio
from typing import Any

from tenure.model.api.resource import NODES, POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES
from tests.contract.backends import Json
from tests.contract.clusters import Cluster, is_ready

#: Seconds in which nothing may happen, where nothing is to happen.
QUIET = 3.0
HELD = "example.com/held"
#: Of the 16 CPUs that a node has.
MOST = "12"


async def a_class(cluster: Cluster, name: str, value: int, **fields: Any) -> str:
    """Pods may ask for it: a real API server hears of a class a moment after it is created."""
    unique = cluster.unique(name)
    given = {"metadata": {"name": unique}, "value": value, **fields}
    await cluster.created(PRIORITY_CLASSES, given)
    tried = {"metadata": {"name": "tried"}, "spec": cluster.template("tried")["spec"]}
    tried["spec"]["priorityClassName"] = unique
    await cluster.until_answered(
        lambda: cluster.create(PODS, tried, dryRun="All"), lambda answer: answer.status == 201
    )
    return unique


async def a_pod(
    cluster: Cluster,
    name: str,
    class_name: str = "",
    *,
    cpu: str = MOST,
    node: str = "",
    needs: str = "",
) -> None:
    """``node``: that one alone. ``needs``: a label that its node has to have."""
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    spec: Json = {"containers": [container]}
    if class_name:
        spec["priorityClassName"] = class_name
    template = cluster.template(name, **spec)
    if node:
        template["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node
    if needs:
        template["spec"]["nodeSelector"][needs] = "true"
    template["metadata"]["name"] = name
    await cluster.created(PODS, template)


async def runs(cluster: Cluster, name: str) -> Json:
    async def ready() -> Json | None:
        pod = (await cluster.get(PODS, name)).body
        return pod if pod.get("spec") and is_ready(pod) else None

    return await cluster.until(ready, f"{name} runs")


async def waits(cluster: Cluster, name: str) -> Json:
    async def told() -> Json | None:
        pod = (await cluster.get(PODS, name)).body
        found = [c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"]
        return pod if found and found[0]["status"] == "False" else None

    return await cluster.until(told, f"{name} waits")


async def named_node(cluster: Cluster, name: str) -> str:
    """A node that can be asked for by its name."""
    node = await cluster.node(name)
    labels = {"metadata": {"labels": {"kubernetes.io/hostname": node}}}
    answer = await cluster.patch(NODES, node, labels)
    assert answer.status == 200, answer
    return node


async def test_a_pod_of_higher_priority_takes_the_place_of_another(cluster: Cluster) -> None:
    high = await a_class(cluster, "high", 1000)
    node = await cluster.node("a")
    await a_pod(cluster, "low")
    await runs(cluster, "low")
    watching = await cluster.watch(PODS, fieldSelector="metadata.name=low")
    await a_pod(cluster, "high", high)
    pod = await runs(cluster, "high")
    assert pod["spec"]["nodeName"] == node
    assert (await cluster.get(PODS, "low")).status == 404
    reasons = set()
    while (event := await watching.event())[0] != "DELETED":
        reasons |= {
            c["reason"]
            for c in event[1]["status"].get("conditions", ())
            if c["type"] == "DisruptionTarget"
        }
    assert reasons == {"PreemptionByScheduler"}


async def test_the_pod_says_which_node_it_waits_for(cluster: Cluster) -> None:
    high = await a_class(cluster, "high", 1000)
    node = await cluster.node("a")
    await a_pod(cluster, "low")
    await runs(cluster, "low")
    listed = await cluster.list(PODS)
    watching = await cluster.watch(
        PODS,
        fieldSelector="metadata.name=high",
        resourceVersion=listed.body["metadata"]["resourceVersion"],
    )
    # It goes when the other has said so, and not before.
    await cluster.patch(PODS, "low", {"metadata": {"finalizers": [HELD]}})
    await a_pod(cluster, "high", high)
    nominated = []
    while not (pod := (await watching.event())[1])["spec"].get("nodeName"):
        nominated.append(pod["status"].get("nominatedNodeName", ""))
        if nominated[-1]:
            await cluster.patch(PODS, "low", {"metadata": {"finalizers": None}})
    assert (nominated[0], set(nominated)) == ("", {"", node})


async def test_a_class_that_never_preempts_waits(cluster: Cluster) -> None:
    polite = await a_class(cluster, "polite", 1000, preemptionPolicy="Never")
    await cluster.node("a")
    await a_pod(cluster, "low")
    await runs(cluster, "low")
    await a_pod(cluster, "high", polite)
    await waits(cluster, "high")
    await asyncio.sleep(QUIET)
    assert is_ready((await cluster.get(PODS, "low")).body)
    assert not (await cluster.get(PODS, "high")).body["status"].get("nominatedNodeName")


async def test_a_pod_of_equal_priority_waits(cluster: Cluster) -> None:
    await cluster.node("a")
    await a_pod(cluster, "first")
    await runs(cluster, "first")
    await a_pod(cluster, "second")
    await waits(cluster, "second")
    await asyncio.sleep(QUIET)
    assert is_ready((await cluster.get(PODS, "first")).body)


async def test_no_more_pods_go_than_have_to_and_the_least_important(cluster: Cluster) -> None:
    high, middle = await a_class(cluster, "high", 1000), await a_class(cluster, "middle", 500)
    await cluster.node("a")
    await a_pod(cluster, "low", cpu="6")
    await a_pod(cluster, "middle", middle, cpu="6")
    await runs(cluster, "low")
    await runs(cluster, "middle")
    await a_pod(cluster, "high", high, cpu="8")
    await runs(cluster, "high")
    assert (await cluster.get(PODS, "low")).status == 404
    assert is_ready((await cluster.get(PODS, "middle")).body)


async def test_the_node_with_the_least_important_victim_is_taken(cluster: Cluster) -> None:
    high, middle = await a_class(cluster, "high", 1000), await a_class(cluster, "middle", 500)
    a, b = await named_node(cluster, "a"), await named_node(cluster, "b")
    await a_pod(cluster, "middle", middle, node=a)
    await a_pod(cluster, "low", node=b)
    await runs(cluster, "middle")
    await runs(cluster, "low")
    await a_pod(cluster, "high", high)
    assert (await runs(cluster, "high"))["spec"]["nodeName"] == b
    assert is_ready((await cluster.get(PODS, "middle")).body)


async def a_pdb(cluster: Cluster, app: str) -> None:
    """Before there are pods: until they run, the scheduler has heard of it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    await cluster.created(POD_DISRUPTION_BUDGETS, {"metadata": {"name": app}, "spec": spec})
    await cluster.until_status(POD_DISRUPTION_BUDGETS, app, observedGeneration=1)


async def guards(cluster: Cluster, app: str) -> None:
    await cluster.until_status(POD_DISRUPTION_BUDGETS, app, currentHealthy=1, disruptionsAllowed=0)


async def test_a_budget_is_respected_where_there_is_a_choice(cluster: Cluster) -> None:
    high, middle = await a_class(cluster, "high", 1000), await a_class(cluster, "middle", 500)
    await a_pdb(cluster, "guarded")
    a, b = await named_node(cluster, "a"), await named_node(cluster, "b")
    await a_pod(cluster, "guarded", node=a)
    await a_pod(cluster, "middle", middle, node=b)
    await runs(cluster, "guarded")
    await runs(cluster, "middle")
    await guards(cluster, "guarded")
    await a_pod(cluster, "high", high)
    assert (await runs(cluster, "high"))["spec"]["nodeName"] == b
    assert is_ready((await cluster.get(PODS, "guarded")).body)


async def test_a_budget_is_broken_where_there_is_none(cluster: Cluster) -> None:
    high = await a_class(cluster, "high", 1000)
    await a_pdb(cluster, "guarded")
    await cluster.node("a")
    await a_pod(cluster, "guarded")
    await runs(cluster, "guarded")
    await guards(cluster, "guarded")
    await a_pod(cluster, "high", high)
    await runs(cluster, "high")
    assert (await cluster.get(PODS, "guarded")).status == 404
