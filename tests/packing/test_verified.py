"""Every packing is handed to a judge that shares no code with the packer."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, ZONE
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tests.packing.build import NO_SCHEDULE, TOLERATE_BATCH, a_daemon, a_node, a_pod, a_pool, a_type
from tests.packing.judges.verify import verify
from tests.packing.test_properties import problems, thorough

APPS = ("web", "db", "cache")
KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, CAPACITY_TYPE, "rack")
TYPES = tuple(
    a_type(f"{arch[:3]}-{cpu}", cpu, price=cpu * 0.05, spot=cpu * 0.02, arch=arch)
    for arch in ("amd64", "arm64")
    for cpu in (2, 4, 8, 16)
)


@given(problems())
@thorough
def test_every_packing_can_be_bound(problem: Problem) -> None:
    assert verify(problem, pack(problem)) == []


def term(random: Random, key: str, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": random.choice(APPS)}}
    return {"topologyKey": key, "labelSelector": selector, **more}


def rules(random: Random) -> dict[str, Any]:
    """Constraints of every kind, required and preferred."""
    found: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    if random.random() < 0.4:
        found["topologySpreadConstraints"] = [
            term(
                random,
                random.choice(KEYS),
                maxSkew=random.randint(1, 2),
                whenUnsatisfiable=random.choice(
                    ["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]
                ),
            )
            for _ in range(random.randint(1, 2))
        ]
    for kind, chance in (("podAffinity", 0.2), ("podAntiAffinity", 0.3)):
        if random.random() < chance:
            one = term(random, random.choice(KEYS))
            if random.random() < 0.7:
                affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
            else:
                weighed = [{"weight": 5, "podAffinityTerm": one}]
                affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": weighed}
    if affinity:
        found["affinity"] = affinity
    return found


@st.composite
def everything(draw: st.DrawFn) -> Problem:
    random = Random(draw(st.integers(0, 2**48)))
    waiting = []
    for number in range(random.randint(1, 6)):
        fields: dict[str, Any] = {
            "cpu": random.choice(["100m", "500m", "1", "3"]),
            "memory": random.choice(["128Mi", "1Gi", "6Gi"]),
            "labels": {"app": random.choice(APPS)},
            "port": random.choice([0, 0, 0, 0, 80]),
            "priority": random.choice([0, 0, 100]),
            "tolerations": random.choice([[], [TOLERATE_BATCH]]),
            **rules(random),
        }
        waiting += [a_pod(f"{number}-{i}", **fields) for i in range(random.randint(1, 8))]
    nodes = []
    for number in range(random.randint(0, 4)):
        bound = [
            a_pod(
                f"bound-{number}-{i}", "250m", labels={"app": random.choice(APPS)}, **rules(random)
            )
            for i in range(random.randint(0, 2))
        ]
        labels = {
            ZONE: random.choice("abc"),
            ARCH: "amd64",
            CAPACITY_TYPE: random.choice(["spot", "on-demand"]),
            "rack": random.choice(["r1", "r2"]),
            HOSTNAME: f"n-{number}",
        }
        nodes.append(a_node(f"n-{number}", random.choice(["2", "8"]), labels=labels, holding=bound))
    limits = random.choice([None, None, {"cpu": random.choice(["6", "20"])}])
    racks = Requirement.of("rack", "In", ["r1", "r2", "r3"])
    pools = [a_pool("first", TYPES, weight=5, limits=limits, requirements=[racks])]
    if random.random() < 0.5:
        taints = random.choice([[], [NO_SCHEDULE]])
        pools.append(a_pool("second", TYPES[:3], taints=taints, requirements=[racks]))
    return Problem(
        pods=tuple(waiting),
        nodes=tuple(nodes),
        templates=tuple(pools),
        daemons=tuple([a_daemon("agent", "100m", "64Mi")] if random.random() < 0.5 else []),
        preferences=random.random() < 0.5,
    )


@given(everything())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_every_packing_of_every_kind_of_constraint_can_be_bound(problem: Problem) -> None:
    assert verify(problem, pack(problem)) == []
