"""Each checker can fail: a request or launch that breaks the promise is caught, once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import msgspec
import pytest

from tenure.kube.client.client import Client
from tenure.model.api.names import DO_NOT_DISRUPT, FINALIZER, REPLACED_BY, REPLACES
from tenure.model.api.resource import CONFIG_MAPS, DEPLOYMENTS, NODE_CLAIMS, NODES, PODS
from tenure.sim.cloud.cloud import CloudEvent
from tenure.sim.world import World
from tests.builders import (
    MINUTE,
    SECOND,
    a_cluster,
    a_deployment,
    a_node_class,
    a_pod,
    a_pool,
    apart,
)


@pytest.fixture
def world() -> Iterator[World]:
    """Four pods on nodes of ours. Not a ``with``: these stories break promises on purpose."""
    world = World()
    for manifest in a_cluster(a_deployment(replicas=4)):
        world.apply(manifest)
    world.run(5 * MINUTE)
    assert not world.checkers.violations
    yield world
    world.close()


def claim_of(world: World) -> Any:
    return world.store.list(NODE_CLAIMS)[0]


def sends(world: World, call: Coroutine[Any, Any, Any]) -> list[str]:
    """Which rules are broken when Tenure's own door is used for this."""
    world.loop.run_until_complete(call)
    return [violation.rule for violation in world.checkers.violations]


def test_evicting_a_pod_from_a_node_that_stays_is_caught(world: World) -> None:
    pod = world.store.list(PODS)[0]["metadata"]
    call = Client(world.transport).evict(pod["name"], "default", uid=pod["uid"])
    assert sends(world, call) == ["early eviction"]
    assert "is not on its way" in world.checkers.violations[0].message


def test_a_reboot_that_no_claim_asks_for_is_caught(world: World) -> None:
    (instance, *_) = world.cloud.instances()
    assert sends(world, world.cloud.reboot(instance.provider_id, "one")) == ["uncalled reboot"]


def ask_for_reboot(world: World, *, asked: bool) -> None:
    claim = claim_of(world)
    others = [one for one in claim["status"]["conditions"] if one["type"] != "Rebooting"]
    said = {
        "type": "Rebooting",
        "status": "True" if asked else "False",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": claim["metadata"]["creationTimestamp"],
    }
    body = {"status": {"conditions": [*others, said]}}
    world.store.patch(NODE_CLAIMS, "", claim["metadata"]["name"], body, subresource="status")


@pytest.mark.parametrize(
    ("at_first", "broken"), [(True, []), (False, ["uncalled reboot"])], ids=["asked", "not asked"]
)
def test_a_reboot_counts_as_asked_for_when_its_call_leaves(
    world: World, at_first: bool, broken: list[str]
) -> None:
    """The claim changes its mind while the call is on its way to the cloud."""
    provider_id = claim_of(world)["status"]["providerID"]

    async def call() -> None:
        ask_for_reboot(world, asked=at_first)
        reboot = asyncio.create_task(world.cloud.reboot(provider_id, "one"))
        await asyncio.sleep(0)
        ask_for_reboot(world, asked=not at_first)
        await reboot

    assert sends(world, call()) == broken


def test_deleting_a_pod_from_a_node_that_stays_is_caught(world: World) -> None:
    pod = world.store.list(PODS)[0]["metadata"]
    call = Client(world.transport).delete(PODS, pod["name"], namespace="default", uid=pod["uid"])
    assert sends(world, call) == ["early eviction"]


@pytest.mark.parametrize(
    ("early", "ahead", "broken"),
    [
        pytest.param(5, 0, ["early force"], id="the clock is right"),
        pytest.param(5, 9, [], id="the clock is ahead within the bound"),
        pytest.param(15, 9, ["early force"], id="earlier than the clock is ahead"),
        pytest.param(15, 3600, ["early force"], id="earlier than the bound"),
    ],
)
def test_a_pod_may_be_forced_early_by_as_much_as_the_clock_may_be_ahead(
    early: int, ahead: int, broken: list[str]
) -> None:
    pods = a_deployment(annotations={DO_NOT_DISRUPT: "true"})
    world = World()
    for manifest in (a_node_class(), a_pool(template={"terminationGracePeriod": "10m"}), pods):
        world.apply(manifest)
    world.run(5 * MINUTE)
    name = claim_of(world)["metadata"]["name"]
    world.store.delete(NODE_CLAIMS, "", name)  # Its pod is force deleted at 14m30s.
    world.run(9 * MINUTE + (30 - early) * SECOND)
    world.infrastructure.faults.set(clock_offset=ahead * SECOND)
    pod = world.store.list(PODS)[0]["metadata"]
    client = Client(world.transport)
    call = client.delete(
        PODS, pod["name"], namespace="default", uid=pod["uid"], grace_period_seconds=30
    )
    assert sends(world, call) == broken
    world.close()


