"""StatefulSets: lasting names, one at a time or all at once, and claims that stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.model.api.resource import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from tenure.sim.actors.volumes.storage import STANDARD
from tenure.sim.apiserver.objects.tree import Obj
from tests.sim.workworld import World, a_node, a_workload, a_world, set_ready

#: A pod of this world is ready two seconds after it is bound, and gone one second after it is told.
STEP = 2.1
DATA = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
PARALLEL = {"podManagementPolicy": "Parallel"}


@contextmanager
def a_set(**spec: Any) -> Iterator[World]:
    """A node with room for all, a default StorageClass, and the stateful set ``db`` of three pods."""
    with a_world() as world:
        world.with_scheduler().with_workloads()
        world.add(NODES, a_node("a", cpu="16"))
        world.add(STORAGE_CLASSES, STANDARD)
        world.add(STATEFUL_SETS, a_workload("db", **{"replicas": 3, **spec}))
        yield world


def names(world: World) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in world.pods(app="db"))


def status(world: World) -> Obj:
    found: Obj = world.store.get(STATEFUL_SETS, "default", "db")["status"]
    return found


def uid(world: World, name: str) -> str:
    found: str = world.pod(name)["metadata"]["uid"]
    return found


def change(world: World, **spec: Any) -> None:
    world.store.patch(STATEFUL_SETS, "default", "db", {"spec": spec})


def test_pods_come_one_after_the_other_when_the_one_before_is_ready() -> None:
    with a_set() as world:
        world.run(STEP - 0.2)
        assert names(world) == ["db-0"]
        world.run(STEP)
        assert names(world) == ["db-0", "db-1"]
        world.run(STEP)
        assert names(world) == ["db-0", "db-1", "db-2"]
        world.run(STEP)
        assert (status(world)["replicas"], status(world)["readyReplicas"]) == (3, 3)


def test_in_parallel_they_come_at_once() -> None:
    with a_set(**PARALLEL) as world:
        world.run(0.1)
        assert names(world) == ["db-0", "db-1", "db-2"]


def test_the_next_pod_waits_until_the_one_before_is_available() -> None:
    with a_set(minReadySeconds=30, replicas=2) as world:
        world.run(STEP + 28)
        assert names(world) == ["db-0"]
        world.run(3)
        assert names(world) == ["db-0", "db-1"]


def test_a_pod_says_who_it_is() -> None:
    with a_set(serviceName="databases", replicas=1) as world:
        world.run(0.1)
        pod = world.pod("db-0")
        assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "databases")
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_successor_comes_only_when_the_old_pod_is_gone_and_has_another_uid(policy: str) -> None:
    with a_set(podManagementPolicy=policy) as world:
        world.run(10)
        before = uid(world, "db-1")
        world.store.delete(PODS, "default", "db-1")
        world.run(0.9)
        assert uid(world, "db-1") == before, "still there, and no second pod beside it"
        world.run(0.2)
        assert uid(world, "db-1") != before
        assert names(world) == ["db-0", "db-1", "db-2"]


def test_an_ordered_set_fills_no_place_while_a_lower_one_is_not_ready() -> None:
    with a_set() as world:
        world.run(10)
        set_ready(world.store, world.pod("db-0"), ready=False)
        world.store.delete(PODS, "default", "db-2")
        world.run(10)
        assert names(world) == ["db-0", "db-1"]
        set_ready(world.store, world.pod("db-0"), ready=True)
        world.run(0.1)
        assert names(world) == ["db-0", "db-1", "db-2"]


def test_a_parallel_set_does_not_wait_for_lower_ones() -> None:
    with a_set(**PARALLEL) as world:
        world.run(10)
        set_ready(world.store, world.pod("db-0"), ready=False)
        world.store.delete(PODS, "default", "db-2")
        world.run(1.1)
        assert names(world) == ["db-0", "db-1", "db-2"]


def test_the_highest_goes_first_and_one_at_a_time() -> None:
    with a_set() as world:
        world.run(10)
        change(world, replicas=1)
        world.run(0.5)
        leaving = [
            p["metadata"]["name"] for p in world.pods() if "deletionTimestamp" in p["metadata"]
        ]
        assert leaving == ["db-2"]
        world.run(1)
        assert names(world) == ["db-0", "db-1"]
        world.run(1)
        assert names(world) == ["db-0"]


def test_a_parallel_set_shrinks_at_once() -> None:
    with a_set(**PARALLEL) as world:
        world.run(10)
        change(world, replicas=1)
        world.run(1.1)
        assert names(world) == ["db-0"]


def test_a_failed_pod_is_replaced_under_its_name() -> None:
    with a_set() as world:
        world.run(10)
        before = uid(world, "db-1")
        set_ready(world.store, world.pod("db-1"), ready=False, phase="Failed")
        world.run(1)
        assert uid(world, "db-1") != before


def test_each_pod_has_claims_of_its_own_and_they_outlive_it() -> None:
    with a_set(volumeClaimTemplates=[DATA], replicas=2) as world:
        world.run(10)
        volume = world.pod("db-1")["spec"]["volumes"][0]
        assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
        claims = world.store.list(PERSISTENT_VOLUME_CLAIMS)
        assert [claim["metadata"]["name"] for claim in claims] == ["data-db-0", "data-db-1"]
        change(world, replicas=1)
        world.run(10)
        assert names(world) == ["db-0"]
        assert world.store.list(PERSISTENT_VOLUME_CLAIMS) == claims
        change(world, replicas=2)
        world.run(10)
        assert world.pod("db-1")["spec"]["volumes"] == [volume], "the same claim again"


def test_a_new_template_is_rolled_out_from_the_highest_one_at_a_time() -> None:
    with a_set() as world:
        world.run(10)
        before = status(world)["currentRevision"]
        image = {"name": "main", "image": "app:2"}
        change(world, template={"spec": {"containers": [image]}})
        world.run(0.5)
        leaving = [
            p["metadata"]["name"] for p in world.pods() if "deletionTimestamp" in p["metadata"]
        ]
        assert leaving == ["db-2"]
        assert status(world)["currentRevision"] == before
        world.run(15)
        images = {pod["spec"]["containers"][0]["image"] for pod in world.pods(app="db")}
        assert images == {"app:2"}
        assert status(world)["currentRevision"] == status(world)["updateRevision"] != before


def test_a_partition_keeps_the_lower_pods_as_they_are() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    with a_set(updateStrategy=strategy) as world:
        world.run(10)
        change(world, template={"spec": {"containers": [{"name": "main", "image": "app:2"}]}})
        world.run(15)
        images = [world.pod(n)["spec"]["containers"][0]["image"] for n in names(world)]
        assert images == ["app", "app", "app:2"]


def test_ordinals_may_begin_elsewhere() -> None:
    with a_set(ordinals={"start": 5}, replicas=2) as world:
        world.run(10)
        assert names(world) == ["db-5", "db-6"]


def test_its_pods_go_with_it_and_its_claims_stay() -> None:
    with a_set(volumeClaimTemplates=[DATA], replicas=1) as world:
        world.run(10)
        world.store.delete(STATEFUL_SETS, "default", "db")
        world.run(10)
        assert names(world) == []
        assert len(world.store.list(PERSISTENT_VOLUME_CLAIMS)) == 1
