"""Drift is reported, with what differs: of the template, of requirements, of a released image.

What becomes of drifted nodes is told by ``test_drifted``.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.model.api.resource import CONFIG_MAPS, NODE_CLAIMS, NODE_POOLS, PODS
from tenure.model.settings import Settings
from tenure.providers.kwok import images
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class, a_pool, a_requirement
from tests.real.account import PROVIDER_NAMESPACE
from tests.real.story import Story, tenure_at_work

Json = dict[str, Any]
SETTINGS: Final = Settings(
    cluster_name="bed", drain_min=timedelta(seconds=1), termination_poll=timedelta(seconds=1)
)
TAINT: Final = {"key": "example.com/dedicated", "value": "x", "effect": "PreferNoSchedule"}
TERMS: Final = a_requirement("karpenter.sh/capacity-type", "on-demand")
ZONE: Final = "topology.kubernetes.io/zone"

#: A merge of ``spec.template``, what undoes it, and what the condition then says.
CHANGES: Final[dict[str, tuple[Json, Json, str, str]]] = {
    "labels": (
        {"metadata": {"labels": {"team": "b"}}},
        {"metadata": None},
        "NodePoolDrifted",
        "metadata.labels (team=b added)",
    ),
    "annotations": (
        {"metadata": {"annotations": {"example.com/owner": "me"}}},
        {"metadata": None},
        "NodePoolDrifted",
        "metadata.annotations (example.com/owner=me added)",
    ),
    "taints": (
        {"spec": {"taints": [TAINT]}},
        {"spec": {"taints": None}},
        "NodePoolDrifted",
        "spec.taints (example.com/dedicated=x:PreferNoSchedule added)",
    ),
    "startup taints": (
        {"spec": {"startupTaints": [TAINT]}},
        {"spec": {"startupTaints": None}},
        "NodePoolDrifted",
        "spec.startupTaints (example.com/dedicated=x:PreferNoSchedule added)",
    ),
    "requirements": (
        {"spec": {"requirements": [TERMS, a_requirement(ZONE, "test-zone-c")]}},
        {"spec": {"requirements": [TERMS]}},
        "RequirementsDrifted",
        f"{ZONE} In [test-zone-c] (the claim has test-zone-",
    ),
}


def drift_of(claims: list[Json]) -> tuple[str, str, str]:
    """Of the one claim: status, reason and message of its condition."""
    (claim,) = claims
    for one in claim["status"]["conditions"]:
        if one["type"] == "Drifted":
            return one["status"], one["reason"], one["message"]
    return "", "", ""


def test_drift_of_a_template_is_reported_and_taken_back(cluster: ControlPlane) -> None:
    asyncio.run(_template(cluster))


async def _template(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "drift", settings=SETTINGS) as story:
        await _one_node(story)
        for name, (change, undo, reason, says) in CHANGES.items():
            await story.client.patch(NODE_POOLS, "general", {"spec": {"template": change}})
            claims = await story.until(
                NODE_CLAIMS, lambda claims: drift_of(claims)[0] == "True", f"drifted by {name}"
            )
            assert drift_of(claims)[1] == reason
            assert says in drift_of(claims)[2]
            await story.client.patch(NODE_POOLS, "general", {"spec": {"template": undo}})
            await story.until(
                NODE_CLAIMS,
                lambda claims: drift_of(claims)[0] == "False",
                f"undrifted after {name}",
            )
        wider = {"spec": {"requirements": [a_requirement(TERMS["key"], "on-demand", "spot")]}}
        await story.client.patch(NODE_POOLS, "general", {"spec": {"template": wider}})
        await asyncio.sleep(2)
        assert drift_of(await story.claims())[0] == "False", "a wider requirement drifts nothing"
        await story.scale_to_zero("web")
        assert story.errors == []


def test_a_released_image_drifts_what_does_not_pin_it(cluster: ControlPlane) -> None:
    asyncio.run(_image(cluster))


async def _image(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "image", settings=SETTINGS) as story:
        listed = {
            "metadata": {"name": images.NAME, "namespace": PROVIDER_NAMESPACE},
            "data": {images.LIST: "v1"},
        }
        made = await story.client.create(CONFIG_MAPS, listed, PROVIDER_NAMESPACE)
        uid = msgspec.json.decode(made)["metadata"]["uid"]
        try:
            await _one_node(story)
            (claim,) = await story.claims()
            assert claim["status"]["imageID"] == "v1"
            await story.client.patch(
                CONFIG_MAPS,
                images.NAME,
                {"data": {images.LIST: "v1\nv2"}},
                namespace=PROVIDER_NAMESPACE,
            )
            claims = await story.until(
                NODE_CLAIMS, lambda claims: drift_of(claims)[0] == "True", "drifted by its image"
            )
            assert drift_of(claims)[1:] == (
                "ImageDrift",
                "the instance runs image v1, its node class asks for v2 (ImageDrift)",
            )
            await story.client.patch(KWOK_NODE_CLASSES, "default", {"spec": {"image": "v1"}})
            await story.until(
                NODE_CLAIMS, lambda claims: drift_of(claims)[0] == "False", "undrifted by the pin"
            )
            await _rolls(story, claim)
        finally:
            await story.client.delete(
                CONFIG_MAPS, images.NAME, uid=uid, namespace=PROVIDER_NAMESPACE
            )
        await story.scale_to_zero("web")
        assert story.errors == []


async def _rolls(story: Story, old: Json) -> None:
    """Without the pin, and with a budget: the node is replaced by one with the released image."""
    one = {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}
    await story.client.patch(NODE_POOLS, "general", one)
    await story.client.patch(KWOK_NODE_CLASSES, "default", {"spec": {"image": None}})
    uid = old["metadata"]["uid"]
    (new,) = await story.until(
        NODE_CLAIMS, lambda claims: uid not in [c["metadata"]["uid"] for c in claims], "replaced"
    )
    assert new["status"]["imageID"] == "v2"
    assert drift_of([new])[0] != "True"


async def _one_node(story: Story) -> None:
    """A budget of 0 keeps it."""
    pool = a_pool(disruption={"budgets": [{"nodes": "0"}]})
    await story.apply(a_node_class(), pool, a_deployment("web", replicas=1))
    await story.until(
        PODS, lambda pods: [pod["status"]["phase"] for pod in pods] == ["Running"], "running"
    )
