"""What people, instances and the network do on a random day.

Every pool repairs forcefully and gives nodes little time to come up, so nodes that never do, and
kubelets that fall silent for good, are healed; their pools have no breaker, for that would
rightly wait for a person.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any, Final

from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    DO_NOT_REPAIR,
    TERMINATION_TIMESTAMP,
    ZONE,
)
from tenure.model.api.resource import (
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.cloud.instance import Instance, InstanceState
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.cloud.catalogue import DEFAULT_ZONES
from tenure.sim.cloud.cloud import FIRST_IMAGE, CloudEvent
from tenure.sim.virtual.faults import Faults
from tests.builders import a_deployment, a_node_class, a_pdb, a_pool, a_requirement, apart
from tests.runtime.worlds import Tapped

Deed = Callable[[Tapped, Random], None]

SECOND: Final = timedelta(seconds=1)
REBOOT_REQUIRED: Final = "KWOKRebootRequired"
UNHEALTHY: Final = "KWOKUnhealthy"
#: A label of nodes: which version of their pool's template they were made from.
TEMPLATE: Final = "fuzz.example.com/template"


# -- at the beginning ------------------------------------------------------------------


def populate(world: Tapped, random: Random) -> None:
    world.apply(a_node_class())
    bounded = random.random() < 0.5
    for name in ("blue", "green")[: random.randint(1, 2)]:
        pool = a_pool(name, template={"readinessTTL": random.choice(("5m", "15m"))})
        pool["spec"]["repair"] = {
            "defaultTolerationDuration": random.choice(("2m", "10m")),
            "maxUnhealthy": "100%",
        }
        if bounded or random.random() < 0.3:
            period = random.choice(("0s", "45s", "2m", "10m"))
            pool["spec"]["template"]["spec"]["terminationGracePeriod"] = period
        if random.random() < 0.2:
            pool["spec"]["disruption"] = {"maxPodProtection": random.choice(("1m", "20m"))}
        capacity = random.choice((["spot"], ["on-demand"], ["spot", "on-demand"]))
        wanted = {"key": CAPACITY_TYPE, "operator": "In", "values": capacity}
        pool["spec"]["template"]["spec"]["requirements"] = [wanted]
        world.apply(pool)
    for number in range(random.randint(1, 4)):
        _deploy(world, random, f"app-{number}", bounded=bounded)


def _deploy(world: Tapped, random: Random, app: str, *, bounded: bool) -> None:
    """Where every node has a deadline, pods may be protected for ever."""
    protection = random.choice(("", "", "", "5m", "30m", *(("true", "nonsense") * bounded)))
    world.apply(
        a_deployment(
            app,
            replicas=random.randint(1, 12),
            cpu=f"{random.choice((100, 250, 500, 1500))}m",
            annotations={DO_NOT_DISRUPT: protection} if protection else None,
            terminationGracePeriodSeconds=random.choice((0, 5, 30, 300)),
            # Else all fit on a few nodes, and little happens to these.
            affinity=apart(app) if random.random() < 0.6 else {},
        )
    )
    if random.random() < 0.5:
        world.apply(a_pdb(app, maxUnavailable=0 if bounded and random.random() < 0.3 else 1))


# -- what goes wrong -------------------------------------------------------------------


def set_faults(world: Tapped, random: Random) -> None:
    """Each kind of trouble with a strength of its own, often none."""

    def rate(worst: float) -> float:
        return random.choice((0.0, worst / 5, worst))

    world.infrastructure.faults.current = Faults(
        api_latency=rate(2.0) * SECOND,
        api_error_rate=rate(0.2),
        api_lost_answer_rate=rate(0.2),
        cloud_latency=rate(5.0) * SECOND,
        cloud_throttle_rate=rate(0.3),
        launch_failure_rate=rate(0.3),
        cloud_dry_rate=rate(0.3),
        boot_latency=rate(180.0) * SECOND,
        never_ready_rate=rate(0.2),
        node_class_broken=random.choice(("", "", "", "", "", "no such image")),
    )
    lost = rate(0.2)
    world.cloud_tap.lose = lambda verb, what: lost > 0 and random.random() < lost
    world.api_tap.lag = {
        resource: random.choice((0.01, 1.0, 15.0))
        for resource in (PODS, NODES, NODE_CLAIMS, NODE_POOLS, POD_DISRUPTION_BUDGETS)
        if random.random() < 0.2
    }


def crash(world: Tapped, random: Random) -> None:
    world.crash(stay_down=random.random() < 0.2)
    if random.random() < 0.5:
        world.run(random.uniform(0, 60) * SECOND)
    world.start()


def end_watches(world: Tapped, random: Random) -> None:
    """The API server is restarted, and may have forgotten the past."""
    if random.random() < 0.5:
        world.store.compact()
    world.store.end_watches()


def lose_instance(world: Tapped, random: Random) -> None:
    ours = [i.provider_id for i in world.cloud.instances() if i.state is InstanceState.RUNNING]
    if ours:
        world.cloud.vanish(random.choice(ours))


def silence_kubelet(world: Tapped, random: Random) -> None:
    if nodes := world.store.list(NODES):
        name = random.choice(nodes)["metadata"]["name"]
        world.kubelets.silence(name)
        if random.random() < 0.7:
            pause = random.choice((20, 120, 600)) * SECOND
            world.environment.after(pause, world.kubelets.resume, name)


def need_reboot(world: Tapped, random: Random) -> None:
    """Something on a node leaks; a reboot mends it, or does not."""
    alive = [
        name
        for node in world.store.list(NODES)
        if world.kubelets.is_alive(name := node["metadata"]["name"])
    ]
    if not alive:
        return
    name, mends = random.choice(alive), random.random() < 0.6
    world.kubelets.set_condition(name, REBOOT_REQUIRED, "True", "Leak")

    def hear(event: CloudEvent, instance: Instance) -> None:
        rebooted = event is CloudEvent.REBOOTING and mends
        if rebooted and world.cloud.node_name(instance.provider_id) == name:
            world.kubelets.set_condition(name, REBOOT_REQUIRED, "False", "NoLeak")

    world.cloud.listen(hear)


def become_unhealthy(world: Tapped, random: Random) -> None:
    """A node has an unhealthy condition and stays Ready; some recover by themselves."""
    nodes = [node["metadata"]["name"] for node in world.store.list(NODES)]
    alive = [name for name in nodes if world.kubelets.is_alive(name)]
    if not alive:
        return
    name = random.choice(alive)
    world.kubelets.set_condition(name, UNHEALTHY, "True", "Disk")
    if random.random() < 0.3:
        pause = random.choice((20, 45, 90)) * SECOND
        world.environment.after(pause, _recover, world, name)


def _recover(world: Tapped, name: str) -> None:
    if world.kubelets.is_alive(name):
        world.kubelets.set_condition(name, UNHEALTHY, "False", "DiskFine")


# -- what users do ---------------------------------------------------------------------


def change_repair(world: Tapped, random: Random) -> None:
    """Graceful or Forceful, for many at once or one by one."""
    pool = random.choice(world.store.list(NODE_POOLS))
    repair = {
        "terminationMode": random.choice(("Graceful", "Graceful", "Graceful", "Forceful")),
        "defaultTolerationDuration": random.choice(("10s", "30s", "2m")),
    }
    budgets = [{"nodes": random.choice(("1", "50%", "100%"))}]
    if random.random() < 0.4:
        budgets.append({"nodes": "1", "within": random.choice(("3m", "10m"))})
    spec = {"repair": repair, "disruption": {"budgets": budgets}}
    world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], {"spec": spec})


def scale(world: Tapped, random: Random) -> None:
    name = random.choice(world.store.list(DEPLOYMENTS))["metadata"]["name"]
    world.store.patch(DEPLOYMENTS, "default", name, {"spec": {"replicas": random.randint(0, 20)}})


def roll_out(world: Tapped, random: Random) -> None:
    name = random.choice(world.store.list(DEPLOYMENTS))["metadata"]["name"]
    annotations = {"version": str(random.randrange(1000))}
    patch: Any = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    world.store.patch(DEPLOYMENTS, "default", name, patch)


def delete_pod(world: Tapped, random: Random) -> None:
    if pods := world.store.list(PODS):
        meta = random.choice(pods)["metadata"]
        world.store.delete(PODS, meta["namespace"], meta["name"])


def delete_claim(world: Tapped, random: Random) -> None:
    if claims := world.store.list(NODE_CLAIMS):
        world.store.delete(NODE_CLAIMS, "", random.choice(claims)["metadata"]["name"])


def bring_forward(world: Tapped, random: Random) -> None:
    """A user stamps a claim, leaving or not, and may write nonsense.

    Not over a stamp that is there: pods may have been forced for a deadline that has passed.
    """
    if claims := world.store.list(NODE_CLAIMS):
        soon = world.now + random.choice((-60, 10, 300)) * SECOND
        stamp = random.choice((format_time(soon), format_time(soon), "soon"))
        patch = {"metadata": {"annotations": {TERMINATION_TIMESTAMP: stamp}}}
        chosen = random.choice(claims)["metadata"]
        if TERMINATION_TIMESTAMP not in chosen.get("annotations", {}):
            world.store.patch(NODE_CLAIMS, "", chosen["name"], patch)


def protect_node(world: Tapped, random: Random) -> None:
    """It holds nothing back that a user deletes, but it is noted."""
    if nodes := world.store.list(NODES):
        value = random.choice(("true", "10m", "false", "4 hours", None))
        patch = {"metadata": {"annotations": {DO_NOT_DISRUPT: value}}}
        world.store.patch(NODES, "", random.choice(nodes)["metadata"]["name"], patch)


def delete_node(world: Tapped, random: Random) -> None:
    """Registered or not: a kubelet does not register twice."""
    if nodes := world.store.list(NODES):
        world.store.delete(NODES, "", random.choice(nodes)["metadata"]["name"])


def change_window(world: Tapped, random: Random) -> None:
    """A maintenance window for repairs comes, changes or goes."""
    name = random.choice(("freeze", "night"))
    if random.random() < 0.3:
        if world.store.find(MAINTENANCE_WINDOWS, "", name) is not None:
            world.store.delete(MAINTENANCE_WINDOWS, "", name)
        return
    schedule = {"cron": random.choice(("*/5 * * * *", "*/3 * * * *")), "duration": "2m"}
    spec = {
        "type": random.choice(("Block", "Block", "Allow")),
        "actions": random.choice((["Repair"], ["Drift"], ["Repair", "Drift"])),
        "schedules": [schedule],
    }
    world.apply(
        {
            "apiVersion": "karpenter.sh/v1alpha1",
            "kind": "MaintenanceWindow",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


def veto_repair(world: Tapped, random: Random) -> None:
    resource = random.choice((NODES, NODE_CLAIMS))
    if found := world.store.list(resource):
        value = random.choice(("true", "2m", "false", "soon", None))
        patch = {"metadata": {"annotations": {DO_NOT_REPAIR: value}}}
        world.store.patch(resource, "", random.choice(found)["metadata"]["name"], patch)


def tighten(world: Tapped, random: Random) -> None:
    """Budgets and the circuit breaker of a pool, down to nothing."""
    pool = random.choice(world.store.list(NODE_POOLS))
    budget: dict[str, Any] = {"nodes": random.choice(("0", "1", "20%"))}
    if random.random() < 0.3:
        budget |= {"schedule": "*/4 * * * *", "duration": "2m"}
    spec = {
        "repair": {"maxUnhealthy": random.choice(("20%", "1", "100%"))},
        "disruption": {"budgets": [budget]},
    }
    world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], {"spec": spec})


def release_image(world: Tapped, random: Random) -> None:
    world.cloud.release_image()


def pin_image(world: Tapped, random: Random) -> None:
    image = random.choice((None, "latest", FIRST_IMAGE, "v2"))
    world.store.patch(KWOK_NODE_CLASSES, "", "default", {"spec": {"image": image}})


def change_template(world: Tapped, random: Random) -> None:
    """Forth and back: by the label, ``rest`` knows which template a node was made from."""
    pool = random.choice(world.store.list(NODE_POOLS))
    metadata = random.choice((None, {"labels": {TEMPLATE: "b"}}, {"labels": {TEMPLATE: "c"}}))
    template = {"spec": {"template": {"metadata": metadata}}}
    world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], template)


def change_zones(world: Tapped, random: Random) -> None:
    pool = random.choice(world.store.list(NODE_POOLS))
    written = pool["spec"]["template"]["spec"]["requirements"]
    kept = [one for one in written if one["key"] != ZONE]
    zones = random.sample(DEFAULT_ZONES, random.randint(1, len(DEFAULT_ZONES)))
    requirements = [*kept, a_requirement(ZONE, *sorted(zones))]
    patch = {"spec": {"template": {"spec": {"requirements": requirements}}}}
    world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], patch)


def drop_claim(world: Tapped, random: Random) -> None:
    """A user takes the finalizer of a claim off, so that its instance has no claim."""
    if claims := world.store.list(NODE_CLAIMS):
        name = random.choice(claims)["metadata"]["name"]
        world.store.patch(NODE_CLAIMS, "", name, {"metadata": {"finalizers": None}})
        if world.store.find(NODE_CLAIMS, "", name) is not None:
            world.store.delete(NODE_CLAIMS, "", name)


def lift(world: Tapped) -> None:
    """Users take back what holds repairs, so that the cluster can come to rest."""
    for window in world.store.list(MAINTENANCE_WINDOWS):
        world.store.delete(MAINTENANCE_WINDOWS, "", window["metadata"]["name"])
    for resource in (NODES, NODE_CLAIMS):
        for thing in world.store.list(resource):
            meta = thing["metadata"]
            if DO_NOT_REPAIR in meta.get("annotations", {}):
                patch = {"metadata": {"annotations": {DO_NOT_REPAIR: None}}}
                world.store.patch(resource, "", meta["name"], patch)
    for pod in world.store.list(PODS):
        meta = pod["metadata"]
        if DO_NOT_DISRUPT in meta.get("annotations", {}):
            patch = {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}}
            world.store.patch(PODS, meta["namespace"], meta["name"], patch)
    # A Node whose claim a user has dropped has no deadline: its pods have to be evicted.
    for pdb in world.store.list(POD_DISRUPTION_BUDGETS):
        name = pdb["metadata"]["name"]
        world.store.patch(POD_DISRUPTION_BUDGETS, "default", name, {"spec": {"maxUnavailable": 1}})
    for pool in world.store.list(NODE_POOLS):
        spec = {
            "repair": {"maxUnhealthy": "100%"},
            "disruption": {"budgets": [{"nodes": "100%"}]},
        }
        world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], {"spec": spec})


DEEDS: Final[tuple[Deed, ...]] = (
    scale,
    scale,
    roll_out,
    delete_pod,
    delete_claim,
    delete_claim,
    delete_node,
    bring_forward,
    protect_node,
    lose_instance,
    silence_kubelet,
    end_watches,
    crash,
    crash,
)

#: Apart, so that the days that are kept stay the days they were.
LEAKY_DEEDS: Final = (*DEEDS, need_reboot, need_reboot, need_reboot)

#: Days on which images are released, and pools and node classes are changed.
DRIFT_DEEDS: Final = (
    *DEEDS,
    *[release_image] * 2,
    *[pin_image] * 2,
    *[change_template] * 3,
    *[change_zones] * 3,
)

#: Days on which nodes are repaired gracefully.
UNHEALTHY_DEEDS: Final = (*DEEDS, *[become_unhealthy] * 5, *[change_repair] * 3)

#: Days on which windows, vetoes, budgets and breakers hold repairs back.
HELD_DEEDS: Final = (
    *UNHEALTHY_DEEDS,
    *[become_unhealthy] * 5,
    *[change_window] * 2,
    *[veto_repair] * 2,
    *[tighten] * 2,
    *[drop_claim] * 3,
)
