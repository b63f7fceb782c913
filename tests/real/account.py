"""Tenure's own account in the cluster, with exactly the rights that are shipped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tenure.errors import AlreadyExists, NotFound
from tenure.kube.client.client import Client
from tenure.model.api.resource import NAMESPACES, Resource
from tenure.model.snapshot.kinds import decode
from testbed.controlplane import ControlPlane
from testbed.manifests import MANIFEST
from tests.real.cluster import LOOK_EVERY, PATIENCE, SERVICE_ACCOUNTS, admits_pods, patient

Json = dict[str, Any]
NAMESPACE: Final = "tenure"
#: Where the kwok provider keeps Nodes that wait for their registration delay.
PROVIDER_NAMESPACE: Final = "tenure-kwok"
USER: Final = f"system:serviceaccount:{NAMESPACE}:tenure"
GROUPS: Final = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")

_RBAC: Final = "rbac.authorization.k8s.io"
#: What makes up the account; the rest of the manifest is not needed for an account.
RESOURCES: Final = {
    resource.kind: resource
    for resource in (
        NAMESPACES,
        SERVICE_ACCOUNTS,
        Resource(_RBAC, "v1", "ClusterRole", "clusterroles", False),
        Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False),
        Resource(_RBAC, "v1", "Role", "roles", True),
        Resource(_RBAC, "v1", "RoleBinding", "rolebindings", True),
    )
}


def shipped(file: Path = MANIFEST) -> Iterator[Json]:
    """Every object of the plain manifests."""
    yield from filter(None, yaml.safe_load_all(file.read_text(encoding="utf-8")))


def install_account(plane: ControlPlane, file: Path = MANIFEST) -> None:
    asyncio.run(_install(plane, file))


async def _install(plane: ControlPlane, file: Path) -> None:
    async with patient(plane.kubeconfig) as client:
        await admits_pods(plane, client, "default")
        for manifest in shipped(file):
            if (resource := RESOURCES.get(manifest["kind"])) is not None:
                if resource == NAMESPACES:
                    await _gone_if_leaving(client, manifest["metadata"]["name"])
                try:
                    await client.create(
                        resource, manifest, manifest["metadata"].get("namespace", "")
                    )
                except AlreadyExists:
                    continue


async def _gone_if_leaving(client: Client, namespace: str) -> None:
    """Nothing can be created in a namespace that is being deleted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                found = decode(NAMESPACES, await client.get(NAMESPACES, namespace))
            except NotFound:
                return
            if not found.deleting:
                return
            await asyncio.sleep(LOOK_EVERY)


def account(plane: ControlPlane) -> Path:
    """The kubeconfig of Tenure's account."""
    return plane.kubeconfig_for(USER, *GROUPS)
