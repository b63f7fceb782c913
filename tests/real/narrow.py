"""An account that lacks one right of those that are shipped, until it is granted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tenure.kube.client.client import Client
from testbed.controlplane import ControlPlane
from testbed.kubectl import kubectl
from tests.real.account import GROUPS, RESOURCES, Json, shipped

NARROW: Final = "narrow"
_RIGHTS: Final = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


class Narrow:
    def __init__(self, plane: ControlPlane, client: Client, file: Path) -> None:
        self._plane, self._client, self._file = plane, client, file

    async def without(self, plural: str) -> Path:
        """Its kubeconfig; it may do nothing with objects of that kind."""
        await asyncio.to_thread(self._revoke_all)  # What a story before has granted.
        for manifest in shipped(self._file):
            kind = manifest["kind"]
            if kind not in _RIGHTS:
                continue
            name = _narrow(manifest["metadata"]["name"])
            manifest["metadata"] = {
                **manifest["metadata"],
                "name": name,
                "labels": {NARROW: "true"},
            }
            if "rules" in manifest:
                manifest["rules"] = list(_without(manifest["rules"], plural))
            else:
                manifest["roleRef"]["name"] = _narrow(manifest["roleRef"]["name"])
                group = "rbac.authorization.k8s.io"
                manifest["subjects"] = [{"apiGroup": group, "kind": "User", "name": NARROW}]
            namespace = manifest["metadata"].get("namespace", "")
            await self._client.create(RESOURCES[kind], manifest, namespace)
        return self._plane.kubeconfig_for(NARROW, *GROUPS)

    async def grant_all(self) -> None:
        for role in shipped(self._file):
            if role["kind"] == "ClusterRole":
                name = _narrow(role["metadata"]["name"])
                rules = {"rules": role["rules"]}
                await self._client.patch(RESOURCES["ClusterRole"], name, rules)

    def _revoke_all(self) -> None:
        selected = (f"--selector={NARROW}", "--ignore-not-found")
        kubectl(self._plane, "delete", "clusterrole,clusterrolebinding", *selected)
        kubectl(self._plane, "delete", "role,rolebinding", "--all-namespaces", *selected)


def _without(rules: list[Json], plural: str) -> Iterator[Json]:
    for rule in rules:
        rest = [one for one in rule.get("resources", ()) if one.partition("/")[0] != plural]
        if rest or "resources" not in rule:
            yield {**rule, **({"resources": rest} if rest else {})}


def _narrow(name: str) -> str:
    return f"{NARROW}-{name}"
