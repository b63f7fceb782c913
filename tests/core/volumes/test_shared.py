"""A volume that pods share is attached once to a node, and counts once against its limit."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import pytest

from tenure.core.volumes.limits import drivers_asked, with_attachable
from tenure.core.volumes.needs import volume_needs
from tenure.core.volumes.shared import keeping_free, shared_claims
from tenure.core.volumes.storage import Storage, storage_in
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.pod import Pod
from tenure.model.snapshot.observations import Observations
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.core.volumes.build import (
    DRIVER,
    a_csi_node,
    a_storage_class,
    a_volume,
    a_volume_claim,
    an_attachment,
    using,
)
from tests.packing.build import a_node, a_pool, a_type
from tests.snapshots import snapshot_with

MANY = ("ReadWriteMany",)
SMALL = {"cpu": "10m", "memory": "10Mi"}


def storage_with(*objects: ApiObject, limit: int | None = 5) -> Storage:
    kind = a_type("large", 16)
    if limit is not None:
        kind = msgspec.structs.replace(kind, volume_limits={DRIVER: limit})
    known = Observations(instance_types={"KWOKNodeClass/default": (kind,)})
    return storage_in(snapshot_with(a_storage_class(), *objects, observations=known))


def packed(
    pods: Sequence[Pod], storage: Storage, nodes: Sequence[ExistingNode] = (), limit: int = 5
) -> Packing:
    """As provisioning asks."""
    shared = shared_claims(pods, storage)
    needs = volume_needs(pods, storage, shared)
    kind = msgspec.structs.replace(a_type("large", 16), volume_limits={DRIVER: limit})
    return pack(
        Problem(
            pods=tuple(pods),
            nodes=with_attachable(nodes, drivers_asked(needs.values()), storage, shared),
            templates=keeping_free([a_pool(types=[kind])], shared),
            volumes=needs,
        )
    )


@pytest.mark.parametrize(("modes", "nodes"), [(MANY, 1), (("ReadWriteOnce",), 4)])
def test_pods_with_one_volume_fit_on_one_node(modes: Sequence[str], nodes: int) -> None:
    """Of a volume that one node may use, each pod counts as before."""
    pods = [using("data", uid=f"p{n}", **SMALL) for n in range(20)]
    storage = storage_with(a_volume_claim(modes=modes))
    assert len(packed(pods, storage).claims) == nodes


def test_one_that_is_attached_already_takes_no_place() -> None:
    """The node is full, and its pods use the volume, too."""
    claim = a_volume_claim(modes=MANY, volume="pv-1")
    attached = [an_attachment(f"pv-{n}", "node-1") for n in (1, 2, 3)]
    storage = storage_with(claim, a_volume(modes=MANY), *attached, a_csi_node("node-1", 3), limit=5)
    node = a_node("node-1", labels={INSTANCE_TYPE: "large"})
    packing = packed([using("data", uid=f"p{n}", **SMALL) for n in range(9)], storage, [node])
    assert (set(packing.placed.values()), packing.claims) == ({"node-1"}, ())


def test_one_that_is_not_attached_finds_no_place_on_a_full_node() -> None:
    claim = a_volume_claim(modes=MANY, volume="pv-1")
    attached = [an_attachment(f"pv-{n}", "node-1") for n in (2, 3, 4)]
    storage = storage_with(claim, a_volume(modes=MANY), *attached, a_csi_node("node-1", 3))
    node = a_node("node-1", labels={INSTANCE_TYPE: "large"})
    packing = packed([using("data", uid=f"p{n}", **SMALL) for n in range(9)], storage, [node])
    assert (packing.placed, len(packing.claims)) == ({}, 1)


def test_one_of_a_single_pod_counts_like_any_other() -> None:
    pods = [using(f"c{n}", uid=f"p{n}") for n in range(9)]
    storage = storage_with(*(a_volume_claim(f"c{n}", modes=MANY) for n in range(9)))
    assert shared_claims(pods, storage) == {}


def test_without_a_limit_nothing_is_counted() -> None:
    pods = [using("data", uid=f"p{n}") for n in range(2)]
    assert shared_claims(pods, storage_with(a_volume_claim(modes=MANY), limit=None)) == {}


def test_only_the_volumes_with_the_most_pods_keep_a_place() -> None:
    claims = [a_volume_claim(f"c{n}", modes=MANY) for n in range(9)]
    pods = [using(f"c{n}", uid=f"p{n}-{k}") for n in range(9) for k in range(10 - n)]
    shared = shared_claims(pods, storage_with(*claims, limit=5))
    assert shared == {DRIVER: {"default/c0", "default/c1"}}


@pytest.mark.parametrize("seed", range(20))
def test_no_node_gets_more_volumes_than_it_attaches(seed: int) -> None:
    """Whatever is mixed: pods with shared volumes, with their own, and with both."""
    chance = random.Random(seed)
    limit = chance.randint(1, 6)
    shared = [a_volume_claim(f"s{n}", modes=MANY) for n in range(chance.randint(1, 6))]
    own = [a_volume_claim(f"o{n}") for n in range(30)]
    pods = []
    for number in range(30):
        names = [one.name for one in chance.sample(shared, min(len(shared), chance.randint(0, 2)))]
        names += [f"o{number}"] if chance.random() < 0.5 or not names else []
        pods.append(using(*names[:limit], uid=f"p{number}", **SMALL))
    packing = packed(pods, storage_with(*shared, *own, limit=limit), limit=limit)
    by_uid = {pod.uid: pod for pod in pods}
    assert not packing.unplaced
    for claim in packing.claims:
        volumes = {name for uid in claim.pods for name in by_uid[uid].volume_claims}
        assert len(volumes) <= limit
