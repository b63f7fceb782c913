"""Kubernetes' clients for Python, oldest and newest release, and for Go, and helm, against ``tenure up``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import clients
from testbed.binaries import found
from tests import bed
from tests.up.running import running

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


def test_helm_installs_upgrades_and_uninstalls(tmp_path: Path) -> None:
    """With what helm does by itself: server-side apply, and a folder of kinds that come first."""
    for name, text in CHART.items():
        file = tmp_path / "chart" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with running(tmp_path, SPEED) as up:

        def helm(*words: str) -> str:
            ended = subprocess.run(  # noqa: S603  # our own words
                [found(["helm"])["helm"], *words],
                cwd=tmp_path,
                env={**up.environment, "KUBECONFIG": str(up.kubeconfig)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ended.returncode == 0, ended.stderr
            return ended.stdout

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
