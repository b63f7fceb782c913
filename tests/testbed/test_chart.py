"""The chart by itself: it refuses slips, and hands every setting to the program. Needs helm."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.chart import settings
from tenure.cli.settings.config import configured
from testbed.binaries import Missing, found
from testbed.manifests import ALONE, BESIDE, CHART, helm, rendered

Json = dict[str, Any]


def no_helm() -> bool:
    try:
        found(["helm"])
    except Missing:
        return True
    return False


pytestmark = pytest.mark.skipif(no_helm(), reason="no helm: `make bed ARGS=helm`")


def environment(text: str) -> dict[str, str]:
    """What the container is told."""
    objects = [each for each in yaml.safe_load_all(text) if each]
    pod = next(o for o in objects if o["kind"] == "Deployment")["spec"]["template"]["spec"]
    return {each["name"]: each["value"] for each in pod["containers"][0]["env"]}


def with_settings(folder: Path, chosen: Json) -> dict[str, str]:
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump({"settings": chosen}))
    return environment(rendered(f"--values={path}"))


def test_helm_has_nothing_to_say_against_it() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    ("slip", "word"),
    [
        ("replica=3", "replica"),
        ("settings.batchIdleDuraton=2s", "batchIdleDuraton"),
        ("settings.metricsPort=high", "metricsPort"),
        ("image.digest=latest", "digest"),
        ("replicas=two", "replicas"),
        ("serviceMonitor.enable=true", "enable"),
    ],
)
def test_a_slip_in_the_values_is_refused_by_its_name(slip: str, word: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered("--set", slip)
    assert word in caught.value.stderr


def test_an_account_that_is_not_set_is_requested() -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered("--set", "serviceAccount.create=false")
    assert "serviceAccount.name is needed" in caught.value.stderr


def test_what_is_not_set_is_left_to_the_program() -> None:
    told = environment(rendered())
    assert told == {
        "HEALTH_PROBE_PORT": "8081",
        "LEADER_ELECTION_NAMESPACE": "tenure",
        "METRICS_PORT": "8080",
        "TENURE_PROVIDER": "kwok",
        "TENURE_PROVIDER_NAMESPACE": "tenure-kwok",
        "TENURE_WEBHOOK_NAME": "tenure-webhook",
        "TENURE_WEBHOOK_PORT": "9443",
    }
    assert configured({}, told).chosen == {
        "leader-election-namespace": "tenure",
        "provider-namespace": "tenure-kwok",
    }


@pytest.mark.parametrize("setting", settings(), ids=lambda setting: setting.key)
def test_every_setting_reaches_the_program(setting: Any, tmp_path: Path) -> None:
    example: Any = setting.form.example
    chosen = int(example) if setting.key.endswith("Port") else example
    assert with_settings(tmp_path, {setting.key: chosen})[setting.environment] == example


def test_numbers_and_gates_arrive_as_they_were_meant(tmp_path: Path) -> None:
    gates = {"spotToSpotConsolidation": True, "NodeRepair": False}
    told = with_settings(
        tmp_path, {"kubeClientQps": 2000000, "evictionQps": 0.5, "featureGates": gates}
    )
    assert told["KUBE_CLIENT_QPS"] == "2000000"
    assert told["TENURE_EVICTION_QPS"] == "0.5"
    assert told["FEATURE_GATES"] == "NodeRepair=false,SpotToSpotConsolidation=true"
    assert with_settings(tmp_path, {"takeOver": True})["TENURE_TAKE_OVER"] == "true"


def test_the_webhook_can_be_left_out_with_everything_that_is_its_own() -> None:
    on, off = rendered(), rendered("--set", "settings.webhookPort=0")
    assert "ValidatingWebhookConfiguration" in on
    left = [line.strip() for line in off.splitlines() if "webhook" in line.lower()]
    assert left == [
        "- name: TENURE_WEBHOOK_NAME",
        'value: "tenure-webhook"',
        "- name: TENURE_WEBHOOK_PORT",
    ]


def test_monitors_are_for_those_who_have_the_operator() -> None:
    assert "ServiceMonitor" not in rendered()
    labels = "serviceMonitor.additionalLabels.release=prometheus"
    text = rendered("--set", "serviceMonitor.enabled=true", "--set", labels)
    objects = [each for each in yaml.safe_load_all(text) if each]
    monitor = next(each for each in objects if each["kind"] == "ServiceMonitor")
    service = next(each for each in objects if each["kind"] == "Service")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in [p["name"] for p in service["spec"]["ports"]]


def objects_of(text: str, kind: str) -> list[Json]:
    return [each for each in yaml.safe_load_all(text) if each and each["kind"] == kind]


def test_the_network_policy_lets_in_probes_metrics_and_webhook_and_out_to_the_api_server() -> None:
    (policy,) = objects_of(rendered(), "NetworkPolicy")
    spec = policy["spec"]
    (pod,) = objects_of(rendered(), "Deployment")
    labels = pod["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    container = pod["spec"]["template"]["spec"]["containers"][0]
    ports = {each["containerPort"] for each in container["ports"]}
    assert {each["port"] for rule in spec["ingress"] for each in rule["ports"]} == ports
    out = {(each["port"], each["protocol"]) for rule in spec["egress"] for each in rule["ports"]}
    assert {(443, "TCP"), (6443, "TCP"), (53, "UDP"), (53, "TCP")} <= out


def test_the_network_policy_follows_the_ports_and_can_be_narrowed_or_left_out() -> None:
    narrow = (
        *("--set", "settings.metricsPort=9090", "--set", "settings.webhookPort=0"),
        *("--set", "networkPolicy.apiServerPorts={6443}"),
        '--set-json=networkPolicy.metricsFrom=[{"podSelector":{}}]',
        '--set-json=networkPolicy.apiServerTo=[{"ipBlock":{"cidr":"10.0.0.1/32"}}]',
    )
    (policy,) = objects_of(rendered(*narrow), "NetworkPolicy")
    health, metrics = policy["spec"]["ingress"]
    assert health == {"ports": [{"port": 8081, "protocol": "TCP"}]}
    assert metrics["ports"] == [{"port": 9090, "protocol": "TCP"}]
    assert metrics["from"] == [{"podSelector": {}}]
    assert policy["spec"]["egress"][0] == {
        "ports": [{"port": 6443, "protocol": "TCP"}],
        "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}],
    }
    assert objects_of(rendered("--set", "networkPolicy.enabled=false"), "NetworkPolicy") == []


def test_the_pod_can_do_as_little_as_possible_on_its_node() -> None:
    (deployment,) = objects_of(rendered(), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def rules(text: str) -> list[tuple[str, Json]]:
    """Of every role, with its namespace; empty is the whole cluster."""
    roles = [*objects_of(text, "Role"), *objects_of(text, "ClusterRole")]
    return [
        (role["metadata"].get("namespace", ""), rule) for role in roles for rule in role["rules"]
    ]


@pytest.mark.parametrize("more", [(), ("--set", "settings.leaderElectionNamespace=kube-system")])
def test_secrets_leases_and_configurations_are_named_and_config_maps_have_their_namespace(
    more: tuple[str, ...],
) -> None:
    for namespace, rule in rules(rendered(*more)):
        for resource in rule["resources"]:
            if resource in ("secrets", "validatingwebhookconfigurations"):
                assert rule["resourceNames"] == ["tenure-webhook"]
                assert set(rule["verbs"]) <= {"get", "patch"}
            if resource == "leases" and rule["verbs"] != ["create"]:
                seen = ["tenure-beside-karpenter"] if rule["verbs"] == ["list"] else []
                assert rule["resourceNames"] == ["karpenter-leader-election", *seen]
            if resource == "configmaps":
                assert namespace == "tenure-kwok"
    (own,) = objects_of(rendered(*more), "Namespace")
    assert own["metadata"]["name"] == "tenure-kwok"


def test_a_namespace_that_is_named_is_not_made(tmp_path: Path) -> None:
    text = rendered("--set", "settings.providerNamespace=nodes-in-waiting")
    assert objects_of(text, "Namespace") == []
    assert "nodes-in-waiting" in {namespace for namespace, _ in rules(text)}
    assert environment(text)["TENURE_PROVIDER_NAMESPACE"] == "nodes-in-waiting"
    other = rendered("--set", "settings.provider=example")
    assert objects_of(other, "Namespace") == []
    assert "TENURE_PROVIDER_NAMESPACE" not in environment(other)


def test_the_policy_of_the_webhook_can_be_left_out() -> None:
    assert len(objects_of(rendered(), "ValidatingAdmissionPolicy")) == 1
    off = rendered("--set", "webhookPolicy.enabled=false")
    assert "ValidatingAdmissionPolicy" not in off


# -- beside Karpenter ------------------------------------------------------------------


def kinds_of(text: str) -> list[str]:
    return sorted(each["kind"] for each in yaml.safe_load_all(text) if each)


def test_beside_karpenter_there_is_neither_webhook_nor_cloud_nor_a_kind_of_karpenters() -> None:
    text = rendered(*BESIDE, "--set", "settings.webhookPort=9443", "--include-crds")
    assert kinds_of(text) == sorted(
        [
            *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"),
            *("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"),
            *("CustomResourceDefinition", "CustomResourceDefinition"),
        ]
    )
    crds = {each["metadata"]["name"] for each in objects_of(text, "CustomResourceDefinition")}
    assert crds == {"maintenancewindows.karpenter.sh", "nodepoolpolicies.tenure.dev"}
    (policy,) = objects_of(text, "NetworkPolicy")
    assert [p["port"] for r in policy["spec"]["ingress"] for p in r["ports"]] == [8081, 8080]


def test_beside_karpenter_the_program_is_told_so_and_accepts_the_rest() -> None:
    told = environment(rendered(*BESIDE, "--set", "settings.release=true"))
    assert told == {
        "HEALTH_PROBE_PORT": "8081",
        "LEADER_ELECTION_NAME": "tenure-beside-karpenter",
        "LEADER_ELECTION_NAMESPACE": "tenure",
        "METRICS_PORT": "8080",
        "TENURE_BESIDE_KARPENTER": "true",
        "TENURE_RELEASE": "true",
    }
    settings = configured({}, told).settings
    assert settings.beside_karpenter
    assert settings.release


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (("mode=beside",), "mode"),
        (("mode=beside-karpenter", "karpenterCRDs.install=true"), "leave it false"),
        (("settings.besideKarpenter=true",), "besideKarpenter"),
        (
            ("mode=beside-karpenter", "settings.leaderElectionName=karpenter-leader-election"),
            "that Lease is Karpenter's",
        ),
        (
            ("mode=beside-karpenter", "settings.takeOver=true"),
            "settings.takeOver: beside Karpenter Tenure has a Lease of its own; leave it false",
        ),
        (
            ("mode=beside-karpenter", "settings.karpenterVersion=latest"),
            'settings.karpenterVersion: got "latest", expected a release of Karpenter such as "1.15"',
        ),
    ],
)
def test_a_mode_that_is_not_there_or_half_set_is_refused(
    values: tuple[str, ...], word: str
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered(*(part for value in values for part in ("--set", value)))
    assert word in caught.value.stderr


@pytest.mark.parametrize("release", ["1.15", "v1.15.0", "1.9.0-rc.1"])
def test_a_release_of_karpenter_is_handed_on(release: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    chosen = {"karpenterVersion": release, "takeOver": False}
    path.write_text(yaml.safe_dump({"settings": chosen}))
    told = environment(rendered(*BESIDE, f"--values={path}"))
    assert configured({}, told).settings.karpenter_version == release


def test_beside_karpenter_pods_nodes_and_karpenters_status_are_out_of_reach() -> None:
    writes = {
        (resource, verb)
        for _, rule in rules(rendered(*BESIDE))
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert writes == {
        ("nodes", "patch"),
        ("nodepools", "patch"),  # The probe of a failure domain.
        *(("nodeclaims", verb) for verb in ("create", "patch", "delete")),
        *((f"{kind}/status", "patch") for kind in ("maintenancewindows", "nodepoolpolicies")),
        *(("events", verb) for verb in ("create", "patch")),
        *(("leases", verb) for verb in ("create", "patch")),
    }
    named = {
        (resource, *rule["resourceNames"])
        for _, rule in rules(rendered(*BESIDE))
        for resource in rule["resources"]
        if "resourceNames" in rule
    }
    assert named == {
        ("customresourcedefinitions", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh"),
        ("leases", "tenure-beside-karpenter"),
        ("leases", "tenure-beside-karpenter", "karpenter-leader-election"),  # Listed.
        ("namespaces", "kube-system"),
    }


@pytest.mark.parametrize(
    ("values", "crds"),
    [((), 2), (ALONE, 5), (BESIDE, 2)],
    ids=["full", "alone", "beside"],
)
def test_kinds_are_installed_by_helm_alone_and_karpenters_only_where_they_are_wanted(
    values: tuple[str, ...], crds: int
) -> None:
    assert "CustomResourceDefinition" not in kinds_of(rendered(*values))
    assert kinds_of(rendered(*values, "--include-crds")).count("CustomResourceDefinition") == crds


def test_alerts_are_for_those_who_have_the_operator_and_lead_to_the_page() -> None:
    assert "PrometheusRule" not in rendered()
    chosen = ("rules.enabled=true", "rules.runbooks=https://docs.example/alerts.html")
    text = rendered(*(word for one in chosen for word in ("--set", one)))
    (rule,) = objects_of(text, "PrometheusRule")
    alerts = [alert for group in rule["spec"]["groups"] for alert in group["rules"]]
    links = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts}
    assert links["TenureNoLeader"] == "https://docs.example/alerts.html#tenurenoleader"
    assert "RUNBOOKS" not in "".join(links.values())


def test_the_dashboard_is_what_grafanas_sidecar_looks_for() -> None:
    assert "grafana_dashboard" not in rendered()
    (folder,) = objects_of(rendered("--set", "dashboards.enabled=true"), "ConfigMap")
    assert folder["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(folder["data"]["tenure.json"])["title"] == "Tenure"
