"""What running pods ask for keeps others away where kube-scheduler would, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import AffinityUnsatisfiable, KeptOff, Why
from tenure.packing.pack import pack
from tests.packing.build import a_node, a_pod, a_pool

WEB = {"app": "web"}
RACK = "example.com/rack"
NOWHERE = "example.com/no-such-label"


def avoiding(key: str, **term: Any) -> dict[str, Any]:
    """Required anti-affinity to everything in its namespace, unless told otherwise."""
    written = {"topologyKey": key, "labelSelector": {}, **term}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [written]}
    return {"affinity": {"podAntiAffinity": required}}


def places(
    key: str, *, there: dict[str, str], namespace: str = "default", **term: Any
) -> dict[str, str]:
    """Where a web pod goes: beside the shy pod, to another rack and zone, or to an unlabelled node."""
    shy = a_pod("shy", "1", labels={"rev": "1"}, **avoiding(key, **term))
    nodes = (
        a_node("n-1", holding=[shy], labels=there),
        a_node("n-2", labels=there),
        a_node("n-3", labels={ZONE: "b", RACK: "r2"}),
    )
    web = a_pod("web", labels=WEB, namespace=namespace)
    return dict(pack(Problem(pods=(web,), nodes=nodes)).placed)


HERE = {ZONE: "a", RACK: "r1", HOSTNAME: "n-1"}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "over hostnames, its own node": ({"key": HOSTNAME, "there": HERE}, "n-2"),
    "over zones, its own zone": ({"key": ZONE, "there": HERE}, "n-3"),
    "over any other key, the value of its own node": ({"key": RACK, "there": HERE}, "n-3"),
    "over a key that its own node does not have, nothing": ({"key": NOWHERE, "there": HERE}, "n-1"),
    "over zones from a node without a zone, nothing": ({"key": ZONE, "there": {}}, "n-1"),
    "in another namespace, nothing": (
        {"key": ZONE, "there": HERE, "namespace": "other"},
        "n-1",
    ),
    "in a namespace that is listed": (
        {"key": ZONE, "there": HERE, "namespace": "other", "namespaces": ["other"]},
        "n-3",
    ),
    "in all namespaces": (
        {"key": ZONE, "there": HERE, "namespace": "other", "namespaceSelector": {}},
        "n-3",
    ),
    "in a namespace that is selected by its name": (
        {
            "key": ZONE,
            "there": HERE,
            "namespace": "other",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}},
        },
        "n-3",
    ),
    "in a namespace that another name is selected beside": (
        {
            "key": ZONE,
            "there": HERE,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}},
        },
        "n-1",
    ),
    "in namespaces by labels that we do not know, nothing over zones": (
        {"key": ZONE, "there": HERE, "namespaceSelector": {"matchLabels": {"tier": "prod"}}},
        "n-1",
    ),
    "in namespaces by labels that we do not know, its own node over hostnames": (
        {"key": HOSTNAME, "there": HERE, "namespaceSelector": {"matchLabels": {"tier": "prod"}}},
        "n-2",
    ),
    "other labels, nothing": (
        {"key": ZONE, "there": HERE, "labelSelector": {"matchLabels": {"app": "db"}}},
        "n-1",
    ),
    "without a selector, nothing": ({"key": ZONE, "there": HERE, "labelSelector": None}, "n-1"),
    "with the same revision, which it is not": (
        {"key": ZONE, "there": HERE, "matchLabelKeys": ["rev"]},
        "n-1",
    ),
    "with another revision or none": (
        {"key": ZONE, "there": HERE, "mismatchLabelKeys": ["rev"]},
        "n-3",
    ),
}


@pytest.mark.parametrize(("case", "node"), CASES.values(), ids=CASES.keys())
def test_a_running_pod_keeps_others_away(case: dict[str, Any], node: str) -> None:
    assert places(**case) == {"web": node}


def test_every_pod_gets_a_node_although_a_running_pod_avoids_all_over_an_unknown_key() -> None:
    shy = a_pod("shy", "1", namespace="chaos", **avoiding(NOWHERE, namespaceSelector={}))
    full = a_node("n", "1", holding=[shy], labels={ZONE: "a"})
    packing = pack(Problem(pods=(a_pod(labels=WEB),), nodes=(full,), templates=(a_pool(),)))
    assert not packing.unplaced
    (claim,) = packing.claims
    assert NOWHERE not in claim.requirements


def test_a_new_node_keeps_out_of_the_zone_that_a_running_pod_keeps_for_itself() -> None:
    shy = a_pod("shy", "1", **avoiding(ZONE))
    full = a_node("n", "1", holding=[shy], labels={ZONE: "a"})
    packing = pack(Problem(pods=(a_pod(labels=WEB),), nodes=(full,), templates=(a_pool(),)))
    (claim,) = packing.claims
    assert not claim.requirements[ZONE].has("a")
    assert claim.requirements[ZONE].has("b")


def test_a_new_node_may_not_have_the_rack_that_a_running_pod_keeps_for_itself() -> None:
    shy = a_pod("shy", "1", **avoiding(RACK))
    full = a_node("n", "1", holding=[shy], labels={RACK: "r1"})
    pool = a_pool(labels={RACK: "r1"})
    packing = pack(Problem(pods=(a_pod(labels=WEB),), nodes=(full,), templates=(pool,)))
    assert packing.unplaced["p"].why is Why.TOPOLOGY_UNSATISFIABLE


def test_who_is_kept_out_of_every_zone_is_told_by_whom() -> None:
    nodes = [
        a_node(
            f"n-{zone}",
            "1",
            holding=[a_pod(f"shy-{zone}", "1", **avoiding(ZONE))],
            labels={ZONE: zone},
        )
        for zone in ("a", "b", "c")
    ]
    packing = pack(Problem(pods=(a_pod(labels=WEB),), nodes=tuple(nodes), templates=(a_pool(),)))
    unplaced = packing.unplaced["p"]
    assert unplaced.why is Why.TOPOLOGY_UNSATISFIABLE
    assert [refusal.cause for refusal in unplaced.refusals] == [AffinityUnsatisfiable()]
    assert KeptOff("default/shy-b", ZONE, "b") in unplaced.facts


def test_a_running_pod_whose_terms_cannot_be_read_blocks_no_other() -> None:
    odd = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]}
    shy = a_pod("shy", "1", **avoiding(ZONE, labelSelector=odd))
    packing = pack(Problem(pods=(a_pod(),), nodes=(a_node(holding=[shy], labels={ZONE: "a"}),)))
    assert packing.placed == {"p": "n"}
