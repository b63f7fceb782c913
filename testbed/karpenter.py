"""Karpenter's own controller for KWOK on the test bed, as it runs in production.

It has its own kinds and not ours, an account of its own, and leader election on. It runs as a process; a
Deployment describes it as its chart does, so that version, settings and feature gates can be read from the cluster.
The pod of that Deployment is pinned to a Node that no pool owns: it runs, and costs no node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from testbed.binaries import BINARIES, found, home
from testbed.controlplane import KWOK_LABEL, ControlPlane, NotReady, control_plane
from testbed.karpentersource import pin
from testbed.kubectl import apply, documents, kubectl

Json = dict[str, Any]
NAME: Final = "karpenter"
PROGRAM: Final = "karpenter-kwok"
NAMESPACE: Final = "kube-system"
LEASE: Final = "karpenter-leader-election"
CLUSTER_NAME: Final = "bed"
#: There is no cloud that could say whether a node's instance has been shut down. And no pod leaves for a taint: a launched
#: Node has ``karpenter.sh/unregistered:NoExecute`` until Karpenter removes it, and that controller deletes the first pod
#: there if it hears of the pod before it hears of that. On a busy machine it does, in a story about other things.
KUBE_CONTROLLERS: Final = ("*", "-cloud-node-lifecycle-controller", "-taint-eviction-controller")
#: Its own user in the audit log. It is an administrator: which rights it needs is not our story.
ACCOUNT: Final = (
    f"system:serviceaccount:{NAMESPACE}:{NAME}",
    "system:serviceaccounts",
    f"system:serviceaccounts:{NAMESPACE}",
    "system:masters",
)
#: What its chart writes when no value is changed.
DEFAULT_GATES: Final = (
    "StaticCapacity=false,SpotToSpotConsolidation=false,NodeRepair=false,"
    "CapacityBuffer=false,PodDeletionCostManagement=false"
)
#: Settings of the chart. A Node that pods were nominated for is no candidate for twice the longest batch, and
#: for ten seconds at least: with the default of ten seconds every story would take ten seconds longer.
SETTINGS: Final = {"BATCH_MAX_DURATION": "2s", "BATCH_IDLE_DURATION": "500ms"}
#: The Node of its pod, and the label of all that stays while stories come and go.
HOST: Final = "karpenter-host"
STAYS: Final = "testbed/stays"
#: What it logs when it has the Lease and acts.
ACTS: Final = "Starting workers"
#: Seconds. The Lease of one that was killed holds for 15.
READY_WITHIN: Final = 120.0
LOOK_EVERY: Final = 0.1


class Karpenter:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._program = str(found([PROGRAM])[PROGRAM])
        #: Its way to the API server from the next start on.
        self.kubeconfig = plane.kubeconfig_for(*ACCOUNT)
        self._one_at_a_time = threading.RLock()
        #: How it was started last.
        self._last: dict[str, str] = {}

    def start(self, *, gates: str = DEFAULT_GATES, **settings: str) -> None:
        """(Again.) Returns when it has the Lease and acts: 15 seconds later after ``kill``."""
        self._last = {"gates": gates, **settings}
        environment = {**SETTINGS, **settings, "FEATURE_GATES": gates, "CLUSTER_NAME": CLUSTER_NAME}
        apply(self.plane, deployed(environment))
        said_before = len(self.log)
        self.plane.start_program(NAME, self._command(environment))
        deadline = time.monotonic() + READY_WITHIN
        while ACTS not in (said := self.log[said_before:]):
            if self.ended or time.monotonic() > deadline:
                what = "has ended" if self.ended else "did not act in time"
                raise NotReady(f"Karpenter {what}:\n" + "\n".join(said.splitlines()[-15:]))
            time.sleep(LOOK_EVERY)

    def kill(self) -> None:
        """As with ``kill -9``: it gives nothing back, and its Lease holds for 15 more seconds."""
        with self._one_at_a_time:
            self.plane.kill_program(NAME)

    def restart(self, *, gates: str = DEFAULT_GATES, **settings: str) -> None:
        """As an upgrade does it: the old one does not keep the new one from the Lease."""
        with self._one_at_a_time:
            self.kill()
            # It is not there if the last one ended before it had it.
            where = (f"--namespace={NAMESPACE}", "--ignore-not-found")
            kubectl(self.plane, "delete", "lease", LEASE, *where)
            self.start(gates=gates, **settings)

    def keep_running(self) -> None:
        """As its Deployment does: it is started again if it has ended by itself."""
        with self._one_at_a_time:
            if self.ended_by_itself:
                self.restart(**self._last)

    @property
    def release(self) -> tuple[int, int]:
        """1.15.0 is (1, 15)."""
        major, minor, *_ = pin().version.removeprefix("v").split(".")
        return int(major), int(minor)

    @property
    def ended_by_itself(self) -> bool:
        return self.plane.ended_by_itself(NAME)

    @property
    def ended(self) -> bool:
        """By itself, or by ``kill``. It does so when it loses the Lease."""
        return self.plane.ended(NAME)

    @property
    def log(self) -> str:
        """What it has said in all its lives; JSON lines."""
        return self.plane.log(NAME)

    def _command(self, environment: Mapping[str, str]) -> list[str]:
        said = [f"{name}={value}" for name, value in environment.items()]
        return [
            "/usr/bin/env", f"KUBECONFIG={self.kubeconfig}", f"SYSTEM_NAMESPACE={NAMESPACE}", *said,
            self._program, f"--leader-election-namespace={NAMESPACE}", "--log-level=debug",
            "--metrics-port=0", "--health-probe-port=0",
        ]  # fmt: skip


@contextmanager
def karpenter_bed(*, gates: str = DEFAULT_GATES, **settings: str) -> Iterator[Karpenter]:
    """A control plane with everything a cluster has and Karpenter at work, while the block lasts."""
    with control_plane(controllers=KUBE_CONTROLLERS, scheduler=True, kwok=True) as plane:
        apply(plane, kinds())
        karpenter = Karpenter(plane)
        karpenter.start(gates=gates, **settings)
        yield karpenter


def kinds() -> Iterator[Json]:
    """Karpenter's own kinds, of its chart and of its provider for KWOK."""
    kwok = _source() / "kwok"
    for path in sorted([*(kwok / "charts" / "crds").glob("*.yaml"),
                        *(kwok / "apis" / "crds").glob("*.yaml")]):  # fmt: skip
        yield from documents(path.read_text())


