"""A cluster that does not let Tenure in at first: what is said meanwhile, and that it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from testbed.controlplane import ControlPlane
from tests.real.account import RESOURCES
from tests.real.process import tenure_run
from tests.real.users import users_at

USER = "latecomer"
#: Without windows and LimitRanges it goes on.
KINDS = 9


def test_without_rights_it_names_them_and_goes_on_when_they_are_granted(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    with tenure_run(cluster.kubeconfig_for(USER), tmp_path) as tenure:
        said = tenure.until_said("pods: 403 Forbidden: ")
        assert said["advice"] == "grant it: the role that comes with Tenure has it"
        tenure.until_said("the name of the cluster: 403 Forbidden: ")
        tenure.until(
            lambda: tenure.get("/readyz")[1].count("not synced: 403 Forbidden: ") == KINDS,
            "every kind among what is missing",
        )
        assert tenure.get("/readyz")[0] == 503
        assert tenure.get("/healthz")[0] == 200
        asyncio.run(_grant(cluster))
        tenure.until_ready()
        once = [line["message"] for line in tenure.said("403 Forbidden: ")]
        assert len(once) == len(set(once)), "each is said once, however often it was tried"
        assert tenure.stop() == 0


async def _grant(cluster: ControlPlane) -> None:
    async with users_at(cluster, "grudging") as users:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": USER},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "tenure",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        }
        await users.client.create(RESOURCES["ClusterRoleBinding"], binding)
