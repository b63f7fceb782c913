"""How many more volumes a node can attach."""

from __future__ import annotations

import msgspec

from tenure.core.volumes.limits import with_attachable
from tenure.core.volumes.storage import storage_in
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.pod import Pod
from tenure.model.snapshot.observations import Observations
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.volumes import VolumeNeeds, attachable
from tenure.packing.facts import TooLarge, Why
from tenure.packing.pack import pack
from tests.core.volumes.build import (
    DRIVER,
    a_csi_node,
    a_volume,
    a_volume_claim,
    an_attachment,
    using,
)
from tests.packing.build import a_node, a_pool, a_type, pods
from tests.snapshots import snapshot_with

RESOURCE = attachable(DRIVER)
SMALL = msgspec.structs.replace(a_type("small", 4), volume_limits={DRIVER: 3})
KNOWN = Observations(instance_types={"KWOKNodeClass/default": (SMALL,)})


def left(
    *objects: ApiObject, on: tuple[Pod, ...] = (), observations: Observations | None = None
) -> int | None:
    """How many more; None where there is no limit."""
    node = a_node("node-1", labels={INSTANCE_TYPE: "small"}, holding=on)
    storage = storage_in(snapshot_with(*objects, observations=observations))
    (found,) = with_attachable([node], [DRIVER], storage)
    amount = found.available.get(RESOURCE)
    return None if amount is None else amount // UNIT


CLAIM, VOLUME = a_volume_claim(volume="pv-1"), a_volume()


def test_the_csi_node_says_how_many() -> None:
    assert left(a_csi_node("node-1", 25)) == 25


def test_a_driver_that_is_published_without_a_count_has_no_limit() -> None:
    assert left(a_csi_node("node-1", None), observations=KNOWN) is None


def test_until_the_driver_is_published_the_instance_type_says_how_many() -> None:
    other = a_csi_node("node-1", 7, driver="other.example.com")
    assert left(other, observations=KNOWN) == 3


def test_where_none_is_known_there_is_no_limit() -> None:
    assert left() is None


def test_a_volume_counts_once_however_many_pods_use_it() -> None:
    users = (using("data", uid="p1"), using("data", uid="p2"))
    attached = an_attachment("pv-1", "node-1")
    assert left(a_csi_node("node-1", 5), CLAIM, VOLUME, attached, on=users) == 4


def test_a_volume_that_is_still_attached_counts() -> None:
    attached = an_attachment("pv-9", "node-1")
    assert left(a_csi_node("node-1", 5), CLAIM, VOLUME, attached) == 4
    elsewhere = an_attachment("pv-8", "node-2")
    assert left(a_csi_node("node-1", 5), CLAIM, VOLUME, elsewhere) == 5


def test_volumes_of_another_driver_do_not_count() -> None:
    other = a_volume(driver="other.example.com")
    assert left(a_csi_node("node-1", 5), CLAIM, other, on=(using("data"),)) == 5


def test_no_more_is_left_than_nothing() -> None:
    attached = [an_attachment(f"pv-{n}", "node-1") for n in range(4)]
    assert left(a_csi_node("node-1", 3), CLAIM, VOLUME, *attached) == 0


def needing(count: int, volumes: int) -> Problem:
    waiting = pods(count, cpu="100m", memory="10Mi")
    needs = VolumeNeeds(attached=((RESOURCE, volumes * UNIT),))
    return Problem(
        pods=waiting, templates=(a_pool(types=[SMALL]),), volumes={p.uid: needs for p in waiting}
    )


def test_new_nodes_get_no_more_volumes_than_their_type_can_attach() -> None:
    packing = pack(needing(7, volumes=1))
    assert sorted(len(claim.pods) for claim in packing.claims) == [1, 3, 3]
    assert all(RESOURCE not in claim.requests for claim in packing.claims)


def test_a_pod_with_more_volumes_than_any_type_attaches_is_told_so() -> None:
    (unplaced,) = pack(needing(1, volumes=4)).unplaced.values()
    assert unplaced.why is Why.TOO_LARGE
    (refusal,) = unplaced.refusals
    assert isinstance(refusal.cause, TooLarge)
    assert refusal.cause.resource == RESOURCE


def test_a_node_that_can_attach_no_more_is_passed_over() -> None:
    storage = storage_in(snapshot_with(a_csi_node("full", 0), a_csi_node("open", 1)))
    nodes = with_attachable([a_node("full"), a_node("open")], [DRIVER], storage)
    problem = msgspec.structs.replace(needing(2, volumes=1), nodes=nodes)
    packing = pack(problem)
    assert sorted(packing.placed.values()) == ["open"]
    assert len(packing.claims) == 1
