"""Thirty nodes at once beside Karpenter: budgets and PDBs hold from the first to the last, and it comes to an end."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.model.api import resource as r
from tests.builders import MINUTE, SECOND, Manifest, a_pdb
from tests.scenarios.karpenterplayed import KNOWN, Accompanied, a_soft_policy
from tests.scenarios.test_beside_replacement import (
    BROKEN,
    REPAIR,
    a_cluster,
    claims,
    marks_of,
    told,
)

NODES = 30
AT_A_TIME = 3
#: All are of the same zones: that many unhealthy ones are an outage there, which this story is not about.
NO_BREAKER = msgspec.structs.replace(KNOWN, repair_domain_breaker=False)


def thirty(policy: Manifest) -> list[Manifest]:
    budgets: dict[str, Any] = {"budgets": [{"nodes": str(AT_A_TIME)}], "consolidateAfter": "Never"}
    pdb = a_pdb(maxUnavailable=2)
    return a_cluster(pdb, replicas=NODES, policy=policy, disruption=budgets)


def rolled(story: Accompanied, old: set[str]) -> None:
    """Until none of the old ones is left; looks at it all the time."""
    fewest, most = NODES, 0
    for _ in range(3 * 60 * 4):
        story.play(15 * SECOND)
        fewest = min(fewest, story.running("web"))
        found = story.all(r.NODE_CLAIMS)
        most = max(most, sum("deletionTimestamp" in one["metadata"] for one in found))
        if not old & set(claims(story)) and not marks_of(story):
            break
    assert not old & set(claims(story))
    assert fewest >= NODES - 2, "the PDB lets two be missing"
    assert 0 < most <= AT_A_TIME
    assert (len(claims(story)), story.running("web")) == (NODES, NODES)
    assert story.cloud.launch_count == 2 * NODES, "one for each, and none for nothing"
    assert marks_of(story) == set()


def test_thirty_nodes_expire_softly_within_the_budget_and_the_pdb() -> None:
    with told(*thirty(a_soft_policy("1h"))) as story:
        story.play(50 * MINUTE)
        old = set(claims(story))
        assert len(old) == NODES
        rolled(story, old)


def test_thirty_unhealthy_nodes_are_replaced_within_the_budget_and_the_pdb() -> None:
    repair = {"maxUnhealthy": "100%", "policies": [REPAIR]}
    with told(*thirty(a_soft_policy("Never", repair=repair)), settings=NO_BREAKER) as story:
        story.play(10 * MINUTE)
        old = set(claims(story))
        assert len(old) == NODES
        for node in story.all(r.NODES):
            name = node["metadata"]["name"]
            story.kubelets.set_condition(name, BROKEN, "True", "Test", "tasks hang")
        rolled(story, old)
