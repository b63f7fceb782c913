"""What Tenure does now and then: says again what it said before, evaluates windows, takes up a lost Node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_cluster, a_deployment, a_pod
from tests.real.account import NAMESPACE, account
from tests.real.process import tenure_run
from tests.real.programs import said

FLAGS: Final = (f"--leader-election-namespace={NAMESPACE}", "--drain-min=1s")
WINDOW: Final = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "MaintenanceWindow",
    "metadata": {"name": "night"},
    "spec": {
        "type": "Allow",
        "actions": ["Drift"],
        "schedules": [{"cron": "0 22 * * *", "duration": "6h"}],
    },
}


POLICY: Final = {
    "apiVersion": "tenure.dev/v1alpha1",
    "kind": "NodePoolPolicy",
    "metadata": {"name": "slow-boot"},
    "spec": {"readinessTTL": "40m", "budgets": [{"nodes": "1", "within": "1h"}]},
}


def apply(plane: ControlPlane, manifests: Sequence[Manifest]) -> None:
    stream = "\n---\n".join(map(json.dumps, manifests))
    said(plane.kubeconfig, "kubectl", "apply", "-f", "-", stdin=stream)


def counted(plane: ControlPlane) -> list[int]:
    """How often Tenure has said that a pod fits nowhere, for each event."""
    which = "reason=FailedScheduling,source=tenure,involvedObject.name=nowhere"
    counts = ("--field-selector", which, "-o", "jsonpath={.items[*].count}")
    return list(map(int, said(plane.kubeconfig, "kubectl", "get", "events", *counts).split()))


def listed(plane: ControlPlane, what: str) -> list[str]:
    return said(plane.kubeconfig, "kubectl", "get", what, "-o", "name").split()


def test_a_replica_that_comes_after_counts_the_event_on_instead_of_repeating_it(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    nowhere = a_pod("nowhere", nodeSelector={"karpenter.sh/nodepool": "missing"})
    apply(cluster, a_cluster(nowhere))
    with tenure_run(account(cluster), tmp_path, *FLAGS, name="first") as tenure:
        tenure.until(lambda: counted(cluster) == [1], "event")
        assert tenure.stop() == 0
    with tenure_run(account(cluster), tmp_path, *FLAGS, name="second") as tenure:
        tenure.until(lambda: counted(cluster) == [2], "event that was counted on")
        assert tenure.stop() == 0


def test_a_window_says_that_it_is_valid_and_whether_it_is_active(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    apply(cluster, [WINDOW])
    with tenure_run(account(cluster), tmp_path, *FLAGS) as tenure:
        valid = ("--for=condition=Valid=True", "maintenancewindow/night", "--timeout=240s")
        said(cluster.kubeconfig, "kubectl", "wait", *valid)
        path = "jsonpath={.status.conditions[?(@.type=='Active')].status} {.status.nextChange}"
        shown = said(cluster.kubeconfig, "kubectl", "get", "maintenancewindow/night", "-o", path)
        active, _, change = shown.partition(" ")
        assert active in ("True", "False")
        assert change, "it opens and closes every day"
        assert tenure.stop() == 0


def test_a_policy_says_that_it_is_valid_and_to_how_many_pools_it_applies(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    apply(cluster, a_cluster(POLICY))
    with tenure_run(account(cluster), tmp_path, *FLAGS) as tenure:
        valid = ("--for=condition=Valid=True", "nodepoolpolicy/slow-boot", "--timeout=240s")
        said(cluster.kubeconfig, "kubectl", "wait", *valid)
        path = "jsonpath={.status.nodePools}"
        shown = said(cluster.kubeconfig, "kubectl", "get", "npp/slow-boot", "-o", path)
        assert shown == "1"
        assert tenure.stop() == 0


def test_a_node_removed_with_its_finalizer_deletes_its_claim(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    apply(cluster, a_cluster(a_deployment("web")))
    with tenure_run(account(cluster), tmp_path, *FLAGS, "--garbage-period=1s") as tenure:
        available = ("--for=condition=Available", "deployment/web", "--timeout=240s")
        said(cluster.kubeconfig, "kubectl", "wait", *available)
        [claim] = listed(cluster, "nodeclaims")
        [node] = listed(cluster, "nodes")
        none = '{"metadata": {"finalizers": null}}'
        said(cluster.kubeconfig, "kubectl", "delete", node, "--wait=false")
        said(cluster.kubeconfig, "kubectl", "patch", node, "--type=merge", "-p", none)
        tenure.until(lambda: claim not in listed(cluster, "nodeclaims"), "end of the claim")
        tenure.until(lambda: len(listed(cluster, "nodeclaims")) == 1, "another claim")
        assert tenure.stop() == 0
