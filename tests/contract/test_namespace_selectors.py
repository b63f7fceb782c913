"""Which pods a namespace selector of pod affinity is about, embedded and real."""

from __future__ import annotations

from tenure.model.api.resource import NAMESPACES, NODES, PODS
from tests.contract.backends import Json
from tests.contract.clusters import Cluster

TEAM = "example.com/team"
PLACE = "example.com/place"


async def a_pod(cluster: Cluster, name: str, **spec: object) -> None:
    template = cluster.template(name, **spec)
    template["metadata"]["name"] = name
    await cluster.created(PODS, template)


async def a_node(cluster: Cluster, name: str) -> str:
    node = await cluster.node(name)
    await cluster.patch(NODES, node, {"metadata": {"labels": {PLACE: name}}})
    return node


async def node_of(cluster: Cluster, name: str) -> str:
    async def bound() -> str | None:
        found = (await cluster.get(PODS, name)).body["spec"].get("nodeName")
        return str(found) if found else None

    return await cluster.until(bound, f"pod {name} has a node")


def avoiding(team: str) -> Json:
    term = {
        "topologyKey": PLACE,
        "labelSelector": {"matchLabels": {"app": "first"}},
        "namespaceSelector": {"matchLabels": {TEAM: team}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def label(cluster: Cluster, team: str) -> None:
    change = {"metadata": {"labels": {TEAM: team}}}
    answer = await cluster.patch(NAMESPACES, cluster.namespace, change)
    assert answer.body["metadata"]["labels"][TEAM] == team
    assert answer.body["metadata"]["labels"]["kubernetes.io/metadata.name"] == cluster.namespace


async def test_a_namespace_selector_reads_the_labels_of_namespaces(cluster: Cluster) -> None:
    team = cluster.unique("red")
    await label(cluster, team)
    only = await a_node(cluster, "only")
    await a_pod(cluster, "first")
    assert await node_of(cluster, "first") == only
    await a_pod(cluster, "other", affinity=avoiding(cluster.unique("blue")))
    assert await node_of(cluster, "other") == only, "no namespace has these labels"
    await a_pod(cluster, "shy", affinity=avoiding(team))

    async def waits() -> bool:
        told = (await cluster.get(PODS, "shy")).body["status"].get("conditions", [])
        return any("anti-affinity" in one.get("message", "") for one in told)

    await cluster.until(waits, "pod shy is told of anti-affinity")
    second = await a_node(cluster, "second")
    assert await node_of(cluster, "shy") == second
