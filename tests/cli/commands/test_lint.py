"""``tenure lint``: what will surprise you, with where it stands and what to do."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tenure.cli.cluster.question import Question
from tenure.cli.explain.explanation import explanation
from tenure.cli.lint.cluster import remarks_on_cluster
from tenure.cli.main import run
from tenure.model.api.names import (
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    DO_NOT_REPAIR,
    NODEPOOL,
    POD_DELETION_COST,
    POD_DISRUPTION_COST,
)
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodepool import Repair
from tenure.sim.world import World
from tests.builders import MINUTE, a_cluster
from tests.builders import a_deployment as a_written_deployment
from tests.builders import a_pdb as a_written_budget
from tests.cli.readclusters import seen
from tests.core.build import NOW, a_claim, a_node, a_pending_pod, a_window
from tests.core.build import a_pdb as a_living_budget
from tests.core.build import a_pod as a_living_pod
from tests.core.build import a_pool as a_living_pool
from tests.folders import ROOT
from tests.snapshots import snapshot_with

Obj = dict[str, Any]


def a_pool(name: str = "general", *, period: str | None = None, **spec: Any) -> Obj:
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template: Obj = {"nodeClassRef": ref, "requirements": []}
    template |= {} if period is None else {"terminationGracePeriod": period}
    template |= spec.pop("template", {})
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": template}, **spec},
    }


def a_deployment(
    *, kind: str = "Deployment", protected: str | None = None, replicas: int = 2, **pod: Any
) -> Obj:
    annotations = {} if protected is None else {DO_NOT_DISRUPT: protected}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            **({} if kind == "DaemonSet" else {"replicas": replicas}),
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": annotations},
                "spec": {"containers": [{"name": "web", "image": "web:1"}], **pod},
            },
        },
    }


def costing(name: str, value: str) -> Obj:
    found = a_deployment()
    found["spec"]["template"]["metadata"]["annotations"] = {name: value}
    return found


def a_pdb(name: str = "web", **wish: Any) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **wish},
    }


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Lint these objects; gives the exit code and the findings."""

    def told(*objects: Obj) -> tuple[int, list[Obj]]:
        (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
        code = run(["lint", str(tmp_path / "all.yaml"), "--json"])
        return code, json.loads(capsys.readouterr().out)["findings"]

    return told


def codes(findings: list[Obj]) -> list[str]:
    return [finding["code"] for finding in findings]


def a_repairing_pool(*policies: Obj, group: str = "karpenter.kwok.sh") -> Obj:
    ref = {"group": group, "kind": "KWOKNodeClass", "name": "default"}
    repair = {"policies": list(policies), "terminationMode": "Graceful"}
    return a_pool(repair=repair, template={"nodeClassRef": ref})


def a_lint_window(**spec: Any) -> Obj:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": "nights"},
        "spec": {
            "actions": ["Drift"],
            "schedules": [{"cron": "0 6 * * *", "duration": "1h"}],
            **spec,
        },
    }


def _in(key: str, *values: str) -> Obj:
    return {"key": key, "operator": "In", "values": list(values)}


