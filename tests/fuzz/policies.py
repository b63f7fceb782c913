"""Days on which NodePoolPolicies come, change, tie and go, beside everything that is done by choice.

The pools have lost the fields that Karpenter's CRD does not know, so that policies have something to say.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tenure.model.api.resource import NODE_POOL_POLICIES, NODE_POOLS
from tests.fuzz.deeds import Deed
from tests.fuzz.voluntary import AGES, VOLUNTARY_DEEDS, a_budget, lift_everything, prepare
from tests.runtime.worlds import Tapped

_SELECTORS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"names": ["blue"]},
    {"names": ["green", "blue"]},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
)


def silence_pools(world: Tapped, random: Random) -> None:
    """Before the first node is there."""
    prepare(world, random)
    for pool in world.store.list(NODE_POOLS):
        spec = {
            "repair": None,
            "template": {"spec": {"expireAfter": "Never", "readinessTTL": "15m"}},
            "disruption": {"budgets": [{"nodes": "10%"}], "maxPodProtection": None},
        }
        world.store.patch(NODE_POOLS, "", pool["metadata"]["name"], {"spec": spec})
    change_policies(world, random)


def change_policies(world: Tapped, random: Random) -> None:
    """A policy comes, is written anew, or goes."""
    name = random.choice(("one", "two", "three"))
    known = world.store.find(NODE_POOL_POLICIES, "", name)
    if known is not None:
        world.store.delete(NODE_POOL_POLICIES, "", name)
        if random.random() < 0.4:
            return
    kind = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePoolPolicy"}
    spec = {"nodePools": random.choice(_SELECTORS), **_settings(random)}
    world.apply({**kind, "metadata": {"name": name}, "spec": spec})


def _settings(random: Random) -> dict[str, Any]:
    """Each with some chance; rarely a schedule that passes the pattern, and means nothing."""
    bad = {"nodes": "1", "schedule": "61 * * * *", "duration": "1m"}
    budgets = [bad if random.random() < 0.1 else a_budget(random) for _ in range(2)]
    repair = {
        "maxUnhealthy": random.choice(("20%", "1", "100%")),
        "terminationMode": random.choice(("Graceful", "Forceful")),
    }
    every: dict[str, Any] = {
        "readinessTTL": random.choice(("20s", "3m", "20m")),
        "initializationTTL": random.choice(("2m", "Never")),
        "expireAfter": random.choice(AGES),
        "maxPodProtection": random.choice(("2m", "1h")),
        "budgets": budgets,
        "repair": repair,
    }
    return {name: value for name, value in every.items() if random.random() < 0.4}


def lift_policies(world: Tapped) -> None:
    for policy in world.store.list(NODE_POOL_POLICIES):
        world.store.delete(NODE_POOL_POLICIES, "", policy["metadata"]["name"])
    lift_everything(world)


GOVERNED_DEEDS: Final[tuple[Deed, ...]] = (*VOLUNTARY_DEEDS, *[change_policies] * 10)
