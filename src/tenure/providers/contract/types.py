"""The instance types of a cloud: sizes, labels and offerings."""

from __future__ import annotations

from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE
from tenure.model.values.quantity import fits
from tenure.ports.cloud import Cloud
from tenure.providers.contract.bench import Bench, types_of, with_cloud


class TypesContract:
    """The instance types of a cloud."""

    @with_cloud
    async def test_it_serves_the_class_that_it_is_tried_with(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        assert cloud.name
        ref = bench.class_ref
        assert (ref.group, ref.kind) in {kind.group_kind for kind in cloud.node_classes}
        assert not any(kind.namespaced for kind in cloud.node_classes)

    @with_cloud
    async def test_there_is_something_to_buy_and_every_type_has_a_name_of_its_own(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        types = await types_of(bench, cloud)
        assert types
        assert len({kind.name for kind in types}) == len(types)
        assert any(offering.available for kind in types for offering in kind.offerings)

    @with_cloud
    async def test_asked_twice_it_says_the_same(self, bench: Bench, cloud: Cloud) -> None:
        assert await types_of(bench, cloud) == await types_of(bench, cloud)

    @with_cloud
    async def test_pods_are_never_promised_more_than_there_is(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        for kind in await types_of(bench, cloud):
            assert fits(kind.allocatable, kind.capacity), kind.name
            for resource in ("cpu", "memory", "pods"):
                assert kind.allocatable.get(resource, 0) > 0, f"{kind.name} has no {resource}"

    @with_cloud
    async def test_each_zone_and_capacity_type_of_a_type_is_offered_once(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        for kind in await types_of(bench, cloud):
            places = [(offering.zone, offering.capacity_type) for offering in kind.offerings]
            assert places, f"{kind.name} cannot be bought"
            assert len(set(places)) == len(places), kind.name
            assert all(offering.price >= 0 for offering in kind.offerings), kind.name

    @with_cloud
    async def test_a_type_says_its_name_and_just_the_zones_and_capacity_types_it_is_sold_in(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Planning uses these labels; an offering that they leave out is never launched."""
        for kind in await types_of(bench, cloud):
            said = kind.requirements
            assert said[INSTANCE_TYPE].values == (kind.name,)
            assert said[ARCH].values, kind.name
            assert said[OS].values, kind.name
            assert set(said[ZONE].values) == {each.zone for each in kind.offerings}
            terms = {each.capacity_type for each in kind.offerings}
            assert set(said[CAPACITY_TYPE].values) == terms
