"""The built-in instance types are Karpenter's: names, sizes, labels, prices."""

from __future__ import annotations

import pytest

from tenure.model.cloud.market import Market
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import format_resources, parse_resources
from tenure.providers.kwok.catalogue import ZONES, built_in_types, family_of, size_of

BY_NAME = {kind.name: kind for kind in built_in_types()}


def test_there_are_twelve_sizes_of_three_families_for_each_system_and_architecture() -> None:
    assert len(BY_NAME) == 12 * 3 * 2 * 2
    assert {"c-1x-amd64-linux", "s-48x-arm64-windows", "m-256x-arm64-linux"} <= BY_NAME.keys()
    assert all(len(kind.offerings) == 2 * len(ZONES) == 8 for kind in BY_NAME.values())


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("c-1x-amd64-linux", {"cpu": "1", "memory": "2Gi", "pods": "16"}),
        ("s-4x-arm64-windows", {"cpu": "4", "memory": "16Gi", "pods": "64"}),
        ("m-256x-amd64-linux", {"cpu": "256", "memory": "2Ti", "pods": "1024"}),
    ],
    ids=["the smallest", "a standard one", "the largest, which has no more than 1024 pods"],
)
def test_a_type_has_as_much_as_its_name_says(name: str, capacity: dict[str, str]) -> None:
    has = {**parse_resources(capacity), "ephemeral-storage": parse_resources({"d": "20Gi"})["d"]}
    assert BY_NAME[name].capacity == has


def test_the_kubelet_keeps_a_tenth_of_a_cpu_and_ten_mebibytes() -> None:
    assert format_resources(BY_NAME["c-1x-amd64-linux"].allocatable) == {
        "cpu": "900m",
        "memory": "2038Mi",
        "pods": "16",
        "ephemeral-storage": "20Gi",
    }


@pytest.mark.parametrize(
    ("name", "on_demand", "spot"),
    [
        ("c-1x-amd64-linux", 27_147, 19_003),
        ("s-1x-arm64-linux", 29_295, 20_506),
        ("m-1x-amd64-windows", 33_590, 23_513),
        ("m-256x-amd64-linux", 8_599_023, 6_019_316),
    ],
)
def test_a_price_is_the_sum_of_its_cpus_and_its_memory(
    name: str, on_demand: int, spot: int
) -> None:
    prices = {(each.capacity_type, each.price) for each in BY_NAME[name].offerings}
    assert prices == {("on-demand", on_demand), ("spot", spot)}


def test_labels_are_those_that_karpenters_users_select_by() -> None:
    said = BY_NAME["m-4x-arm64-linux"].requirements
    assert said.labels() == {
        "node.kubernetes.io/instance-type": "m-4x-arm64-linux",
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "linux",
        "karpenter.kwok.sh/instance-size": "4",
        "karpenter.kwok.sh/instance-family": "m",
        "karpenter.kwok.sh/instance-cpu": "4",
        "karpenter.kwok.sh/instance-memory": "32Gi",
    }
    assert said["topology.kubernetes.io/zone"].values == ZONES
    assert said["karpenter.sh/capacity-type"].values == ("on-demand", "spot")


@pytest.mark.parametrize(
    ("name", "family", "size"),
    [
        ("m5.2xlarge", "m5", "2xlarge"),
        ("n2-standard-8", "n2", "8"),
        ("D8as", "D", "8"),
        ("c-8x-amd64-linux", "c", "8"),
    ],
    ids=["with a dot", "with dashes", "without either", "our own"],
)
def test_family_and_size_are_read_from_names_of_many_clouds(
    name: str, family: str, size: str
) -> None:
    assert (family_of(name), size_of(name, "8")) == (family, size)


def test_where_many_cost_the_same_the_first_by_name_is_bought() -> None:
    market = Market(built_in_types())
    offer = next(market.suitable(Requirements(), {}))
    assert offer.key == ("c-1x-amd64-linux", "test-zone-a", "spot")
    windows = Requirements.of([Requirement.label("kubernetes.io/os", "windows")])
    assert next(market.suitable(windows, {})).key[0] == "c-1x-amd64-windows"