def deployed(environment: Mapping[str, str]) -> Iterator[Json]:
    """What its chart installs, as far as others read it, and the Node that its pod is pinned to."""
    named = {"name": NAME, "namespace": NAMESPACE}
    selected = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}
    key, value = KWOK_LABEL.split("=")
    taint = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
    yield {
        "apiVersion": "v1", "kind": "Node", "spec": {"taints": [taint]},
        "metadata": {"name": HOST, "labels": {key: value, STAYS: "true"}},
    }  # fmt: skip
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named}
    version = pin().version.removeprefix("v")
    labels = {
        **selected, STAYS: "true", "helm.sh/chart": f"{NAME}-{version}", "app.kubernetes.io/version": version,
        "app.kubernetes.io/managed-by": "Helm",
    }  # fmt: skip
    yield {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**named, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": selected},
            "template": {
                "metadata": {"labels": {**selected, STAYS: "true"}},
                "spec": _pod(version, environment),
            },
        },
    }  # fmt: skip


def _pod(version: str, environment: Mapping[str, str]) -> Json:
    field = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    variables = [{"name": name, "value": value} for name, value in environment.items()]
    controller = {
        "name": "controller",
        "image": f"public.ecr.aws/karpenter/controller:{version}",
        "env": [{"name": "KARPENTER_SERVICE", "value": NAME},
                {"name": "SYSTEM_NAMESPACE", "valueFrom": field}, *variables],
    }  # fmt: skip
    tolerated = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    return {
        "serviceAccountName": NAME, "priorityClassName": "system-cluster-critical",
        "nodeName": HOST, "tolerations": tolerated, "containers": [controller],
    }  # fmt: skip


def _source() -> Path:
    (karpenter,) = (binary for binary in BINARIES if binary.name == PROGRAM)
    return home(karpenter) / "source"
