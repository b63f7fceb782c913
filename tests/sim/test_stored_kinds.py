"""Kinds that the embedded cluster only stores: as a real API server completes them, and typed clients need them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tenure.sim.apiserver.applying import apply_manifest
from tenure.sim.apiserver.objects.kinds import BY_KIND, KINDS
from tenure.sim.apiserver.objects.storedkinds import EVENTS_V1
from tenure.sim.apiserver.objects.strictness import Strictness
from tenure.sim.scenario.read.kindnames import resource_called
from tenure.sim.serve.table.table import table
from tenure.sim.world import World

EPOCH: Final = datetime(2031, 5, 2, 8, tzinfo=UTC)
STRICT: Final = {"fieldValidation": "Strict"}


def stored(manifest: dict[str, Any]) -> Any:
    with World() as world:
        return apply_manifest(world.store, {"metadata": {"name": "it"}, **manifest})


def test_the_text_of_a_secret_is_stored_in_base64_and_never_as_text() -> None:
    secret = stored(
        {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
    )
    assert secret["data"] == {"a": "Yg==", "c": "ZA=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


def test_an_autoscaler_has_what_typed_clients_require() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target}
    found = stored(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}
    )
    assert found["spec"]["minReplicas"] == 1
    assert found["status"] == {"desiredReplicas": 0}


CONTAINERS: dict[str, Any] = {"containers": [{"name": "c", "image": "registry.example/c:1"}]}
WEBHOOK: dict[str, Any] = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "default", "name": "web", "port": 443}},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
}
BROUGHT_ALONG: list[dict[str, Any]] = [
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "spec": {
            "ingressClassName": "nginx",
            "rules": [
                {
                    "host": "a.example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "web", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "spec": {"controller": "example.com/ingress"},
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]},
    },
    {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"requests.cpu": "4"}}},
    {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "spec": {
            "replicas": 2,
            "selector": {"app": "web"},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": CONTAINERS},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": CONTAINERS},
    },
    {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {"spec": {}}},
    {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    },
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata"},
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "webhooks": [WEBHOOK],
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "webhooks": [WEBHOOK],
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": WEBHOOK["rules"]},
            "validations": [{"expression": "true"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "it", "validationActions": ["Deny"]},
    },
    {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "spec": {"group": "g", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "spec": {"attachRequired": False, "tokenRequests": [{"audience": "a"}]},
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "storageClassName": "fast",
        "capacity": "10Gi",
    },
]


@pytest.mark.parametrize("manifest", BROUGHT_ALONG, ids=lambda one: str(one["kind"]))
def test_what_charts_bring_along_is_stored_as_it_is_written(manifest: dict[str, Any]) -> None:
    """By the strict rules for what comes from outside: every field is known."""
    with World() as world:
        resource = BY_KIND[manifest["apiVersion"], manifest["kind"]]
        where = {"namespace": "default"} if resource.namespaced else {}
        obj = {**manifest, "metadata": {"name": "it", **where}}
        made = world.store.create(resource, obj, strictness=Strictness.wished(STRICT))
    assert {key: made[key] for key in manifest} | manifest == {key: made[key] for key in manifest}
    assert table(resource, [made], EPOCH, metadata={})["rows"][0]["cells"][0] == "it"


@pytest.mark.parametrize("word", ["event", "events", "horizontalpodautoscaler"])
def test_a_kind_of_several_versions_is_called_by_the_one_that_is_stored(word: str) -> None:
    resource = resource_called(word)
    assert resource is not None
    assert KINDS[resource].stored_as is None


def test_webhooks_are_stored_and_not_called() -> None:
    refusing = next(one for one in BROUGHT_ALONG if one["kind"].startswith("ValidatingWebhook"))
    with World() as world:
        apply_manifest(world.store, {**refusing, "metadata": {"name": "refuses"}})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": CONTAINERS}
        assert apply_manifest(world.store, pod)["status"]["phase"] == "Pending"


def test_an_event_of_the_new_group_says_when_as_typed_clients_require() -> None:
    when = "2026-01-05T08:00:00Z"
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    with World() as world:
        apply_manifest(world.store, {**event, "involvedObject": about, "lastTimestamp": when})
        seen = world.store.get(EVENTS_V1, "default", "e")
    assert (seen["eventTime"], seen["deprecatedLastTimestamp"]) == (when, when)