def test_an_eviction_that_insists_on_another_uid_harms_nothing(world: World) -> None:
    pod = world.store.list(PODS)[0]["metadata"]
    call = Client(world.transport).evict(pod["name"], "default", uid="another")
    with pytest.raises(Exception, match="UID"):
        sends(world, call)
    assert not world.checkers.violations


def test_writing_to_a_pod_is_caught(world: World) -> None:
    name = world.store.list(PODS)[0]["metadata"]["name"]
    body = {"metadata": {"labels": {"seen": "true"}}}
    call = Client(world.transport).patch(PODS, name, body, namespace="default")
    assert sends(world, call) == ["pod written"]


def test_the_nomination_of_a_pod_may_be_written_and_no_other_status(world: World) -> None:
    name = world.store.list(PODS)[0]["metadata"]["name"]

    def writes(**status: Any) -> list[str]:
        body = {"status": status}
        client = Client(world.transport)
        return sends(
            world, client.patch(PODS, name, body, namespace="default", subresource="status")
        )

    assert writes(nominatedNodeName=None) == []
    assert writes(nominatedNodeName=None, phase="Failed") == ["pod written"]


def test_releasing_a_claim_whose_instance_runs_is_caught(world: World) -> None:
    claim = claim_of(world)["metadata"]
    world.crash(stay_down=True)
    world.store.delete(NODE_CLAIMS, "", claim["name"])
    call = Client(world.transport).patch(
        NODE_CLAIMS, claim["name"], {"metadata": {"finalizers": []}}
    )
    assert sends(world, call) == ["early release"]


def test_releasing_a_node_whose_instance_runs_is_caught(world: World) -> None:
    node = world.store.list(NODES)[0]["metadata"]
    world.crash(stay_down=True)
    world.store.delete(NODES, "", node["name"])
    call = Client(world.transport).patch(NODES, node["name"], {"metadata": {"finalizers": None}})
    assert sends(world, call) == ["early release"]


def test_a_user_may_remove_a_finalizer_but_then_the_empty_instance_must_go(world: World) -> None:
    name = claim_of(world)["metadata"]["name"]
    world.crash(stay_down=True)  # No garbage collection, so the instance leaks in the end.
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
    world.run(MINUTE)
    world.store.delete(NODE_CLAIMS, "", name)
    world.store.patch(NODE_CLAIMS, "", name, {"metadata": {"finalizers": None}})
    world.run(world.checkers.instances.allowance)
    assert not world.checkers.violations
    world.run(SECOND)
    assert [violation.rule for violation in world.checkers.violations] == ["leaked instance"]


def test_an_instance_without_a_claim_may_wait_for_the_pods_of_its_node(world: World) -> None:
    name = claim_of(world)["metadata"]["name"]
    world.crash(stay_down=True)
    world.store.delete(NODE_CLAIMS, "", name)
    world.store.patch(NODE_CLAIMS, "", name, {"metadata": {"finalizers": None}})
    world.run(2 * world.checkers.instances.allowance)
    assert not world.checkers.violations
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
    world.run(2 * world.checkers.instances.allowance)
    assert [violation.rule for violation in world.checkers.violations] == ["leaked instance"]


def test_time_without_tenure_does_not_count_towards_a_leak(world: World) -> None:
    name = claim_of(world)["metadata"]["name"]
    world.crash(stay_down=True)
    world.store.delete(NODE_CLAIMS, "", name)
    world.store.patch(NODE_CLAIMS, "", name, {"metadata": {"finalizers": None}})
    world.run(9 * MINUTE)
    world.start()
    world.run(20 * MINUTE)
    assert not world.checkers.violations
    assert not world.checkers.instances.unclaimed()


