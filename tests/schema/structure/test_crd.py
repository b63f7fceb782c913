"""The generated CRDs: current, structural, and with what Karpenter's users expect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.schema.structure import crd
from tenure.sim.apiserver.objects.customkinds import OWN_KINDS
from tests.folders import ROOT

CHART = ROOT / "charts" / "tenure"
DEFINITIONS = {
    definition["spec"]["names"]["kind"]: definition for definition in crd.generate(OWN_KINDS)
}


def version_of(kind: str) -> dict[str, Any]:
    version: dict[str, Any] = DEFINITIONS[kind]["spec"]["versions"][0]
    return version


def places(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield at, schema
    for key, child in schema.get("properties", {}).items():
        yield from places(child, f"{at}.{key}")
    for key, part in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from places(schema[key], f"{at}{part}")


ALL_PLACES = [
    pytest.param(at, schema, id=f"{kind}{at}")
    for kind in DEFINITIONS
    for at, schema in places(version_of(kind)["schema"]["openAPIV3Schema"])
]


def test_the_committed_files_are_current() -> None:
    folders = (CHART / "crds", CHART / "charts" / "karpenter-crds" / "crds")
    paths = [path for folder in folders for path in folder.iterdir()]
    committed = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert committed == crd.files(OWN_KINDS), "run `make generate` and commit charts/tenure"


def test_what_helm_installs_in_every_mode_is_no_kind_of_karpenters() -> None:
    """Helm applies the folder crds/ before it reads any value."""
    kinds = [
        yaml.safe_load(path.read_text())["spec"]["names"]["kind"]
        for path in sorted((CHART / "crds").iterdir())
    ]
    assert kinds == ["MaintenanceWindow", "NodePoolPolicy"]
    assert [kind.resource.kind for kind in crd.BESIDE_KINDS] == kinds


def test_the_dump_holds_all_kinds_ready_to_apply() -> None:
    assert list(yaml.safe_load_all(crd.dump(OWN_KINDS))) == crd.generate(OWN_KINDS)
    ours = ["NodePool", "NodeClaim", "MaintenanceWindow", "NodePoolPolicy"]
    assert list(DEFINITIONS) == [*ours, "KWOKNodeClass"]


def test_writing_gives_one_file_per_kind(tmp_path: Path) -> None:
    written = crd.write(tmp_path / "crds", OWN_KINDS)
    assert {path.name: path.read_text(encoding="utf-8") for path in written} == crd.files(OWN_KINDS)


@pytest.mark.parametrize(("at", "schema"), ALL_PLACES)
def test_each_place_has_a_type_and_no_reference(at: str, schema: dict[str, Any]) -> None:
    assert schema.get("x-kubernetes-int-or-string") or "type" in schema
    assert not schema.keys() & {"$ref", "nullable", "title", "x-required"}


@pytest.mark.parametrize(("at", "schema"), ALL_PLACES)
def test_each_place_a_rule_looks_at_is_bounded(at: str, schema: dict[str, Any]) -> None:
    rules = " ".join(rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))
    if "self.matches" in rules:
        assert schema["maxLength"] <= 316
    if "self.all" in rules:
        assert schema["maxItems" if schema["type"] == "array" else "maxProperties"] <= 100


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_each_field_is_explained_in_a_sentence(kind: str) -> None:
    for at, schema in places(version_of(kind)["schema"]["openAPIV3Schema"]):
        if at.endswith(("]", "}")) or at in (".metadata", ""):
            continue
        assert schema.get("description", "").endswith("."), f"{kind}{at} says nothing"


def test_a_pool_can_be_scaled_and_shows_the_columns_of_karpenter() -> None:
    version = version_of("NodePool")
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.nodes",
    }
    shown = [(c["name"], c.get("priority", 0)) for c in version["additionalPrinterColumns"]]
    assert shown == [
        ("NodeClass", 0),
        ("Nodes", 0),
        ("Ready", 0),
        ("Age", 0),
        ("Weight", 1),
        ("CPU", 1),
        ("Memory", 1),
    ]


def test_a_claim_shows_labels_with_their_dots_escaped() -> None:
    columns = {
        c["name"]: c["jsonPath"] for c in version_of("NodeClaim")["additionalPrinterColumns"]
    }
    assert columns["Zone"] == r".metadata.labels.topology\.kubernetes\.io/zone"


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_each_kind_is_cluster_scoped_with_a_status(kind: str) -> None:
    spec = DEFINITIONS[kind]["spec"]
    assert spec["scope"] == "Cluster"
    assert spec["names"]["categories"] == ["karpenter"]
    assert version_of(kind)["subresources"]["status"] == {}
