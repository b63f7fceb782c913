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
from tenure.schema.findings import CODES, Code
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


def test_budgets_of_both_count_and_lint_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A default of the API server says nothing."""
    budgets = [{"nodes": "5"}]
    policy = a_policy(budgets=[{"nodes": "3", "within": "1h"}])
    both = a_pool(template=SILENT, disruption={"budgets": budgets})
    assert linted(tmp_path, capsys, both, policy) == [("BudgetsOfBoth", USUAL, "spec.budgets")]
    default = a_pool(template=SILENT, disruption={"budgets": [{"nodes": "10%"}]})
    assert linted(tmp_path, capsys, default, policy) == []


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


def a_freeze() -> Obj:
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    schedules = [{"cron": "0 8 * * *", "duration": "10h"}]
    spec = {"actions": ["Expiration"], "schedules": schedules}
    return {**kind, "metadata": {"name": "freeze"}, "spec": spec}


@pytest.mark.parametrize(
    ("others", "warned"),
    [
        ([], True),
        ([a_policy(readinessTTL="40m")], True),
        ([a_policy(expireAfter="24h")], False),
        ([a_pool(template=SILENT), a_policy(expireAfter="24h")], False),
        ([a_pool(template={"expireAfter": "48h"}), a_policy(expireAfter="24h")], True),
    ],
)
def test_beside_karpenter_a_window_has_an_effect_on_expiration_by_a_policy(
    others: list[Obj], warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = linted(tmp_path, capsys, a_freeze(), *others, flags=["--beside-karpenter"])
    assert ("NoLever" in {code for code, _, _ in found}) == warned


@pytest.mark.parametrize("field", ["readinessTTL", "initializationTTL"])
def test_beside_karpenter_a_ttl_that_hides_the_policys_acts_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    objects = (a_pool(template={field: "5m"}), a_policy(**{field: "10m"}))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))

    def said(*flags: str) -> list[str]:
        run(["lint", "--json", str(tmp_path / "all.yaml"), *flags])
        findings = json.loads(capsys.readouterr().out)["findings"]
        return [one["message"] for one in findings if one["code"] == "InlineWins"]

    assert "neither acts there" in said("--beside-karpenter")[0]
    assert "neither" not in said()[0]


# -- beside Karpenter, the cloud is Karpenter's ------------------------------------------------

AWS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def said_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: Obj, flag: str = ""
) -> dict[str, str]:
    """Code and message."""
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    run(["lint", "--json", str(tmp_path / "all.yaml"), flag or "--beside-karpenter"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return {one["code"]: one["message"] for one in findings}


def test_beside_karpenter_node_classes_of_every_provider_are_looked_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = a_pool(template={"nodeClassRef": AWS})
    assert "ForeignNodeClass" not in said_beside(tmp_path, capsys, pool)
    assert "ForeignNodeClass" in said_beside(tmp_path, capsys, pool, flag="--json")


def test_beside_karpenter_static_capacity_is_karpenters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "DoesNothingYet" not in said_beside(tmp_path, capsys, a_pool(replicas=3))
    assert "DoesNothingYet" in said_beside(tmp_path, capsys, a_pool(replicas=3), flag="--json")
    living, _ = remarks_on_cluster(snapshot_with(a_living_pool(replicas=3), ours=EVERY_CLASS), NOW)
    assert not [one for one in living if one.finding.code is Code.DOES_NOTHING_YET]


def test_beside_karpenter_nothing_is_repaired_without_a_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = a_policy(
        repair={"policies": [{"conditionType": "Ready", "status": "False", "toleration": "5m"}]}
    )
    assert (
        "without the block repair is Graceful"
        not in said_beside(tmp_path, capsys, policy)["RepairByForce"]
    )
    alone = said_beside(tmp_path, capsys, policy, flag="--json")
    assert "without the block repair is Graceful" in alone["RepairByForce"]


def test_a_name_that_is_nearly_that_of_a_pool_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pools = (a_pool("stateful"), a_pool("batch"))
    near = a_policy(nodePools={"names": ["statefull"]}, readinessTTL="40m")
    said = said_beside(tmp_path, capsys, near, *pools)["SelectsNoPool"]
    assert said.endswith("is selected, so the policy does nothing; did you mean stateful?")
    far = a_policy(nodePools={"names": ["gpu"]}, readinessTTL="40m")
    said = said_beside(tmp_path, capsys, far, *pools)["SelectsNoPool"]
    assert said == "none of 2 NodePools is selected, so the policy does nothing"


def test_a_window_for_a_pool_that_is_not_in_the_files_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*values: str, operator: str = "In", pools: Sequence[Obj] = (a_pool(),)) -> str:
        window = a_freeze()
        one = {"key": "karpenter.sh/nodepool", "operator": operator, "values": list(values)}
        window["spec"]["selector"] = {"matchExpressions": [one]}
        return said_beside(tmp_path, capsys, window, *pools).get("SelectsNoPool", "")

    assert said("genral") == (
        "the only NodePool is not selected, so the window blocks nothing; did you mean general?"
    )
    assert said("gpu") == "the only NodePool is not selected, so the window blocks nothing"
    assert said("genral", "general") == "", "one of them is there"
    assert said("genral", operator="NotIn") == ""
    assert said("genral", pools=()) == "", "the NodePools may be elsewhere"


def test_beside_karpenter_a_policy_that_reboots_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"conditionType": "DiskBroken", "status": "True", "toleration": "5m"}
    policies = [entry, {**entry, "conditionType": "KernelDeadlock", "action": "Reboot"}]
    policy = a_policy(repair={"terminationMode": "Graceful", "policies": policies})
    found = linted(tmp_path, capsys, policy, flags=["--beside-karpenter"])
    assert ("NoReboot", USUAL, "spec.repair.policies[1].action") in found
    said = said_beside(tmp_path, capsys, policy)["NoReboot"]
    assert (
        said == "beside Karpenter Tenure reboots no Node, so nothing is done about KernelDeadlock"
    )
    assert "NoReboot" not in said_beside(tmp_path, capsys, policy, flag="--json")


def test_beside_karpenter_a_policy_launches_nothing_first_in_a_pool_with_replicas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"conditionType": "DiskBroken", "status": "True", "toleration": "5m"}
    repair = {"terminationMode": "Graceful", "policies": [entry]}
    policy = a_policy(expireAfter="720h", repair=repair)
    fixed = a_pool(template={"expireAfter": "Never"}, replicas=3)
    found = linted(tmp_path, capsys, policy, fixed, flags=["--beside-karpenter"])
    for at in ("spec.expireAfter", "spec.repair"):
        assert ("ReplicasAreKept", USUAL, at) in found
    for pool, flag in ((fixed, "--json"), (a_pool(template={"expireAfter": "Never"}), "")):
        assert "ReplicasAreKept" not in said_beside(tmp_path, capsys, policy, pool, flag=flag)
    forceful = a_policy(expireAfter="Never", repair={**repair, "terminationMode": "Forceful"})
    assert "ReplicasAreKept" not in said_beside(tmp_path, capsys, forceful, fixed)


def test_beside_karpenter_only_pools_count_that_the_window_can_select(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requirement = {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["general"]}
    freeze = a_freeze()
    freeze["spec"]["selector"] = {"matchExpressions": [requirement]}
    other = a_pool("other", template={"expireAfter": "48h"})
    silent = a_pool(template=SILENT)
    assert "NoLever" not in said_beside(tmp_path, capsys, freeze, other, silent)
    forced = a_pool(template={"expireAfter": "24h"})
    said = said_beside(tmp_path, capsys, freeze, other, forced)["NoLever"]
    assert said.endswith("Karpenter expires by force: general (24h)")


def test_beside_karpenter_an_action_that_never_starts_gets_no_advice_about_expiration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    freeze = a_freeze()
    freeze["spec"]["actions"] = ["Rebalance"]
    said = said_beside(tmp_path, capsys, freeze)["NoLever"]
    assert said == "beside Karpenter the window has no effect on Rebalance"
    assert "remove any other action" in CODES[Code.NO_LEVER].advice
    freeze["spec"]["actions"] = ["Drift", "Consolidation", "Rebalance"]
    assert "NoLever" not in said_beside(tmp_path, capsys, freeze), "it holds all the same"


@pytest.mark.parametrize("flag", ["--beside-karpenter=True", "--beside-karpenter=TRUE"])
def test_a_switch_means_the_same_for_files_as_for_a_cluster(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "NoLever" in said_beside(tmp_path, capsys, a_freeze(), flag=flag)


def test_a_switch_with_another_value_is_refused_for_files_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(a_freeze()))
    assert run(["lint", str(tmp_path / "all.yaml"), "--beside-karpenter=maybe"]) == 2
    assert "--beside-karpenter: got 'maybe', expected true or false" in capsys.readouterr().err


def test_the_other_switches_need_a_cluster_and_files_have_no_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(a_freeze()))
    assert run(["lint", str(tmp_path / "all.yaml"), "--karpenter-version=1.15"]) == 2
    said = capsys.readouterr().err
    assert "expected a cluster and not files" in said
    assert "scenario" not in said


def test_a_kind_of_another_group_is_named_with_its_apiversion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    misplaced = {**a_policy(), "apiVersion": "karpenter.sh/v1"}
    said = said_beside(tmp_path, capsys, misplaced)["Invalid"]
    assert said == "got 'karpenter.sh/v1', expected tenure.dev/v1alpha1"
