"""Short stories in virtual time, in which one promise is at stake; each ends with what it was for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenure.core.decider import AnyDecider
from tenure.core.policy.deciders import deciders
from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    DISRUPTION_REASON,
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    REPLACED_BY,
)
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from tenure.sim.virtual.faults import Faults
from tenure.sim.world import World, WorldOptions
from tests.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Manifest,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pod,
    a_pool,
    apart,
)
from tests.core.disrupt.merged import MERGES
from tests.core.disrupt.retired import BOTH, RETIRE
from tests.runtime.worlds import Tapped
from tests.scenarios.halves import half_empty_nodes, merge, scale_down
from tests.scenarios.karpenterplayed import Accompanied
from tests.scenarios.test_beside_karpenter import freeze
from tests.scenarios.test_beside_replacement import a_cluster as expiring
from tests.scenarios.test_beside_replacement import claims as replaced_claims
from tests.scenarios.test_beside_replacement import marks_of
from tests.scenarios.test_beside_scale import put_nodes

Scene = Callable[[World], bool]


class BesideKarpenter(World):
    """A drifted node of another provider, under a freeze, that Karpenter looks after."""

    def __init__(self) -> None:
        settings = Settings(beside_karpenter=True, karpenter_version="1.15")
        super().__init__(WorldOptions(settings=settings))
        put_nodes(self, 3)
        self.apply(freeze(MINUTE, HOUR))


def freeze_beside_karpenter(world: World) -> bool:
    """A lever goes on with the window and off with it; two Nodes have values of their users."""
    values = {"node-0001": {DO_NOT_DISRUPT: "2h"}, "node-0002": {DO_NOT_DISRUPT: "true"}}
    for name, value in values.items():
        world.store.patch(NODES, "", name, {"metadata": {"annotations": value}})
    world.crash()  # So that it starts with what is broken.
    world.run(30 * MINUTE)
    on = DO_NOT_DISRUPT in _annotations(world, "node-0000")
    world.run(HOUR)
    kept = all(_annotations(world, name) == value for name, value in values.items())
    return on and kept and not _annotations(world, "node-0000")


def policy_beside_karpenter(world: World) -> bool:
    """A NodePoolPolicy lets one of three nodes go at once; the freeze is over after an hour."""
    budgets = {"budgets": [{"nodes": "1"}]}
    world.apply(a_node_class())
    world.apply(a_pool())
    world.apply(
        {
            "apiVersion": "tenure.dev/v1alpha1",
            "kind": "NodePoolPolicy",
            "metadata": {"name": "slow"},
            "spec": budgets,
        }
    )
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": format_time(world.now)}]
    done = [
        {**ready[0], "type": type_, "reason": type_, "message": ""}
        for type_ in ("Launched", "Registered", "Initialized")
    ]
    for number in range(3):
        claim, node = f"claim-{number:04}", f"node-{number:04}"
        world.store.patch(
            NODE_CLAIMS, "", claim, {"status": {"conditions": done}}, subresource="status"
        )
        world.store.patch(NODES, "", node, {"status": {"conditions": ready}}, subresource="status")
    world.crash()  # So that it starts with what is broken.
    world.run(3 * HOUR)
    return sum(DO_NOT_DISRUPT in _annotations(world, f"node-{n:04}") for n in range(3)) >= 2


class ExpiringBesideKarpenter(Accompanied):
    """A node with a pod that expires by a policy, beside a Karpenter that is played."""

    def __init__(self) -> None:
        super().__init__(*expiring())


def expiration_beside_karpenter(world: World) -> bool:
    """The node is replaced first, and nothing of ours is left."""
    assert isinstance(world, Accompanied)
    world.play(20 * MINUTE)
    old = replaced_claims(world)
    world.play(25 * MINUTE)
    gone = not set(old) & set(replaced_claims(world))
    return gone and world.running("web") == 1 and not marks_of(world)


def _annotations(world: World, node: str) -> dict[str, str]:
    found = world.store.find(NODES, "", node)
    return (found["metadata"].get("annotations") or {}) if found is not None else {}


class TwoMethods(World):
    """Tenure has a second method in its list: it replaces Nodes that a user has retired."""

    def choose(self, settings: Settings) -> Sequence[AnyDecider]:
        return deciders(settings, BOTH)


class Merging(World):
    """Tenure has one more method: it replaces Nodes together that are half empty."""

    def choose(self, settings: Settings) -> Sequence[AnyDecider]:
        return deciders(settings, MERGES)


def _begin(
    world: World, *more: Manifest, nodes: int = 1, web: Any = None, **pool: Any
) -> list[str]:
    """So many nodes with a pod each; their names."""
    repair = {"maxUnhealthy": "100%", **pool.pop("repair", {})}
    budgets = pool.pop("budgets", [{"nodes": "1"}])
    disruption = {"budgets": budgets, **pool.pop("disruption", {})}
    made = a_pool(repair=repair, disruption=disruption, **pool)
    deployment = a_deployment("web", replicas=nodes, affinity=apart(), **(web or {}))
    for manifest in (a_node_class(), made, deployment, *more):
        world.apply(manifest)
    world.run(5 * MINUTE)
    return sorted(node["metadata"]["name"] for node in world.store.list(NODES))


def _unhealthy(world: World, *names: str) -> None:
    for name in names:
        world.kubelets.set_condition(name, "KWOKUnhealthy", "True", "Test")


def _veto(world: World, name: str) -> None:
    world.store.patch(NODES, "", name, {"metadata": {"annotations": {DO_NOT_REPAIR: "true"}}})


def _freeze(action: str) -> Manifest:
    """A window that is always active."""
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": "freeze"},
        "spec": {"actions": [action]},
    }


def _boot(world: World, name: str) -> str:
    node = world.store.find(NODES, "", name)
    return node["status"]["nodeInfo"]["bootID"] if node is not None else ""


def _is_gone(world: World, name: str) -> bool:
    return world.store.find(NODES, "", name) is None


def graceful_repair(world: World) -> bool:
    """An unhealthy node is replaced first, then it goes."""
    first, *_ = _begin(world, nodes=2, repair={"terminationMode": "Graceful"})
    _unhealthy(world, first)
    world.run(8 * MINUTE)
    return _is_gone(world, first)


def graceful_repair_in_two_hours(world: World) -> bool:
    """The same, and two hours go by."""
    gone = graceful_repair(world)
    world.run(2 * HOUR)
    return gone


def graceful_repair_of_two(world: World) -> bool:
    """Two unhealthy nodes, and a budget for one at a time."""
    first, second, *_ = _begin(world, nodes=4, repair={"terminationMode": "Graceful"})
    _unhealthy(world, first, second)
    world.run(15 * MINUTE)
    return _is_gone(world, first) and _is_gone(world, second)


def occupied(world: World) -> bool:
    """Nodes with pods stay."""
    first, second = _begin(world, nodes=2, disruption={"consolidateAfter": "2m"})
    world.run(15 * MINUTE)
    return not (_is_gone(world, first) or _is_gone(world, second))


def empty_until_a_pod_came_unheard(world: World) -> bool:
    """The watch of pods is late, and a pod was bound to an empty node meanwhile: the node stays."""
    assert isinstance(world, Tapped)
    (name,) = _begin(world, disruption={"consolidateAfter": "1m"})
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 0}})
    world.run(20 * SECOND)
    world.api_tap.lag[PODS] = 120.0
    world.apply(a_pod("late", nodeName=name))
    world.run(100 * SECOND)
    return not _is_gone(world, name)


def not_expired(world: World) -> bool:
    """A node that may become ten hours old stays for nine."""
    first, *_ = _begin(world, nodes=2, template={"expireAfter": "10h"})
    world.run(15 * MINUTE)
    return not _is_gone(world, first)


def not_expired_always(world: World) -> bool:
    """The same, with Karpenter's policy."""
    policy = {"expirationPolicy": "Always"}
    first, *_ = _begin(world, nodes=2, template={"expireAfter": "10h"}, disruption=policy)
    world.run(15 * MINUTE)
    return not _is_gone(world, first)


