"""Objects: what the server fills in, which versions it accepts, what counts as a change."""

from __future__ import annotations

import re

import pytest

from tenure.model.api.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    Resource,
)
from tests.contract.backends import WORKLOAD, Backend, Json, a_node, a_pod

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


async def test_a_new_object_gets_uid_version_and_whole_seconds_of_age(api: Backend) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    metadata = created["metadata"]
    assert UUID.fullmatch(metadata["uid"])
    assert metadata["resourceVersion"].isdigit()
    assert re.fullmatch(r"[-0-9]{10}T[:0-9]{8}Z", metadata["creationTimestamp"])
    assert metadata["namespace"] == api.namespace
    assert (await api.get(CONFIG_MAPS, "a")).body == created


async def test_the_server_decides_about_its_own_metadata_fields(api: Backend) -> None:
    metadata = {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    created = await api.created(CONFIG_MAPS, {"metadata": metadata})
    assert created["metadata"]["uid"] != "mine"
    assert not created["metadata"]["creationTimestamp"].startswith("2001")


async def test_generate_name_adds_five_letters(api: Backend) -> None:
    names = {
        (await api.created(CONFIG_MAPS, {"metadata": {"generateName": "web-"}}))["metadata"]["name"]
        for _ in range(3)
    }
    assert len(names) == 3
    assert all(re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


async def test_a_name_can_be_taken_only_once(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (answer.status, answer.reason) == (409, "AlreadyExists")


async def test_an_update_with_an_old_version_is_a_conflict(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    second = await api.put(CONFIG_MAPS, {**first, "data": {"k": "2"}})
    assert second.status == 200
    late = await api.put(CONFIG_MAPS, {**first, "data": {"k": "3"}})
    assert (late.status, late.reason) == (409, "Conflict")


async def test_without_a_version_the_last_write_wins(api: Backend) -> None:
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    answer = await api.put(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "2"}})
    assert (answer.status, answer.body["data"]) == (200, {"k": "2"})


async def test_a_lease_must_be_updated_with_its_version(api: Backend) -> None:
    await api.created(LEASES, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})
    answer = await api.put(LEASES, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "you"}})
    assert (answer.status, answer.fields) == (422, ["metadata.resourceVersion"])


async def test_a_new_object_cannot_bring_a_version(api: Backend) -> None:
    metadata = {"name": "a", "resourceVersion": "7"}
    assert (await api.create(CONFIG_MAPS, {"metadata": metadata})).status == 500


async def test_a_write_that_changes_nothing_makes_no_new_version(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    again = await api.put(CONFIG_MAPS, first)
    patched = await api.patch(CONFIG_MAPS, "a", {"data": {"k": "1", "other": None}})
    assert again.body == patched.body == first


async def test_versions_grow_across_kinds(api: Backend) -> None:
    first = await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    second = await api.created(PODS, a_pod("a"))
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, second)]
    assert versions == sorted(set(versions))


async def test_generation_counts_changes_of_the_spec_only(api: Backend) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    first = await api.created(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})
    assert first["metadata"]["generation"] == 1
    labelled = await api.patch(DEPLOYMENTS, "a", {"metadata": {"labels": {"x": "y"}}})
    reported = await api.patch(DEPLOYMENTS, "a", {"status": {"replicas": 1}}, subresource="status")
    scaled = await api.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 3}})
    generations = [a.body["metadata"]["generation"] for a in (labelled, reported, scaled)]
    assert generations == [1, 1, 2]


async def test_a_node_has_no_generation(api: Backend) -> None:
    created = await api.created(NODES, a_node(api.unique("n")))
    assert "generation" not in created["metadata"]


async def test_the_main_resource_does_not_write_the_status(api: Backend) -> None:
    await api.running_pod("a")
    answer = await api.patch(
        PODS, "a", {"metadata": {"labels": {"new": "1"}}, "status": {"phase": "Failed"}}
    )
    assert answer.body["metadata"]["labels"]["new"] == "1"
    assert answer.body["status"]["phase"] == "Running"


