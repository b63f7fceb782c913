"""Kubernetes' clients for Python, oldest and newest release, and for Go, and helm, against ``tenure up``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
import yaml

from tenure.schema.structure.crd import CUSTOM_KINDS, generate
from testbed import clients
from testbed.binaries import found
from tests import bed
from tests.up.running import Up, running

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(bed.missing()), reason="not everything of the bed is built"),
]
SCRIPT = Path(__file__).with_name("typedclient.py")
SPEED = "--speed=20"


@pytest.mark.parametrize("version", clients.VERSIONS)
def test_a_typed_client_reads_and_writes_what_it_knows(tmp_path: Path, version: str) -> None:
    with running(tmp_path, SPEED) as up:
        ended = subprocess.run(  # noqa: S603  # our own words
            [sys.executable, SCRIPT, up.kubeconfig],
            env={**os.environ, "PYTHONPATH": str(clients.home(version))},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told.pop("version").startswith("v1.36")
    assert told.pop("nodes") >= 1
    assert told == {
        "deployment": 2,
        "pods": ["Running", "Running"],
        "ready": [True, True],
        "events": True,
        "pools": ["default"],
        "secret": {"a": "Yg=="},
        "account": "typed",
        "autoscaler": 0,
        "cron job": False,
        "budget": 0,
        "scale": 1,
        "may": True,
        "newer events": True,
        "autoscaler by cpu": 0,
        "ingresses": 0,
    }


def test_a_program_of_client_go_uses_it_as_any_cluster(tmp_path: Path) -> None:
    """Typed and dynamic clients, server-side apply, informers, and a kind that it brings along."""
    with running(tmp_path, SPEED) as up:
        ended = subprocess.run(  # noqa: S603  # our own words
            [found(["client-go"])["client-go"], up.kubeconfig],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "kinds": True,
        "ready": 2,
        "images": ["registry.example/web:1"],
        "informed": 2,
        "pools": ["default"],
        "poolsSeen": 1,
        "size": 42,
        "managers": ["applier Apply", "maker Update"],
        "conflict": True,
    }


HOOK = """
apiVersion: {version}
kind: {kind}
metadata: {{name: {{{{ .Release.Name }}}}-{hook}, annotations: {{helm.sh/hook: {hook}}}}}
spec: {spec}
"""
ENDS = "{restartPolicy: Never, containers: [{name: c, image: 'x:1'}]}"
CHART = {
    "Chart.yaml": "{apiVersion: v2, name: small, version: 0.1.0}",
    "values.yaml": "replicas: 2",
    "crds/shoes.yaml": Path(__file__).with_name("kinds.yaml").read_text(),
    "templates/check.yaml": HOOK.format(version="v1", kind="Pod", hook="test", spec=ENDS),
    "templates/migrate.yaml": HOOK.format(
        version="batch/v1", kind="Job", hook="pre-install", spec=f"{{template: {{spec: {ENDS}}}}}"
    ),
    "templates/shoe.yaml": """
apiVersion: example.com/v1
kind: Shoe
metadata: {name: {{ .Release.Name }}}
spec: {size: {{ add 40 .Values.replicas }}}
""",
    "templates/all.yaml": """
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers: [{name: c, image: "x:1", resources: {requests: {cpu: 500m}}}]
""",
}


def write_chart(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = folder / "chart" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def said_by_helm(folder: Path, up: Up, *words: str) -> str:
    ended = subprocess.run(  # noqa: S603  # our own words
        [found(["helm"])["helm"], *words],
        cwd=folder,
        env={**up.environment, "KUBECONFIG": str(up.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_helm_installs_upgrades_and_uninstalls(tmp_path: Path) -> None:
    """With what helm does by itself: server-side apply, and a folder of kinds that come first."""
    write_chart(tmp_path, CHART)
    with running(tmp_path, SPEED) as up:
        helm = partial(said_by_helm, tmp_path, up)
        here = ("web", "chart", "--wait", "--timeout=5m")
        helm("install", *here)
        assert "Phase:          Succeeded" in helm("test", "web", "--timeout=5m")
        done = up.kubectl("get", "job/web-pre-install", "pod/web-test", "--no-headers").stdout
        assert [line.split()[1] for line in done.splitlines()] == ["Complete", "0/1"], done
        assert "Completed" in done
        helm("upgrade", *here, "--set", "replicas=3")
        assert json.loads(helm("list", "--output=json"))[0]["revision"] == "2"
        ready = up.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
        assert ready.stdout == "3"
        helm("rollback", "web", "1", "--wait", "--timeout=5m")
        assert json.loads(helm("list", "--output=json"))[0]["revision"] == "3"
        seen = ("deployment/web", "shoe/web", "-o", "jsonpath={.items[*].spec['replicas','size']}")
        assert up.kubectl("get", *seen).stdout == "2 42"
        helm("uninstall", "web")
        assert json.loads(helm("list", "--output=json")) == []
        assert "NotFound" in up.kubectl("get", "deployment", "web").stderr


def test_helm_installs_karpenters_definitions_as_its_guide_does(tmp_path: Path) -> None:
    """They are there already, and other ones are in the chart: helm takes them over."""
    others = generate(CUSTOM_KINDS[:2])
    for one in others:
        one["spec"]["versions"][0]["additionalPrinterColumns"] = []
    chart = {
        "Chart.yaml": "{apiVersion: v2, name: karpenter-crd, version: 1.15.0}",
        "templates/all.yaml": yaml.safe_dump_all(others),
    }
    write_chart(tmp_path, chart)
    with running(tmp_path, SPEED) as up:
        helm = partial(said_by_helm, tmp_path, up)
        listed = ("get", "crd", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "-o", "name")
        assert len(up.kubectl(*listed).stdout.splitlines()) == 2
        where = ("karpenter-crd", "chart", "--namespace=kube-system")
        helm("install", *where)
        helm("upgrade", *where)
        helm("uninstall", "karpenter-crd", "--namespace=kube-system")
        assert len(up.kubectl(*listed).stdout.splitlines()) == 2
        assert up.kubectl("get", "nodepools", "-o", "name").stdout.startswith("nodepool")