_EC2 = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
HOUR = a_pool(period="1h")
SLOWLY = {"conditionType": "Ready", "toleration": "5m", "terminationGracePeriod": "1h"}
FOUND: list[tuple[str, list[Obj], list[str]]] = [
    ("all is well", [a_pool(), a_deployment(), a_pdb(maxUnavailable=1)], []),
    (
        "a grace above the pool's period",
        [HOUR, a_deployment(terminationGracePeriodSeconds=7200)],
        ["PeriodDriftsNodes", "GraceLongerThanPeriod"],
    ),
    (
        "a protection above it",
        [HOUR, a_deployment(kind="StatefulSet", protected="4h")],
        ["PeriodDriftsNodes", "DiffersFromKarpenter", "ProtectionLongerThanPeriod"],
    ),
    (
        "for ever, bounded by it",
        [HOUR, a_deployment(protected="true")],
        ["PeriodDriftsNodes", "ProtectionBounded"],
    ),
    ("for ever, unbounded", [a_pool(), a_deployment(protected="true")], ["ProtectedForEver"]),
    (
        "for ever, capped",
        [a_pool(disruption={"maxPodProtection": "4h"}), a_deployment(protected="true")],
        [],
    ),
    ("no pool is known", [a_deployment(protected="true")], []),
    ("a value that means nothing", [a_deployment(protected="TRUE")], ["InvalidDoNotDisrupt"]),
    (
        "the same on a pool's nodes",
        [
            msgspec.json.decode(
                msgspec.json.encode(a_pool()).replace(
                    b'"template":{',
                    b'"template":{"metadata":{"annotations":{"%s":"soon"}},'
                    % DO_NOT_DISRUPT.encode(),
                    1,
                )
            )
        ],
        ["InvalidDoNotDisrupt"],
    ),
    (
        "the annotation on the Deployment instead of on its pods",
        [a_deployment() | {"metadata": {"name": "web", "annotations": {DO_NOT_DISRUPT: "4h"}}}],
        ["AnnotationMisplaced"],
    ),
    (
        "a cost on the Deployment instead of on its pods",
        [a_deployment() | {"metadata": {"name": "web", "annotations": {POD_DISRUPTION_COST: "5"}}}],
        ["AnnotationMisplaced"],
    ),
    ("a cost that is no number", [costing(POD_DISRUPTION_COST, "high")], ["InvalidDisruptionCost"]),
    ("a cost with an exponent", [costing(POD_DELETION_COST, "1e3")], ["InvalidDisruptionCost"]),
    ("a cost beyond 32 bits", [costing(POD_DELETION_COST, "9" * 10)], ["InvalidDisruptionCost"]),
    ("a cost too small to matter", [costing(POD_DISRUPTION_COST, "50")], ["DisruptionCostSmall"]),
    ("a cost of two more pods", [costing(POD_DISRUPTION_COST, str(2**28))], []),
    ("an order for its ReplicaSet", [costing(POD_DELETION_COST, "50")], []),
    ("not one may be missing", [a_deployment(), a_pdb(maxUnavailable=0)], ["BudgetNeverAllows"]),
    ("as many as there are", [a_deployment(), a_pdb(minAvailable=2)], ["BudgetNeverAllows"]),
    ("one fewer", [a_deployment(), a_pdb(minAvailable=1)], []),
    (
        "of a DaemonSet whose size is unknown",
        [a_deployment(kind="DaemonSet"), a_pdb(minAvailable=9)],
        [],
    ),
    ("a budget over nothing that is known", [a_pdb(maxUnavailable=0)], []),
    (
        "an autoscaler brings more",
        [
            a_deployment(),
            a_pdb(minAvailable=2),
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"},
                "spec": {
                    "maxReplicas": 5,
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                },
            },
        ],
        [],
    ),
    (
        "two budgets",
        [a_deployment(), a_pdb(maxUnavailable=1), a_pdb("other", maxUnavailable=1)],
        ["SeveralBudgets"],
    ),
    ("a field that does not exist", [a_pool(replica=1)], ["UnknownField"]),
    ("a field of a workload that does not exist", [a_deployment(restart="x")], ["UnknownField"]),
    ("a value that is refused", [a_pool(period="1d")], ["Invalid"]),
    (
        "a bad cron",
        [
            a_pool(
                disruption={"budgets": [{"nodes": "1", "schedule": "61 * * * *", "duration": "1h"}]}
            )
        ],
        ["Invalid"],
    ),
    ("an older version", [a_pool() | {"apiVersion": "karpenter.sh/v1beta1"}], ["Invalid"]),
    ("an older kind", [a_pool() | {"kind": "Provisioner"}], ["Invalid"]),
    (
        "a claim of one's own is a place, too",
        [
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": "mine"},
                "spec": HOUR["spec"]["template"]["spec"],
            },
            a_deployment(terminationGracePeriodSeconds=7200),
        ],
        ["GraceLongerThanPeriod"],
    ),
    (
        "a job that begins every night",
        [
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": "nightly"},
                "spec": {
                    "schedule": "0 3 * * *",
                    "jobTemplate": {
                        "spec": {"template": a_deployment(protected="1d")["spec"]["template"]}
                    },
                },
            }
        ],
        ["InvalidDoNotDisrupt"],
    ),
    ("a limit below zero", [a_pool(limits={"cpu": "-1"})], ["LimitBelowZero"]),
    ("a TTL that no node meets", [a_pool(template={"readinessTTL": "5s"})], ["TTLShort"]),
    ("a TTL that quick nodes meet", [a_pool(template={"readinessTTL": "1m"})], []),
    ("no time at all", [a_pool(template={"expireAfter": "0s"})], ["NeverExpires"]),
    ("no time in two units", [a_pool(template={"expireAfter": "0h0m"})], ["NeverExpires"]),
    ("no expiration", [a_pool(template={"expireAfter": "Never"})], []),
    ("what does nothing yet", [a_pool(replicas=3)], ["DoesNothingYet"]),
    (
        "consolidation and expiry as Karpenter's users write them",
        [
            a_pool(
                disruption={
                    "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "consolidateAfter": "1m",
                },
                template={"expireAfter": "720h"},
            )
        ],
        ["DiffersFromKarpenter", "DiffersFromKarpenter"],
    ),
    (
        "neither of the two asked for",
        [a_pool(disruption={"consolidateAfter": "Never"}, template={"expireAfter": "Never"})],
        [],
    ),
    (
        "a pool of another provider",
        [
            a_pool(
                template={
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "default",
                    }
                }
            )
        ],
        ["ForeignNodeClass"],
    ),
    ("a repair block that leaves the mode open", [a_pool(repair={})], ["RepairByForce"]),
    ("one that is careful", [a_pool(repair={"terminationMode": "Graceful"})], []),
    ("one that means it", [a_pool(repair={"terminationMode": "Forceful"})], []),
    (
        "a policy for a condition that has no other policy",
        [a_repairing_pool({"conditionType": "GpuBroken", "toleration": "5m"})],
        ["StatusMissing"],
    ),
    (
        "the same with the unhealthy status",
        [a_repairing_pool({"conditionType": "GpuBroken", "toleration": "5m", "status": "True"})],
        [],
    ),
    (
        "one that the provider watches, and one that Kubernetes defines",
        [
            a_repairing_pool(
                {"conditionType": "KWOKUnhealthy", "toleration": "5m"},
                {"conditionType": "DiskPressure", "toleration": "5m"},
            )
        ],
        [],
    ),
    (
        "the provider's condition in a pool of another cloud",
        [
            a_repairing_pool(
                {"conditionType": "KWOKUnhealthy", "toleration": "5m"}, group="example.com"
            )
        ],
        ["StatusMissing", "ForeignNodeClass"],
    ),
    (
        "a grace period for a node that is ended by force",
        [a_pool(repair={"policies": [SLOWLY], "terminationMode": "Forceful"})],
        ["Invalid"],
    ),
    ("the same with care", [a_repairing_pool(SLOWLY)], []),
    (
        "an architecture that no Node has",
        [a_lint_window(selector={"matchExpressions": [_in("kubernetes.io/arch", "amd", "arm64")]})],
        ["UnknownLabelValue"],
    ),
    (
        "the same in a pool",
        [a_pool(template={"requirements": [_in("beta.kubernetes.io/os", "Linux")]})],
        ["UnknownLabelValue"],
    ),
    (
        "the same in the selector of a budget",
        [
            a_pool(
                disruption={
                    "budgets": [
                        {
                            "nodes": "1",
                            "selector": {
                                "matchExpressions": [_in("karpenter.sh/capacity-type", "ondemand")]
                            },
                        }
                    ]
                }
            )
        ],
        ["UnknownLabelValue"],
    ),
    (
        "a window written for Provisioners",
        [
            a_lint_window(
                selector={"matchExpressions": [_in("karpenter.sh/provisioner-name", "general")]}
            )
        ],
        ["OldLabel"],
    ),
    (
        "an annotation of older releases on pods",
        [
            msgspec.json.decode(
                msgspec.json.encode(a_deployment(protected="4h")).replace(
                    DO_NOT_DISRUPT.encode(), DO_NOT_EVICT.encode()
                )
            )
        ],
        ["OldAnnotation"],
    ),
    (
        "a condition with a small letter",
        [a_repairing_pool({"conditionType": "ready", "status": "False", "toleration": "5m"})],
        ["ConditionMisspelt"],
    ),
    (
        "a name that the API server refuses",
        [a_pool("General")],
        ["Invalid"],
    ),
    (
        "an amount that is none",
        [a_pool(limits={"cpu": "lots"})],
        ["Invalid"],
    ),
    (
        "a limit on what no node has",
        [a_pool(limits={"cpu": "10", "nodes": "3", "cpus": "10", "example.com/gpu": "1"})],
        ["LimitOfNothing"],
    ),
    (
        "a claim without a pool, of another provider",
        [
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": "alone"},
                "spec": {"requirements": [], "nodeClassRef": _EC2},
            }
        ],
        ["ForeignNodeClass"],
    ),
    (
        "a protection and a veto of a Node that cannot be read",
        [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": "n",
                    "annotations": {DO_NOT_DISRUPT: "soon", DO_NOT_REPAIR: "later"},
                },
            }
        ],
        ["InvalidDoNotDisrupt", "InvalidDoNotDisrupt"],
    ),
    (
        "a protection of pods for a while",
        [a_deployment(protected="4h")],
        ["DiffersFromKarpenter"],
    ),
    (
        "another kind of object",
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}],
        [],
    ),
]


