"""ResourceQuotas: what they count, what they refuse, and that namespaces without one pay nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tenure.errors import Forbidden
from tenure.model.api import resource as r
from tenure.sim.apiserver.objects import storedkinds as stored
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.world import World

SOON = timedelta(seconds=1)


@pytest.fixture
def world() -> Iterator[World]:
    with World() as world:
        yield world


def a_quota(world: World, hard: Obj, name: str = "team", **spec: Any) -> None:
    metadata = {"name": name, "namespace": "default"}
    obj = {"metadata": metadata, "spec": {"hard": hard, **spec}}
    world.store.create(stored.RESOURCE_QUOTAS, obj)


def used(world: World, name: str = "team") -> Obj:
    world.run(SOON)
    status: Obj = world.store.get(stored.RESOURCE_QUOTAS, "default", name)["status"]
    return dict(status["used"])


def a_pod(world: World, name: str = "web", namespace: str = "default", **spec: Any) -> Obj:
    resources = spec.pop("resources", {"requests": {"cpu": "500m", "memory": "1Gi"}})
    container = {"name": "c", "image": "registry.example/c:1", "resources": resources}
    spec = {"containers": [container], **spec}
    metadata = {"name": name, "namespace": namespace}
    return world.store.create(r.PODS, {"metadata": metadata, "spec": spec})


def test_pods_are_counted_with_what_they_ask_for_and_no_more_once_they_are_gone(
    world: World,
) -> None:
    a_pod(world, "before")
    a_quota(world, {"pods": 3, "requests.cpu": "2", "limits.memory": "4Gi", "memory": "4Gi"})
    assert used(world) == {
        "pods": "1",
        "requests.cpu": "500m",
        "limits.memory": "0",
        "memory": "1Gi",
    }
    a_pod(world, resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "2Gi"}})
    assert used(world) == {
        "pods": "2",
        "requests.cpu": "1500m",
        "limits.memory": "2Gi",
        "memory": "3Gi",
    }
    world.store.delete(r.PODS, "default", "web", grace_period_seconds=0)
    assert used(world)["pods"] == "1"
    status = world.store.get(stored.RESOURCE_QUOTAS, "default", "team")["status"]
    assert status["hard"] == {
        "pods": "3",
        "requests.cpu": "2",
        "limits.memory": "4Gi",
        "memory": "4Gi",
    }


def test_what_would_exceed_a_quota_is_refused_in_the_words_of_the_api_server(world: World) -> None:
    a_quota(world, {"pods": "5", "requests.cpu": "1", "requests.memory": "1536Mi"})
    a_pod(world, "first")
    with pytest.raises(Forbidden) as refusal:
        a_pod(world, "second", resources={"requests": {"cpu": "600m", "memory": "1Gi"}})
    assert refusal.value.message == (
        'pods "second" is forbidden: exceeded quota: team, requested: '
        "requests.cpu=600m,requests.memory=1Gi, used: requests.cpu=500m,requests.memory=1Gi, "
        "limited: requests.cpu=1,requests.memory=1536Mi"
    )
    a_pod(world, "elsewhere", namespace="kube-system")


def test_a_container_says_what_a_quota_limits(world: World) -> None:
    a_quota(world, {"requests.cpu": "1", "limits.memory": "1Gi"})
    with pytest.raises(Forbidden) as refusal:
        a_pod(world, resources={})
    assert refusal.value.message == (
        'pods "web" is forbidden: failed quota: team: must specify limits.memory for: c; '
        "requests.cpu for: c"
    )
    a_limit = {"type": "Container", "default": {"cpu": "100m", "memory": "128Mi"}}
    metadata = {"name": "usual", "namespace": "default"}
    world.store.create(r.LIMIT_RANGES, {"metadata": metadata, "spec": {"limits": [a_limit]}})
    a_pod(world, resources={})
    assert used(world) == {"requests.cpu": "100m", "limits.memory": "128Mi"}


def test_a_pod_that_has_ended_counts_as_an_object_alone(world: World) -> None:
    a_quota(world, {"pods": "1", "count/pods": "2", "requests.cpu": "1"})
    ended = a_pod(world, "done")
    status = {**ended["status"], "phase": "Succeeded"}
    world.store.update(r.PODS, {**ended, "status": status}, "status")
    assert used(world) == {"pods": "0", "count/pods": "1", "requests.cpu": "0"}


OBJECTS: list[tuple[r.Resource, Obj, Obj]] = [
    (
        r.CONFIG_MAPS,
        {},
        {"configmaps": "1", "count/configmaps": "1"},
    ),
    (stored.SECRETS, {}, {"secrets": "1", "count/secrets": "1"}),
    (
        r.SERVICES,
        {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 443, "name": "b"}]}},
        {"services": "1", "services.loadbalancers": "1", "services.nodeports": "2"},
    ),
    (
        r.PERSISTENT_VOLUME_CLAIMS,
        {
            "spec": {
                "storageClassName": "fast",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}},
            }
        },
        {
            "persistentvolumeclaims": "1",
            "requests.storage": "10Gi",
            "fast.storageclass.storage.k8s.io/requests.storage": "10Gi",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "slow.storageclass.storage.k8s.io/requests.storage": "0",
        },
    ),
    (
        r.DEPLOYMENTS,
        {
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
                },
                "replicas": 0,
            }
        },
        {"count/deployments.apps": "1"},
    ),
]


@pytest.mark.parametrize(
    ("resource", "obj", "wanted"), OBJECTS, ids=[one[0].plural for one in OBJECTS]
)
def test_objects_are_counted_under_every_name_of_theirs(
    world: World, resource: r.Resource, obj: Obj, wanted: Obj
) -> None:
    metadata = {"name": "it", "namespace": "default"}
    a_quota(world, dict.fromkeys(wanted, "100Gi"))
    world.store.create(resource, {"metadata": metadata, **obj})
    assert used(world) == wanted
    again = {"metadata": {**metadata, "name": "too-many"}, **obj}
    counted = next(name for name, amount in wanted.items() if amount != "0")
    a_quota(world, {counted: wanted[counted]}, "full")
    with pytest.raises(Forbidden, match="exceeded quota: full, requested: "):
        world.store.create(resource, again)


def test_a_service_that_becomes_a_load_balancer_is_checked_again(world: World) -> None:
    a_quota(world, {"services.loadbalancers": "0"})
    metadata = {"name": "web", "namespace": "default"}
    service = world.store.create(
        r.SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}}
    )
    changed = {**service, "spec": {**service["spec"], "type": "LoadBalancer"}}
    with pytest.raises(Forbidden, match=r"requested: services\.loadbalancers=1, used: "):
        world.store.update(r.SERVICES, changed)


SCOPES: list[tuple[str, Obj, Obj, str]] = [
    ("terminating", {"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 60}, "1"),
    ("not terminating", {"scopes": ["Terminating"]}, {}, "0"),
    ("NotTerminating", {"scopes": ["NotTerminating"]}, {}, "1"),
    ("best effort", {"scopes": ["BestEffort"]}, {"resources": {}}, "1"),
    ("burstable", {"scopes": ["BestEffort"]}, {}, "0"),
    ("NotBestEffort", {"scopes": ["NotBestEffort"]}, {}, "1"),
    (
        "priority",
        {
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                ]
            }
        },
        {"priorityClassName": "high"},
        "1",
    ),
    (
        "no priority",
        {
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                ]
            }
        },
        {},
        "0",
    ),
    ("a scope of the future", {"scopes": ["Unheard"]}, {}, "0"),
]


@pytest.mark.parametrize(
    ("scope", "spec", "wanted"), [one[1:] for one in SCOPES], ids=[one[0] for one in SCOPES]
)
def test_a_quota_with_scopes_counts_the_pods_in_all_of_them(
    world: World, scope: Obj, spec: Obj, wanted: str
) -> None:
    world.store.create(r.PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    a_quota(world, {"pods": "9"}, **scope)
    a_pod(world, **spec)
    assert used(world) == {"pods": wanted}


def test_a_quota_that_is_changed_is_counted_again_and_one_that_is_gone_refuses_nothing(
    world: World,
) -> None:
    a_pod(world, "first")
    a_quota(world, {"pods": "1"})
    patch = {"spec": {"hard": {"pods": "1", "count/pods": "1", "requests.cpu": "8"}}}
    world.store.patch(stored.RESOURCE_QUOTAS, "default", "team", patch)
    assert used(world) == {"pods": "1", "count/pods": "1", "requests.cpu": "500m"}
    world.store.delete(stored.RESOURCE_QUOTAS, "default", "team")
    a_pod(world, "second")


def test_a_dry_run_counts_for_nothing(world: World) -> None:
    a_quota(world, {"pods": "1"})
    with world.store.dry_run():
        a_pod(world, "first")
        a_pod(world, "second")
    assert used(world) == {"pods": "0"}


def test_a_quota_that_cannot_be_read_allows_nothing_of_it(world: World) -> None:
    """A real API server stores none; a dump of another cluster may bring one along."""
    metadata = {"name": "team", "namespace": "default", "uid": "quota"}
    broken = {"metadata": metadata, "spec": {"hard": {"pods": "many"}}}
    world.store.restore(stored.RESOURCE_QUOTAS, broken)
    with pytest.raises(Forbidden, match="used: pods=0, limited: pods=0"):
        a_pod(world)


def test_many_pods_at_once_are_one_change_of_the_status(world: World) -> None:
    a_quota(world, {"pods": "500"})
    world.run(SOON)
    before = world.store.version
    for number in range(200):
        a_pod(world, f"web-{number}")
    created = world.store.version - before
    assert created == 200
    world.run(timedelta(milliseconds=20))
    writes = list(world.store.shelf(stored.RESOURCE_QUOTAS).history.since(before))
    assert len(writes) == 1
