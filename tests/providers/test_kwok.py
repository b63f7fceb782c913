"""An instance is a Node: how it comes, whose it is, and that it ends when we say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tenure.errors import InstanceGone, Misconfigured, OutOfCapacity, ProviderError
from tenure.model.instance import InstanceState
from tenure.model.node import Taint
from tenure.model.offering import Offering
from tenure.model.quantity import parse_resources
from tenure.model.requirements import Requirement, Requirements
from tenure.model.resource import KWOK_NODE_CLASSES, NODES
from tenure.providers.contract.bench import wants
from tenure.providers.kwok.catalogue import instance_type
from tenure.providers.kwok.cloud import KwokCloud
from tests.kube.doors import Scripted
from tests.providers.benches import SOLD_OUT, StoreBench, class_ref

Json = dict[str, Any]
HELD = {"metadata": {"finalizers": ["karpenter.sh/termination"]}}
RELEASED: Json = {"metadata": {"finalizers": []}}


def tell(tale: Callable[[StoreBench, KwokCloud], Awaitable[None]]) -> None:
    bench = StoreBench()

    async def told() -> None:
        async with bench.kwok() as cloud:
            await tale(bench, cloud)

    bench.run(told())


async def the_node(bench: StoreBench) -> Json:
    (node,) = await bench.nodes()
    return node


def in_kwok(**metadata: Any) -> Json:
    """A Node that somebody else has made."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


# How it comes.


def test_a_node_looks_as_the_peers_users_know_it() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        team = Requirements.of([Requirement.label("example.com/team", "red")])
        starting = Taint(key="example.com/starting", effect="NoSchedule")
        await cloud.launch(bench.request(requirements=team, taints=(starting, starting)))
        node = await the_node(bench)
        assert node["metadata"]["labels"] == {
            "eks-node-viewer/instance-price": "0.038006",
            "example.com/team": "red",
            "karpenter.kwok.sh/instance-cpu": "2",
            "karpenter.kwok.sh/instance-family": "c",
            "karpenter.kwok.sh/instance-memory": "4Gi",
            "karpenter.kwok.sh/instance-size": "2",
            "karpenter.sh/capacity-type": "spot",
            "karpenter.sh/nodepool": "contract",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": "contract-one",
            "kubernetes.io/os": "linux",
            "kwok-partition": "a",
            "kwok.x-k8s.io/node": "fake",
            "node.kubernetes.io/instance-type": "c-2x-amd64-linux",
            "topology.kubernetes.io/zone": "test-zone-a",
        }
        assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
        assert [(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]] == [
            ("karpenter.sh/unregistered", "NoExecute"),
            ("example.com/starting", "NoSchedule"),
            ("node.kubernetes.io/not-ready", "NoSchedule"),  # By the API server, on every node.
        ]
        assert node["status"]["capacity"]["memory"] == "4Gi"
        assert node["status"]["allocatable"]["memory"] == "4086Mi"

    tell(tale)


def test_the_nodes_name_follows_from_the_claims_uid_and_is_its_provider_id() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        instance = await cloud.launch(bench.request())
        name = (await the_node(bench))["metadata"]["name"]
        assert name == "kwok-contract-one-630430985096"
        assert instance.provider_id == f"kwok://{name}"

    tell(tale)


def test_a_claim_with_a_very_long_name_gets_a_node_all_the_same() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        await cloud.launch(bench.request(claim_name="a" * 43 + "." + "b" * 209))
        metadata = (await the_node(bench))["metadata"]
        assert metadata["name"].startswith("kwok-" + "a" * 43 + "-")
        assert metadata["labels"]["kubernetes.io/hostname"] == metadata["name"]

    tell(tale)


def test_the_image_of_the_class_is_that_of_the_instance() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        await bench.client.patch(KWOK_NODE_CLASSES, "default", {"spec": {"image": "v7"}})
        launched = await cloud.launch(bench.request())
        assert launched.image_id == (await cloud.get(launched.provider_id)).image_id == "v7"

    tell(tale)


def test_a_type_that_runs_several_systems_runs_the_one_that_was_asked_for() -> None:
    both = instance_type(
        "both.large",
        architecture="amd64",
        systems=("linux", "windows"),
        capacity=parse_resources({"cpu": "2", "memory": "4Gi", "pods": "10"}),
        offerings=(Offering(zone="a", capacity_type="spot", price=1),),
        labels={"example.com/dense": "yes"},
    )
    bench = StoreBench()

    async def tale() -> None:
        async with KwokCloud(bench.surroundings(), (both,)) as cloud:
            asked = Requirements.of([Requirement.label("kubernetes.io/os", "windows")])
            windows = await cloud.launch(bench.request("one", requirements=asked))
            assert windows.labels["kubernetes.io/os"] == "windows"
            assert windows.labels["example.com/dense"] == "yes", "the type says so"
            either = await cloud.launch(bench.request("two"))
            assert either.labels["kubernetes.io/os"] == "linux"

    bench.run(tale())


# How it is refused.


def test_offerings_that_are_not_available_are_passed_over_and_named_when_nothing_else_is_left() -> (
    None
):
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        assert (await cloud.launch(bench.request())).instance_type != SOLD_OUT.name
        with pytest.raises(OutOfCapacity, match="2 offerings would do, none is available") as no:
            await cloud.launch(bench.request("two", requirements=wants(type=SOLD_OUT.name)))
        assert no.value.offerings == (
            (SOLD_OUT.name, "test-zone-a", "spot"),
            (SOLD_OUT.name, "test-zone-b", "spot"),
        )

    tell(tale)