@pytest.mark.parametrize(
    ("objects", "found"), [pytest.param(*case, id=says) for says, *case in FOUND]
)
def test_what_is_found_and_whether_it_is_serious(
    lint: Any, objects: list[Obj], found: list[str]
) -> None:
    code, findings = lint(*objects)
    assert codes(findings) == found
    assert code == int(any(finding["severity"] != "info" for finding in findings))


def test_a_pool_that_cannot_be_read_may_be_the_one_that_a_window_means(lint: Any) -> None:
    """It was told, falsely, that the window allows nothing."""
    window = a_lint_window(selector={"matchExpressions": [_in("karpenter.sh/nodepool", "general")]})
    _, findings = lint(a_pool(weight="10"), a_pool("other"), window)
    assert codes(findings) == ["Invalid"]
    _, findings = lint(a_pool("third"), a_pool("other"), window)
    assert codes(findings) == ["SelectsNoPool"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tmplate": {}}, 'Did you mean "template"'),
        (
            {"repair": {"policies": [{"conditionType": "Ready", "tolerationDuration": "1m"}]}},
            'Did you mean "toleration"',
        ),
    ],
)
def test_a_misspelt_field_is_one_mistake(lint: Any, wrong: Obj, said: str) -> None:
    pool = a_pool(**wrong)
    if "tmplate" in wrong:
        del pool["spec"]["template"]
    _, findings = lint(pool)
    (mistake,) = (one for one in findings if one["severity"] == "error")
    assert said in mistake["message"]


