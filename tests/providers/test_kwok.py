"""An instance is a Node: how it comes, and how it is refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest

from tenure.errors import (
    Misconfigured,
    OutOfCapacity,
    ProviderError,
    Throttled,
)
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.resource import CONFIG_MAPS, NODES
from tenure.model.cloud.drift import Drift
from tenure.model.cloud.notice import NoticeKind
from tenure.model.cloud.offering import Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.snapshot.kinds import decode
from tenure.model.values.quantity import parse_resources
from tenure.ports.transport import Response
from tenure.providers.contract.bench import wants
from tenure.providers.kwok import images
from tenure.providers.kwok.catalogue import instance_type
from tenure.providers.kwok.cloud import KwokCloud
from tenure.providers.kwok.labels import NOTICE
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tests.kube.transports import Scripted
from tests.providers.benches import SOLD_OUT, StoreBench, class_ref, with_image, without_image
from tests.providers.kwokcases import Deaf, in_kwok, tell, the_node

# How it comes.


def test_a_node_looks_as_karpenters_users_know_it() -> None:
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


@pytest.mark.parametrize(
    ("value", "kind", "ahead"),
    [
        ("rebalance", NoticeKind.REBALANCE, None),
        ("interrupt", NoticeKind.INTERRUPTION, None),
        ("interrupt-2m", NoticeKind.INTERRUPTION, 120),
        ("interrupt-1h30m", NoticeKind.INTERRUPTION, 5400),
    ],
)
def test_a_label_on_the_node_is_a_notice_and_goes_when_that_is_acknowledged(
    value: str, kind: NoticeKind, ahead: int | None
) -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        launched = await cloud.launch(bench.request())
        name = launched.provider_id.removeprefix("kwok://")
        await bench.client.patch(NODES, name, {"metadata": {"labels": {NOTICE: value}}})
        notice = await anext(cloud.notices(bench.cluster))
        assert (notice.kind, notice.provider_id) == (kind, launched.provider_id)
        assert notice.deadline == (notice.at + timedelta(seconds=ahead) if ahead else None)
        await bench.client.patch(NODES, name, {"metadata": {"labels": {NOTICE: "interrupt-9m"}}})
        await cloud.acknowledge(notice)  # It is another one by now, which stays.
        newer = await anext(cloud.notices(bench.cluster))
        assert newer.receipt != notice.receipt
        await cloud.acknowledge(newer)
        node = decode(NODES, await bench.client.get(NODES, name))
        assert NOTICE not in node.labels

    tell(tale)


@pytest.mark.parametrize("value", ["soon", "interrupt-1d", "interrupt-2", ""])
def test_a_label_that_cannot_be_read_is_said_and_stops_no_other(value: str) -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        for claim, said in (("one", value), ("two", "interrupt")):
            launched = await cloud.launch(bench.request(claim))
            name = launched.provider_id.removeprefix("kwok://")
            await bench.client.patch(NODES, name, {"metadata": {"labels": {NOTICE: said}}})
        notice = await anext(cloud.notices(bench.cluster))
        assert notice.provider_id == launched.provider_id
        error = bench.errors.pop()
        assert "expected rebalance, interrupt or interrupt- and a Go duration" in str(error)

    tell(tale)


def test_without_a_list_of_images_there_is_none_and_nothing_drifts() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        assert await cloud.current_image(await bench.node_class()) == ""
        launched = await cloud.launch(bench.request())
        assert launched.image_id == ""
        await bench.release_image()
        for image in ("v9", "latest"):  # What runs is not known, so nothing is said against it.
            asks = with_image(await bench.node_class(), image)
            assert await cloud.drift(launched.provider_id, asks) is None

    tell(tale)


def test_a_class_that_pins_its_image_does_not_follow_releases() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        await bench.release_image()
        await bench.client.patch(KWOK_NODE_CLASSES, "default", {"spec": {"image": "v7"}})
        launched = await cloud.launch(bench.request())
        await bench.release_image()
        pinned = await bench.node_class()
        assert await cloud.current_image(pinned) == "v7"
        assert await cloud.drift(launched.provider_id, pinned) is None
        for follows in (with_image(pinned, "latest"), without_image(pinned)):
            assert await cloud.current_image(follows) == "v1.1"
            assert await cloud.drift(launched.provider_id, follows) == Drift(
                "ImageDrift", "the instance runs image v7, its node class asks for v1.1"
            )

    tell(tale)


def test_the_newest_image_is_the_last_line_and_one_that_is_too_long_is_an_error() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        bench.images = ["v1", " v2 ", "", ""]
        await bench.release_image()
        assert await cloud.current_image(await bench.node_class()) == "v1.4"
        bench.images = ["v1", " v2 ", ""]
        data = {"data": {images.LIST: "\n".join(bench.images)}}
        await bench.client.patch(CONFIG_MAPS, images.NAME, data, namespace=bench.namespace)
        assert await cloud.current_image(await bench.node_class()) == "v2"
        long = {"data": {images.LIST: "v" * 254}}
        await bench.client.patch(CONFIG_MAPS, images.NAME, long, namespace=bench.namespace)
        with pytest.raises(ProviderError, match="254 characters, at most 253"):
            await cloud.current_image(await bench.node_class())

    tell(tale)


def test_a_type_that_runs_several_systems_runs_the_one_that_was_asked_for() -> None:
    both = instance_type(
        "both.large",
        architectures=("amd64",),
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


@pytest.mark.parametrize("name", ["", "../../../v1/nodes/x", "a b", "a?watch=true", "Default"])
def test_a_class_whose_name_no_object_can_have_is_not_looked_up(name: str) -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        with pytest.raises(Misconfigured, match="no object can have such a name"):
            await cloud.launch(bench.request(node_class=class_ref(name)))

    tell(tale)


def test_a_class_of_another_kind_is_not_ours_to_serve() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        other = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
        with pytest.raises(Misconfigured, match="the kwok provider serves KWOKNodeClass only"):
            await cloud.launch(bench.request(node_class=other))

    tell(tale)


@pytest.mark.parametrize(
    ("status", "kind"), [(429, Throttled), (403, ProviderError), (422, ProviderError)]
)
def test_what_the_api_server_refuses_is_said_as_a_cloud_says_it(
    status: int, kind: type[ProviderError]
) -> None:
    async def tale(bench: StoreBench, _cloud: KwokCloud) -> None:
        no = {"kind": "Status", "status": "Failure", "message": "no, no", "code": status}
        bench.transport = Scripted(Response(status=status, body=msgspec.json.encode(no)))
        with pytest.raises(
            kind, match=r"launching for NodeClaim contract-one: .*no, no"
        ) as refusal:
            await bench.kwok().launch(bench.request())
        assert type(refusal.value) is kind

    tell(tale)


def test_a_launch_whose_answer_was_lost_is_found_although_it_would_now_be_refused() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        first = await cloud.launch(bench.request())
        await bench.client.delete(KWOK_NODE_CLASSES, "default", uid="")
        assert await cloud.launch(bench.request()) == first
        with pytest.raises(Misconfigured, match="KWOKNodeClass/default: not found"):
            await cloud.launch(bench.request("two"))

    tell(tale)


@pytest.mark.parametrize("lost", range(1, 4), ids=lambda lost: f"after {lost} answers")
def test_a_launch_is_repeated_by_the_next_controller_whenever_the_first_one_died(lost: int) -> None:
    """As many answers reach the first one; what it asked for next is done all the same."""

    async def tale(bench: StoreBench, _cloud: KwokCloud) -> None:
        sound = bench.transport
        bench.transport = Deaf(sound, after=lost)
        with suppress(ProviderError):
            await bench.kwok().launch(bench.request())
        bench.transport = sound
        async with bench.kwok() as successor:
            instance = await successor.launch(bench.request())
            assert await successor.list_instances("contract") == (instance,)
        assert len(await bench.nodes()) == 1

    tell(tale)


def test_a_node_of_another_program_under_our_name_is_not_taken_for_ours() -> None:
    async def tale(bench: StoreBench, cloud: KwokCloud) -> None:
        name = "kwok-contract-one-630430985096"
        await bench.client.create(NODES, in_kwok(name=name))
        with pytest.raises(ProviderError, match=f"Node {name} is there, and not for NodeClaim"):
            await cloud.launch(bench.request())

    tell(tale)
