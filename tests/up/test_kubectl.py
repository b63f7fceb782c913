"""The oldest and the newest kubectl against ``tenure up``: what people type on their first day."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from testbed.binaries import OLD_KUBECTL, found
from tests import bed
from tests.up.running import BIN, PATIENCE, Up, running

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(bed.missing()), reason="not everything of the bed is built"),
]
SPEED: Final = "--speed=30"
#: A node that is drained is empty, and would go before the next command comes.
NODES_STAY: Final = '{"spec": {"disruption": {"consolidateAfter": "Never"}}}'
KINDS: Final = Path(__file__).with_name("kinds.yaml")
WEB: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "registry.example/web:1", ports: [{containerPort: 80}]}]
"""
SHOE: Final = """
apiVersion: example.com/v1
kind: Shoe
metadata: {name: left}
spec: {size: 42}
"""
BOOT: Final = SHOE.replace("Shoe", "Boot")
Says = Callable[..., str]


def oldest() -> Path:
    return found(["kubectl-old"])["kubectl-old"]


def newest() -> Path:
    return BIN / "kubectl"


@pytest.mark.parametrize("program", [oldest, newest])
def test_kubectl_does_what_people_type(tmp_path: Path, program: Callable[[], Path]) -> None:
    for name, text in (("web.yaml", WEB), ("shoe.yaml", SHOE), ("boot.yaml", BOOT)):
        (tmp_path / name).write_text(text)
    (tmp_path / "kinds.yaml").write_text(KINDS.read_text())
    with running(tmp_path, SPEED) as up:
        said = _typed(up, program())
        said(f"patch nodepool default --type=merge -p '{NODES_STAY}'")
        _versions(said, program is oldest)
        _a_rollout(said)
        _questions(said)
        _answers_that_say_why_not(said)
        _changes(said)
        _workloads_of_every_kind(said, program is oldest)
        _what_charts_bring_along(said)
        _pruned(said)
        _kinds_of_ones_own(said)
        _a_node(said)


