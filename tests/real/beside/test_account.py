"""Beside Karpenter as helm installs it: the role is enough, what it lacks is refused, and nothing is left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tenure.errors import Forbidden
from tenure.kube.client.client import Client
from tenure.model.api.resource import LEASES, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from testbed.karpenter import Karpenter
from testbed.manifests import BESIDE_KARPENTER
from tests.folders import ROOT
from tests.real.account import account
from tests.real.beside.release import Cluster, blocks
from tests.real.beside.test_alone import FREEZE
from tests.real.cluster import CRDS, patient
from tests.real.rights import Right, asked, granted

PAGE: Final = ROOT / "docs" / "beside-karpenter.md"
REFERENCE: Final = ROOT / "docs" / "beside-karpenter-reference.md"
MIGRATION: Final = ROOT / "docs" / "migration.md"
INSTALL: Final = (
    "helm install tenure charts/tenure --namespace tenure --create-namespace "
    "--set mode=beside-karpenter --set settings.release=true"
)
#: Granted, and used when something is late or lost, which a story cannot order.
SELDOM: Final = {
    Right("get", "nodes"): "a write that the watch does not show in time is looked up",
    Right("get", "nodeclaims.karpenter.sh"): "so is this, and a conflict while levers are released",
    Right("get", "nodepools.karpenter.sh"): "a conflict while levers are released",
    Right("patch", "nodepools.karpenter.sh"): "the probe of a failure domain",
    Right("get", "events"): "an event that is there already, of a replica before",
    Right("patch", "events"): "an event that comes again",
}
#: What this story does not need; ``test_timeouts``, ``test_replacing`` and ``test_pacing`` do.
NOT_HERE: Final = {
    Right("create", "nodeclaims.karpenter.sh"): "replacement first",
    Right("delete", "nodeclaims.karpenter.sh"): "time-outs, repair and expiration",
    Right("list", "pods"): "which pods a replacement is for",
    Right("watch", "pods"): "which pods a replacement is for",
    Right("list", "poddisruptionbudgets.policy"): "whether a claim that is deleted can drain",
    Right("watch", "poddisruptionbudgets.policy"): "whether a claim that is deleted can drain",
    Right("list", "nodepoolpolicies.tenure.dev"): "settings of pools",
    Right("watch", "nodepoolpolicies.tenure.dev"): "settings of pools",
    Right("patch", "nodepoolpolicies.tenure.dev/status"): "settings of pools",
    **{
        Right(
            "get", "customresourcedefinitions.apiextensions.k8s.io", "", name
        ): "Karpenter's kinds"
        for name in ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh")
    },
}
LABEL: Final[dict[str, Any]] = {"metadata": {"labels": {"a": "b"}}}
STATUS: Final[dict[str, Any]] = {"status": {"conditions": []}}

Attempt = Callable[[Client, str, str], Awaitable[object]]
#: What Karpenter does, and Tenure beside it must not; with the names of a Node and of a pod.
REFUSED: Final[dict[str, Attempt]] = {
    "delete a Node": lambda client, node, _: client.delete(NODES, node, uid="any"),
    "status of a Node": lambda client, node, _: client.patch(
        NODES, node, STATUS, subresource="status"
    ),
    "evict a pod": lambda client, _, pod: client.evict(pod, "default", uid="any"),
    "delete a pod": lambda client, _, pod: client.delete(PODS, pod, uid="any", namespace="default"),
    "patch a pod": lambda client, _, pod: client.patch(PODS, pod, LABEL, namespace="default"),
    "status of a claim": lambda client, *_: client.patch(
        NODE_CLAIMS, "any", STATUS, subresource="status"
    ),
    "status of a pool": lambda client, *_: client.patch(
        NODE_POOLS, "web", STATUS, subresource="status"
    ),
    "delete a pool": lambda client, *_: client.delete(NODE_POOLS, "web", uid="any"),
    "Karpenter's Lease": lambda client, *_: client.patch(
        LEASES, "karpenter-leader-election", LABEL, namespace="kube-system"
    ),
    "a CRD": lambda client, *_: client.patch(CRDS, "nodepools.karpenter.sh", LABEL),
}


@pytest.fixture
def cluster(bare_karpenter: Karpenter, tmp_path: Path) -> Cluster:
    return Cluster(bare_karpenter.plane, tmp_path)


def test_one_who_leaves_leaves_nothing_in_the_whole_cluster(cluster: Cluster) -> None:
    """Of two lives: one ends politely and by tenure release, one by kill -9 and without Tenure."""
    cluster.fleet()
    before = cluster.everything()
    for how in (blocks(MIGRATION, "Leave")[0], (*by_hand(), *blocks(MIGRATION, "Leave")[0])):
        cluster.typed(INSTALL)
        cluster.apply(FREEZE)
        claim = cluster.all("nodeclaims")[0]["metadata"]["name"]
        cluster.kubectl("annotate", "nodeclaim", claim, "karpenter.sh/do-not-repair=1h")
        with cluster.tenure() as tenure:
            tenure.until(
                lambda: len(cluster.marks()) == 10, "two levers, their marks, a duration's start"
            )
        cluster.kubectl("annotate", "nodeclaim", claim, "karpenter.sh/do-not-repair-")
        for command in how:
            if command == "tenure release":
                lets_the_lease_run_out(cluster)
            cluster.typed(command)
            if command == by_hand()[0]:
                (noted,) = cluster.marks()
                assert noted == f"NodeClaim {claim}: karpenter.sh/do-not-repair-since"
            if command == by_hand()[1]:
                assert cluster.marks() == []
        assert cluster.everything() == before


def by_hand() -> list[str]:
    """The lines of the pages for a cluster without Tenure: for levers, and for what is only noted."""
    (levers,) = re.findall(r"^for one in .*kubectl annotate .*$", PAGE.read_text(), re.M)
    (notes,) = re.findall(r"^kubectl annotate .* --all .*$", REFERENCE.read_text(), re.M)
    return [levers, notes]


def lets_the_lease_run_out(cluster: Cluster) -> None:
    """Of a replica that was killed; the pod of a Deployment would have given it back."""
    patch = '{"spec": {"holderIdentity": ""}}'
    where = ("--namespace=tenure", "tenure-beside-karpenter", "--type=merge")
    cluster.kubectl("patch", "lease", *where, "-p", patch)


def test_with_the_shipped_role_levers_go_on_and_off_and_nothing_is_refused(
    cluster: Cluster,
) -> None:
    cluster.fleet()
    cluster.typed(INSTALL)
    cluster.apply(FREEZE)
    with cluster.tenure() as tenure:
        tenure.until(lambda: cluster.levers() == 1, "lever of the window")
        cluster.kubectl("delete", "maintenancewindow", "freeze")
        tenure.until(lambda: cluster.levers() == 0, "release of the lever")
        claim = cluster.all("nodeclaims")[0]["metadata"]["name"]
        cluster.kubectl("annotate", "nodeclaim", claim, "karpenter.sh/do-not-disrupt=1h")
        tenure.until(lambda: cluster.levers() == 1, "lever of the protection")
        assert "tenure_levers_past_end 0.0" in tenure.get("/metrics")[1]
        assert tenure.stop() == 0
        assert tenure.said("levers taken back")
    assert cluster.marks() == [f"NodeClaim {claim}: karpenter.sh/do-not-disrupt"], "a user's"

    asks = set(asked(cluster.plane))
    refused = {ask for ask in asks if not ask.allowed and ask._replace(allowed=True) not in asks}
    assert refused == set(), "the role lacks this"
    rights = set(granted(shipped()))
    unused = {right for right in rights if not any(ask.uses(right) for ask in asks)}
    assert unused <= SELDOM.keys() | NOT_HERE.keys(), "granted, and nothing used it"
    assert SELDOM.keys() | NOT_HERE.keys() <= rights


def shipped() -> list[dict[str, Any]]:
    return list(filter(None, yaml.safe_load_all(BESIDE_KARPENTER.read_text(encoding="utf-8"))))


def test_what_is_karpenters_the_api_server_refuses(cluster: Cluster) -> None:
    (node, *_), (pod, *_) = (cluster.all(kind) for kind in ("nodes", "pods"))

    async def tried() -> list[str]:
        allowed = []
        async with patient(account(cluster.plane)) as client:
            for what, attempt in REFUSED.items():
                try:
                    await attempt(client, node["metadata"]["name"], pod["metadata"]["name"])
                except Forbidden:
                    continue
                allowed.append(what)
        return allowed

    assert asyncio.run(tried()) == []
