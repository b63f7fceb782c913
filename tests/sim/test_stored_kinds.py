"""Kinds that the embedded cluster only stores: as a real API server completes them, and typed clients need them."""

from __future__ import annotations

from typing import Any

from tenure.sim.apiserver.applying import apply_manifest
from tenure.sim.world import World


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
