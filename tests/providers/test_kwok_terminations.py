"""An instance is a Node: that it ends when we say so, and whose it is."""

from __future__ import annotations

import pytest

from tenure.errors import (
    InstanceGone,
    ProviderError,
)
from tenure.model.api.resource import NODES
from tenure.model.cloud.instance import InstanceState
from tenure.providers.kwok.cloud import KwokCloud
from tests.kube.transports import Scripted
from tests.providers.benches import StoreBench
from tests.providers.kwokcases import HELD, RELEASED, in_kwok, tell, the_node

# How it ends.


def test_a_node_that_a_user_deletes_can_be_drained_its_instance_runs_until_we_end_it() -> None:
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


def test_a_node_that_a_user_deletes_before_anything_holds_it_takes_its_instance_along() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        instance = await cloud.launch(bench.request())
        await bench.client.delete(NODES, instance.provider_id.removeprefix("kwok://"), uid="")
        for gone in (cloud.get, cloud.terminate):
            with pytest.raises(InstanceGone):
                await gone(instance.provider_id)
        assert await cloud.list_instances("contract") == ()

    tell(tale)


def test_an_instance_that_is_ended_takes_its_node_along() -> None:
    """Nothing else would: there is no kubelet behind it, and no cloud controller either."""

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
        sentence = "the instance of NodeClaim contract-one was terminated at 2031-05-02T08:00:00Z"
        with pytest.raises(ProviderError, match=sentence):
            await cloud.launch(bench.request())

    tell(tale)


# Whose it is.


def test_nodes_of_karpenters_provider_are_never_touched() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        ours = await cloud.launch(bench.request())
        node = in_kwok(
            name="hungry-tesla-2718281828",
            labels={"kwok.x-k8s.io/node": "fake", "karpenter.sh/nodepool": "contract"},
            annotations={"kwok.x-k8s.io/node": "fake"},
            finalizers=["karpenter.sh/termination"],
        )
        spec = {"providerID": "kwok://hungry-tesla-2718281828"}
        await bench.client.create(NODES, {**node, "spec": spec})
        assert await cloud.list_instances("contract") == (ours,)
        with pytest.raises(InstanceGone):
            await cloud.terminate(spec["providerID"])
        assert len(await bench.nodes()) == 2

    tell(tale)


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
def test_an_id_that_we_never_gave_out_is_not_looked_up(provider_id: str) -> None:
    async def tale(bench: StoreBench, _cloud: KwokCloud) -> None:
        bench.transport = untouched = Scripted()
        cloud = bench.kwok()
        for ask in (cloud.get, cloud.terminate):
            with pytest.raises(InstanceGone):
                await ask(provider_id)
        assert untouched.requests == []

    tell(tale)
