"""What a pod's volumes ask of its node: from where they can be used, or why they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.volumes.needs import needs_of, volume_needs
from tenure.core.volumes.storage import storage_in
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.snapshot.unreadable import stand_in
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.facts import (
    NoVolumeMatches,
    StorageClassMissing,
    VolumeClaimDeleting,
    VolumeClaimLost,
    VolumeClaimMissing,
    VolumeFact,
    VolumeInUse,
    VolumeNotBound,
    VolumesUnlisted,
    VolumeUnreadable,
)
from tenure.packing.demand.volumes import VolumeAnswer, VolumeNeeds, attachable
from tests.core.build import a_node
from tests.core.volumes.build import (
    DRIVER,
    a_storage_class,
    a_volume,
    a_volume_claim,
    using,
    with_scratch,
)
from tests.snapshots import snapshot_with

ANYWHERE = (Requirements(),)
ONE = ((attachable(DRIVER), UNIT),)


def in_zones(*zones: str) -> Requirements:
    return Requirements.of([Requirement.of(ZONE, "In", zones)])


def asked(pod: Pod, *objects: ApiObject) -> VolumeAnswer:
    return needs_of(pod, storage_in(snapshot_with(*objects)))


def test_a_bound_claim_asks_for_the_zone_of_its_volume() -> None:
    claim, volume = a_volume_claim(volume="pv-1"), a_volume(zones=["a"])
    assert asked(using("data"), claim, volume) == VolumeNeeds((in_zones("a"),), ONE)


def test_a_volume_without_affinity_can_be_used_everywhere() -> None:
    assert asked(using("data"), a_volume_claim(volume="pv-1"), a_volume()) == VolumeNeeds(
        ANYWHERE, ONE
    )


def test_a_volume_that_no_driver_attaches_takes_no_attachment() -> None:
    found = asked(using("data"), a_volume_claim(volume="pv-1"), a_volume(driver="", nfs={}))
    assert found == VolumeNeeds(ANYWHERE, ())


def test_each_term_of_a_volume_is_an_alternative() -> None:
    terms = [[{"key": "rack", "operator": "In", "values": [rack]}] for rack in ("r1", "r2")]
    found = asked(using("data"), a_volume_claim(volume="pv-1"), a_volume(terms=terms))
    assert isinstance(found, VolumeNeeds)
    assert [str(one) for one in found.alternatives] == ["rack In [r1]", "rack In [r2]"]


def test_all_volumes_of_a_pod_must_be_reachable_from_its_node() -> None:
    found = asked(
        using("one", "two"),
        a_volume_claim("one", volume="pv-1"),
        a_volume_claim("two", volume="pv-2"),
        a_volume("pv-1", zones=["a", "b"]),
        a_volume("pv-2", zones=["b", "c"]),
    )
    assert found == VolumeNeeds((in_zones("b"),), ((attachable(DRIVER), 2 * UNIT),))


def test_a_claim_that_is_named_twice_is_attached_once() -> None:
    pod = using("data", "data")
    assert len(pod.spec.volumes) == 2
    found = asked(pod, a_volume_claim(volume="pv-1"), a_volume())
    assert found == VolumeNeeds(ANYWHERE, ONE)


@pytest.mark.parametrize("kind", ["local", "hostPath"])
@pytest.mark.parametrize("there", [False, True], ids=["gone", "there"])
def test_the_host_of_a_directory_counts_while_its_node_is_there(kind: str, there: bool) -> None:
    expressions = [
        {"key": HOSTNAME, "operator": "In", "values": ["node-1"]},
        {"key": ZONE, "operator": "In", "values": ["a"]},
    ]
    source: dict[str, Any] = {kind: {"path": "/disk"}}
    volume = a_volume(terms=[expressions], driver="", **source)
    nodes = [a_node("node-1", labels={HOSTNAME: "node-1"})] if there else []
    found = asked(using("data"), a_volume_claim(volume="pv-1"), volume, *nodes)
    assert isinstance(found, VolumeNeeds)
    (wanted,) = found.alternatives
    assert wanted.allowed(HOSTNAME).listed == ({"node-1"} if there else set())
    assert wanted.allowed(ZONE).listed == {"a"}


def test_the_host_of_another_volume_counts() -> None:
    volume = a_volume(terms=[[{"key": HOSTNAME, "operator": "In", "values": ["node-1"]}]])
    found = asked(using("data"), a_volume_claim(volume="pv-1"), volume)
    assert isinstance(found, VolumeNeeds)
    assert found.alternatives[0].allowed(HOSTNAME).listed == {"node-1"}


def test_a_class_that_waits_for_its_consumer_asks_for_one_of_its_topologies() -> None:
    found = asked(using("data"), a_volume_claim(), a_storage_class(zones=["a", "c"]))
    assert found == VolumeNeeds((in_zones("a", "c"),), ONE)


def test_a_class_without_topologies_provisions_everywhere() -> None:
    assert asked(using("data"), a_volume_claim(), a_storage_class()) == VolumeNeeds(ANYWHERE, ONE)


def test_a_claim_without_a_class_gets_the_newest_default() -> None:
    found = asked(
        using("data"),
        a_volume_claim(storage_class=None),
        a_storage_class("old", zones=["a"], default=True, created="2029-01-01T00:00:00Z"),
        a_storage_class("new", zones=["b"], default=True, created="2030-01-01T00:00:00Z"),
        a_storage_class("other", zones=["c"]),
    )
    assert found == VolumeNeeds((in_zones("b"),), ONE)


def test_of_default_classes_of_one_second_the_first_by_name_counts() -> None:
    found = asked(
        using("data"),
        a_volume_claim(storage_class=None),
        a_storage_class("second", zones=["a"], default=True, created="2030-01-01T00:00:00Z"),
        a_storage_class("first", zones=["b"], default=True, created="2030-01-01T00:00:00Z"),
        a_storage_class("other", zones=["c"]),
    )
    assert found == VolumeNeeds((in_zones("b"),), ONE)


def test_the_free_volumes_of_a_class_that_provisions_nothing_are_alternatives() -> None:
    local: dict[str, Any] = {"storage_class": "local", "driver": ""}
    found = asked(
        using("data"),
        a_volume_claim(storage_class="local", size="5Gi"),
        a_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        a_volume("free", zones=["a"], **local),
        a_volume("small", zones=["b"], size="1Gi", **local),
        a_volume("taken", zones=["c"], claim={"uid": "x", "name": "x"}, **local),
        a_volume("ours", zones=["d"], claim={"namespace": "default", "name": "data"}, **local),
        a_volume("other-mode", zones=["e"], modes=["ReadOnlyMany"], **local),
        a_volume("other-class", zones=["f"]),
    )
    assert found == VolumeNeeds((in_zones("a"), in_zones("d")), ())


def test_a_volume_that_the_selector_does_not_match_is_not_one_of_them() -> None:
    found = asked(
        using("data"),
        a_volume_claim(storage_class="", selector={"matchLabels": {"disk": "fast"}}),
        a_volume("slow", zones=["a"], storage_class="", labels={"disk": "slow"}),
        a_volume("fast", zones=["b"], storage_class="", labels={"disk": "fast"}),
    )
    assert found == VolumeNeeds((in_zones("b"),), ONE)


@pytest.mark.parametrize(
    ("pod", "objects", "fact"),
    [
        pytest.param(
            using("data"), [], VolumeClaimMissing("default/data"), id="the claim is missing"
        ),
        pytest.param(
            with_scratch(),
            [a_storage_class()],
            VolumeClaimMissing("default/p-scratch", ephemeral=True),
            id="the claim of an ephemeral volume is not made yet",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(deleted="2030-01-01T00:00:00Z"), a_storage_class()],
            VolumeClaimDeleting("default/data"),
            id="the claim is being deleted",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(volume="pv-9")],
            VolumeClaimLost("default/data", "pv-9"),
            id="the volume is gone",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(storage_class="fast"), a_storage_class()],
            StorageClassMissing("default/data", "fast"),
            id="the class is missing",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(storage_class=None), a_storage_class()],
            StorageClassMissing("default/data", ""),
            id="no class is the default",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(), a_storage_class(waits=False)],
            VolumeNotBound("default/data", "standard"),
            id="the volume comes first",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(storage_class=""), a_volume("pv-1")],
            NoVolumeMatches("default/data", ""),
            id="no volume without a class",
        ),
        pytest.param(
            using("data"),
            [
                a_volume_claim(volume="pv-1", modes=["ReadWriteOncePod"]),
                a_volume(),
                using("data", uid="other", nodeName="node-1"),
            ],
            VolumeInUse("default/data", "default/other"),
            id="another pod uses it alone",
        ),
        pytest.param(
            using("data"),
            [stand_in(a_volume_claim(), "Expected `str`, got `int`", field="spec.volumeName")],
            VolumeUnreadable("default/data", "the PersistentVolumeClaim cannot be read"),
            id="the claim cannot be read",
        ),
        pytest.param(
            using("data"),
            [
                a_volume_claim(volume="pv-1"),
                stand_in(a_volume(), "Expected `str`, got `int`", field="spec.csi"),
            ],
            VolumeUnreadable("default/data", "PersistentVolume pv-1 cannot be read"),
            id="the volume cannot be read",
        ),
        pytest.param(
            using("data"),
            [a_volume_claim(), stand_in(a_storage_class(), "got `int`", field="provisioner")],
            VolumeUnreadable("default/data", "StorageClass standard cannot be read"),
            id="the class cannot be read",
        ),
    ],
)
def test_what_no_node_can_run_is_a_fact_about_the_pod(
    pod: Pod, objects: list[ApiObject], fact: VolumeFact
) -> None:
    assert asked(pod, *objects) == fact


def test_the_pod_that_uses_its_volume_alone_may_move() -> None:
    pod = using("data", nodeName="node-1")
    claim = a_volume_claim(volume="pv-1", modes=["ReadWriteOncePod"])
    assert asked(pod, claim, a_volume(zones=["a"]), pod) == VolumeNeeds((in_zones("a"),), ONE)


def test_of_pods_of_one_owner_the_first_may_use_a_claim_for_one_pod() -> None:
    """Of another owner, or without one, a pod may fit where the first fits nowhere."""
    alone = a_volume_claim(volume="pv-1", modes=["ReadWriteOncePod"])
    later = "2030-01-01T00:00:01Z"
    waiting = [
        using("data", uid="b", owner="ReplicaSet", created=later),
        using("data", uid="c", owner="ReplicaSet"),
        using("data", uid="lonely"),
    ]
    found = volume_needs(waiting, storage_in(snapshot_with(alone, a_volume())))
    usable = VolumeNeeds(ANYWHERE, ONE)
    second = VolumeInUse("default/data", "default/c", waits=True)
    assert found == {"b": second, "c": usable, "lonely": usable}


def test_a_claim_for_pods_of_one_node_may_be_shared() -> None:
    waiting = [using("data", uid=uid, owner="ReplicaSet") for uid in "ab"]
    found = volume_needs(
        waiting, storage_in(snapshot_with(a_volume_claim(volume="pv-1"), a_volume()))
    )
    assert not any(isinstance(one, VolumeInUse) for one in found.values())


def test_a_pod_that_moves_gets_a_new_ephemeral_volume_wherever_its_old_one_is() -> None:
    found = asked(
        with_scratch(nodeName="node-1"),
        a_volume_claim("p-scratch", volume="pv-1"),
        a_volume(zones=["a"]),
        a_storage_class(zones=["a", "b"]),
    )
    assert found == VolumeNeeds((in_zones("a", "b"),), ONE)


def test_a_kind_that_is_not_listed_is_not_a_missing_object() -> None:
    for kind in (PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES):
        snapshot = snapshot_with(a_volume_claim(), unlisted={kind: "forbidden"})
        assert needs_of(using("data"), storage_in(snapshot)) == VolumesUnlisted(
            "default/data", kind.kind, "forbidden"
        )


def test_a_malformed_affinity_is_a_fact_about_the_pod() -> None:
    volume = a_volume(terms=[[{"key": ZONE, "operator": "Around", "values": ["a"]}]])
    found = asked(using("data"), a_volume_claim(volume="pv-1"), volume)
    assert isinstance(found, VolumeUnreadable)
    assert "operator" in found.problem


def test_only_pods_that_use_claims_are_looked_at() -> None:
    """Others are found by an index: there may be 40,000 of them."""
    plain = [using(uid=f"plain-{number}", nodeName="node-1") for number in range(3)]
    there = [
        using("data", uid="db", nodeName="node-1"),
        with_scratch(nodeName="node-1"),
        using("data", uid="waits"),
    ]
    snapshot = snapshot_with(*plain, *there)
    assert list(snapshot.claiming_pods().values()) == there[:2]
