"""What users and the cloud do on a day on which Tenure takes nodes away by choice.

Pools expire and drift, nodes become empty, the cloud recommends others. Maintenance windows,
budgets and a switch hold that back; they come, change and go, and some cannot be read.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from tenure.model.api.meta import format_time
from tenure.model.api.names import DO_NOT_DISRUPT, NODEPOOL, ZONE
from tenure.model.api.nodepool import BUDGET_REASONS
from tenure.model.api.resource import (
    DEPLOYMENTS,
    MAINTENANCE_WINDOWS,
    NODE_POOLS,
    NODES,
)
from tenure.model.api.window import ACTIONS
from tenure.model.cloud.instance import InstanceState
from tests.builders import Manifest
from tests.fuzz.deeds import (
    DEEDS,
    SECOND,
    Deed,
    become_unhealthy,
    change_repair,
    change_template,
    change_zones,
    lift,
    pin_image,
    release_image,
    scale,
    veto_repair,
)
from tests.runtime.worlds import Tapped

MINUTE: Final = timedelta(minutes=1)
#: How old nodes may become on a day that lasts less than an hour.
AGES: Final = ("4m", "8m", "15m")
#: The pattern of the field allows it, and there is no such zone: the window cannot be read.
NO_ZONE: Final = "Mars/Olympus"


def prepare(world: Tapped, random: Random) -> None:
    """Before the first node is there: most pools let theirs become only minutes old."""
    for pool in world.store.list(NODE_POOLS):
        age = random.choice((*AGES, "720h"))
        policy = random.choice(("WhenAllowed", "WhenAllowed", "Always"))
        budgets = random.choice(([], [{"nodes": "50%"}], [{"nodes": "1", "within": "2m"}]))
        spec = {
            "template": {"spec": {"expireAfter": age}},
            "disruption": {"expirationPolicy": policy, "budgets": budgets},
        }
        world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], {"spec": spec})


# -- maintenance windows ---------------------------------------------------------------


def change_windows(world: Tapped, random: Random) -> None:
    """A window comes, is written anew, or goes."""
    name = random.choice(("freeze", "night", "weekend"))
    known = world.store.find(MAINTENANCE_WINDOWS, "", name)
    if known is not None and random.random() < 0.4:
        world.store.delete(MAINTENANCE_WINDOWS, "", name)
    elif known is not None and random.random() < 0.5:
        _edit(world, random, name)
    else:
        spec = _times(world, random) | {
            "type": random.choice(("Block", "Block", "Allow")),
            "actions": sorted(random.sample(ACTIONS, random.randint(1, 3))),
            "selector": _selector(random),
        }
        kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
        world.apply({**kind, "metadata": {"name": name}, "spec": spec})


def _edit(world: Tapped, random: Random, name: str) -> None:
    edits: list[Manifest] = [
        {"type": random.choice(("Block", "Allow"))},
        {"actions": sorted(random.sample(ACTIONS, random.randint(1, 4)))},
        {"selector": _selector(random)},
        _times(world, random),
    ]
    world.store.patch(MAINTENANCE_WINDOWS, "", name, {"spec": random.choice(edits)})


def _times(world: Tapped, random: Random) -> Manifest:
    """Minutes long, so that a day of an hour sees many of them; rarely always, or unreadable."""
    cron = random.choice(("*/5 * * * *", "*/3 * * * *", "*/10 * * * *", "0 22 * * *"))
    schedule = {"cron": cron, "duration": random.choice(("1m", "2m", "4m", "30m"))}
    if (kind := random.random()) < 0.1:
        return {"schedules": [], "dates": []}
    if kind < 0.2:
        return {"schedules": [schedule | {"timeZone": NO_ZONE}], "dates": []}
    if kind < 0.4:
        begins = world.now + random.randint(-2, 5) * MINUTE
        until = begins + random.randint(1, 8) * MINUTE
        return {
            "schedules": [],
            "dates": [{"from": format_time(begins), "until": format_time(until)}],
        }
    return {"schedules": [schedule], "dates": []}


def _selector(random: Random) -> Manifest:
    pool = {"key": NODEPOOL, "operator": "In", "values": ["blue"]}
    old_name = {"key": "karpenter.sh/provisioner-name", "operator": "NotIn", "values": ["green"]}
    chosen = random.choice(([], [], [pool], [old_name]))
    return {"matchExpressions": chosen}


# -- pools -----------------------------------------------------------------------------


def _patch_pool(world: Tapped, random: Random, spec: Any) -> None:
    name = random.choice(world.store.list(NODE_POOLS))["metadata"]["name"]
    world.store.patch(NODE_POOLS, "", name, {"spec": spec})


def change_expiry(world: Tapped, random: Random) -> None:
    """Nodes of the pool may become only minutes old, and new ones too."""
    spec: dict[str, Any] = {}
    if random.random() < 0.7:
        spec["template"] = {"spec": {"expireAfter": random.choice((*AGES, "Never"))}}
    if random.random() < 0.5:
        spec["disruption"] = {"expirationPolicy": random.choice(("WhenAllowed", "Always"))}
    _patch_pool(world, random, spec)


def change_consolidation(world: Tapped, random: Random) -> None:
    block = {
        "consolidateAfter": random.choice(("0s", "30s", "3m", "Never")),
        "consolidationPolicy": random.choice(("WhenEmpty", "WhenEmptyOrUnderutilized")),
    }
    _patch_pool(world, random, {"disruption": block})


def change_budgets(world: Tapped, random: Random) -> None:
    budgets = [a_budget(random) for _ in range(random.randint(0, 3))]
    _patch_pool(world, random, {"disruption": {"budgets": budgets}})


def a_budget(random: Random) -> Manifest:
    budget: Manifest = {"nodes": random.choice(("0", "1", "2", "20%", "50%", "100%"))}
    if random.random() < 0.4:
        budget["reasons"] = sorted(random.sample(BUDGET_REASONS, random.randint(1, 3)))
    if random.random() < 0.3:
        budget |= {"schedule": random.choice(("*/4 * * * *", "0 9 * * *")), "duration": "2m"}
    if random.random() < 0.2:
        budget["per"] = ZONE
    if random.random() < 0.2:
        budget["selector"] = {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
    if random.random() < 0.4:
        budget["within"] = random.choice(("2m", "6m", "1h"))
    return budget


def switch(world: Tapped, random: Random) -> None:
    """``--voluntary-disruption`` goes off or on, with a restart."""
    _switch(world, on=random.random() < 0.5)


def _switch(world: Tapped, *, on: bool) -> None:
    settings = msgspec.structs.replace(world.options.settings, voluntary_disruption=on)
    world.set_settings(settings)
    world.start()


# -- the cloud -------------------------------------------------------------------------


def recommend(world: Tapped, random: Random) -> None:
    """The cloud recommends to leave an instance."""
    if ours := _running(world):
        world.cloud.recommend_rebalance(random.choice(ours))


def interrupt(world: Tapped, random: Random) -> None:
    """The cloud wants an instance back; the notice may not say when."""
    if ours := _running(world):
        grace = random.choice((30, 120, 300)) * SECOND
        world.cloud.interrupt(random.choice(ours), grace, dated=random.random() < 0.8)


def _running(world: Tapped) -> list[str]:
    return [i.provider_id for i in world.cloud.instances() if i.state is InstanceState.RUNNING]


# -- at the end ------------------------------------------------------------------------


def lift_everything(world: Tapped) -> None:
    """Users take back whatever holds a disruption, and nothing expires any more."""
    lift(world)
    for node in world.store.list(NODES):
        annotations = {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}}
        world.store.patch(NODES, "", node["metadata"]["name"], annotations)
    for deployment in world.store.list(DEPLOYMENTS):
        metadata = {"metadata": {"annotations": {DO_NOT_DISRUPT: None}}}
        patch: Any = {"spec": {"template": metadata}}
        world.store.patch(DEPLOYMENTS, "default", deployment["metadata"]["name"], patch)
    for pool in world.store.list(NODE_POOLS):
        spec: dict[str, Any] = {"disruption": {"consolidateAfter": "30s"}}
        if pool["spec"]["template"]["spec"]["expireAfter"] in AGES:
            spec["template"] = {"spec": {"expireAfter": "Never"}}
        world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], {"spec": spec})
    if not world.options.settings.voluntary_disruption:
        _switch(world, on=True)


#: Days on which nodes are taken away by choice, and windows and budgets hold that back.
VOLUNTARY_DEEDS: Final[tuple[Deed, ...]] = (
    *DEEDS,
    *[scale] * 3,
    *[change_windows] * 5,
    *[change_budgets] * 3,
    *[change_expiry] * 4,
    *[change_consolidation] * 2,
    *[change_template] * 3,
    change_zones,
    release_image,
    pin_image,
    *[recommend] * 3,
    *[interrupt] * 2,
    switch,
    become_unhealthy,
    change_repair,
    veto_repair,
)
