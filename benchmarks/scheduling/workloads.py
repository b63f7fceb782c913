"""Pods and instance types to measure with: Karpenter's benchmark, and what it leaves out.

``diverse`` and ``preferences`` follow Karpenter's ``scheduling_benchmark_test.go``: five kinds of
pods in equal parts, 30 sizes, labels and selectors drawn independently. The rest are what people
run: equal Deployments, spreads, small Deployments by the thousand, pods of 10,000 sizes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

import tenure.sim
from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, OS, ZONE
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType, Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT, parse_resources
from tenure.packing.demand.problem import PoolTemplate, Problem

MILLICORES: Final = (100, 250, 500, 1000, 1500)
MEBIBYTES: Final = (100, 256, 512, 1024, 2048, 4096)
LETTERS: Final = "abcdefg"
ZONES: Final = ("zone-1", "zone-2", "zone-3")
PRICE_BOOK: Final = Path(tenure.sim.__file__).parent / "data" / "instance-types.csv"
Selector = Mapping[str, str]


def a_pod(number: int, cpu: int, memory: int, labels: Selector, **spec: Any) -> Pod:
    resources = {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}
    metadata = {"name": f"p{number}", "namespace": "default", "uid": f"{number:08d}"}
    return msgspec.convert(
        {
            "metadata": {**metadata, "labels": labels},
            "spec": {"containers": [{"name": "main", "resources": resources}], **spec},
        },
        Pod,
    )


def spread(key: str, labels: Selector) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return {"topologySpreadConstraints": [constraint]}


def term(key: str, labels: Selector) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def required(kind: str, key: str, labels: Selector) -> dict[str, Any]:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, labels)]}
    return {"affinity": {kind: terms}}


def diverse(count: int, seed: int = 42) -> tuple[Pod, ...]:
    """A fifth each: generic, zone spread, hostname spread, zone affinity, hostname anti-affinity."""
    random = Random(seed)

    def label(key: str = "my-label") -> dict[str, str]:
        return {key: random.choice(LETTERS)}

    def one(number: int, labels: Selector, **spec: Any) -> Pod:
        return a_pod(number, random.choice(MILLICORES), random.choice(MEBIBYTES), labels, **spec)

    def affine(number: int) -> Pod:
        labels = label("my-affininity")
        return one(number, labels, **required("podAffinity", ZONE, labels))

    nginx = {"app": "nginx"}
    makers: tuple[Callable[[int], Pod], ...] = (
        lambda n: one(n, label()),
        lambda n: one(n, label(), **spread(ZONE, label())),
        lambda n: one(n, label(), **spread(HOSTNAME, label())),
        affine,
        lambda n: one(n, nginx, **required("podAntiAffinity", HOSTNAME, nginx)),
    )
    made = [make(number) for make in makers for number in range(count // len(makers))]
    made += [makers[0](0) for _ in range(count - len(made))]
    return _numbered(made)


def preferences(count: int = 4000) -> tuple[Pod, ...]:
    """One size; a zone that can be had, a zone of its own that cannot, a node of its own that can."""
    nginx = {"app": "nginx"}
    zone_1 = {"key": ZONE, "operator": "In", "values": ["zone-1"]}
    node = {"weight": 1, "preference": {"matchExpressions": [zone_1]}}
    apart = [
        {"weight": 10, "podAffinityTerm": term(ZONE, nginx)},
        {"weight": 1, "podAffinityTerm": term(HOSTNAME, nginx)},
    ]
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [node]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": apart},
    }
    return tuple(a_pod(n, 500, 512, nginx, affinity=affinity) for n in range(count))


def easy(count: int, classes: int = 200, seed: int = 7) -> tuple[Pod, ...]:
    """Deployments of very different sizes, without constraints."""
    random = Random(seed)
    sizes = [(random.choice(MILLICORES), random.choice(MEBIBYTES)) for _ in range(classes)]
    weights = [random.paretovariate(1.2) for _ in sizes]
    chosen = random.choices(range(classes), weights, k=count)
    return tuple(a_pod(n, *sizes[i], {"app": f"app-{i}"}) for n, i in enumerate(chosen))


def _deployments(count: int, classes: int, rule: Callable[[Selector], dict[str, Any]]) -> list[Pod]:
    random = Random(classes)
    sizes = [(random.choice(MILLICORES), random.choice(MEBIBYTES)) for _ in range(classes)]
    labels = [{"app": f"app-{i}"} for i in range(classes)]
    return [
        a_pod(n, *sizes[n % classes], labels[n % classes], **rule(labels[n % classes]))
        for n in range(count)
    ]


def zone_spread(count: int) -> tuple[Pod, ...]:
    return tuple(_deployments(count, 40, lambda labels: spread(ZONE, labels)))


def hostname_spread(count: int) -> tuple[Pod, ...]:
    return tuple(_deployments(count, 40, lambda labels: spread(HOSTNAME, labels)))


def anti_affinity(count: int) -> tuple[Pod, ...]:
    apart = lambda labels: required("podAntiAffinity", HOSTNAME, labels)  # noqa: E731
    return tuple(_deployments(count, 40, apart))


def small_deployments(count: int) -> tuple[Pod, ...]:
    """Five replicas each, spread over zones."""
    return tuple(_deployments(count, max(1, count // 5), lambda labels: spread(ZONE, labels)))


def all_sizes(count: int, seed: int = 3) -> tuple[Pod, ...]:
    random = Random(seed)
    return tuple(
        a_pod(n, random.randint(50, 4000), random.randint(64, 8192), {}) for n in range(count)
    )


def _numbered(pods: list[Pod]) -> tuple[Pod, ...]:
    def renamed(pod: Pod, number: int) -> Pod:
        metadata = msgspec.structs.replace(pod.metadata, name=f"p{number}", uid=f"{number:08d}")
        return msgspec.structs.replace(pod, metadata=metadata)

    return tuple(renamed(pod, number) for number, pod in enumerate(pods))


# -- instance types --------------------------------------------------------------------------


def karpenters_types(count: int = 400) -> tuple[InstanceType, ...]:
    """The i-th has i + 1 cpus; a price that is the same in every offering."""
    places = [("zone-1", "spot"), ("zone-2", "spot"), *((zone, "on-demand") for zone in ZONES)]
    return tuple(_karpenters_type(size, places) for size in range(1, count + 1))


def _karpenters_type(size: int, places: list[tuple[str, str]]) -> InstanceType:
    capacity = parse_resources({"cpu": size, "memory": f"{2 * size}Gi", "pods": 10 * size})
    reserved = parse_resources({"cpu": "100m", "memory": "10Mi"})
    price = 0.1 * size + 0.1 * capacity["memory"] / UNIT / 1e9
    return _a_type(
        f"fake-it-{size - 1}",
        "amd64",
        capacity,
        {name: nano - reserved.get(name, 0) for name, nano in capacity.items()},
        {place: round(price * MICRO_DOLLARS) for place in places},
    )


def price_book(cpu_max: int = 64, seed: int = 11) -> tuple[InstanceType, ...]:
    """A public cloud's list prices in three zones; spot at 30 to 70 percent, by type and zone."""
    return tuple(_priced(row, seed) for row in _rows() if int(row["cpu"]) <= cpu_max)


