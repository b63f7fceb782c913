"""One object in several versions of its kind."""

from __future__ import annotations

from tenure.model.api.resource import EVENTS, Resource
from tenure.sim.apiserver.objects.definition import DEFINITIONS
from tenure.sim.apiserver.objects.storedkinds import (
    AUTOSCALERS_V1,
    EVENTS_V1,
    POD_AUTOSCALERS,
)
from tests.contract.backends import Backend, Json
from tests.contract.test_definitions import established

SIZE: Json = {"type": "integer"}
OLD_SPEC: Json = {"size": SIZE, "heel": {"type": "string"}}
NEW_SPEC: Json = {"size": SIZE, "colour": {"type": "string", "default": "black"}}
STATUS: Json = {"worn": SIZE, "selector": {"type": "string"}}


def schema(spec: Json) -> Json:
    properties = {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": STATUS},
    }
    return {"openAPIV3Schema": {"type": "object", "properties": properties}}


async def boots(api: Backend, **new: object) -> tuple[Resource, Resource]:
    """A kind in two versions: the older one, and the newer one, in which it is stored."""
    group = f"{api.unique('shop')}.example.com"
    found = [Resource(group, name, "Boot", "boots", True) for name in ("v1beta1", "v1")]
    versions = [
        {"name": "v1beta1", "served": True, "storage": False, "schema": schema(OLD_SPEC)},
        {"name": "v1", "served": True, "storage": True, "schema": schema(NEW_SPEC), **new},
    ]
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "boots", "kind": "Boot"},
        "versions": versions,
    }
    await api.created(DEFINITIONS, {"metadata": {"name": f"boots.{group}"}, "spec": spec})
    await api.until_seen(DEFINITIONS, f"boots.{group}", established)
    for resource in found:
        await until_served(api, resource)
    return found[0], found[1]


async def until_served(api: Backend, resource: Resource) -> None:
    await api.until_answered(
        lambda: api.create(resource, boot("tried"), dryRun="All"),
        lambda answer: answer.status == 201,
    )


def boot(name: str, **spec: object) -> Json:
    return {"metadata": {"name": name}, "spec": spec}


async def test_an_object_is_read_in_each_version_with_the_fields_and_defaults_of_that_one(
    api: Backend,
) -> None:
    old, new = await boots(api)
    made = await api.created(old, boot("a", size=42, heel="high"))
    # Without a webhook a conversion keeps what the stored version knows.
    assert (made["apiVersion"], made["spec"]) == (old.api_version, {"size": 42})
    seen = (await api.get(new, "a")).body
    assert (seen["apiVersion"], seen["spec"]) == (new.api_version, {"size": 42, "colour": "black"})
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]
    assert (await api.get(old, "a")).body["spec"] == {"size": 42}
    listed = (await api.list(old)).body
    assert [one["apiVersion"] for one in listed["items"]] == [old.api_version]
    stored = (await api.get(DEFINITIONS, f"boots.{new.group}")).body
    assert stored["status"]["storedVersions"] == ["v1"]


async def test_a_change_in_one_version_is_seen_in_the_other(api: Backend) -> None:
    old, new = await boots(api)
    made = await api.created(new, boot("a", size=42))
    watching = await api.watch(old, resourceVersion=made["metadata"]["resourceVersion"])
    changed = await api.patch(old, "a", {"spec": {"size": 43}})
    assert (changed.status, changed.body["apiVersion"]) == (200, old.api_version)
    seen = (await api.get(new, "a")).body
    assert (seen["spec"]["size"], seen["metadata"]["generation"]) == (43, 2)
    type_, told = await watching.event()
    assert (type_, told["apiVersion"], told["spec"]) == (
        "MODIFIED",
        old.api_version,
        {"size": 43},
    )
    put = await api.put(old, {**changed.body, "spec": {"size": 44}})
    assert (put.status, put.body["spec"]) == (200, {"size": 44})
    assert (await api.delete(old, "a")).status == 200
    assert (await api.get(new, "a")).status == 404


async def test_a_patch_does_not_complain_of_what_only_the_other_version_knows(
    api: Backend,
) -> None:
    old, new = await boots(api)
    await api.created(old, boot("a", size=42, heel="high"))
    change = {"spec": {"colour": "brown"}}
    answer = await api.patch(new, "a", change, fieldValidation="Strict")
    assert (answer.status, answer.body["spec"]) == (200, {"size": 42, "colour": "brown"})