def _typed(up: Up, kubectl: Path) -> Says:
    def said(command: str, *, fails: bool = False) -> str:
        """Both streams of what it said; how it ended has to be as expected."""
        ended = subprocess.run(  # noqa: S603  # our own words
            ["/bin/bash", "-c", f"exec {kubectl} {command}"],
            cwd=up.folder,
            env={**up.environment, "KUBECONFIG": str(up.kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=5 * PATIENCE,
        )
        assert (ended.returncode != 0) == fails, f"kubectl {command}\n{ended.stdout}"
        return ended.stdout

    return said


def _versions(said: Says, old: bool) -> None:
    wanted = f"Client Version: {OLD_KUBECTL}" if old else "Client Version: v1.37"
    assert wanted in said("version")


def _a_rollout(said: Says) -> None:
    assert "serverside-applied" in said("apply --server-side -f web.yaml")
    assert "+      - image: registry.example/web:3" in said(
        "diff --server-side -f <(sed s/web:1/web:3/ web.yaml)", fails=True
    )
    assert "successfully rolled out" in said("rollout status deployment/web --timeout=5m")
    assert "condition met" in said("wait --for=condition=Available deployment/web --timeout=5m")
    said("set image deployment/web c=registry.example/web:2")
    said("annotate deployment/web kubernetes.io/change-cause='a second one'")
    said("rollout status deployment/web --timeout=5m")
    history = said("rollout history deployment/web").split()
    assert history[-6:] == ["1", "<none>", "2", "a", "second", "one"]
    assert "rolled back" in said("rollout undo deployment/web")
    said("rollout status deployment/web --timeout=5m")
    assert "Image:\tregistry.example/web:1" in said("rollout history deployment/web --revision=3")

    _a_daemon_and_back(said)


def _a_daemon_and_back(said: Says) -> None:
    said("apply -f <(sed 's/Deployment/DaemonSet/; s/web/agent/; /replicas/d' web.yaml)")
    said("set image daemonset/agent c=registry.example/web:2")
    assert said("rollout history daemonset/agent").split()[-4:] == ["1", "<none>", "2", "<none>"]
    assert "rolled back" in said("rollout undo daemonset/agent")
    assert said("get daemonset agent -o jsonpath={..image}") == "registry.example/agent:1"
    assert said("rollout history daemonset/agent").split()[-4:] == ["2", "<none>", "3", "<none>"]
    said("delete daemonset agent")


def _questions(said: Says) -> None:
    assert "Running" in said("get pods -o wide")
    described = said(f"describe {said('get pods -l app=web -o name').split()[0]}")
    for reason in ("Scheduled", "Pulled", "Created", "Started"):
        assert reason in described
    assert "Successfully assigned default/web-" in said("events --types=Normal")
    assert "nodepools" in said("api-resources --api-group=karpenter.sh")
    assert "FIELD: weight <integer>" in said("explain nodepool.spec.weight")
    assert said("auth can-i delete pods").strip() == "yes"
    assert "[*]" in said("auth can-i --list")
    assert "tenure-up" in said("auth whoami")
    assert said("get cs").count("Healthy") == 3
    assert said("get serviceaccounts").split()[-3] == "default"


def _answers_that_say_why_not(said: Says) -> None:
    pod = said("get pods -o name").split()[0]
    why = "pods of the embedded cluster are played, not run"
    for command in (f"logs {pod}", f"exec {pod} -- ls"):
        answer = said(command, fails=True)
        assert why in answer
        assert len(answer.splitlines()) == 1, answer
    debug = said(f"debug {pod} --image=registry.example/busybox:1", fails=True)
    assert f"no container to debug: {why}" in debug
    node = said("get nodes -o name").split()[0]
    for target in (node, f"{pod} --copy-to=other"):
        debug = said(f"debug {target} --image=registry.example/busybox:1", fails=True)
        assert f"no container to debug: {why}" in debug
        assert "protobuf" not in debug
    assert "other" not in said("get pods")
    token = said("create token default", fails=True)
    assert "gets no token: the embedded cluster knows one token" in token
    assert "Metrics API not available" in said("top nodes", fails=True)
    assert "no matches for kind" in said("apply -f boot.yaml", fails=True)
    assert "doesn't have a resource type" in said("get boots", fails=True)


def _changes(said: Says) -> None:
    assert "created" in said("create deployment other --image=registry.example/other:1")
    assert "scaled" in said("scale deployment other --replicas=0")
    assert "patched" in said('patch deployment other -p \'{"spec":{"paused":true}}\'')
    assert "labeled" in said("label deployment other shelf=top")
    assert "annotated" in said("annotate deployment other shelf=top")
    assert "deleted" in said("delete deployment other")
    assert "configured" in said("apply -f web.yaml")
    said("scale deployment web --replicas=3")
    conflict = said("apply --server-side --field-manager=mine -f web.yaml", fails=True)
    assert ".spec.replicas" in conflict
    assert "serverside-applied" in said(
        "apply --server-side --field-manager=mine --force-conflicts -f web.yaml"
    )


def _workloads_of_every_kind(said: Says, old: bool) -> None:
    share = "--cpu-percent=50" if old else "--cpu=50%"
    assert "autoscaled" in said(f"autoscale deployment web --min=1 --max=4 {share}")
    assert "50%" in said("get hpa web")
    version_1 = said("get horizontalpodautoscalers.v1.autoscaling web -o yaml")
    assert "targetCPUUtilizationPercentage: 50" in version_1
    said("create cronjob nightly --image=registry.example/c:1 --schedule='0 1 * * *'")
    assert "created" in said("create job now --from=cronjob/nightly")
    assert "CronJob" in said("get job now -o jsonpath={.metadata.ownerReferences[0].kind}")
    said("delete hpa/web cronjob/nightly")
    scale = said("get deployment web --subresource=scale").split()
    assert scale[:4] == ["NAME", "DESIRED", "AVAILABLE", "AGE"]
    assert scale[4:6] == ["web", "2"]


def _what_charts_bring_along(said: Says) -> None:
    said("create ingress web --class=nginx --rule=a.example.com/=web:80")
    assert said("get ingress").split()[-5:-1] == ["web", "nginx", "a.example.com", "80"]
    said("create quota team --hard=requests.cpu=4,pods=10")
    assert "requests.cpu: 0/4" in said("get quota team")
    assert "Controller" in said("explain ingressclass.spec").title()
    assert "No resources found" in said("get replicationcontrollers,networkpolicies")
    assert "web" in said("get events.v1.events.k8s.io")
    said("delete ingress/web quota/team")


def _pruned(said: Says) -> None:
    """What has left the manifests goes, whatever kind it is of."""
    said("create configmap left-behind --dry-run=client -o yaml > left.yaml")
    said("label --local -f left.yaml part-of=shop -o yaml > labelled.yaml")
    said("apply -f labelled.yaml")
    said("create configmap kept --dry-run=client -o yaml > kept.yaml")
    said("label --local -f kept.yaml part-of=shop -o yaml > labelled.yaml")
    pruned = said("apply --prune -l part-of=shop -f labelled.yaml")
    assert "configmap/left-behind pruned" in pruned
    said("delete configmap kept")


def _kinds_of_ones_own(said: Says) -> None:
    assert "created" in said("apply -f kinds.yaml")
    said("wait --for=condition=established crd/shoes.example.com --timeout=1m")
    assert "created" in said("apply -f shoe.yaml")
    assert said("get shoes").split()[-2:] == ["left", "42"]
    assert "deleted" in said("delete -f kinds.yaml")


def _a_node(said: Says) -> None:
    node = said("get nodes -o name").split()[0]
    assert "cordoned" in said(f"cordon {node}")
    assert "drained" in said(f"drain {node} --ignore-daemonsets --timeout=5m")
    assert "uncordoned" in said(f"uncordon {node}")
    said("delete deployment web")