def _rows() -> Iterator[dict[str, str]]:
    with PRICE_BOOK.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _priced(row: Mapping[str, str], seed: int) -> InstanceType:
    random = Random(f"{seed} {row['name']}")
    dollars = float(row["on_demand_usd_per_hour"])
    capacity = parse_resources({name: row[name] for name in ("cpu", "memory", "pods")})
    reserved = parse_resources({"cpu": "100m", "memory": "100Mi"})
    prices = {}
    for zone in ZONES:
        prices[zone, "on-demand"] = round(dollars * MICRO_DOLLARS)
        prices[zone, "spot"] = round(dollars * random.uniform(0.3, 0.7) * MICRO_DOLLARS)
    allocatable = {name: nano - reserved.get(name, 0) for name, nano in capacity.items()}
    return _a_type(row["name"], row["arch"], capacity, allocatable, prices)


def _a_type(
    name: str,
    arch: str,
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    prices: Mapping[tuple[str, str], int],
) -> InstanceType:
    labels = Requirements.from_labels({INSTANCE_TYPE: name, ARCH: arch, OS: "linux"})
    zones, terms = (sorted({place[i] for place in prices}) for i in (0, 1))
    return InstanceType(
        name=name,
        requirements=labels.add(
            Requirement.of(ZONE, "In", zones), Requirement.of(CAPACITY_TYPE, "In", terms)
        ),
        capacity=capacity,
        allocatable=allocatable,
        offerings=tuple(
            Offering(zone=zone, capacity_type=term_, price=price)
            for (zone, term_), price in prices.items()
        ),
    )


def a_problem(pods: tuple[Pod, ...], types: tuple[InstanceType, ...], **more: Any) -> Problem:
    requirements = Requirements.from_labels({NODEPOOL: "general"})
    template = PoolTemplate(pool="general", requirements=requirements, instance_types=types)
    return Problem(pods=pods, templates=(template,), **more)
