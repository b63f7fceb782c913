"""The chart by itself: it refuses slips, and hands every setting to the program. Needs helm."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.chart import settings
from tenure.cli.config import configured
from testbed.binaries import Missing, found
from testbed.manifests import CHART, helm, rendered

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


def test_an_account_that_nobody_names_is_asked_for() -> None:
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
        "TENURE_WEBHOOK_NAME": "tenure-webhook",
        "TENURE_WEBHOOK_PORT": "9443",
    }
    assert configured({}, told).chosen == {"leader-election-namespace": "tenure"}


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