async def test_a_version_that_is_served_no_longer_is_gone_and_its_objects_stay(
    api: Backend,
) -> None:
    old, new = await boots(api)
    await api.created(old, boot("a", size=42))
    name = f"boots.{new.group}"
    versions = (await api.get(DEFINITIONS, name)).body["spec"]["versions"]
    versions[0]["served"] = False
    assert (await api.patch(DEFINITIONS, name, {"spec": {"versions": versions}})).status == 200
    await api.until_answered(
        lambda: api.raw_status("GET", api.path(old)), lambda answer: answer.status == 404
    )
    assert (await api.get(new, "a")).body["spec"]["size"] == 42


async def test_a_kind_with_a_scale_is_scaled_where_its_definition_says(api: Backend) -> None:
    paths = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.worn",
        "labelSelectorPath": ".status.selector",
    }
    _, new = await boots(api, subresources={"status": {}, "scale": paths})
    await api.created(new, boot("a", size=2))
    status = {"status": {"worn": 1, "selector": "app=boot"}}
    assert (await api.patch(new, "a", status, subresource="status")).status == 200
    scale = (await api.send("GET", api.path(new, "a", "scale"))).body
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    assert scale["status"] == {"replicas": 1, "selector": "app=boot"}
    answer = await api.patch(new, "a", {"spec": {"replicas": 5}}, subresource="scale")
    assert (answer.status, answer.body["spec"]) == (200, {"replicas": 5})
    assert (await api.get(new, "a")).body["spec"]["size"] == 5


async def test_an_autoscaler_by_cpu_is_the_same_object_in_both_versions(api: Backend) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    made = await api.created(AUTOSCALERS_V1, {"metadata": {"name": "web"}, "spec": spec})
    assert made["spec"] == {**spec, "minReplicas": 1}
    seen = (await api.get(POD_AUTOSCALERS, "web")).body
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    assert seen["spec"]["metrics"] == [{"type": "Resource", "resource": cpu}]
    answer = await api.patch(AUTOSCALERS_V1, "web", {"spec": {"maxReplicas": 4}})
    assert answer.body["spec"]["targetCPUUtilizationPercentage"] == 50
    assert (await api.get(POD_AUTOSCALERS, "web")).body["spec"]["maxReplicas"] == 4


async def test_a_metric_that_the_old_version_does_not_know_survives_a_change_there(
    api: Backend,
) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    memory = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}
    metrics = [{"type": "Resource", "resource": memory}]
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "metrics": metrics}
    await api.created(POD_AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})
    changed = await api.patch(AUTOSCALERS_V1, "web", {"spec": {"maxReplicas": 5}})
    assert "targetCPUUtilizationPercentage" not in changed.body["spec"]
    seen = (await api.get(POD_AUTOSCALERS, "web")).body
    assert (seen["spec"]["metrics"], seen["spec"]["maxReplicas"]) == (metrics, 5)
    assert "annotations" not in seen["metadata"]


async def test_an_event_is_the_same_object_in_both_groups(api: Backend) -> None:
    about = {"kind": "Pod", "namespace": api.namespace, "name": "a"}
    told = {"reason": "Seen", "message": "a sentence", "type": "Normal", "count": 2}
    event = {"metadata": {"name": "e"}, "involvedObject": about, **told}
    await api.created(EVENTS, event)
    seen = (await api.get(EVENTS_V1, "e")).body
    assert (seen["apiVersion"], seen["note"]) == ("events.k8s.io/v1", "a sentence")
    assert (seen["regarding"], seen["deprecatedCount"]) == (about, 2)
    selected = await api.list(EVENTS_V1, fieldSelector="regarding.name=a")
    assert [one["metadata"]["name"] for one in selected.body["items"]] == ["e"]


async def test_an_event_of_the_new_group_has_a_message_in_the_old_one(api: Backend) -> None:
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "namespace": api.namespace, "name": "a"},
        "reason": "Seen",
        "note": "a sentence",
        "type": "Normal",
        "action": "Looking",
        "eventTime": "2026-01-05T08:00:00.000000Z",
        "reportingController": "example.com/eye",
        "reportingInstance": "eye-1",
    }
    made = await api.created(EVENTS_V1, event)
    assert made["note"] == "a sentence"
    seen = (await api.get(EVENTS, "e")).body
    assert (seen["message"], seen["reportingComponent"]) == ("a sentence", "example.com/eye")
    assert seen["involvedObject"]["name"] == "a"