def test_two_instances_for_one_claim_are_caught(world: World) -> None:
    first = world.cloud.instances()[0]
    twin = msgspec.structs.replace(first, provider_id="embedded:///zone-a/i-twin")
    # The cloud is idempotent, so the twin is put there past its door.
    world.cloud._instances[twin.provider_id] = twin
    world.cloud._tell(CloudEvent.LAUNCHED, twin)
    assert [v.rule for v in world.checkers.violations] == ["doubled instance"]


def test_ending_the_instance_of_a_living_claim_is_caught(world: World) -> None:
    provider_id = world.cloud.instances()[0].provider_id
    assert sends(world, world.cloud.terminate(provider_id)) == ["live termination"]


def test_a_vanished_instance_is_no_violation(world: World) -> None:
    world.cloud.vanish(world.cloud.instances()[0].provider_id)
    world.run(15 * MINUTE)
    assert not world.checkers.violations


def test_writing_to_a_node_of_another_owner_is_caught(world: World) -> None:
    world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "theirs"}})
    body = {"metadata": {"labels": {"a": "b"}}}
    assert sends(world, Client(world.transport).patch(NODES, "theirs", body)) == ["foreign write"]
    assert "Node theirs: it belongs to no claim of ours" in world.checkers.violations[0].message


def test_creating_a_claim_for_another_provider_is_caught(world: World) -> None:
    ref = {"group": "elsewhere.example", "kind": "OtherClass", "name": "default"}
    body = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "theirs"},
        "spec": {"nodeClassRef": ref, "requirements": []},
    }
    assert sends(world, Client(world.transport).create(NODE_CLAIMS, body)) == ["foreign write"]


def test_writing_to_a_kind_that_is_not_ours_is_caught(world: World) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes"}}
    call = Client(world.transport).create(CONFIG_MAPS, body, "default")
    assert sends(world, call) == ["foreign write"]


def test_a_violation_is_in_the_history_and_fails_the_story() -> None:
    def story() -> None:
        with World() as world:
            for manifest in a_cluster(a_pod()):
                world.apply(manifest)
            world.run(3 * MINUTE)
            sends(world, world.cloud.terminate(world.cloud.instances()[0].provider_id))
            assert world.history.entries[-1].source == "checker"

    with pytest.raises(AssertionError, match="live termination"):
        story()


def test_a_life_from_launch_to_drain_breaks_nothing(world: World) -> None:
    name = claim_of(world)["metadata"]["name"]
    assert FINALIZER in claim_of(world)["metadata"]["finalizers"]
    world.store.delete(NODE_CLAIMS, "", name)
    world.run(5 * MINUTE)
    assert world.store.find(NODE_CLAIMS, "", name) is None
    assert not world.checkers.violations


def replaces(world: World) -> tuple[str, str]:
    """The second of two claims says that it replaces the first; Tenure is down."""
    world.crash(stay_down=True)
    old, new = (claim["metadata"] for claim in world.store.list(NODE_CLAIMS))
    annotate(world, new["name"], {REPLACES: old["uid"]})
    return old["name"], new["name"]


def annotate(world: World, claim: str, annotations: dict[str, str | None]) -> None:
    world.store.patch(NODE_CLAIMS, "", claim, {"metadata": {"annotations": annotations}})


@pytest.mark.parametrize(
    ("use", "broken"),
    [
        pytest.param("none", ["idle replacement"], id="of no use"),
        pytest.param("pods", [], id="pods run there"),
        pytest.param("named", [], id="its command was rolled back"),
        pytest.param("leaves", [], id="what it replaces terminates"),
    ],
)
def test_a_replacement_that_replaces_nothing_is_caught(use: str, broken: list[str]) -> None:
    world = World()
    stay = a_pool(disruption={"consolidateAfter": "Never"})
    for manifest in (a_node_class(), stay, a_deployment(replicas=2, affinity=apart())):
        world.apply(manifest)
    world.run(5 * MINUTE)
    if use != "pods":
        world.store.delete(DEPLOYMENTS, "default", "web")
        world.run(5 * MINUTE)
    old, new = replaces(world)
    if use == "named":
        annotate(world, old, {REPLACED_BY: new})
        annotate(world, old, {REPLACED_BY: None})
    if use == "leaves":
        world.store.delete(NODE_CLAIMS, "", old)
    world.run(60 * MINUTE)
    assert not world.checkers.violations
    world.run(30 * MINUTE)
    assert [violation.rule for violation in world.checkers.violations] == broken
    world.close()