def test_a_label_that_is_nearly_one_of_karpenter_is_guessed(lint: Any) -> None:
    wrong = {"key": "karpenter.sh/capacity_type", "operator": "In", "values": ["spot"]}
    _, (told,) = lint(a_pool(template={"requirements": [wrong]}))
    assert "Did you mean karpenter.sh/capacity-type? Else use" in told["message"]


def test_a_node_class_that_is_not_among_others_of_its_kind_is_told(lint: Any) -> None:
    there = {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {},
    }
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "defalt"}
    wrong = a_pool(template={"nodeClassRef": ref})
    _, (told,) = lint(wrong, a_pool("right"), there)
    assert (told["code"], told["object"]) == ("NodeClassElsewhere", "NodePool/general")
    assert told["message"].endswith("; did you mean default?")
    assert lint(wrong)[1] == [], "they may all be in the cluster"


def test_a_slip_in_the_kind_of_a_class_that_is_served_is_guessed(lint: Any) -> None:
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClas", "name": "default"}
    _, (told,) = lint(a_pool(template={"nodeClassRef": ref}))
    assert told["message"].endswith(
        "it serves KWOKNodeClass of karpenter.kwok.sh. Did you mean KWOKNodeClass?"
    )


def test_several_codes_may_be_ignored_with_commas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump(a_pool(limits={"cpus": "1"}, period="1h")))
    assert run(["lint", str(path), "--ignore", "LimitOfNothing, PeriodDriftsNodes"]) == 0
    assert "0 errors, 0 warnings, 0 info" in capsys.readouterr().out


