"""An account for Tenure beside Karpenter: it cannot evict pods, delete Nodes, or write a status of Karpenter's."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tenure.cli.settings.config import BESIDE_LEASE
from tenure.errors import AlreadyExists
from testbed.controlplane import ControlPlane
from tests.real.account import GROUPS, NAMESPACE, RESOURCES
from tests.real.cluster import patient

Json = dict[str, Any]
NAME: Final = "tenure-beside"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{NAME}"


def _rule(group: str, resources: str, verbs: str, *names: str) -> Json:
    return {
        "apiGroups": [group],
        "resources": resources.split(),
        "verbs": verbs.split(),
        **({"resourceNames": list(names)} if names else {}),
    }


RULES: Final = (
    _rule("karpenter.sh", "nodepools maintenancewindows", "list watch"),
    _rule("karpenter.sh", "nodeclaims", "get list watch create patch delete"),
    _rule("karpenter.sh", "maintenancewindows/status", "patch"),
    _rule("tenure.dev", "nodepoolpolicies", "list watch"),
    _rule("tenure.dev", "nodepoolpolicies/status", "patch"),
    _rule("apps", "deployments", "list watch"),
    _rule("", "nodes", "get list watch patch"),
    _rule("", "pods", "list watch"),
    _rule("", "events", "create get patch"),
    _rule("", "namespaces", "get", "kube-system"),
    _rule("coordination.k8s.io", "leases", "list", BESIDE_LEASE),
)
LEASE_RULES: Final = (
    _rule("coordination.k8s.io", "leases", "create"),
    _rule("coordination.k8s.io", "leases", "patch", BESIDE_LEASE),
)


def install_account(plane: ControlPlane) -> None:
    asyncio.run(_install(plane))


async def _install(plane: ControlPlane) -> None:
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]
    async with patient(plane.kubeconfig) as client:
        for kind, rules, where in (
            ("ClusterRole", RULES, ""),
            ("Role", LEASE_RULES, NAMESPACE),
        ):
            role = {"metadata": {"name": NAME}, "rules": list(rules)}
            reference = {"apiGroup": group, "kind": kind, "name": NAME}
            binding = {"metadata": {"name": NAME}, "roleRef": reference, "subjects": subjects}
            if where:
                with suppress(AlreadyExists):
                    await client.create(RESOURCES["Namespace"], {"metadata": {"name": where}})
            await client.create(RESOURCES[kind], role, where)
            await client.create(RESOURCES[f"{kind}Binding"], binding, where)


def account(plane: ControlPlane) -> Path:
    """Its kubeconfig."""
    return plane.kubeconfig_for(USER, *GROUPS)
