"""What the embedded cloud sells."""

from __future__ import annotations

import pytest

from tenure.errors import SpecError
from tenure.model.api.names import ARCH, CAPACITY_SPOT, INSTANCE_TYPE, ZONE
from tenure.model.values.quantity import format_resources
from tenure.providers.kwok.labels import INSTANCE_FAMILY, INSTANCE_MEMORY
from tenure.sim.cloud.catalogue import (
    GPU,
    instance_types,
    price_list,
    select,
)


def test_the_short_catalogue_is_a_part_of_the_long_one_at_the_same_prices() -> None:
    short = instance_types(select("common"), seed=7)
    by_name = {kind.name: kind for kind in instance_types(select("all"), seed=7)}
    assert 50 <= len(short) <= 70
    assert all(by_name[kind.name] == kind for kind in short)


def test_every_type_leaves_room_for_pods() -> None:
    assert len(price_list()) > 800
    for kind in instance_types(select("all"), seed=1):
        assert all(0 < kind.allocatable[name] <= kind.capacity[name] for name in kind.capacity)


def test_spot_costs_30_to_70_percent_and_differs_between_zones_and_seeds() -> None:
    types = instance_types(select("common"), seed=1)
    for kind in types:
        list_price = kind.offerings[0].price
        spot = [o.price for o in kind.offerings if o.capacity_type == CAPACITY_SPOT]
        assert all(30 <= round(price * 100 / list_price) <= 70 for price in spot)
    assert any(len({o.price for o in kind.offerings}) == 4 for kind in types)
    assert types != instance_types(select("common"), seed=2)


def test_a_type_says_what_its_nodes_will_be_labelled_with() -> None:
    (kind,) = instance_types(select("m7g.xlarge"), seed=1, zones=("zone-a", "zone-b"))
    assert (
        kind.requirements.labels()
        | {
            INSTANCE_TYPE: "m7g.xlarge",
            ARCH: "arm64",
            INSTANCE_FAMILY: "m7g",
            INSTANCE_MEMORY: "16Gi",
        }
        == kind.requirements.labels()
    )
    assert kind.requirements[ZONE].listed == {"zone-a", "zone-b"}
    assert format_resources(kind.allocatable) == {
        "cpu": "3920m",
        "memory": "13624Mi",
        "ephemeral-storage": "20Gi",
        "pods": "64",
    }


def test_gpus_are_an_extended_resource() -> None:
    types = instance_types(select(["g5.xlarge", "g5.12xlarge", "m7i.large"]), seed=1)
    gpus = {kind.name: format_resources(kind.capacity).get(GPU) for kind in types}
    assert gpus == {"g5.12xlarge": "4", "g5.xlarge": "1", "m7i.large": None}


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(SpecError, match=r"catalogue: got 'm7i\.lagre', expected .*m7i\.large"):
        select(["m7i.large", "m7i.lagre"])