def test_a_class_that_is_not_ready_says_why_in_its_own_words() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        with pytest.raises(Misconfigured, match="KWOKNodeClass/broken is not Ready: no subnet has"):
            await cloud.launch(bench.request(node_class=class_ref("broken")))

    tell(tale)


def test_a_launch_whose_answer_was_lost_is_found_although_it_would_now_be_refused() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        first = await cloud.launch(bench.request())
        await bench.client.delete(KWOK_NODE_CLASSES, "default", uid="")
        assert await cloud.launch(bench.request()) == first
        with pytest.raises(Misconfigured, match="KWOKNodeClass/default: not found"):
            await cloud.launch(bench.request("two"))

    tell(tale)


def test_a_node_of_somebody_else_under_our_name_is_not_taken_for_ours() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        name = "kwok-contract-one-630430985096"
        await bench.client.create(NODES, in_kwok(name=name))
        with pytest.raises(ProviderError, match=f"Node {name} is there, and not for claim"):
            await cloud.launch(bench.request())

    tell(tale)


# How it ends.


def test_a_node_that_a_person_deletes_can_be_drained_its_instance_runs_until_we_end_it() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        instance = await cloud.launch(bench.request())
        name = instance.provider_id.removeprefix("kwok://")
        await bench.client.patch(NODES, name, HELD)
        await bench.client.delete(NODES, name, uid="")
        assert "deletionTimestamp" in (await the_node(bench))["metadata"]
        assert (await cloud.get(instance.provider_id)).state is InstanceState.RUNNING
        assert await cloud.list_instances("contract") == (instance,)

        await cloud.terminate(instance.provider_id)
        for gone in (cloud.get, cloud.terminate):
            with pytest.raises(InstanceGone, match=f"there is no instance {instance.provider_id}"):
                await gone(instance.provider_id)
        assert await cloud.list_instances("contract") == ()
        await bench.client.patch(NODES, name, RELEASED)
        assert await bench.nodes() == []

    tell(tale)


def test_an_instance_that_is_ended_takes_its_node_along() -> None:
    """Nobody else would: there is no kubelet behind it, and no cloud controller either."""

    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        unregistered = await cloud.launch(bench.request("one"))
        registered = await cloud.launch(bench.request("two"))
        held = registered.provider_id.removeprefix("kwok://")
        await bench.client.patch(NODES, held, HELD)
        await cloud.terminate(unregistered.provider_id)
        await cloud.terminate(registered.provider_id)
        node = await the_node(bench)
        assert node["metadata"]["name"] == held
        assert "deletionTimestamp" in node["metadata"], "and it is drained and released next"
        assert node["metadata"]["annotations"]["karpenter.kwok.sh/terminated-at"]

    tell(tale)


def test_while_the_node_of_an_ended_instance_is_held_its_claim_gets_no_other() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        instance = await cloud.launch(bench.request())
        await bench.client.patch(NODES, instance.provider_id.removeprefix("kwok://"), HELD)
        await cloud.terminate(instance.provider_id)
        sentence = "the instance of claim contract-one was ended at 2031-05-02T08:00:00Z"
        with pytest.raises(ProviderError, match=sentence):
            await cloud.launch(bench.request())

    tell(tale)


# Whose it is.


def test_nodes_without_our_tags_are_never_touched() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        node = in_kwok(name="theirs", labels={"kwok.x-k8s.io/node": "fake"})
        await bench.client.create(NODES, {**node, "spec": {"providerID": "kwok://theirs"}})
        assert await cloud.list_instances("contract") == ()
        with pytest.raises(InstanceGone):
            await cloud.terminate("kwok://theirs")
        assert "deletionTimestamp" not in (await the_node(bench))["metadata"]

    tell(tale)


def test_nodes_of_another_cluster_are_never_touched() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        foreign = await cloud.launch(bench.request(cluster="elsewhere"))
        for touch in (cloud.get, cloud.terminate):
            with pytest.raises(InstanceGone):
                await touch(foreign.provider_id)
        assert "deletionTimestamp" not in (await the_node(bench))["metadata"]
        assert await cloud.list_instances("elsewhere") == (foreign,)

    tell(tale)


def test_a_copy_of_one_of_our_nodes_is_not_one_of_ours() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        instance = await cloud.launch(bench.request())
        node = await the_node(bench)
        copied = {key: node["metadata"][key] for key in ("labels", "annotations")}
        await bench.client.create(NODES, {**in_kwok(name="copy", **copied), "spec": node["spec"]})
        assert await cloud.list_instances("contract") == (instance,)
        with pytest.raises(InstanceGone):
            await cloud.terminate("kwok://copy")

    tell(tale)


@pytest.mark.parametrize(
    "provider_id",
    ["kwok://a/../../pods", "kwok://A?x=1", "kwok:///a", "aws:///eu/i-1", "kwok://"],
)
def test_an_id_that_we_never_gave_out_reaches_nobody(provider_id: str) -> None:
    async def tale(bench: StoreBench, _cloud: KwokCloud) -> None:
        bench.transport = nobody = Scripted()
        cloud = bench.kwok()
        for ask in (cloud.get, cloud.terminate):
            with pytest.raises(InstanceGone):
                await ask(provider_id)
        assert nobody.requests == []

    tell(tale)
