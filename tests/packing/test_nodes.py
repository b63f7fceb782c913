"""Existing nodes come first."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.api.node import Taint
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import RequirementsConflict
from tenure.packing.pack import pack
from tests.packing.build import (
    NO_SCHEDULE,
    TOLERATE_BATCH,
    a_daemon,
    a_node,
    a_pod,
    a_pool,
    pods,
)


def placed(**problem: Any) -> dict[str, str]:
    return dict(pack(Problem(**problem)).placed)


def test_initialized_nodes_come_first_then_names() -> None:
    nodes = (
        a_node("a", "1", initialized=False),
        a_node("c", "1"),
        a_node("b", "1"),
    )
    assert placed(pods=pods(3), nodes=nodes) == {"p-000": "b", "p-001": "c", "p-002": "a"}


def test_larger_pods_are_served_first_then_older_ones() -> None:
    waiting = (
        a_pod("young", "2", created="2030-01-02T00:00:00Z"),
        a_pod("old", "2", created="2030-01-01T00:00:00Z"),
        a_pod("large", "4"),
    )
    packing = pack(Problem(pods=waiting, nodes=(a_node("a", "4"), a_node("b", "2"))))
    assert packing.placed == {"large": "a", "old": "b"}
    assert list(packing.unplaced) == ["young"]


def test_no_claim_is_made_where_a_node_has_room() -> None:
    packing = pack(Problem(pods=pods(5), nodes=(a_node(cpu="4"),), templates=(a_pool(),)))
    assert len(packing.placed) == 4
    assert [claim.pods for claim in packing.claims] == [("p-004",)]


def test_room_in_zones_that_are_ahead_is_used_once_the_others_have_caught_up() -> None:
    """Zone c is full and behind: its pods need a new node, and those of a and b do not."""
    web: Any = {"labels": {"app": "web"}}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = tuple(
        a_node(
            zone,
            cpu,
            labels={ZONE: zone, HOSTNAME: zone},
            holding=pods(there, zone, **web, nodeName=zone),
        )
        for zone, cpu, there in (("a", "8", 4), ("b", "8", 4), ("c", "2", 2))
    )
    waiting = pods(8, **web, topologySpreadConstraints=[spread])
    packing = pack(Problem(pods=waiting, nodes=nodes, templates=(a_pool(),)))
    assert sorted(packing.placed.values()) == ["a", "a", "b", "b"]
    assert [len(claim.pods) for claim in packing.claims] == [4]


@pytest.mark.parametrize(
    ("taint", "tolerations", "taken"),
    [
        pytest.param(NO_SCHEDULE, [], False, id="a taint keeps pods away"),
        pytest.param(NO_SCHEDULE, [TOLERATE_BATCH], True, id="unless they tolerate it"),
        pytest.param(
            Taint(key="batch", effect="PreferNoSchedule"), [], True, id="a wish is not a taint"
        ),
    ],
)
def test_taints_decide_who_may_come(taint: Taint, tolerations: list[Any], taken: bool) -> None:
    node = a_node(taints=[taint])
    assert bool(placed(pods=(a_pod(tolerations=tolerations),), nodes=(node,))) == taken


def test_labels_must_satisfy_one_of_the_alternatives() -> None:
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]},
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    choosy = a_pod(affinity={"nodeAffinity": required})
    nodes = (a_node("n-1", labels={ZONE: "b"}), a_node("n-2", labels={"disk": "ssd"}))
    assert placed(pods=(choosy,), nodes=nodes) == {"p": "n-2"}


def test_a_pod_may_ask_for_a_node_by_name() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n-2"]}]
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": fields}]
        }
    }
    choosy = a_pod(affinity={"nodeAffinity": required})
    assert placed(pods=(choosy,), nodes=(a_node("n-1"), a_node("n-2"))) == {"p": "n-2"}


def test_room_is_kept_for_daemons_that_have_not_come_yet() -> None:
    daemons = (a_daemon(cpu="500m"),)
    running = a_pod("agent-x", "500m", "0", owner="DaemonSet")
    assert placed(pods=pods(2), nodes=(a_node(cpu="2"),), daemons=daemons) == {"p-000": "n"}
    there = a_node(cpu="2500m", holding=[running])
    assert len(placed(pods=pods(2), nodes=(there,), daemons=daemons)) == 2


def test_a_daemon_that_does_not_come_here_takes_nothing() -> None:
    elsewhere = a_daemon(cpu="4", nodeSelector={"gpu": "yes"})
    assert placed(pods=(a_pod(cpu="4"),), nodes=(a_node(),), daemons=(elsewhere,)) == {"p": "n"}


def test_a_host_port_is_given_once_per_node() -> None:
    nodes = (a_node("n-1", holding=[a_pod("web", port=80)]), a_node("n-2"), a_node("n-3"))
    assert placed(pods=pods(3, port=80), nodes=nodes) == {"p-000": "n-2", "p-001": "n-3"}


def test_pods_of_different_classes_do_not_get_the_same_host_port() -> None:
    waiting = (a_pod("small", port=80), a_pod("large", "2", port=80))
    assert placed(pods=waiting, nodes=(a_node(),)) == {"large": "n"}


def test_an_overdrawn_resource_only_keeps_away_who_asks_for_it() -> None:
    greedy = a_pod("greedy", "1", "32Gi")
    node = a_node(memory="16Gi", holding=[greedy])
    assert placed(pods=(a_pod("modest", "1", "0"), a_pod("hungry")), nodes=(node,)) == {
        "modest": "n"
    }


def test_a_pod_for_one_host_never_makes_a_claim() -> None:
    packing = pack(Problem(pods=(a_pod(nodeSelector={HOSTNAME: "n-9"}),), templates=(a_pool(),)))
    assert packing.claims == ()
    (refusal,) = packing.unplaced["p"].refusals
    assert isinstance(refusal.cause, RequirementsConflict)
    assert refusal.cause.wanted == f"{HOSTNAME} In [n-9]"
