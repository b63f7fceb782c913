"""Of all instance types of a pool, each is counted once, under the first cause that keeps it away."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.facts import Refusal
from tenure.packing.pack import pack
from tenure.packing.refusals.facts import (
    TypeCount,
    TypesLackLabel,
    TypesLackResource,
    TypesNotOffered,
    TypesOutOfReach,
    TypesOutsidePool,
    TypesOverLimit,
    TypesTooFew,
    TypesTooSmall,
    TypesUseHostPort,
)
from tests.packing.build import a_daemon, a_pod, a_pool, a_type

#: Two of each size, in zones a and b; two more in zone c alone.
TYPES = (
    *(a_type(f"m-{cpu}-{n}", cpu, zones="ab") for cpu in (2, 4) for n in range(2)),
    *(a_type(f"z-{cpu}", cpu, zones="c") for cpu in (8, 16)),
)


def refusal(pod: Pod, pool: PoolTemplate, **more: Any) -> Refusal:
    packing = pack(Problem(pods=(pod,), templates=(pool,), **more))
    (found,) = packing.unplaced[pod.uid].refusals
    return found


def exists(key: str, min_values: int) -> Requirement:
    return Requirement.of(key, "Exists", min_values=min_values)


@pytest.mark.parametrize(
    ("pod", "pool", "counts"),
    [
        pytest.param(
            a_pod(cpu="6", nodeSelector={ZONE: "a"}),
            a_pool(types=TYPES),
            (TypesLackLabel(2, "zone a"), TypesTooSmall(4, "cpu", "6", "4")),
            id="another zone, or too small",
        ),
        pytest.param(
            a_pod(cpu="3", nodeSelector={CAPACITY_TYPE: "spot", ZONE: "b"}),
            a_pool(types=(*TYPES, a_type("s-2", 2, spot=0.01), a_type("t-1", 1))),
            (
                TypesLackLabel(2, "zone b"),
                TypesLackLabel(5, "capacity type spot"),
                TypesTooSmall(1, "cpu", "3", "2"),
            ),
            id="a capacity type that few have",
        ),
        pytest.param(
            a_pod(nodeSelector={ARCH: "riscv"}),
            a_pool(
                types=(*TYPES, a_type("arm", arch="arm64")),
                requirements=[Requirement.of(ARCH, "In", ["amd64", "riscv"])],
            ),
            (
                TypesOutsidePool(1, f"{ARCH} In [amd64, riscv]"),
                TypesLackLabel(6, f"{ARCH} In [riscv]"),
            ),
            id="what the pool requires, then what the pod requires",
        ),
        pytest.param(
            a_pod(cpu="3", memory="20Gi"),
            a_pool(types=(a_type("c", 8, "16Gi"), a_type("r", 2, "32Gi"))),
            (TypesTooSmall(1, "cpu", "3", "2"), TypesTooSmall(1, "memory", "20Gi", "16Gi")),
            id="cpu here and memory there",
        ),
        pytest.param(
            a_pod(cpu="3"),
            a_pool(types=(*TYPES, a_type("gone", 16, available=False)), limits={"cpu": "3"}),
            (
                TypesNotOffered(1),
                TypesTooSmall(2, "cpu", "3", "2"),
                TypesOverLimit(4, "cpu"),
            ),
            id="sold out, too small, or more than the limit leaves",
        ),
        pytest.param(
            a_pod(cpu="5"),
            a_pool(types=TYPES, requirements=[exists(INSTANCE_TYPE, 3)]),
            (TypesTooSmall(4, "cpu", "5", "4"), TypesTooFew(2, INSTANCE_TYPE, 3)),
            id="too few of them for minValues",
        ),
        pytest.param(
            a_pod(
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
                        ]
                    }
                }
            ),
            a_pool(types=TYPES),
            (TypesOutOfReach(6),),
            id="all fit, but the topology is in the way",
        ),
    ],
)
def test_each_type_counts_under_the_first_cause(
    pod: Pod, pool: PoolTemplate, counts: tuple[TypeCount, ...]
) -> None:
    found = refusal(pod, pool)
    assert found.counts == counts
    assert sum(one.types for one in counts) == len(pool.instance_types)


def test_a_resource_that_no_type_has_is_named() -> None:
    requests = {"cpu": "1", "nvidia.com/gpu": "1"}
    pod = a_pod(containers=[{"name": "main", "resources": {"requests": requests}}])
    found = refusal(pod, a_pool(types=TYPES))
    assert found.counts == (TypesLackResource(6, "nvidia.com/gpu"),)


def test_a_host_port_of_a_daemon_set_is_named() -> None:
    daemons = (a_daemon(port=9100),)
    found = refusal(a_pod(port=9100), a_pool(types=TYPES), daemons=daemons)
    assert found.counts == (TypesUseHostPort(6, 9100, "TCP"),)


def test_the_sentence_gives_the_counts_of_the_pool() -> None:
    found = refusal(a_pod(cpu="6", nodeSelector={ZONE: "a"}), a_pool(types=TYPES))
    said = "0 of 6 instance types: 2 lack zone a, 4 too small (cpu 6 wanted, largest 4)"
    assert str(found) == f"NodePool general: {said}"


def test_what_a_limit_leaves_is_no_news() -> None:
    """It moves with each node that is launched or removed: the event is not written again."""
    pools = [a_pool(types=TYPES[:2], limits={"cpu": left}) for left in ("0", "1")]
    first, second = (refusal(a_pod(), pool) for pool in pools)
    assert str(first) != str(second)
    assert first.gist() == second.gist()
    none = refusal(a_pod(cpu="3"), pools[0])
    assert none.gist() != first.gist()


@given(
    cpu=st.integers(1, 20),
    limit=st.none() | st.integers(0, 12),
    zone=st.sampled_from(["", "a", "c"]),
    variety=st.none() | st.integers(1, 7),
)
def test_the_counts_add_up(cpu: int, limit: int | None, zone: str, variety: int | None) -> None:
    pool = a_pool(
        types=TYPES,
        limits=None if limit is None else {"cpu": str(limit)},
        requirements=[] if variety is None else [exists(INSTANCE_TYPE, variety)],
    )
    pod = a_pod(cpu=str(cpu), nodeSelector={ZONE: zone} if zone else {})
    packing = pack(Problem(pods=(pod,), templates=(pool,)))
    if pod.uid in packing.unplaced:
        (found,) = packing.unplaced[pod.uid].refusals
        assert sum(one.types for one in found.counts) == len(TYPES)
        assert not any(isinstance(one, TypesOutOfReach) for one in found.counts)
