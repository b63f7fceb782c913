"""Nodes without a label are in no domain of its key: pods that need no domain of it may go there.

A user writes a spread over the label of a team's nodes, about all pods, and pods that know nothing of it get nodes
as before.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.pack import pack
from tests.packing.build import FAMILY, NO_SCHEDULE, TOLERATE_BATCH, a_node, a_pod, a_pool
from tests.packing.judges.verify import verify

TEAM: Final = "example.com/team"
ZONE: Final = "topology.kubernetes.io/zone"
EVERY: Final[dict[str, Any]] = {}
OTHERS: Final = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}


def spread(key: str = TEAM, when: str = "ScheduleAnyway") -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": EVERY,
    }


def apart(selector: dict[str, Any]) -> dict[str, Any]:
    term = {"topologyKey": TEAM, "labelSelector": selector}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def team(operator: str = "In", **fields: Any) -> PoolTemplate:
    """Its nodes have the label, as far as that can be said."""
    values = ("a",) if operator == "In" else ()
    return a_pool("team", FAMILY, requirements=[Requirement.of(TEAM, operator, values)], **fields)


def plain(count: int = 3, **spec: Any) -> tuple[Pod, ...]:
    return tuple(a_pod(f"web-{number}", **spec) for number in range(count))


def placed(*pods: Pod, pools: Any, **more: Any) -> dict[str, str]:
    """By pod: the pool of its new claim, or its node."""
    problem = Problem(pods=pods, templates=tuple(pools), **more)
    packing = pack(problem)
    assert verify(problem, packing) == []
    return {**packing.placed, **{uid: one.pool for one in packing.claims for uid in one.pods}}


WEB: Final = {"web-0", "web-1", "web-2"}


@pytest.mark.parametrize(
    "own", [{}, {"topologySpreadConstraints": [spread(ZONE, "DoNotSchedule")]}]
)
@pytest.mark.parametrize("when", ["ScheduleAnyway", "DoNotSchedule"])
@pytest.mark.parametrize(
    "pool",
    [
        team("Exists"),
        team("DoesNotExist"),
        team(taints=[NO_SCHEDULE]),
        team(limits={"cpu": "0"}),
    ],
    ids=["exists", "absent", "tainted", "full"],
)
def test_pods_that_others_are_spread_by_go_to_nodes_without_the_label(
    pool: PoolTemplate, when: str, own: dict[str, Any]
) -> None:
    spreading = a_pod(
        "team-0",
        labels={"app": "team"},
        topologySpreadConstraints=[spread(when=when)],
        tolerations=[TOLERATE_BATCH],
    )
    found = placed(spreading, *plain(**own), pools=[pool, a_pool("good")])
    assert found.keys() >= WEB


@pytest.mark.parametrize(
    "own", [{}, {"topologySpreadConstraints": [spread(ZONE, "DoNotSchedule")]}]
)
def test_pods_that_running_pods_keep_off_a_domain_go_to_nodes_without_the_label(
    own: dict[str, Any],
) -> None:
    there = a_pod("team-0", labels={"app": "team"}, nodeName="n", affinity=apart(OTHERS))
    node = a_node("n", labels={TEAM: "a"}, holding=(there,))
    found = placed(*plain(**own), pools=[team(), a_pool("good")], nodes=(node,))
    assert {uid: found.get(uid) for uid in WEB} == dict.fromkeys(WEB, "good")


def test_pods_that_a_new_pod_keeps_off_a_domain_go_to_nodes_without_the_label() -> None:
    """They are not put into its domain in the same plan."""
    new = a_pod("team-0", labels={"app": "team"}, affinity=apart(OTHERS), nodeSelector={TEAM: "a"})
    found = placed(new, *plain(), pools=[team(), a_pool("good")])
    assert found == {"team-0": "team", **dict.fromkeys(WEB, "good")}


def test_a_pod_that_fits_no_pool_is_refused_where_another_is_spread_by_it() -> None:
    spreading = a_pod("team-0", topologySpreadConstraints=[spread()])
    huge = a_pod("huge", cpu="9000")
    assert "huge" not in placed(spreading, huge, pools=[team("Exists"), a_pool("good")])


def test_a_pod_that_keeps_off_the_pods_of_a_domain_goes_to_a_node_without_the_label() -> None:
    there = a_pod("team-0", labels={"app": "team"}, nodeName="n")
    node = a_node("n", cpu="1", labels={TEAM: "a"}, holding=(there,))
    shy = a_pod("shy", affinity=apart({"matchLabels": {"app": "team"}}))
    assert placed(shy, pools=[team(), a_pool("good")], nodes=(node,)) == {"shy": "good"}


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist"])
def test_a_pod_that_must_be_in_a_domain_is_refused_where_no_pool_has_one(operator: str) -> None:
    must = a_pod("team-0", topologySpreadConstraints=[spread(when="DoNotSchedule")])
    assert placed(must, pools=[team(operator), a_pool("good")]) == {}