def test_only_pools_that_the_pod_could_come_to_count(lint: Any) -> None:
    zone = "topology.kubernetes.io/zone"
    here = a_pool("here", template={"requirements": [_in(zone, "a")]})
    there = a_pool("there", period="1m", template={"requirements": [_in(zone, "b")]})
    gpu = a_pool("gpu", period="2m", template={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    slow: Obj = {"terminationGracePeriodSeconds": 600}
    _, findings = lint(here, there, gpu, a_deployment(nodeSelector={zone: "a"}, **slow))
    assert "GraceLongerThanPeriod" not in codes(findings)
    _, findings = lint(here, there, gpu, a_deployment(**slow))
    (grace,) = (one for one in findings if one["code"] == "GraceLongerThanPeriod")
    assert "terminationGracePeriod 1m of NodePool there" in grace["message"]
    _, findings = lint(here, there, gpu, a_deployment(nodeSelector={"x": "y"}, **slow))
    assert codes(findings).count("GraceLongerThanPeriod") == 2, "it fits none, so all count"


TEXT = """\
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata:
      name: report
      namespace: team-a
      annotations:
        karpenter.sh/do-not-disrupt: "4 hours"
    spec:
      containers: [{name: report, image: "report:1"}]
"""


def test_a_line_says_where_how_bad_which_what_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(TEXT)
    assert run(["lint", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "1 object: 1 error, 0 warnings, 0 info",
        (
            f"{path}:10: error InvalidDoNotDisrupt: Pod/team-a/report: "
            'metadata.annotations.karpenter.sh/do-not-disrupt: "4 hours" protects like "true", because it is '
            'neither "true", "false" nor a duration; write "4h". '
            'Write "true", "false" or a duration such as "4h".'
        ),
    ]


def test_the_standard_input_is_a_dash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TEXT))
    assert run(["lint", "-"]) == 1
    summary, found = capsys.readouterr().out.splitlines()
    assert summary == "1 object: 1 error, 0 warnings, 0 info", "the verdict first"
    assert found.startswith("stdin:10: error InvalidDoNotDisrupt: ")


def test_what_is_said_of_many_objects_alike_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(40):
        text = TEXT.replace("name: report", f"name: report-{number:02d}")
        (tmp_path / f"{number:02d}.yaml").write_text(text)
    assert run(["lint", str(tmp_path)]) == 1
    summary, found = capsys.readouterr().out.splitlines()
    assert summary == "40 objects: 40 errors, 0 warnings, 0 info"
    assert found.startswith(
        f"{tmp_path}/00.yaml:10: error InvalidDoNotDisrupt: Pod/team-a/report-00, "
    )
    assert f"and the same of 39 more: Pod/team-a/report-01 ({tmp_path}/01.yaml:10), " in found
    run(["lint", str(tmp_path), "--verbose"])
    assert len(capsys.readouterr().out.splitlines()) == 41
    run(["lint", str(tmp_path), "--json"])
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 40, "JSON is whole"


def test_a_template_of_a_chart_is_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pod.yaml").write_text("{{ if .Values.on }}\nkind: Pod\n{{ end }}\n")
    assert run(["lint", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path}/pod.yaml: got 'a Helm template', expected a manifest. "
        "Render it first: helm template my-app CHART | tenure lint -.\n"
    )


def test_a_folder_is_read_with_all_that_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "pod.yml").write_text(TEXT)
    (tmp_path / "pool.json").write_text(json.dumps(a_pool(period="1h")))
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / ".git.yaml").write_text("{")
    assert run(["lint", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("2 objects: 1 error, 0 warnings, 1 info\n")
    assert "values.yaml:1: no Kubernetes object, left out" in err


def test_what_cannot_be_read_is_exit_code_two_and_hides_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("a: [\n")
    (tmp_path / "pod.yaml").write_text(TEXT)
    assert run(["lint", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "error InvalidDoNotDisrupt" in out
    assert "bad.yaml:2:1" in err
    assert run(["lint", str(tmp_path / "none.yaml")]) == 2
    assert "expected a file or folder that exists" in capsys.readouterr().err
    (tmp_path / "empty.yaml").write_text("")
    assert run(["lint", str(tmp_path / "empty.yaml")]) == 2
    assert "expected Kubernetes objects" in capsys.readouterr().err


def test_files_and_a_cluster_are_not_linted_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "x.yaml", "--context", "staging"]) == 2
    assert "files or a cluster, not both" in capsys.readouterr().err


@pytest.mark.parametrize("value", [(), ("true",)], ids=["alone", "with its value"])
def test_files_may_follow_a_switch(
    value: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "freeze.yaml").write_text((ROOT / "examples" / "freeze.yaml").read_text())
    assert run(["lint", "--beside-karpenter", *value, str(tmp_path / "freeze.yaml")]) == 1
    assert "NoLever" in capsys.readouterr().out


@pytest.mark.parametrize("nonsense", ["spec: 3", "metadata: x", "spec: {template: []}", "x: null"])
@pytest.mark.parametrize("kind", ["karpenter.sh/v1 NodePool", "apps/v1 Deployment", "v1 Pod"])
def test_nonsense_is_a_finding_and_no_crash(
    kind: str, nonsense: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version, kind = kind.split()
    path = tmp_path / "nonsense.yaml"
    path.write_text(f"apiVersion: {version}\nkind: {kind}\n{nonsense}\n")
    assert run(["lint", str(path)]) == 1
    assert f"{path}:" in capsys.readouterr().out


def test_a_finding_names_each_pool_once_and_few_of_them(lint: Any) -> None:
    web = a_deployment(protected="true")
    _, (same,) = lint(a_pool("a"), a_pool("b"), a_pool("a"), web)
    assert " in NodePool a and NodePool b: " in same["message"]
    _, (many,) = lint(*map(a_pool, "abcde"), web)
    assert " in NodePool a, NodePool b, NodePool c and 2 more: " in many["message"]


# -- a cluster ---------------------------------------------------------------------------


def living(*objects: Any) -> list[str]:
    remarks, _ = remarks_on_cluster(snapshot_with(*objects), NOW)
    return [f"{one.finding.code} {one.about}" for one in remarks]


def test_a_cluster_is_checked_by_the_same_rules() -> None:
    claim = a_claim(spec={"termination_grace_period": "5m"})
    slow = {"termination_grace_period_seconds": 600}
    assert living(
        a_living_pool(template={"terminationGracePeriod": "1h"}),
        claim,
        a_node(annotations={DO_NOT_DISRUPT: "soon"}),
        a_living_budget(desired_healthy=2, current_healthy=2, expected_pods=2),
        a_living_pod("web-1", spec=slow),
        a_living_pod("web-2", spec=slow),
        a_window("0 0 30 2 *"),
    ) == [
        "PeriodDriftsNodes NodePool/general",
        "NeverBegins MaintenanceWindow/office-hours",
        "NeverActive MaintenanceWindow/office-hours",
        "InvalidDoNotDisrupt Node/node-a",
        "GraceLongerThanPeriod ReplicaSet/default/o",
        "BudgetNeverAllows PodDisruptionBudget/default/web",
    ]


def test_annotations_of_older_releases_are_found_on_living_objects() -> None:
    kept = {DO_NOT_CONSOLIDATE: "true"}
    metadata: Obj = {"annotations": {DO_NOT_EVICT: "true"}}
    pods = [a_living_pod(name, **metadata) for name in ("web-1", "web-2")]
    assert living(a_living_pool(), a_claim(annotations=kept), a_node(annotations=kept), *pods) == [
        "OldAnnotation NodeClaim/a",
        "OldAnnotation Node/node-a",
        "OldAnnotation ReplicaSet/default/o",
    ]


def test_an_old_annotation_is_told_with_its_successor() -> None:
    kept, protected = {DO_NOT_CONSOLIDATE: "true"}, {DO_NOT_EVICT: "true"}
    snapshot = snapshot_with(a_node(annotations=kept), a_living_pod("web", annotations=protected))
    remarks, _ = remarks_on_cluster(snapshot, NOW)
    said = [one.finding.message for one in remarks if one.finding.code == "OldAnnotation"]
    assert len(said) == 2
    assert f'write {DO_NOT_DISRUPT}: "true" on the Node, which blocks drift' in said[0]
    assert f'write {DO_NOT_DISRUPT}: "true" on the pod' in said[1]


def test_a_disruption_cost_that_cannot_be_read_is_found_in_a_cluster_once_for_a_workload() -> None:
    high = {POD_DISRUPTION_COST: "high"}
    pods = [a_living_pod(name, annotations=high) for name in ("web-1", "web-2")]
    found = living(a_living_pool(), a_claim(), a_node(), *pods)
    assert [one for one in found if "Cost" in one] == ["InvalidDisruptionCost ReplicaSet/default/o"]


def test_a_pod_that_waits_is_held_against_the_pools() -> None:
    pool = a_living_pool(template={"terminationGracePeriod": "1m"})
    waiting = a_pending_pod(spec={"termination_grace_period_seconds": 600}, protected="2m")
    assert living(pool, waiting) == [
        "PeriodDriftsNodes NodePool/general",
        "DiffersFromKarpenter ReplicaSet/default/o",
        "GraceLongerThanPeriod ReplicaSet/default/o",
        "ProtectionLongerThanPeriod ReplicaSet/default/o",
    ]


def test_a_claim_of_another_provider_without_a_pool_is_told() -> None:
    ref = NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
    alone, of_a_pool = a_claim("alone", ref=ref, labels={NODEPOOL: ""}), a_claim("other", ref=ref)
    assert living(alone, of_a_pool) == ["ForeignNodeClass NodeClaim/alone"]


def test_a_veto_that_cannot_be_read_is_told_of_a_node() -> None:
    assert living(a_node(annotations={DO_NOT_REPAIR: "1 week"})) == [
        "InvalidDoNotDisrupt Node/node-a"
    ]


def test_what_belongs_to_another_provider_is_left_alone() -> None:
    foreign = a_living_pod(node="elsewhere", protected="nonsense")
    assert living(a_node("elsewhere", registered=False), foreign) == []
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    assert living(a_living_pool(template={"nodeClassRef": ref, "readinessTTL": "5s"})) == [
        "ForeignNodeClass NodePool/general"
    ]


def test_a_look_at_a_cluster_is_linted_and_shows_the_drain_to_come() -> None:
    """Through the api that a real cluster has."""
    with World() as world:
        for manifest in a_cluster(
            a_written_deployment(replicas=4), a_written_budget(maxUnavailable=0)
        ):
            world.apply(manifest)
        world.run(3 * MINUTE)
        reading, api = seen(world)
        remarks, _ = remarks_on_cluster(reading.evaluated.snapshot, reading.evaluated.at)
        (name, *_) = reading.evaluated.snapshot.nodes
        told = explanation(Question.parse(["node", name]), reading.evaluated)
    assert api.methods == {"GET"}
    assert [str(remark.finding.code) for remark in remarks] == ["BudgetNeverAllows"]
    assert "maxUnavailable 0 of 4 pods can never allow an eviction" in str(remarks[0])
    assert told is not None
    (drain,) = told.timetables
    table = drain.table
    assert not table.leaving
    assert table.ends_by is None
    assert {blocker.message for row in table.pods for blocker in row.blocked_by} == {
        "PDB default/web can never allow an eviction (maxUnavailable 0 of 4 pods)"
    }


def _with_resources(kind: str, resources: Obj) -> Obj:
    container = {"name": "web", "image": "web:1", "resources": resources}
    return a_deployment(kind=kind, containers=[container])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_an_amount_may_be_written_as_a_number(lint: Any, kind: str) -> None:
    """As kubectl takes it: the API server reads ``cpu: 1`` as it reads ``cpu: "1"``."""
    amounts = {"requests": {"cpu": 1, "memory": 1.5e9}, "limits": {"nvidia.com/gpu": 1}}
    assert lint(_with_resources(kind, amounts)) == (0, [])


def test_what_the_decoder_refuses_is_told_with_its_whole_path_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No kind that lint reads lacks a shape today; one that does is told as well as the others."""
    monkeypatch.setattr("tenure.cli.lint.rules.check_shape", lambda *_: None)
    written = tmp_path / "web.yaml"
    written.write_text(
        yaml.safe_dump(a_deployment(terminationGracePeriodSeconds="soon"), sort_keys=False)
    )
    line = 1 + written.read_text().splitlines().index("      terminationGracePeriodSeconds: soon")
    assert run(["lint", str(written)]) == 1
    assert capsys.readouterr().out.splitlines()[1] == (
        f"{written}:{line}: error Invalid: Deployment/web: "
        "spec.template.spec.terminationGracePeriodSeconds: got text, expected a whole number or "
        "nothing."
    )


def test_a_fifo_is_no_file_to_wait_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert run(["lint", str(tmp_path / "pipe.yaml")]) == 2
    assert "which is a FIFO', expected a regular file." in capsys.readouterr().err


UNSAID = {"conditionType": "GpuBroken", "toleration": "5m"}


def test_a_policy_without_a_status_is_one_result_beside_another_error(lint: Any) -> None:
    wrong = {"conditionType": "Ready", "toleration": "soon"}
    _, findings = lint(a_repairing_pool(UNSAID, wrong))
    assert sorted(codes(findings)) == ["Invalid", "StatusMissing"]


def test_a_policy_without_a_status_is_the_same_result_in_a_cluster() -> None:
    block = msgspec.convert({"policies": [UNSAID], "terminationMode": "Graceful"}, Repair)
    pool = a_living_pool(repair=block)
    found, _ = remarks_on_cluster(snapshot_with(pool), NOW)
    assert [one.finding.code for one in found] == ["StatusMissing"]


def test_without_files_and_without_a_cluster_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert run(["lint"]) == 2
    assert "expected a kubeconfig" in capsys.readouterr().err


@pytest.mark.parametrize("name", [DO_NOT_DISRUPT, DO_NOT_REPAIR])
def test_a_duration_on_a_node_is_told_to_differ_from_karpenter(lint: Any, name: str) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "annotations": {name: "2h"}},
    }
    code, (found,) = lint(node)
    assert (code, found["code"]) == (0, "DiffersFromKarpenter")
    assert 'Karpenter reads "true" alone' in found["message"]
    living_node = a_node(annotations={name: "2h"})
    assert "DiffersFromKarpenter Node/node-a" in living(a_living_pool(), a_claim(), living_node)


def test_a_living_pool_is_told_of_fields_that_do_not_act_as_in_karpenter() -> None:
    pool = a_living_pool(replicas=2, template={"expireAfter": "168h"})
    assert living(pool) == [
        "DoesNothingYet NodePool/general",
        "DiffersFromKarpenter NodePool/general",
    ]


def test_beside_karpenter_fields_are_karpenters(lint: Any, tmp_path: Path) -> None:
    pool = a_pool(replicas=2, template={"expireAfter": "168h"})
    assert codes(lint(pool)[1]) == ["DoesNothingYet", "DiffersFromKarpenter"]
    assert run(["lint", str(tmp_path / "all.yaml"), "--beside-karpenter", "--fail-on=info"]) == 0


def test_a_value_that_no_node_has_is_told_of_pods(lint: Any) -> None:
    """Its pods would be pending for ever."""
    wish = {"key": "kubernetes.io/os", "operator": "In", "values": ["Linux"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wish]}]}
    pod: Obj = {
        "nodeSelector": {"karpenter.sh/capacity-type": "ondemand", "team": "x86_64"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    }
    code, findings = lint(a_pool(), a_deployment(**pod))
    assert code == 1
    told = {one["field"]: one["message"] for one in findings if one["code"] == "UnknownLabelValue"}
    assert told == {
        "spec.template.spec.nodeSelector.karpenter.sh/capacity-type": (
            "karpenter.sh/capacity-type is never ondemand; did you mean on-demand?"
        ),
        "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchExpressions[0].values[0]": (
            "kubernetes.io/os is never Linux; did you mean linux?"
        ),
    }


@pytest.mark.parametrize(
    ("pool", "hint"),
    [
        (
            a_pool(template={"kubelet": {"maxPods": 110}}),
            "Since v1 it is a field of the node class, for example spec.kubelet of EC2NodeClass.",
        ),
        (
            a_pool(disruption={"consolidateAfter": "1m", "expireAfter": "720h"}),
            "Since v1 it is spec.template.spec.expireAfter.",
        ),
    ],
    ids=["kubelet", "expireAfter"],
)
def test_a_field_of_v1beta1_says_where_it_went(pool: Obj, hint: str, lint: Any) -> None:
    _, findings = lint(pool)
    (found,) = (one for one in findings if one["code"] == "UnknownField")
    assert hint in found["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("", "spec"),
        ("spec: {limits: {cpu: 10}}", "spec.template"),
        ("spec: {template: {}}", "spec.template.spec"),
        ("spec: {template: null}", "spec.template"),
    ],
)
def test_a_pool_without_a_template_is_shown_one(
    spec: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One finding: which provider the pool is of cannot be said of a class that is not there."""
    file = tmp_path / "pool.yaml"
    file.write_text(
        f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: general}}\n{spec}\n"
    )
    assert run(["lint", str(file), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["field"]) == ("Invalid", field)
    assert found["message"].startswith("got nothing, expected a value. ")
    assert " For example " in found["message"]
    assert "nodeClassRef: {group: karpenter.kwok.sh" in found["message"]