def _drift(world: World) -> None:
    """The template of the pool changes, so every node of it has drifted."""
    labels = {"metadata": {"labels": {"example.com/release": "two"}}}
    world.store.patch(NODE_POOLS, "", "general", {"spec": {"template": labels}})


def drifted(world: World) -> bool:
    """A drifted node is replaced first, then it goes."""
    first, *_ = _begin(world, nodes=2)
    _drift(world)
    world.run(15 * MINUTE)
    return _is_gone(world, first)


def not_drifted(world: World) -> bool:
    """Nodes that are what the pool asks for stay."""
    first, second, *_ = _begin(world, nodes=2)
    world.run(15 * MINUTE)
    return not (_is_gone(world, first) or _is_gone(world, second))


def drift_in_a_block_window(world: World) -> bool:
    """A maintenance window blocks drift: the nodes stay."""
    first, second = _begin(world, _freeze("Drift"), nodes=2)
    _drift(world)
    world.run(10 * MINUTE)
    return not (_is_gone(world, first) or _is_gone(world, second))


def drift_outside_an_allow_window(world: World) -> bool:
    """A maintenance window allows drift at night, and it is morning: the nodes stay."""
    night = _freeze("Drift")
    schedule = {"cron": "0 22 * * *", "duration": "1h"}
    night["spec"] |= {"type": "Allow", "schedules": [schedule]}
    first, second = _begin(world, night, nodes=2)
    _drift(world)
    world.run(10 * MINUTE)
    return not (_is_gone(world, first) or _is_gone(world, second))


