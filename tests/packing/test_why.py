"""Every reason to fit nowhere has a stable code and a fact with the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import ARCH, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.problem import Daemon, PoolTemplate, Problem
from tenure.packing.demand.volumes import VolumeNeeds, attachable
from tenure.packing.facts import (
    Cause,
    DaemonsTake,
    HostPortTaken,
    LabelUndefined,
    LimitReached,
    LimitsReached,
    MinValuesUnmet,
    NoInstanceTypes,
    NoNodeFits,
    NoOffering,
    NoPool,
    NoTypeMatches,
    PodUnreadable,
    Refusal,
    RequirementsConflict,
    RequirementsContradict,
    TaintNotTolerated,
    TooLarge,
    TooLargeTogether,
    Why,
)
from tenure.packing.pack import pack
from tenure.packing.refusals.facts import VolumesUsableIn
from tenure.packing.result import Unplaced
from tests.packing.build import (
    NO_SCHEDULE,
    a_daemon,
    a_node,
    a_pod,
    a_pool,
    a_type,
    uncounted,
)

TINY = (a_type("t-2", 2),)
FOUR_TYPES = tuple(a_type(f"t-{n}", 2) for n in range(4))


def in_pool(*names: str) -> dict[str, Any]:
    return {"key": NODEPOOL, "operator": "In", "values": list(names)}


def any_of(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required node affinity with one expression in each alternative."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def refused(pod: Pod, *pools: PoolTemplate, **more: Any) -> Unplaced:
    packing = pack(Problem(pods=(pod,), templates=pools, **more))
    assert (packing.placed, packing.claims) == ({}, ())
    return packing.unplaced[pod.uid]


@pytest.mark.parametrize(
    ("pod", "pool", "why", "cause"),
    [
        pytest.param(
            a_pod(),
            a_pool(taints=[NO_SCHEDULE]),
            Why.TAINT_NOT_TOLERATED,
            TaintNotTolerated("batch=true:NoSchedule"),
            id="a taint that is not tolerated",
        ),
        pytest.param(
            a_pod(nodeSelector={ZONE: "d"}),
            a_pool(requirements=[Requirement.of(ZONE, "In", ["a", "b"])]),
            Why.REQUIREMENTS_INCOMPATIBLE,
            RequirementsConflict(f"{ZONE} In [d]", f"{ZONE} In [a, b]"),
            id="a zone that the pool does not have",
        ),
        pytest.param(
            a_pod(nodeSelector={"team": "red"}),
            a_pool(),
            Why.REQUIREMENTS_INCOMPATIBLE,
            LabelUndefined("team In [red]", "team"),
            id="a label that nothing defines",
        ),
        pytest.param(
            a_pod(),
            a_pool(
                requirements=[
                    Requirement.of("size", "Gt", ["5"]),
                    Requirement.of("size", "Lt", ["6"]),
                ]
            ),
            Why.NO_TYPE_MATCHES,
            RequirementsContradict("size", pool_alone=True),
            id="a pool that wants what cannot be",
        ),
        pytest.param(
            a_pod(nodeSelector={ARCH: "riscv"}),
            a_pool(types=TINY),
            Why.NO_TYPE_MATCHES,
            NoTypeMatches(1, f"{ARCH} In [riscv]"),
            id="an architecture that no type has",
        ),
        pytest.param(
            a_pod(),
            a_pool(types=()),
            Why.NO_TYPE_MATCHES,
            NoInstanceTypes(),
            id="a pool without instance types",
        ),
        pytest.param(
            a_pod(cpu="900"),
            a_pool(),
            Why.TOO_LARGE,
            TooLarge("cpu", "900", "32"),
            id="more cpu than any type has",
        ),
        pytest.param(
            a_pod(cpu="3", memory="20Gi"),
            a_pool(types=(a_type("c", 8, "16Gi"), a_type("r", 2, "32Gi"))),
            Why.TOO_LARGE,
            TooLargeTogether((("3", "cpu"), ("20Gi", "memory"), ("1", "pods"))),
            id="cpu here and memory there",
        ),
        pytest.param(
            a_pod(),
            a_pool(types=(a_type("gone", available=False),)),
            Why.NO_OFFERING,
            NoOffering(1, "gone"),
            id="nothing on offer",
        ),
        pytest.param(
            a_pod(),
            a_pool(types=TINY, limits={"cpu": "1"}),
            Why.LIMIT_REACHED,
            LimitReached("cpu", "1", "t-2", "2"),
            id="a limit that the smallest type exceeds",
        ),
        pytest.param(
            a_pod(),
            a_pool(types=TINY, limits={"nodes": "0"}),
            Why.LIMIT_REACHED,
            LimitReached("nodes", "0", "t-2", "1"),
            id="no more nodes",
        ),
        pytest.param(
            a_pod(),
            a_pool(
                types=(a_type("c", 2, "16Gi"), a_type("r", 4, "8Gi")),
                limits={"cpu": "3", "memory": "10Gi"},
            ),
            Why.LIMIT_REACHED,
            LimitsReached((("3", "cpu"), ("10Gi", "memory"))),
            id="each type exceeds another limit",
        ),
        pytest.param(
            a_pod(),
            a_pool(
                types=FOUR_TYPES,
                requirements=[Requirement.of(INSTANCE_TYPE, "Exists", min_values=5)],
            ),
            Why.MIN_VALUES_UNMET,
            MinValuesUnmet(INSTANCE_TYPE, 5, 4),
            id="less variety than minValues asks for",
        ),
    ],
)
def test_a_pool_says_why_not(pod: Pod, pool: PoolTemplate, why: Why, cause: Cause) -> None:
    unplaced = refused(pod, pool)
    assert (unplaced.why, uncounted(unplaced.facts)) == (why, (Refusal("general", cause),))


def in_zone(zone: str, **attached: int) -> VolumeNeeds:
    there = Requirements.of([Requirement.of(ZONE, "In", [zone])])
    return VolumeNeeds((there,), tuple((attachable(name), n) for name, n in attached.items()))


@pytest.mark.parametrize("zones", [(), ("a", "b", "c")])
def test_a_volume_in_another_zone_than_the_pod_asks_for_is_named(zones: tuple[str, ...]) -> None:
    data = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]
    pod = a_pod(nodeSelector={ZONE: "c"}, volumes=data)
    pool = a_pool(requirements=[Requirement.of(ZONE, "In", zones)] if zones else [])
    unplaced = refused(pod, pool, volumes={pod.uid: in_zone("b")})
    both = RequirementsContradict(ZONE, pod_alone=True, required=f"{ZONE} In [c]")
    where = VolumesUsableIn((f"{pod.namespace}/data-0",), f"{ZONE} In [b]")
    assert unplaced.facts == (where, Refusal("general", both))


def test_requirements_of_a_pod_that_exclude_each_other_are_not_the_pools() -> None:
    pod = a_pod(
        nodeSelector={ZONE: "a"}, **any_of({"key": ZONE, "operator": "In", "values": ["b"]})
    )
    (refusal,) = refused(pod, a_pool()).refusals
    assert refusal == Refusal("general", RequirementsContradict(ZONE, pod_alone=True))


def test_a_pod_that_is_too_large_in_two_ways_hears_of_both() -> None:
    cause = refused(a_pod(cpu="900", memory="4Ti"), a_pool()).refusals[0].cause
    assert isinstance(cause, TooLarge)
    assert (cause.resource, [name for _, name, _ in cause.also]) == ("cpu", ["memory"])


def test_volumes_that_can_be_attached_are_not_compared_with_allocatable() -> None:
    pod = a_pod(cpu="900")
    unplaced = refused(pod, a_pool(), volumes={pod.uid: in_zone("a", ebs=UNIT)})
    assert unplaced.refusals[0].cause == TooLarge("cpu", "900", "32")


def test_without_pools_there_is_nothing_to_launch_from() -> None:
    unplaced = refused(a_pod(cpu="8"), nodes=(a_node(cpu="4"),))
    assert (unplaced.why, unplaced.facts) == (Why.NO_POOL, (NoNodeFits(1), NoPool()))


def test_each_pool_speaks_in_the_order_of_weight_and_the_furthest_names_the_code() -> None:
    spot = a_pool("spot-only", taints=[NO_SCHEDULE], weight=10)
    unplaced = refused(a_pod(cpu="900"), a_pool(), spot)
    assert unplaced.why is Why.TOO_LARGE
    assert uncounted(unplaced.facts) == (
        Refusal("spot-only", TaintNotTolerated("batch=true:NoSchedule")),
        Refusal("general", TooLarge("cpu", "900", "32")),
    )


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        pytest.param({"nodeSelector": {NODEPOOL: "db"}}, ("db",), id="by its selector"),
        pytest.param(any_of(in_pool("db"), in_pool("gpu", "db")), ("db", "gpu"), id="in each term"),
        pytest.param(
            any_of(in_pool("db"), {"key": ZONE, "operator": "In", "values": ["a"]}),
            None,
            id="in one of two terms",
        ),
        pytest.param({"nodeSelector": {ZONE: "a"}}, None, id="not at all"),
        pytest.param(
            any_of({"key": NODEPOOL, "operator": "NotIn", "values": ["db"]}), None, id="to avoid it"
        ),
        pytest.param(
            {"nodeSelector": {NODEPOOL: "db"}, **any_of(in_pool("gpu"))}, None, id="contradictorily"
        ),
    ],
)
def test_a_pod_that_names_its_pools_hears_of_these_alone(spec: Any, named: Any) -> None:
    pools = [a_pool(name) for name in ("general", "db", "gpu")]
    unplaced = refused(a_pod(cpu="900", **spec), *pools)
    assert unplaced.named == named
    assert {one.pool for one in unplaced.refusals} == set(named or ("general", "db", "gpu"))


def test_a_pod_that_names_a_pool_that_is_not_offered_hears_of_no_other() -> None:
    unplaced = refused(a_pod(nodeSelector={NODEPOOL: "dbb"}), a_pool("db"), a_pool("general"))
    assert (unplaced.named, unplaced.facts) == (("dbb",), ())
    assert unplaced.why is Why.REQUIREMENTS_INCOMPATIBLE


def test_daemons_are_taken_off_what_a_type_has_free() -> None:
    unplaced = refused(a_pod(cpu="2"), a_pool(types=TINY), daemons=(a_daemon(cpu="250m"),))
    taken = DaemonsTake(("agent",), 0, "0.25", "cpu", "t-2")
    assert unplaced.refusals[0].cause == TooLarge("cpu", "2", "1.75", daemons=taken)


def test_a_daemon_that_holds_the_host_port_everywhere_is_named() -> None:
    daemon = a_daemon(port=9100)
    unplaced = refused(a_pod(port=9100), a_pool(), daemons=(daemon,))
    assert unplaced.why is Why.HOST_PORT_TAKEN
    assert unplaced.refusals[0].cause == HostPortTaken(9100, "TCP")


def test_sold_out_offerings_are_not_counted_on() -> None:
    dry = frozenset(("t-2", zone, "on-demand") for zone in "abc")
    unplaced = refused(a_pod(), a_pool(types=TINY), dry=dry)
    assert unplaced.why is Why.NO_OFFERING


def test_one_unreadable_pod_does_not_stop_the_others() -> None:
    broken = a_pod("broken", cpu="one")
    packing = pack(Problem(pods=(broken, a_pod("fine")), nodes=(a_node(),)))
    assert packing.placed == {"fine": "n"}
    assert packing.unplaced["broken"].why is Why.UNREADABLE
    (unreadable,) = packing.unplaced["broken"].facts
    assert isinstance(unreadable, PodUnreadable)
    assert "expected a Kubernetes quantity" in unreadable.problem


def test_a_daemon_that_cannot_be_read_takes_nothing() -> None:
    broken = Daemon(name="broken", spec=a_pod(cpu="one").spec)
    packing = pack(Problem(pods=(a_pod(cpu="4"),), nodes=(a_node(),), daemons=(broken,)))
    assert packing.placed == {"p": "n"}
