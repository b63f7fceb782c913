"""The smallest change is found by trying, and verified by packing again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.advice.advise import smallest_changes
from tenure.packing.advice.facts import (
    AllowValue,
    AskAtMost,
    Change,
    DropTerm,
    DropTermOfOthers,
    FreeHostPort,
    LabelPool,
    LowerMinValues,
    MoveVolumes,
    NoSingleChange,
    OfferResource,
    RaiseLimits,
    SoftenSpread,
    TolerateTaint,
)
from tenure.packing.advice.trial import OTHERS_MAX, PACKS_MAX, Trial
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.demand.volumes import VolumeNeeds
from tests.packing.build import NO_SCHEDULE, a_daemon, a_node, a_pod, a_pool, a_type, pods

WEB = {"app": "web"}
THE_WEB = "pods with app In [web] in namespace default"
SMALL = (a_type("t-2", 2), a_type("t-4", 4))


def required(kind: str, key: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": WEB}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(key: str) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": WEB},
                "minDomains": 4,
            }
        ]
    }


def test_the_value_that_was_meant_comes_before_the_cheapest() -> None:
    pod = a_pod(nodeSelector={CAPACITY_TYPE: "ondemand"})
    problem = Problem(pods=(pod,), templates=(a_pool(types=(a_type("t-4", 4, spot=0.01),)),))
    assert smallest_changes(problem, pod.uid) == (
        AllowValue(CAPACITY_TYPE, "on-demand"),
        AllowValue(CAPACITY_TYPE, "spot"),
    )


def with_gpu(uid: str = "p") -> Pod:
    requests = {"cpu": "1", "nvidia.com/gpu": "1"}
    return a_pod(uid, containers=[{"name": "main", "resources": {"requests": requests}}])


def advice(*waiting: Pod, uid: str = "", **more: Any) -> tuple[Change | NoSingleChange, ...]:
    given: dict[str, Any] = {"templates": (a_pool(types=SMALL),), **more}
    uid = uid or waiting[-1].uid
    found = smallest_changes(Problem(pods=waiting, **given), uid)
    turned: dict[str, Any] = {
        name: tuple(reversed(value)) if isinstance(value, tuple) else value
        for name, value in given.items()
    }
    again = smallest_changes(Problem(pods=tuple(reversed(waiting)), **turned), uid)
    assert again == found, "the order of its parts does not matter"
    return found


@pytest.mark.parametrize(
    ("pod", "pool", "change"),
    [
        pytest.param(
            a_pod(),
            a_pool(taints=[NO_SCHEDULE]),
            TolerateTaint("batch=true:NoSchedule"),
            id="a toleration",
        ),
        pytest.param(
            a_pod(nodeSelector={ZONE: "d"}), a_pool(), AllowValue(ZONE, "a"), id="another zone"
        ),
        pytest.param(
            a_pod(nodeSelector={ARCH: "riscv"}),
            a_pool(),
            AllowValue(ARCH, "amd64"),
            id="an architecture that instance types have",
        ),
        pytest.param(
            a_pod(nodeSelector={NODEPOOL: "genral"}),
            a_pool(),
            AllowValue(NODEPOOL, "general"),
            id="another pool",
        ),
        pytest.param(
            a_pod(cpu="64"), a_pool(), AskAtMost("cpu", "32", "64"), id="a smaller request"
        ),
        pytest.param(
            a_pod(memory="20Gi"),
            a_pool(types=SMALL),
            AskAtMost("memory", "16Gi", "20Gi"),
            id="less memory",
        ),
        pytest.param(
            a_pod(nodeSelector={"team": "red"}),
            a_pool(),
            LabelPool("general", "team", "red"),
            id="a label of the pool, and the pod stays as it is",
        ),
        pytest.param(
            a_pod(),
            a_pool(
                types=SMALL, requirements=[Requirement.of(INSTANCE_TYPE, "Exists", min_values=3)]
            ),
            LowerMinValues("general", INSTANCE_TYPE, 3, 2),
            id="fewer minValues",
        ),
        pytest.param(
            with_gpu(), a_pool(), OfferResource("nvidia.com/gpu", "1"), id="a pool that offers it"
        ),
    ],
)
def test_each_kind_of_change(pod: Pod, pool: PoolTemplate, change: Change) -> None:
    assert change in advice(pod, templates=(pool,))


def test_a_request_leaves_room_for_the_daemons() -> None:
    found = advice(a_pod(cpu="4"), daemons=(a_daemon(cpu="250m"),))
    assert found[0] == AskAtMost("cpu", "3.75", "4")


def test_a_request_is_never_rounded_up() -> None:
    """A third of a cpu is not written by users: 333m fits, 334m does not."""
    odd = a_node(cpu="333333333n", memory="1Gi")
    found = advice(a_pod(cpu="500m", memory="0"), templates=(), nodes=(odd,))
    assert found[0] == AskAtMost("cpu", "0.333", "0.5")


def test_a_limit_is_raised_by_as_much_as_the_smallest_type_that_fits_needs() -> None:
    pool = a_pool(types=SMALL, limits={"cpu": "1"})
    (first, *_) = advice(a_pod(cpu="3"), templates=(pool,))
    assert first == RaiseLimits("general", (("cpu", "3"),), by=True)


def test_a_raised_limit_is_named_as_it_would_be_written() -> None:
    pool = msgspec.structs.replace(
        a_pool(types=SMALL, limits={"cpu": "1"}), limits={"cpu": 11 * 10**9}
    )
    (first, *_) = advice(a_pod(cpu="3"), templates=(pool,))
    assert first == RaiseLimits("general", (("cpu", "14"),))


def test_a_limit_counts_what_is_planned_for_other_pods() -> None:
    """The first pod gets the four cpus that are left; the second needs four more."""
    pool = a_pool(types=(SMALL[1],), limits={"cpu": "4"})
    first, second = pods(2, cpu="3")
    (found, *_) = advice(first, second, templates=(pool,))
    assert found == RaiseLimits("general", (("cpu", "4"),), by=True)


def test_several_limits_of_one_pool_are_raised_together() -> None:
    pool = a_pool(types=SMALL, limits={"cpu": "1", "nodes": "0"})
    (found, *_) = advice(a_pod(), templates=(pool,))
    assert found == RaiseLimits("general", (("cpu", "1"), ("nodes", "1")), by=True)


def test_affinity_is_dropped() -> None:
    db = a_pod(labels={"app": "db"}, **required("podAffinity", ZONE))
    assert advice(db)[0] == DropTerm("affinity", ZONE, THE_WEB)


def test_anti_affinity_is_dropped_in_the_whole_workload() -> None:
    """That of one pod alone would not do: the running pods of its workload avoid it, too."""
    apart: dict[str, Any] = {"labels": WEB, "owner": "ReplicaSet"}
    apart |= required("podAntiAffinity", ZONE)
    nodes = tuple(
        a_node(f"n-{zone}", "1", holding=[a_pod(f"r-{zone}", **apart)], labels={ZONE: zone})
        for zone in "abc"
    )
    assert advice(a_pod("p", **apart), nodes=nodes)[0] == DropTerm("anti-affinity", ZONE, THE_WEB)


def test_anti_affinity_of_other_workloads_is_dropped_last() -> None:
    shy = a_pod("shy", "1", **required("podAntiAffinity", ZONE))
    node = a_node("n", "1", holding=[shy], labels={ZONE: "a"})
    only_here = (a_pool(types=(a_type("t-2", 2, zones="a"),)),)
    found = advice(a_pod(labels=WEB), nodes=(node,), templates=only_here)
    assert found == (DropTermOfOthers("default/shy", ZONE),)


def test_a_spread_becomes_a_preference() -> None:
    found = advice(*pods(5, labels=WEB, **spread(ZONE)))
    assert found[0] == SoftenSpread(ZONE)


def test_a_host_port_is_given_up() -> None:
    found = advice(a_pod(port=9100), daemons=(a_daemon(port=9100),))
    assert found[0] == FreeHostPort(9100, "TCP")


def test_volumes_of_another_zone() -> None:
    there = Requirements.of([Requirement.of(ZONE, "In", ["d"])])
    found = advice(a_pod(), volumes={"p": VolumeNeeds(alternatives=(there,))})
    assert found == (MoveVolumes(f"{ZONE} In [d]"),)


def test_where_two_changes_are_needed_that_is_said() -> None:
    pool = a_pool(types=SMALL, taints=[NO_SCHEDULE])
    found = advice(a_pod(cpu="9", nodeSelector={ZONE: "d"}), templates=(pool,))
    assert [type(one) for one in found] == [NoSingleChange]
    assert str(found[0]).startswith("no single change")


def test_a_pod_that_has_a_place_needs_no_change() -> None:
    assert advice(a_pod()) == ()


def test_no_pool_means_no_change_of_one() -> None:
    assert [type(one) for one in advice(a_pod(), templates=())] == [NoSingleChange]


def test_hostname_affinity_that_no_type_holds_names_the_term() -> None:
    together = pods(6, labels=WEB, owner="ReplicaSet", **required("podAffinity", HOSTNAME))
    left = [one for one in advice(*together) if isinstance(one, DropTerm)]
    assert left == [DropTerm("affinity", HOSTNAME, THE_WEB)]


def test_the_cost_is_bounded() -> None:
    """Of thousands of waiting pods, those that are served first are packed with it."""
    many = pods(2_000, "q", cpu="100m", memory="0")
    hopeless = a_pod(cpu="9", priority=-1, nodeSelector={ZONE: "d", "team": "red"})
    trial = Trial(Problem(pods=(*many, hopeless), templates=(a_pool(types=SMALL),)), "p")
    assert len(trial.problem.pods) == OTHERS_MAX + 1
    while not trial.spent:
        assert not trial.places(trial.problem)
    assert trial.packs == PACKS_MAX
    assert not trial.places(Problem(pods=(a_pod(),), templates=(a_pool(),))), "it is over"
