"""What the checkers say of a claim that is deleted, or gets a deadline, on the true state.

Tenure is down in these stories; its door is used by hand, so that each promise can be broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tenure.kube.client.client import Client
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES
from tenure.model.settings import Settings
from tenure.sim.virtual.faults import Faults
from tenure.sim.world import World, WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, a_deployment, a_node_class, a_pool, a_requirement

OFF = msgspec.structs.replace(WorldOptions(), settings=Settings(node_repair=False))
MARKS = {names.REPLACED_BY: "", names.DISRUPTION_REASON: "Unhealthy"}


def a_world(options: WorldOptions | None = None) -> World:
    """One unhealthy node that is closed and replaced, by pods that fit elsewhere; Tenure is down."""
    world = World(options)
    repair = {"terminationMode": "Graceful", "maxUnhealthy": "100%"}
    for manifest in (a_node_class(), a_pool(repair=repair), a_deployment()):
        world.apply(manifest)
    world.run(5 * MINUTE)
    world.crash(stay_down=True)
    (node,) = world.store.list(NODES)
    taints = [{"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}]
    world.store.patch(NODES, "", node["metadata"]["name"], {"spec": {"taints": taints}})
    annotate(world, NODE_CLAIMS, MARKS)
    world.kubelets.set_condition(node["metadata"]["name"], "KWOKUnhealthy", "True", "Disk")
    world.run(5 * MINUTE)
    return world


@pytest.fixture
def world() -> Iterator[World]:
    world = a_world()
    yield world
    world.close()


def name_of(world: World, resource: Any) -> str:
    name: str = world.store.list(resource)[0]["metadata"]["name"]
    return name


def annotate(world: World, resource: Any, annotations: dict[str, Any]) -> None:
    patch = {"metadata": {"annotations": annotations}}
    world.store.patch(resource, "", name_of(world, resource), patch)


def rules_after(world: World, call: Any) -> list[str]:
    world.loop.run_until_complete(call)
    return [violation.rule for violation in world.checkers.violations]


def deletion(world: World, resource: Any) -> Any:
    meta = world.store.list(resource)[0]["metadata"]
    return Client(world.transport).delete(resource, meta["name"], uid=meta["uid"])


def delete_claim(world: World) -> list[str]:
    world.run(MINUTE)  # Longer than any view of Tenure's is old.
    call = deletion(world, NODE_CLAIMS)
    return rules_after(world, call)


def window(world: World, **spec: Any) -> None:
    manifest = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    usual = {"actions": ["Repair"]}
    world.apply(manifest | {"metadata": {"name": "freeze"}, "spec": usual | spec})


def pool(world: World, **spec: Any) -> None:
    world.store.patch(NODE_POOLS, "", "general", {"spec": spec})


def recover(world: World) -> None:
    world.kubelets.set_condition(name_of(world, NODES), "KWOKUnhealthy", "False", "Disk")


def by_provisioner(name: str) -> Any:
    """A selector as it was written for Provisioners."""
    expression = {"key": names.PROVISIONER_NAME, "operator": "In", "values": [name]}
    return {"matchExpressions": [expression]}


NEVER = [{"cron": "0 0 29 2 *", "duration": "1h"}]

Change = Callable[[World], None]
BROKEN: list[Any] = [
    pytest.param(lambda w: None, [], id="nothing"),
    pytest.param(lambda w: window(w), ["inside a window"], id="a Block window"),
    pytest.param(
        lambda w: window(w, selector=by_provisioner("general")),
        ["inside a window"],
        id="a Block window that selects by the label of Provisioners",
    ),
    pytest.param(
        lambda w: window(w, selector=by_provisioner("other")), [], id="… and selects another pool"
    ),
    pytest.param(lambda w: window(w, schedules=NEVER), [], id="a Block window that is not active"),
    pytest.param(lambda w: window(w, actions=["Drift"]), [], id="a window for drift"),
    pytest.param(
        lambda w: window(w, type="Allow", schedules=NEVER),
        ["inside a window"],
        id="an Allow window that is not active",
    ),
    pytest.param(
        lambda w: pool(w, disruption={"budgets": [{"nodes": "0"}]}), ["beyond budgets"], id="budget"
    ),
    pytest.param(
        lambda w: pool(w, disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}),
        [],
        id="a budget for drift",
    ),
    pytest.param(lambda w: pool(w, repair={"maxUnhealthy": "0"}), ["past a breaker"], id="breaker"),
    pytest.param(
        lambda w: annotate(w, NODES, {names.DO_NOT_REPAIR: "true"}), ["past a veto"], id="veto"
    ),
    pytest.param(
        lambda w: annotate(w, NODE_CLAIMS, {names.REPLACED_BY: "gone"}),
        ["before its replacements"],
        id="replacement gone",
    ),
    pytest.param(
        lambda w: w.store.patch(NODES, "", name_of(w, NODES), {"spec": {"taints": []}}),
        ["open Node"],
        id="open",
    ),
    pytest.param(recover, ["unfounded deletion"], id="healthy"),
    pytest.param(
        lambda w: annotate(w, NODE_CLAIMS, dict.fromkeys(MARKS)),
        ["unfounded deletion"],
        id="neither marked nor Forceful",
    ),
]


@pytest.mark.parametrize(("change", "rules"), BROKEN)
def test_a_claim_that_is_deleted(world: World, change: Change, rules: list[str]) -> None:
    change(world)
    assert delete_claim(world) == rules


VOLUNTARY: list[Any] = [
    pytest.param(lambda w: None, [], id="nothing"),
    pytest.param(lambda w: window(w, actions=["Drift"]), ["inside a window"], id="any window"),
    pytest.param(
        lambda w: pool(w, disruption={"budgets": [{"nodes": "0"}]}), ["beyond budgets"], id="budget"
    ),
    pytest.param(
        lambda w: pool(w, disruption={"budgets": [{"nodes": "0", "reasons": ["Unhealthy"]}]}),
        [],
        id="a budget for repair",
    ),
    pytest.param(
        lambda w: annotate(w, NODES, {names.DO_NOT_DISRUPT: "true"}), ["past a veto"], id="veto"
    ),
    pytest.param(lambda w: annotate(w, NODES, {names.DO_NOT_REPAIR: "true"}), [], id="of repair"),
]


@pytest.mark.parametrize(("change", "rules"), VOLUNTARY)
def test_a_reason_that_is_not_known_is_voluntary(
    world: World, change: Change, rules: list[str]
) -> None:
    annotate(world, NODE_CLAIMS, {names.DISRUPTION_REASON: "Retired"})
    recover(world)
    change(world)
    assert delete_claim(world) == rules


EMPTY = {names.REPLACED_BY: "", names.DISRUPTION_REASON: "Empty"}
ALWAYS: list[Any] = [
    pytest.param(lambda w: None, [], id="nothing"),
    pytest.param(lambda w: annotate(w, NODE_CLAIMS, EMPTY), [], id="a command has just begun"),
    pytest.param(lambda w: annotate(w, NODES, {names.DO_NOT_DISRUPT: "true"}), [], id="no veto"),
    pytest.param(
        lambda w: window(w, actions=["Expiration"]), ["inside a window"], id="a window for it"
    ),
    pytest.param(
        lambda w: pool(w, disruption={"expirationPolicy": "WhenAllowed"}),
        ["unfounded deletion"],
        id="another policy",
    ),
]


@pytest.mark.parametrize(("change", "rules"), ALWAYS)
def test_a_claim_whose_time_is_over_goes_whatever_command_is_under_way(
    change: Change, rules: list[str]
) -> None:
    """With the policy Always its Node need not even be closed."""
    world = World()
    try:
        disruption = {"expirationPolicy": "Always", "budgets": [{"nodes": "0"}]}
        made = a_pool(template={"expireAfter": "8m"}, disruption=disruption)
        for manifest in (a_node_class(), made, a_deployment()):
            world.apply(manifest)
        world.run(5 * MINUTE)
        world.crash(stay_down=True)
        change(world)
        world.run(5 * MINUTE)
        assert delete_claim(world) == rules
    finally:
        world.close()


@pytest.mark.parametrize(
    ("veto", "rules"),
    [(names.DO_NOT_REPAIR, []), (names.DO_NOT_DISRUPT, ["unfounded deletion"])],
)
def test_a_replacement_that_is_left_over_is_no_repair(veto: str, rules: list[str]) -> None:
    world = World()
    try:
        small = a_requirement("node.kubernetes.io/instance-type", "m7i.large")
        web = a_deployment(replicas=2, cpu="1500m")
        for manifest in (a_node_class(), a_pool(requirements=[small]), web):
            world.apply(manifest)
        world.run(5 * MINUTE)
        world.crash(stay_down=True)
        world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
        _, other = world.store.list(NODE_CLAIMS)
        annotate(world, NODE_CLAIMS, {names.REPLACES: other["metadata"]["uid"], veto: "true"})
        world.run(5 * MINUTE)
        assert delete_claim(world) == rules
    finally:
        world.close()


def test_a_repair_that_is_switched_off_is_caught() -> None:
    world = a_world(OFF)
    try:
        assert delete_claim(world) == ["past a switch"]
    finally:
        world.close()


def test_a_claim_that_timed_out_may_go_although_expiration_is_switched_off() -> None:
    options = WorldOptions(settings=Settings(voluntary_disruption=False))
    world = World(options)
    try:
        made = a_pool(
            template={"expireAfter": "8m", "readinessTTL": "5m"},
            disruption={"expirationPolicy": "Always"},
        )
        world.infrastructure.faults.current = Faults(never_ready_rate=1.0)
        for manifest in (a_node_class(), made, a_deployment()):
            world.apply(manifest)
        world.run(2 * MINUTE)
        world.crash(stay_down=True)
        world.run(8 * MINUTE)
        assert delete_claim(world) == []
    finally:
        world.close()


def test_a_change_that_tenure_cannot_know_yet_is_no_violation(world: World) -> None:
    window(world)
    call = deletion(world, NODE_CLAIMS)
    assert rules_after(world, call) == []


@pytest.mark.parametrize(("after", "rules"), [(4, []), (6, ["beyond budgets"])])
def test_a_call_that_left_before_a_budget_closed_is_no_violation(
    world: World, after: int, rules: list[str]
) -> None:
    """A slow API server carries it out up to 5s later."""
    closes = world.options.epoch + 30 * MINUTE
    budget = {"nodes": "0", "schedule": "30 8 * * *", "duration": "10m"}
    pool(world, disruption={"budgets": [{"nodes": "100%"}, budget]})
    world.run(closes + after * SECOND - world.now)
    assert rules_after(world, deletion(world, NODE_CLAIMS)) == rules


def test_the_beginning_of_a_command_is_checked_too(world: World) -> None:
    annotate(world, NODE_CLAIMS, dict.fromkeys(MARKS))
    window(world)
    world.run(MINUTE)
    body = {"metadata": {"annotations": MARKS}}
    call = Client(world.transport).patch(NODE_CLAIMS, name_of(world, NODE_CLAIMS), body)
    assert rules_after(world, call) == ["inside a window"]


def stamp(world: World, value: str | None) -> list[str]:
    body = {"metadata": {"annotations": {names.TERMINATION_TIMESTAMP: value}}}
    call = Client(world.transport).patch(NODE_CLAIMS, name_of(world, NODE_CLAIMS), body)
    return rules_after(world, call)


def test_a_deadline_is_brought_forward_and_never_put_off(world: World) -> None:
    annotate(world, NODE_CLAIMS, {names.TERMINATION_TIMESTAMP: format_time(world.now + HOUR)})
    world.store.delete(NODE_CLAIMS, "", name_of(world, NODE_CLAIMS))
    assert stamp(world, format_time(world.now + MINUTE)) == []
    assert stamp(world, format_time(world.now + HOUR)) == ["deadline put off"]
    assert stamp(world, None) == ["deadline put off"] * 2


def test_a_deadline_now_needs_a_ground(world: World) -> None:
    recover(world)
    world.run(MINUTE)
    assert stamp(world, format_time(world.now)) == ["unfounded deadline"]


def test_a_node_goes_after_its_claim(world: World) -> None:
    call = deletion(world, NODES)
    assert rules_after(world, call) == ["early Node deletion"]
