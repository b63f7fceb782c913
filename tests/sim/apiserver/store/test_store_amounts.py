"""Amounts as people write them, and what a pod or budget may not ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from tenure.errors import Invalid
from tenure.model.api.resource import DEPLOYMENTS, NODES
from tenure.sim.apiserver.applying import apply_manifest
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.apiserver.store.store import Store
from tests.builders import a_deployment, a_pdb, a_pod


class FixedClock:
    def now(self) -> datetime:
        return datetime(2031, 5, 2, 20, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def store() -> Store:
    return Store(FixedClock(), Random(1), lambda *_: None, lambda *_: None)


def with_resources(obj: Obj, **resources: Any) -> Obj:
    spec = obj["spec"].get("template", obj)["spec"]
    spec["containers"][0]["resources"] = resources
    return obj


@pytest.mark.parametrize(
    ("written", "stored"),
    [(1, "1"), (0.5, "500m"), (0, "0"), (1000, "1k"), (1.5e-3, "1500u"), ("0.5", "0.5")],
)
def test_an_amount_is_stored_as_text_however_it_is_written(
    store: Store, written: Any, stored: str
) -> None:
    pod = apply_manifest(store, with_resources(a_pod(), requests={"cpu": written}))
    deployment = with_resources(a_deployment(), limits={"nvidia.com/gpu": written})
    deployment = apply_manifest(store, deployment)
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": stored}
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": stored}
    assert container["resources"]["requests"] == {"nvidia.com/gpu": stored}, "a limit is a request"


def test_the_capacity_of_a_volume_and_what_a_claim_asks_for_are_text_too(store: Store) -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {"capacity": {"storage": 1024}, "accessModes": ["ReadWriteOnce"]},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"resources": {"requests": {"storage": 2048}}, "accessModes": ["ReadWriteOnce"]},
    }
    assert apply_manifest(store, volume)["spec"]["capacity"] == {"storage": "1024"}
    stored = apply_manifest(store, claim)
    assert stored["spec"]["resources"]["requests"] == {"storage": "2048"}


def test_a_patch_with_numbers_ends_up_as_text_too(store: Store) -> None:
    deployment = apply_manifest(store, a_deployment())
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    overhead = {"spec": {"template": {"spec": {"overhead": {"memory": 1024, "cpu": 0.25}}}}}
    patched = store.patch(DEPLOYMENTS, namespace, name, overhead)
    amounts = patched["spec"]["template"]["spec"]["overhead"]
    assert amounts == {"memory": "1024", "cpu": "250m"}


def test_a_nodes_capacity_is_text_from_the_start_and_after_its_status_changed(
    store: Store,
) -> None:
    status = {"capacity": {"cpu": 4, "pods": 110}}
    node = store.create(NODES, {"metadata": {"name": "n"}, "status": status})
    assert node["status"]["capacity"] == {"cpu": "4", "pods": "110"}
    assert node["status"]["allocatable"] == {"cpu": "4", "pods": "110"}
    node = store.patch(
        NODES, "", "n", {"status": {"allocatable": {"cpu": 3.5}}}, subresource="status"
    )
    assert node["status"]["allocatable"] == {"cpu": "3500m", "pods": "110"}


def an_unnamed_spread(**changes: Any) -> Obj:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **changes}
    pod = a_pod()
    pod["spec"]["topologySpreadConstraints"] = [spread]
    return pod


def an_affinity(operator: str, **more: Any) -> Obj:
    pod = a_pod()
    expressions = [{"key": "disk", "operator": operator, **more}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    return pod


def a_pdb_that_selects(operator: str) -> Obj:
    selector = {"matchExpressions": [{"key": "app", "operator": operator, "values": ["web"]}]}
    budget = a_pdb(maxUnavailable=1)
    budget["spec"]["selector"] = selector
    return budget


TERM = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    ".nodeSelectorTerms[0].matchExpressions[0]"
)


@pytest.mark.parametrize(
    ("obj", "field", "message"),
    [
        pytest.param(
            with_resources(a_pod(), requests={"cpu": -1}),
            "spec.containers[0].resources.requests[cpu]",
            "must be greater than or equal to 0",
            id="a negative amount",
        ),
        pytest.param(
            with_resources(a_pod(), requests={"cpu": 2}, limits={"cpu": "1500m"}),
            "spec.containers[0].resources.requests",
            "must be less than or equal to cpu limit of 1500m",
            id="a request above its limit",
        ),
        pytest.param(
            an_unnamed_spread(maxSkew=0),
            "spec.topologySpreadConstraints[0].maxSkew",
            "must be greater than zero",
            id="a spread that may not be uneven at all",
        ),
        pytest.param(
            an_affinity("Likes"),
            f"{TERM}.operator",
            "not a valid selector operator",
            id="an operator that does not exist",
        ),
        pytest.param(
            an_affinity("In"),
            f"{TERM}.values",
            "must be specified when `operator` is 'In' or 'NotIn'",
            id="nothing to compare with",
        ),
        pytest.param(
            a_pdb_that_selects("Gt"),
            "spec.selector.matchExpressions[0].operator",
            "not a valid selector operator",
            id="an operator that only nodes know",
        ),
        pytest.param(
            a_pdb(maxUnavailable="abc"),
            "spec.maxUnavailable",
            "must be a number from 0 or a percentage like 10%",
            id="a budget that is no number",
        ),
        pytest.param(
            a_pdb(maxUnavailable="200%"),
            "spec.maxUnavailable",
            "must not be greater than 100%",
            id="a budget of more than everything",
        ),
    ],
)
def test_what_an_api_server_refuses_is_refused_with_its_field(
    store: Store, obj: Obj, field: str, message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        apply_manifest(store, obj)
    assert refused.value.status == 422
    assert [(cause.field, cause.message) for cause in refused.value.causes] == [(field, message)]


@pytest.mark.parametrize(
    "pod",
    [
        with_resources(a_pod(), requests={"cpu": "1"}, limits={"cpu": "1000m"}),
        with_resources(a_pod(), requests={"cpu": "-0"}),
        an_unnamed_spread(),
        an_affinity("Gt", values=["3"]),
        an_affinity("Exists"),
    ],
    ids=["request and limit alike", "less than nothing is nothing", "a spread", "Gt", "Exists"],
)
def test_what_is_just_right_is_taken(store: Store, pod: Obj) -> None:
    assert apply_manifest(store, pod)["status"]["phase"] == "Pending"