def drift_one_by_one(world: World) -> bool:
    """All nodes have drifted, and a budget lets one go at a time."""
    names = _begin(world, nodes=3)
    _drift(world)
    world.run(15 * MINUTE)
    return all(_is_gone(world, name) for name in names)


def drift_once_an_hour(world: World) -> bool:
    """All nodes have drifted, and a budget lets one start in an hour."""
    budgets = [{"nodes": "100%"}, {"nodes": "1", "within": "1h"}]
    names = _begin(world, nodes=3, budgets=budgets)
    _drift(world)
    world.run(15 * MINUTE)
    return sum(_is_gone(world, name) for name in names) == 1


def drift_of_protected(world: World) -> bool:
    """A node that has drifted has a protected pod, and no deadline: it stays."""
    (name,) = _begin(world, web={"annotations": {DO_NOT_DISRUPT: "true"}})
    _drift(world)
    world.run(10 * MINUTE)
    return not _is_gone(world, name)


def drain_to_an_empty_replacement(world: World) -> bool:
    """The pod is protected for ten minutes, so its replacement is empty until then, and stays."""
    pod, template = {DO_NOT_DISRUPT: "10m"}, {"terminationGracePeriod": "1h"}
    budgets = [{"nodes": "100%"}]
    (name,) = _begin(world, web={"annotations": pod}, template=template, budgets=budgets)
    _drift(world)
    world.run(MINUTE)
    claims = {claim["metadata"]["name"] for claim in world.store.list(NODE_CLAIMS)}
    world.run(10 * MINUTE)
    left = {claim["metadata"]["name"] for claim in world.store.list(NODE_CLAIMS)}
    return len(claims) == 2 and len(left) == 1 and left < claims and _is_gone(world, name)


def vetoed_repair(world: World) -> bool:
    """An unhealthy node that must not be repaired stays."""
    first, *_ = _begin(world, nodes=2, repair={"terminationMode": "Forceful"})
    _veto(world, first)
    _unhealthy(world, first)
    world.run(5 * MINUTE)
    return not _is_gone(world, first)


def repair_in_a_block_window(world: World) -> bool:
    """A maintenance window blocks repair: the unhealthy node stays."""
    first, *_ = _begin(world, _freeze("Repair"), nodes=2, repair={"terminationMode": "Graceful"})
    _unhealthy(world, first)
    world.run(8 * MINUTE)
    return not _is_gone(world, first)


def retirement_in_a_drift_window(world: World) -> bool:
    """A maintenance window blocks voluntary disruption: the node that is retired stays."""
    first, *_ = _begin(world, _freeze("Drift"), nodes=2)
    world.store.patch(NODES, "", first, {"metadata": {"annotations": {RETIRE: "yes"}}})
    world.run(8 * MINUTE)
    return not _is_gone(world, first)


def vetoed_reboot(world: World) -> bool:
    """A node that needs a reboot, and must not be repaired, runs on."""
    (name,) = _begin(world)
    _veto(world, name)
    boot = _boot(world, name)
    world.kubelets.set_condition(name, "KWOKRebootRequired", "True", "Test")
    world.run(5 * MINUTE)
    return _boot(world, name) == boot


def reboot_vetoed_late(world: World) -> bool:
    """The pod holds the drain before a reboot, and meanwhile the user forbids the repair."""
    held = {"annotations": {DO_NOT_DISRUPT: "10m"}}
    (name,) = _begin(world, web=held, repair={"terminationMode": "Graceful"})
    boot = _boot(world, name)
    world.kubelets.set_condition(name, "KWOKRebootRequired", "True", "Test")
    world.run(50 * SECOND)
    (claim,) = world.store.list(NODE_CLAIMS)
    began = any(
        (c["type"], c["status"]) == ("Rebooting", "True") for c in claim["status"]["conditions"]
    )
    _veto(world, name)
    world.run(15 * MINUTE)
    return began and _boot(world, name) == boot