async def test_the_status_subresource_does_not_write_the_spec(api: Backend) -> None:
    node = await api.created(NODES, a_node(api.unique("n")))
    changed = {**node, "spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "4"}}}
    answer = await api.put(NODES, changed, "status")
    assert "unschedulable" not in answer.body["spec"]
    assert answer.body["status"]["capacity"] == {"cpu": "4"}


async def test_a_new_pod_is_pending_whatever_its_status_says(api: Backend) -> None:
    created = await api.created(PODS, {**a_pod("a"), "status": {"phase": "Running"}})
    assert created["status"]["phase"] == "Pending"


async def test_a_new_node_keeps_its_status_and_is_not_ready(api: Backend) -> None:
    node = {**a_node(api.unique("n")), "status": {"capacity": {"cpu": "4"}}}
    created = await api.created(NODES, node)
    assert created["status"]["capacity"] == created["status"]["allocatable"] == {"cpu": "4"}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert created["spec"]["taints"] == [taint]


async def test_a_pod_gets_the_defaults_that_draining_depends_on(api: Backend) -> None:
    spec = (await api.created(PODS, a_pod("a")))["spec"]
    assert spec["terminationGracePeriodSeconds"] == 30
    assert (spec["restartPolicy"], spec["schedulerName"]) == ("Always", "default-scheduler")
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    tolerated = [(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]]
    assert tolerated == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]


async def test_a_pods_own_toleration_replaces_the_default_one(api: Backend) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    spec = (await api.created(PODS, a_pod("a", tolerations=[own])))["spec"]
    keys = [toleration["key"] for toleration in spec["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    assert spec["tolerations"][0] == own


async def test_a_limit_is_a_request_too(api: Backend) -> None:
    pod = a_pod("a")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
    created = await api.created(PODS, pod)
    assert created["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}


async def test_a_priority_class_gives_its_value(api: Backend) -> None:
    created = await api.created(PODS, a_pod("a", priorityClassName="system-node-critical"))
    assert created["spec"]["priority"] == 2_000_001_000


async def test_nothing_is_created_in_a_missing_namespace(api: Backend) -> None:
    path = CONFIG_MAPS.path(api.unique("nowhere"))
    answer = await api.send("POST", path, {"metadata": {"name": "a"}})
    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_a_namespace_takes_its_content_along(api: Backend) -> None:
    if not api.has_controllers:
        pytest.skip("this backend does not empty namespaces")
    await api.created(CONFIG_MAPS, {"metadata": {"name": "a"}})
    await api.created(SERVICES, {"metadata": {"name": "b"}, "spec": {"ports": [{"port": 80}]}})
    answer = await api.delete(NAMESPACES, api.namespace)
    assert answer.body["status"]["phase"] == "Terminating"
    refused = await api.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
    assert (refused.status, refused.reason) == (403, "Forbidden")
    await api.gone(NAMESPACES, api.namespace)
    assert (await api.list(CONFIG_MAPS)).body["items"] == []


async def test_a_binding_gives_a_pod_its_node_once(api: Backend) -> None:
    await api.created(PODS, a_pod("a", schedulerName="missing"))
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    first = await api.send("POST", api.path(PODS, "a", "binding"), body)
    second = await api.send("POST", api.path(PODS, "a", "binding"), body)
    assert (first.status, second.status, second.reason) == (201, 409, "Conflict")
    pod = (await api.get(PODS, "a")).body
    assert pod["spec"]["nodeName"] == "node-1"
    scheduled = [c["status"] for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert scheduled == ["True"]
    assert pod["metadata"]["generation"] == 1, "being bound is not a new generation"


async def test_a_manifest_can_be_put_twice(api: Backend) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    created = await api.created(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})
    again = await api.put(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})
    assert again.body == created, "what the manifest leaves out is filled in again"
    pod = await api.created(PODS, a_pod("a"))
    assert (await api.put(PODS, a_pod("a"))).body == pod


@pytest.mark.parametrize(
    ("resource", "given", "field", "expected"),
    [
        pytest.param(
            DEPLOYMENTS,
            None,
            "strategy",
            {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            id="a deployment",
        ),
        pytest.param(
            DEPLOYMENTS,
            {"rollingUpdate": {"maxSurge": 1}},
            "strategy",
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            id="half of it",
        ),
        pytest.param(
            DEPLOYMENTS, {"type": "Recreate"}, "strategy", {"type": "Recreate"}, id="all at once"
        ),
        pytest.param(
            DAEMON_SETS,
            None,
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            id="a daemon set",
        ),
    ],
)
async def test_pods_are_replaced_a_few_at_a_time_if_nothing_is_said(
    api: Backend, resource: Resource, given: Json | None, field: str, expected: Json
) -> None:
    spec = {**WORKLOAD, field: given} if given else WORKLOAD
    created = await api.created(resource, {"metadata": {"name": "a"}, "spec": spec})
    assert created["spec"][field] == expected
