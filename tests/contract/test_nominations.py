"""``status.nominatedNodeName`` that others than kube-scheduler write: whom it keeps a node's room for, embedded and real."""

from __future__ import annotations

import asyncio

from tenure.model.api.resource import NODES, PODS
from tests.contract.backends import Json
from tests.contract.clusters import Cluster
from tests.contract.test_preemption import QUIET, a_class, a_pod, named_node, runs, waits


async def cordon(cluster: Cluster, node: str, *, on: bool = True) -> None:
    answer = await cluster.patch(NODES, node, {"spec": {"unschedulable": on}})
    assert answer.status == 200, answer


async def nominate(cluster: Cluster, pod: str, node: str) -> None:
    """As soon as the scheduler has said that there is no node for the pod."""
    await waits(cluster, pod)
    status = {"status": {"nominatedNodeName": node}}
    answer = await cluster.patch(PODS, pod, status, subresource="status")
    assert answer.status == 200, answer


async def nominated(cluster: Cluster, pod: str) -> str:
    status: Json = (await cluster.get(PODS, pod)).body["status"]
    return str(status.get("nominatedNodeName", ""))


async def a_closed_node(cluster: Cluster, name: str = "a") -> str:
    node = await named_node(cluster, name)
    await cordon(cluster, node)
    return node


async def test_the_room_is_kept_from_an_older_pod_of_equal_priority(cluster: Cluster) -> None:
    equal = await a_class(cluster, "equal", 0, preemptionPolicy="Never")
    node = await a_closed_node(cluster)
    await a_pod(cluster, "older")
    await waits(cluster, "older")
    await a_pod(cluster, "nominated", equal)
    await nominate(cluster, "nominated", node)
    await cordon(cluster, node, on=False)
    assert (await runs(cluster, "nominated"))["spec"]["nodeName"] == node
    await waits(cluster, "older")


async def test_the_room_is_not_kept_from_a_pod_of_higher_priority(cluster: Cluster) -> None:
    """The node lacks a label that the nominated pod needs. (Were it closed, the scheduler would try both pods when it
    opens, and in which order depends on how often it has tried each before.)"""
    high = await a_class(cluster, "high", 1000, preemptionPolicy="Never")
    equal = await a_class(cluster, "equal", 0, preemptionPolicy="Never")
    node = await named_node(cluster, "a")
    await a_pod(cluster, "nominated", equal, needs="example.com/later")
    await nominate(cluster, "nominated", node)
    await a_pod(cluster, "equal", equal)
    await waits(cluster, "equal")
    await a_pod(cluster, "high", high)
    assert (await runs(cluster, "high"))["spec"]["nodeName"] == node
    await waits(cluster, "nominated")


async def test_the_pod_goes_to_its_node_though_another_is_emptier(cluster: Cluster) -> None:
    equal = await a_class(cluster, "equal", 0, preemptionPolicy="Never")
    node, empty = await named_node(cluster, "a"), await a_closed_node(cluster, "empty")
    await a_pod(cluster, "there", cpu="4", node=node)
    await runs(cluster, "there")
    await cordon(cluster, node)
    await a_pod(cluster, "nominated", equal)
    await nominate(cluster, "nominated", node)
    # It fits none of the closed ones; a toleration is all that it lacks, and then it has the choice.
    tolerated = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    await cluster.patch(PODS, "nominated", {"spec": {"tolerations": tolerated}})
    assert (await runs(cluster, "nominated"))["spec"]["nodeName"] == node != empty


async def test_a_pod_that_is_bound_names_no_node_any_more(cluster: Cluster) -> None:
    equal = await a_class(cluster, "equal", 0, preemptionPolicy="Never")
    node = await a_closed_node(cluster)
    await a_pod(cluster, "nominated", equal)
    await nominate(cluster, "nominated", node)
    await cordon(cluster, node, on=False)
    await runs(cluster, "nominated")
    assert not await nominated(cluster, "nominated")


async def tried_in_vain(cluster: Cluster, class_name: str) -> str:
    """A pod that is nominated to a closed node, and tried because another node opens, which is full."""
    node, full = await a_closed_node(cluster), await named_node(cluster, "full")
    await a_pod(cluster, "there", node=full)
    await runs(cluster, "there")
    await cordon(cluster, full)
    await a_pod(cluster, "nominated", class_name)
    await nominate(cluster, "nominated", node)
    await cordon(cluster, full, on=False)
    return node


async def test_one_that_may_preempt_and_finds_no_victims_loses_its_node(cluster: Cluster) -> None:
    await tried_in_vain(cluster, "")

    async def lost() -> bool:
        return not await nominated(cluster, "nominated")

    await cluster.until(lost, "the scheduler removes the name")


async def test_one_that_never_preempts_keeps_its_node(cluster: Cluster) -> None:
    equal = await a_class(cluster, "equal", 0, preemptionPolicy="Never")
    node = await tried_in_vain(cluster, equal)
    await asyncio.sleep(QUIET)
    assert await nominated(cluster, "nominated") == node


async def test_the_room_is_for_others_once_the_name_is_removed(cluster: Cluster) -> None:
    equal = await a_class(cluster, "equal", 0, preemptionPolicy="Never")
    node = await named_node(cluster, "a")
    await a_pod(cluster, "there", cpu="10")
    await runs(cluster, "there")
    await a_pod(cluster, "large", equal, cpu="16")
    await nominate(cluster, "large", node)
    await a_pod(cluster, "small", equal, cpu="2")
    await waits(cluster, "small")
    name = {"status": {"nominatedNodeName": None}}
    assert (await cluster.patch(PODS, "large", name, subresource="status")).status == 200
    assert (await runs(cluster, "small"))["spec"]["nodeName"] == node