def too_many_unhealthy(world: World) -> bool:
    """Two of three nodes are unhealthy, and one may be: both stay."""
    repair = {"terminationMode": "Forceful", "maxUnhealthy": 1}
    first, second, *_ = _begin(world, nodes=3, repair=repair)
    _unhealthy(world, first, second)
    world.run(5 * MINUTE)
    return not (_is_gone(world, first) or _is_gone(world, second))


def one_is_taken_back(world: World) -> bool:
    """The cloud takes one of two instances back, in a freeze and with no budget; the other stays."""
    freeze = _freeze("Rebalance")
    _begin(world, freeze, nodes=2, budgets=[{"nodes": "0"}])
    taken, stays = world.store.list(NODE_CLAIMS)
    world.cloud.interrupt(taken["status"]["providerID"], 10 * MINUTE)
    world.run(20 * MINUTE)
    left = {claim["metadata"]["uid"] for claim in world.store.list(NODE_CLAIMS)}
    return stays["metadata"]["uid"] in left and taken["metadata"]["uid"] not in left


def tolerated(world: World) -> bool:
    """An unhealthy node has ten minutes to recover, and does."""
    repair = {"terminationMode": "Forceful", "defaultTolerationDuration": "10m"}
    (name,) = _begin(world, repair=repair)
    _unhealthy(world, name)
    world.run(MINUTE)
    if world.kubelets.is_alive(name):
        world.kubelets.set_condition(name, "KWOKUnhealthy", "False", "Test")
    world.run(MINUTE)
    return not _is_gone(world, name)


def slow_boot(world: World) -> bool:
    """A new node takes ten minutes, and may take fifteen."""
    world.infrastructure.faults.current = Faults(boot_latency=10 * MINUTE)
    _begin(world)
    world.run(10 * MINUTE)
    return len(world.store.list(NODES)) == 1


def drain(world: World) -> bool:
    """A claim is deleted; a PodDisruptionBudget holds its pod for as long as it is there."""
    (name,) = _begin(world, a_pdb("web", minAvailable=1))
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.run(3 * MINUTE)
    blocked = not _is_gone(world, name)
    world.apply(a_pdb("web", minAvailable=0))
    world.run(5 * MINUTE)
    return blocked and _is_gone(world, name)


def merged(world: World) -> bool:
    """Three nodes are replaced by two. A user takes the marks off one of them meanwhile."""
    for manifest in half_empty_nodes():
        world.apply(manifest)
    scale_down(world)
    claims = merge(world)
    world.run(20 * SECOND)
    off = {"metadata": {"annotations": {REPLACED_BY: None, DISRUPTION_REASON: None}}}
    world.store.patch(NODE_CLAIMS, "", claims[1], off)
    world.run(8 * MINUTE)
    return all(world.store.find(NODE_CLAIMS, "", name) is None for name in claims)


def merged_within_a_budget(world: World) -> bool:
    """Three nodes stay, because only two may be on their way at once."""
    for manifest in half_empty_nodes(budgets=[{"nodes": "2"}]):
        world.apply(manifest)
    scale_down(world)
    claims = merge(world)
    world.run(8 * MINUTE)
    return sorted(one["metadata"]["name"] for one in world.store.list(NODE_CLAIMS)) == claims


def drain_at_once(world: World) -> bool:
    """A claim is deleted, and nothing holds its pod."""
    (name,) = _begin(world)
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.run(5 * MINUTE)
    return _is_gone(world, name)


def drain_of_protected(world: World) -> bool:
    """A claim is deleted; its pod is protected for ten minutes, and stays so long."""
    (name,) = _begin(world, web={"annotations": {DO_NOT_DISRUPT: "10m"}})
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.run(3 * MINUTE)
    stayed = not _is_gone(world, name)
    world.run(10 * MINUTE)
    return stayed and _is_gone(world, name)


def drain_until_deadline(world: World) -> bool:
    """A claim with a grace period of two hours is deleted, and a pod does not let it go before."""
    template = {"terminationGracePeriod": "2h"}
    (name,) = _begin(world, web={"annotations": {DO_NOT_DISRUPT: "true"}}, template=template)
    (claim,) = world.store.list(NODE_CLAIMS)
    world.store.delete(NODE_CLAIMS, "", claim["metadata"]["name"])
    world.run(HOUR + 50 * MINUTE)
    stayed = not _is_gone(world, name)
    world.run(15 * MINUTE)
    return stayed and _is_gone(world, name)
