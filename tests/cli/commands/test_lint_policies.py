"""``tenure lint`` about NodePoolPolicies: mistakes, ties, no pool, and pools that win."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.cli.lint.cluster import remarks_on_cluster
from tenure.cli.main import run
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.schema.findings import Code
from tests.cli.commands.test_lint import a_pool
from tests.core.build import NOW
from tests.core.build import a_policy as a_living_policy
from tests.core.build import a_pool as a_living_pool
from tests.snapshots import snapshot_with

Obj = dict[str, Any]
SILENT = {"expireAfter": "Never"}


def a_policy(name: str = "usual", **spec: Any) -> Obj:
    kind = {"apiVersion": "tenure.dev/v1alpha1", "kind": "NodePoolPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def linted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: Obj, flags: Sequence[str] = ()
) -> list[tuple[str, str, str]]:
    """Code, object and field."""
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    run(["lint", "--json", str(tmp_path / "all.yaml"), *flags])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return [(one["code"], one["object"], one["field"]) for one in findings]


USUAL = "NodePoolPolicy/usual"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"readinessTTL": "40m"}, []),
        ({"readinesTTL": "40m"}, [("UnknownField", USUAL, "spec.readinesTTL")]),
        ({"readinessTTL": "soon"}, [("Invalid", USUAL, "spec.readinessTTL")]),
        ({"readinessTTL": "5s"}, [("TTLShort", USUAL, "spec.readinessTTL")]),
        ({"budgets": [{"nodes": "ten"}]}, [("Invalid", USUAL, "spec.budgets[0].nodes")]),
        (
            {"nodePools": {"names": ["genral"]}, "readinessTTL": "40m"},
            [("SelectsNoPool", USUAL, "spec.nodePools")],
        ),
        ({"repair": {"maxUnhealthy": "50%"}}, [("RepairByForce", USUAL, "spec.repair")]),
    ],
)
def test_mistakes_in_a_policy(
    spec: Obj,
    expected: list[tuple[str, str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert linted(tmp_path, capsys, a_pool(template=SILENT), a_policy(**spec)) == expected


def test_a_field_that_the_pool_has_itself_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = a_pool(template={"readinessTTL": "20m"}, repair={"terminationMode": "Graceful"})
    graceful = {"terminationMode": "Graceful"}
    policy = a_policy(readinessTTL="40m", expireAfter="24h", repair=graceful, maxPodProtection="1h")
    assert linted(tmp_path, capsys, pool, policy) == [
        ("InlineWins", USUAL, field)
        for field in ("spec.expireAfter", "spec.readinessTTL", "spec.repair")
    ]


def test_ties_are_errors_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policies = [a_policy(name, nodePools={"names": ["general"]}) for name in ("one", "two")]
    assert linted(tmp_path, capsys, a_pool(), *policies) == [
        ("PoliciesTied", f"NodePoolPolicy/{name}", "spec.nodePools") for name in ("one", "two")
    ]


def test_without_pools_it_is_not_known_what_is_selected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert linted(tmp_path, capsys, a_policy("one"), a_policy("two")) == []


def test_in_a_cluster_the_mistake_is_said_of_the_policy_and_not_of_the_pool() -> None:
    items = (a_living_pool(template=SILENT), a_living_policy(readinessTTL="5s", expireAfter="0s"))
    remarks, objects = remarks_on_cluster(snapshot_with(*items), NOW)
    assert objects == 2
    told = [(one.finding.code, one.about, one.finding.at) for one in remarks]
    assert told == [
        ("TTLShort", USUAL, "spec.readinessTTL"),
        ("NeverExpires", USUAL, "spec.expireAfter"),
    ]


def test_in_a_cluster_pools_win_too() -> None:
    items = (a_living_pool(), a_living_policy(expireAfter="24h"))
    remarks, _ = remarks_on_cluster(snapshot_with(*items), NOW)
    (told,) = [(one.finding.code, one.about, one.finding.message) for one in remarks]
    message = "spec.template.spec.expireAfter of NodePool general is not Never, so this has no effect there"
    assert told == ("InlineWins", USUAL, message)


def test_beside_karpenter_fields_that_its_crd_drops_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = a_pool(
        repair={"defaultTolerationDuration": "10m", "terminationMode": "Graceful"},
        disruption={"budgets": [{"nodes": "1", "within": "1h"}]},
    )
    found = linted(tmp_path, capsys, pool, flags=["--beside-karpenter"])
    dropped = {field for code, _, field in found if code == "DroppedField"}
    assert {"spec.repair", "spec.disruption.budgets[0].within"} <= dropped
    alone = linted(tmp_path, capsys, pool)
    assert "DroppedField" not in {code for code, _, _ in alone}


def test_on_a_cluster_beside_karpenter_too() -> None:
    pool = a_living_pool(template={"readinessTTL": "5m", "initializationTTL": "10m"})
    remarks, _ = remarks_on_cluster(snapshot_with(pool, ours=EVERY_CLASS), NOW)
    dropped = {one.finding.at for one in remarks if one.finding.code is Code.DROPPED_FIELD}
    assert dropped == {
        "spec.template.spec.readinessTTL",
        "spec.template.spec.initializationTTL",
    }
    plain, _ = remarks_on_cluster(snapshot_with(a_living_pool(), ours=EVERY_CLASS), NOW)
    assert not [one for one in plain if one.finding.code is Code.DROPPED_FIELD]
