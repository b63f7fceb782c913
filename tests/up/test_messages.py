"""Bodies in protobuf, as kubectl and typed clients of client-go send them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tenure.sim.apiserver.objects.kinds import KINDS
from tenure.sim.apiserver.objects.tree import without_nulls
from tenure.sim.serve.messages import read
from tenure.sim.serve.proto import Unreadable


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    return message(field, value.encode())


VERSIONS = {
    "Deployment": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "Job": "batch/v1",
    "Ingress": "networking.k8s.io/v1",
}


def envelope(kind: str, *parts: bytes, version: str = "") -> bytes:
    version = version or VERSIONS.get(kind, "v1")
    type_ = message(1, text(1, version), text(2, kind))
    return b"k8s\x00" + type_ + message(2, *parts) + text(3, "") + text(4, "")


def test_options_of_a_deletion() -> None:
    body = envelope(
        "DeleteOptions",
        number(1, 0),
        message(2, text(1, "an-uid")),
        text(4, "Background"),
        text(5, "All"),
    )
    assert read(body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "an-uid"},
        "propagationPolicy": "Background",
        "dryRun": ["All"],
    }


def test_a_deployment_as_kubectl_create_sends_it() -> None:
    labels = message(11, text(1, "app"), text(2, "web"))
    container = message(2, text(1, "web"), text(2, "image:1"), message(8), number(16, 0))
    metadata = message(1, text(1, "web"), text(2, ""), message(8), labels)
    selector = message(2, message(1, text(1, "app"), text(2, "web")))
    template = message(3, message(1, labels), message(2, container))
    spec = message(2, number(1, 0), selector, template, message(4), number(5, 0))
    status = message(3, number(1, 0), number(2, 0))
    assert read(envelope("Deployment", metadata, spec, status)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "image:1"}]},
            },
        },
    }


@pytest.mark.parametrize(
    ("share", "expected"),
    [((number(1, 0), number(2, 0)), 0), ((number(1, 1), text(3, "50%")), "50%")],
)
def test_a_share_is_a_number_or_a_percentage(share: tuple[bytes, ...], expected: object) -> None:
    body = envelope("PodDisruptionBudget", message(2, message(3, *share), message(2)))
    assert read(body)["spec"] == {"maxUnavailable": expected, "selector": {}}


def test_negative_numbers_instants_and_amounts() -> None:
    amount = message(2, text(1, "cpu"), message(2, text(1, "500m")))
    container = message(2, message(8, amount))
    pod_spec = message(2, number(4, -1), container)
    metadata = message(1, message(8, number(1, 86_400)))
    found = read(envelope("Job", metadata, message(2, message(6, pod_spec))))
    assert found["metadata"] == {"creationTimestamp": "1970-01-02T00:00:00Z"}
    assert found["spec"]["template"]["spec"] == {
        "terminationGracePeriodSeconds": -1,
        "containers": [{"resources": {"requests": {"cpu": "500m"}}}],
    }


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{}", "not in the envelope"),
        (b"k8s\x00\xff", "cut short"),
        (envelope("Shoe", text(1, "a")), "a message of kind 'Shoe' in version 'v1'"),
        (envelope("DeleteOptions", number(99, 1)), "field 99 of meta/v1.DeleteOptions"),
        (envelope("DeleteOptions", text(1, "soon")), "where a number should be"),
        (envelope("DeleteOptions", number(4, 1)), "where a text or a message should be"),
        (envelope("DeleteOptions", message(4, b"\xff")), "a text that is none"),
        (envelope("Namespace", message(1, message(8, number(1, 1 << 60)))), "beyond all calendars"),
    ],
)
def test_what_cannot_be_read_is_said_and_never_dropped(body: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(body)


def test_an_ingress_whose_rule_is_a_message_deeper_than_in_json() -> None:
    service = message(4, text(1, "web"), message(2, text(1, ""), number(2, 80)))
    path = message(1, text(1, "/"), message(2, service), text(3, "Prefix"))
    rule = message(3, text(1, "a.example.com"), message(2, message(1, path)))
    body = envelope("Ingress", message(1, text(1, "web")), message(2, rule))
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    assert read(body) == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web"},
        "spec": {"rules": [{"host": "a.example.com", "http": {"paths": paths}}]},
    }


def test_an_autoscaler_of_version_1_has_other_fields_than_one_of_version_2() -> None:
    target = message(1, text(1, "Deployment"), text(2, "web"), text(3, "apps/v1"))
    cpu = message(4, text(1, "cpu"), message(2, text(1, "Utilization"), number(4, 50)))
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "maxReplicas": 3,
    }
    old = message(2, target, number(3, 3), number(4, 50))
    new = message(2, target, number(3, 3), message(4, text(1, "Resource"), cpu))
    kind = "HorizontalPodAutoscaler"
    percent = {"targetCPUUtilizationPercentage": 50}
    assert read(envelope(kind, old, version="autoscaling/v1"))["spec"] == {**spec, **percent}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    metrics = [{"type": "Resource", "resource": metric}]
    assert read(envelope(kind, new, version="autoscaling/v2"))["spec"] == {
        **spec,
        "metrics": metrics,
    }


def test_a_job_says_which_cron_job_it_is_of() -> None:
    owner = message(13, text(1, "CronJob"), text(3, "x"), text(4, "u"), text(5, "batch/v1"))
    assert read(envelope("Job", message(1, text(1, "y"), owner)))["metadata"] == {
        "name": "y",
        "ownerReferences": [{"kind": "CronJob", "name": "x", "uid": "u", "apiVersion": "batch/v1"}],
    }


def test_a_pod_with_what_has_fields_of_another_message_among_its_own() -> None:
    """Volumes and probes: in JSON their sources stand beside their names."""
    volume = message(1, text(1, "tmp"), message(2, message(2)))
    secret = message(1, text(1, "key"), message(2, message(6, text(1, "it"), number(3, 256))))
    http = message(2, text(1, "/ok"), message(2, number(1, 1), number(2, 0), text(3, "web")))
    probe = message(11, message(1, http), number(2, 0), number(4, 5))
    variable = message(7, text(1, "EMPTY"), text(2, ""))
    container = message(2, text(1, "c"), variable, probe, message(15, number(2, 0)))
    pod = envelope("Pod", message(1, text(1, "p")), message(2, volume, secret, container))
    assert read(pod)["spec"] == {
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "key", "secret": {"secretName": "it", "defaultMode": 256}},
        ],
        "containers": [
            {
                "name": "c",
                "env": [{"name": "EMPTY"}],
                "readinessProbe": {"httpGet": {"path": "/ok", "port": "web"}, "periodSeconds": 5},
                "securityContext": {"privileged": False},
            }
        ],
    }


def test_an_exact_instant_bytes_and_a_definition() -> None:
    times = message(2, text(1, "me"), message(4, number(1, 86_400), number(2, 5_000_000)))
    lease = read(envelope("Lease", times, version="coordination.k8s.io/v1"))
    assert lease["spec"] == {"holderIdentity": "me", "renewTime": "1970-01-02T00:00:00.005000Z"}
    data = message(2, text(1, "a"), message(2, b"b"))
    assert read(envelope("Secret", data))["data"] == {"a": "Yg=="}
    half = varint(9 << 3 | 1) + struct.pack("<d", 0.5)
    items = message(24, message(1, text(5, "string")))
    schema = message(1, text(5, "object"), half, items, message(8, message(1, b"{}")))
    version = message(7, text(1, "v1"), number(2, 1), number(3, 0), message(4, schema))
    body = envelope(
        "CustomResourceDefinition", message(2, version), version="apiextensions.k8s.io/v1"
    )
    (found,) = read(body)["spec"]["versions"]
    assert found["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "maximum": 0.5,
        "items": {"type": "string"},
        "default": {},
    }
    assert (found["served"], found["storage"]) == (True, False)


def test_a_message_that_is_deeper_than_any_other_is_refused() -> None:
    schema = text(5, "object")
    for _ in range(5000):
        schema = message(28, schema)
    version = message(7, message(4, message(1, schema)))
    body = envelope(
        "CustomResourceDefinition", message(2, version), version="apiextensions.k8s.io/v1"
    )
    with pytest.raises(Unreadable, match="in more than 100 others"):
        read(body)


SAMPLES = sorted(Path.home().glob("go/pkg/mod/k8s.io/api@v0.36.3/testdata/HEAD/*.pb"))


@pytest.mark.real
@pytest.mark.skipif(not SAMPLES, reason="make bed brings Kubernetes' own samples along")
def test_every_kind_that_is_served_is_read_as_kubernetes_own_samples_are() -> None:
    """Each has every field of its kind, in protobuf and in JSON."""
    served = {f"{one.api_version}.{one.kind}" for one in KINDS if not KINDS[one].custom}
    compared = set()
    for sample in SAMPLES:
        group, version, kind = sample.stem.rsplit(".", 2)
        name = f"{version}.{kind}" if group == "core" else f"{group}/{version}.{kind}"
        if name in served:
            compared.add(name)
            expected = json.loads(sample.with_suffix(".json").read_text())
            found = without_nulls(read(sample.read_bytes()))
            assert found == without_nulls(expected), name
    extensions = {one for one in served if "apiextensions" in one or "apiregistration" in one}
    assert served - compared == extensions
