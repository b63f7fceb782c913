"""What must hold for every problem."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from tenure.model.api.pod import Pod
from tenure.model.api.taints import untolerated
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement, Requirements, pod_alternatives
from tenure.model.values.quantity import UNIT, add, fits, total
from tenure.packing.demand.problem import NODES, PoolTemplate, Problem
from tenure.packing.demand.requests import host_ports, pod_requests, ports_conflict
from tenure.packing.pack import pack
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.build import (
    NO_SCHEDULE,
    TOLERATE_BATCH,
    ZONES,
    a_daemon,
    a_node,
    a_pod,
    a_pool,
    a_type,
)

TYPES = [
    *(a_type(f"m-{cpu:02d}", cpu, spot=cpu * 0.02) for cpu in (2, 4, 8, 16)),
    a_type("c-08", 8, "16Gi", price=0.3),
    a_type("r-04", 4, "32Gi", price=0.3, zones=("a",)),
    a_type("arm-08", 8, price=0.25, spot=0.1, arch="arm64", zones=("b", "c")),
    a_type("few-16", 16, pods=3),
]
SELECTORS: list[dict[str, str]] = [
    {},
    {ZONE: "a"},
    {ARCH: "arm64"},
    {CAPACITY_TYPE: "on-demand"},
    {"team": "red"},
]
HOSTNAME_RULES: list[dict[str, Any]] = [
    {},
    {
        "topologySpreadConstraints": [
            {
                "topologyKey": HOSTNAME,
                "maxSkew": 2,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    },
    {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        }
    },
]
ZONE_RULE: dict[str, Any] = {
    "topologySpreadConstraints": [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Pod, ...]:
    made: list[Pod] = []
    for number in range(draw(st.integers(1, 5))):
        fields: dict[str, Any] = {
            "cpu": draw(st.sampled_from(["0", "500m", "1", "3", "7", "40"])),
            "memory": draw(st.sampled_from(["0", "1Gi", "6Gi", "20Gi"])),
            "labels": {"app": draw(st.sampled_from(["web", "db"]))},
            "nodeSelector": draw(st.sampled_from(SELECTORS)),
            "port": draw(st.sampled_from([0, 0, 0, 80])),
            "tolerations": draw(st.sampled_from([[], [TOLERATE_BATCH]])),
            **draw(st.sampled_from([*HOSTNAME_RULES, {}, ZONE_RULE])),
        }
        count = draw(st.integers(1, 9))
        made += [a_pod(f"{number}-{i}", **fields) for i in range(count)]
    return tuple(made)


nodes = st.builds(
    a_node,
    name=st.sampled_from([f"n-{i}" for i in range(8)]),
    cpu=st.sampled_from(["1", "4", "8"]),
    memory=st.sampled_from(["2Gi", "16Gi", "64Gi"]),
    labels=st.builds(
        lambda zone, arch, team: {ZONE: zone, ARCH: arch, CAPACITY_TYPE: "spot", **team},
        st.sampled_from(ZONES),
        st.sampled_from(["amd64", "arm64"]),
        st.sampled_from([{}, {"team": "red"}]),
    ),
    taints=st.sampled_from([(), (NO_SCHEDULE,)]),
    holding=st.sampled_from([(), (a_pod("bound", "500m", labels={"app": "web"}, port=80),)]),
    initialized=st.booleans(),
)

limits = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "5", "20", "64"]),
        "memory": st.sampled_from(["10Gi", "100Gi"]),
        NODES: st.sampled_from(["0", "1", "3"]),
    },
)


def pools(with_limits: bool) -> st.SearchStrategy[PoolTemplate]:
    return st.builds(
        a_pool,
        pool=st.sampled_from(["blue", "green", "red"]),
        types=st.lists(st.sampled_from(TYPES), unique_by=lambda t: t.name, max_size=len(TYPES)),
        weight=st.integers(0, 2),
        requirements=st.sampled_from(
            [
                (),
                (Requirement.of(ZONE, "In", ["a", "b"]),),
                (Requirement.of("team", "In", ["red", "blue"]),),
                (Requirement.of(INSTANCE_TYPE, "Exists", min_values=2),),
            ]
        ),
        taints=st.sampled_from([(), (NO_SCHEDULE,)]),
        limits=limits if with_limits else st.none(),
    )


def problems(*, with_limits: bool = True) -> st.SearchStrategy[Problem]:
    daemons = st.lists(
        st.sampled_from(
            [
                a_daemon("everywhere", "200m", "256Mi"),
                a_daemon("arm", "1", nodeSelector={ARCH: "arm64"}),
                a_daemon("port", "0", port=80, nodeSelector={ARCH: "arm64"}),
            ]
        ),
        unique_by=lambda daemon: daemon.name,
    )
    offerings = [(t.name, o.zone, o.capacity_type) for t in TYPES for o in t.offerings]
    return st.builds(
        _problem,
        pods=workloads(),
        nodes=st.lists(nodes, max_size=4, unique_by=lambda node: node.name),
        templates=st.lists(pools(with_limits), max_size=3, unique_by=lambda pool: pool.pool),
        daemons=daemons,
        dry=st.frozensets(st.sampled_from(offerings), max_size=6),
        avoid=st.sampled_from([frozenset(), frozenset(), frozenset({"a"}), frozenset(ZONES)]),
    )


def _problem(**parts: Any) -> Problem:
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in parts.items()}
    return Problem(**given)


thorough = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@given(problems())
@thorough
def test_every_pod_ends_up_in_exactly_one_place(problem: Problem) -> None:
    packing = pack(problem)
    answered = [*packing.placed, *packing.unplaced, *(u for c in packing.claims for u in c.pods)]
    assert sorted(answered) == sorted(pod.uid for pod in problem.pods)
    assert all(claim.pods for claim in packing.claims)
    assert all(unplaced.facts for unplaced in packing.unplaced.values())


@given(problems())
@thorough
def test_no_node_is_overcommitted(problem: Problem) -> None:
    for name, pods in by_node(problem, pack(problem)).items():
        node = next(node for node in problem.nodes if node.name == name)
        asked = total(pod_requests(pod) for pod in pods)
        assert fits(asked, node.available), f"{name} cannot hold {asked}"


@given(problems())
@thorough
def test_every_listed_type_holds_the_claim_and_the_first_is_the_cheapest(problem: Problem) -> None:
    for claim in pack(problem).claims:
        types = listed(problem, claim)
        pods = [pod for pod in problem.pods if pod.uid in claim.pods]
        assert fits(total(pod_requests(pod) for pod in pods), claim.requests)
        for instance_type in types:
            assert fits(claim.requests, instance_type.allocatable), instance_type.name
        prices = [cheapest(problem, claim, instance_type) for instance_type in types]
        assert prices == sorted(prices)
        assert (claim.price, claim.instance_type) == (prices[0], types[0].name)


@given(problems())
@thorough
def test_taints_are_tolerated_and_requirements_compatible(problem: Problem) -> None:
    packing = pack(problem)
    for name, pods in by_node(problem, packing).items():
        node = next(node for node in problem.nodes if node.name == name)
        labels = Requirements.from_labels(node.labels)
        for pod in pods:
            assert untolerated(node.taints, pod.spec.tolerations) is None
            assert any(labels.is_compatible(wanted) for wanted in pod_alternatives(pod))
    for claim in packing.claims:
        template = template_of(problem, claim)
        certain = claim.requirements.add(Requirement.label(ZONE, claim.zone))
        for pod in problem.pods:
            if pod.uid in claim.pods:
                assert untolerated(template.taints, pod.spec.tolerations) is None
                assert any(certain.is_compatible(w) for w in pod_alternatives(pod))
        assert template.requirements.is_compatible(claim.requirements, claim.requirements)
        assert not any(r.impossible for r in claim.requirements.values())


@given(problems())
@thorough
def test_limits_hold_whichever_listed_type_is_launched(problem: Problem) -> None:
    spent: dict[str, dict[str, int]] = {}
    for claim in pack(problem).claims:
        types = listed(problem, claim)
        names = template_of(problem, claim).remaining or {}
        worst = {name: max(t.capacity.get(name, 0) for t in types) for name in names}
        worst |= {NODES: UNIT} if NODES in names else {}
        spent[claim.pool] = add(spent.get(claim.pool, {}), worst)
    for template in problem.templates:
        for name, left in (template.remaining or {}).items():
            assert spent.get(template.pool, {}).get(name, 0) <= max(left, 0)


@given(problems())
@thorough
def test_min_values_leave_a_choice(problem: Problem) -> None:
    for claim in pack(problem).claims:
        wanted = claim.requirements[INSTANCE_TYPE].min_values
        assert wanted is None or len(claim.instance_types) >= wanted


@given(problems())
@thorough
def test_host_ports_and_hostname_rules_hold_on_every_node(problem: Problem) -> None:
    for pods in groups(problem, pack(problem)):
        for position, pod in enumerate(pods):
            for other in pods[position + 1 :]:
                assert ports_conflict(host_ports(pod.spec), host_ports(other.spec)) is None
        web = sum(pod.labels.get("app") == "web" for pod in pods)
        for pod in pods:
            if pod.spec.affinity and pod.uid != "bound":
                assert web - (pod.labels["app"] == "web") == 0, "a pod sits beside one it avoids"
            if any(c.topology_key == HOSTNAME for c in pod.spec.topology_spread_constraints):
                # Who has no such rule may still crowd a node; who has one never makes it worse.
                ruled = [
                    p
                    for p in pods
                    if p.spec.topology_spread_constraints == pod.spec.topology_spread_constraints
                ]
                assert sum(p.labels.get("app") == "web" for p in ruled) <= 2


@given(problems(), st.randoms(use_true_random=False))
@thorough
def test_the_order_of_the_input_does_not_matter(problem: Problem, random: Random) -> None:
    def shuffled(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(random.sample(parts, len(parts)))

    other = Problem(
        pods=shuffled(problem.pods),
        nodes=shuffled(problem.nodes),
        templates=tuple(
            msgspec.structs.replace(t, instance_types=shuffled(t.instance_types))
            for t in shuffled(problem.templates)
        ),
        daemons=shuffled(problem.daemons),
        dry=problem.dry,
    )
    assert pack(other) == pack(problem)


@given(problems(with_limits=False))
@thorough
def test_nodes_never_cost_a_pod_its_place(problem: Problem) -> None:
    """Every pod that a pool without limits takes gets a node, whatever nodes there are besides.

    With limits this cannot be promised: any order of service can come out worse with more room.
    A node in a zone where nothing is sold holds a spread over zones back, so these stay out.
    """
    free = tuple(p for p in problem.pods if "zone" not in str(p.spec.topology_spread_constraints))
    problem = msgspec.structs.replace(problem, pods=free)
    without = msgspec.structs.replace(problem, nodes=())
    assert set(pack(problem).unplaced) <= set(pack(without).unplaced)


def by_node(problem: Problem, packing: Packing) -> dict[str, list[Pod]]:
    pods: dict[str, list[Pod]] = {}
    for pod in problem.pods:
        if pod.uid in packing.placed:
            pods.setdefault(packing.placed[pod.uid], []).append(pod)
    return pods


def groups(problem: Problem, packing: Packing) -> list[list[Pod]]:
    """The pods of each node, with those bound there before, and of each claim."""
    placed = by_node(problem, packing)
    together = [
        [*node.pods, *placed.get(node.name, ())] for node in problem.nodes if node.name in placed
    ]
    return together + [[p for p in problem.pods if p.uid in c.pods] for c in packing.claims]


def template_of(problem: Problem, claim: PlannedClaim) -> PoolTemplate:
    return next(template for template in problem.templates if template.pool == claim.pool)


def listed(problem: Problem, claim: PlannedClaim) -> list[InstanceType]:
    types = {t.name: t for t in template_of(problem, claim).instance_types}
    assert Counter(claim.instance_types).most_common(1)[0][1] == 1
    return [types[name] for name in claim.instance_types]


def cheapest(problem: Problem, claim: PlannedClaim, instance_type: InstanceType) -> int:
    return min(
        offering.price
        for offering in instance_type.offerings
        if claim.requirements.allowed(ZONE).has(offering.zone)
        and claim.requirements.allowed(CAPACITY_TYPE).has(offering.capacity_type)
        and (instance_type.name, offering.zone, offering.capacity_type) not in problem.dry
    )


@given(problems(with_limits=False))
@thorough
def test_avoiding_a_zone_leaves_no_pod_pending_and_launches_only_what_is_needed(
    problem: Problem,
) -> None:
    """A pod that is spread, or that shares a node, may be there for another's sake."""
    alone = [
        p for p in problem.pods if not p.spec.topology_spread_constraints and not p.spec.affinity
    ]
    problem = msgspec.structs.replace(problem, pods=tuple(alone), nodes=())
    free = msgspec.structs.replace(problem, avoid=frozenset())
    packing = pack(problem)
    assert packing.unplaced.keys() == pack(free).unplaced.keys()
    for claim in packing.claims:
        if claim.zone in problem.avoid:
            closed = frozenset(
                (kind.name, offering.zone, offering.capacity_type)
                for template in problem.templates
                for kind in template.instance_types
                for offering in kind.offerings
                if offering.zone in problem.avoid
            )
            there = msgspec.structs.replace(free, dry=problem.dry | closed)
            assert set(claim.pods) & pack(there).unplaced.keys()
