"""Random days beside a Karpenter that is played: budgets and windows come and go, nodes leave, replicas are killed.

``karpenterplayed`` launches and drains; which open Node it would disrupt, the day decides. The checkers watch every
write of Tenure's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from tenure.model.api import names
from tenure.model.api import resource as r
from tenure.sim.apiserver.objects.tree import Obj
from tests.scenarios.karpenterplayed import Accompanied, a_soft_policy
from tests.scenarios.test_beside_replacement import a_cluster

_BUDGETS: Final[tuple[list[dict[str, Any]], ...]] = (
    [{"nodes": "1"}],
    [{"nodes": "2"}],
    [{"nodes": "50%"}],
    [{"nodes": "0"}],
    [{"nodes": "2", "within": "5m"}],
)
Deed = Callable[[Accompanied, Random], object]


class Outcome(msgspec.Struct, frozen=True):
    problems: tuple[str, ...]
    #: How often each rule of the checkers was asked.
    asked: dict[str, int]


def live_beside(seed: int, deeds: int = 40) -> Outcome:
    random = Random(f"beside/{seed}")
    policy = a_soft_policy("20m", budgets=_BUDGETS[0])
    with closing(Accompanied(*a_cluster(replicas=5, policy=policy), seed=seed)) as story:
        story.play(timedelta(minutes=5))
        for _ in range(deeds):
            random.choice(_DEEDS)(story, random)
            story.play(timedelta(seconds=random.randrange(5, 90)))
        story.play(timedelta(minutes=10))
        broken = (f"{one.rule}: {one.message}" for one in story.checkers.violations)
        return Outcome(tuple(broken), dict(story.checkers.asked))


def _change_budgets(story: Accompanied, random: Random) -> None:
    story.apply(a_soft_policy("20m", budgets=random.choice(_BUDGETS)))


def _freeze(story: Accompanied, random: Random) -> None:
    """Or the end of it."""
    if story.store.find(r.MAINTENANCE_WINDOWS, "", "freeze") is not None:
        story.store.delete(r.MAINTENANCE_WINDOWS, "", "freeze")
        return
    actions = random.sample(["Drift", "Consolidation", "Expiration"], k=random.randrange(1, 4))
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    story.apply({**kind, "metadata": {"name": "freeze"}, "spec": {"actions": actions}})


def _disrupt(story: Accompanied, random: Random) -> None:
    """Karpenter takes a Node that is open."""
    nodes = [one for one in story.all(r.NODES) if names.DO_NOT_DISRUPT not in _annotations(one)]
    taken = random.choice(nodes)["spec"].get("providerID") if nodes else None
    for claim in story.all(r.NODE_CLAIMS):
        if taken and claim.get("status", {}).get("providerID") == taken:
            story.store.delete(r.NODE_CLAIMS, "", claim["metadata"]["name"])


def _protect(story: Accompanied, random: Random) -> None:
    """A user does, or no longer; on a Node that has no mark of ours."""
    nodes = [one for one in story.all(r.NODES) if names.DO_NOT_DISRUPT_BY not in _annotations(one)]
    if nodes:
        value = random.choice(("true", "false", "2h", None))
        body = {"metadata": {"annotations": {names.DO_NOT_DISRUPT: value}}}
        story.store.patch(r.NODES, "", random.choice(nodes)["metadata"]["name"], body)


def _crash(story: Accompanied, random: Random) -> None:
    story.crash()


def _annotations(thing: Obj) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


_DEEDS: Final[tuple[Deed, ...]] = (
    *[_change_budgets] * 3,
    *[_disrupt] * 4,
    _freeze,
    _protect,
    _crash,
)
