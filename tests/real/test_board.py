"""``tenure board`` on a real cluster, by a user who may only read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tenure.cli.board.live import LiveCluster
from tenure.cli.cluster.listing import CannotRead
from tenure.cli.cluster.options import chosen_cluster
from tenure.cli.commands.board import board as command
from tenure.dashboard.board.app import Board
from tenure.model.api.resource import PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment
from tests.dashboard.board.frames import screen_text
from tests.real.account import NAMESPACE, RESOURCES, account
from tests.real.process import PATIENCE, tenure_run
from tests.real.users import Users, running, users_at

READER, POOR = "board-reader", "board-poor"
READS = ["get", "list", "watch"]


def live(kubeconfig: Path) -> LiveCluster:
    names = [param.name for param in command.params if param.name]
    return LiveCluster(chosen_cluster({**dict.fromkeys(names), "kubeconfig": str(kubeconfig)}))


async def until(pilot: Pilot[int], condition: Callable[[], bool], board: Board) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                assert board.error is None, board.error
                await pilot.pause(0.1)
    except TimeoutError:
        raise AssertionError(screen_text(board)) from None


async def _may_read(users: Users, user: str, *, but: str) -> None:
    """Everything, but for one resource of the core group."""
    core = [
        *("nodes", "pods", "namespaces", "persistentvolumes", "persistentvolumeclaims"),
        *("limitranges", "configmaps", "events"),
    ]
    rules: list[dict[str, Any]] = [
        {"apiGroups": [""], "resources": [one for one in core if one != but], "verbs": READS},
        {
            "apiGroups": [
                *("apps", "policy", "storage.k8s.io", "karpenter.sh", "karpenter.kwok.sh"),
                *("coordination.k8s.io", "tenure.dev", "apiextensions.k8s.io"),
            ],
            "resources": ["*"],
            "verbs": READS,
        },
    ]
    meta = {"name": user}
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
    }
    await users.client.create(RESOURCES["ClusterRole"], role)
    await users.client.create(RESOURCES["ClusterRoleBinding"], binding)


def test_a_user_who_may_only_read_sees_the_nodes_and_what_is_not_listed(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_story(cluster, tmp_path))


async def _story(cluster: ControlPlane, folder: Path) -> None:
    async with users_at(cluster, "boards") as users:
        await _may_read(users, READER, but="limitranges")
        await _may_read(users, POOR, but="nodes")
        with tenure_run(
            account(cluster), folder, f"--leader-election-namespace={NAMESPACE}"
        ) as one:
            one.until_leading()
            await users.apply(*a_cluster(a_deployment("web", replicas=3)))
            await users.until(PODS, lambda pods: len(running(pods)) == 3, "running")
            shown = Board(live(cluster.kubeconfig_for(READER)))
            async with shown.run_test(size=(140, 30)) as pilot:
                acts = f"acts: {one.said('tenure starts')[-1]['identity']}"
                denied = "limitranges cannot be listed: 403 Forbidden"
                wanted = ("in service", "InService: ", denied, acts)
                await until(
                    pilot, lambda: all(each in screen_text(shown) for each in wanted), shown
                )
                await pilot.press("down", "e")
                await until(pilot, lambda: "verdict" in screen_text(shown), shown)
            poor = Board(live(cluster.kubeconfig_for(POOR)))
            async with poor.run_test() as pilot:
                async with asyncio.timeout(PATIENCE):
                    while poor.error is None:
                        await pilot.pause(0.1)
            assert isinstance(poor.error, CannotRead)
            assert "nodes cannot be listed: 403 Forbidden" in str(poor.error)
            assert "grant it" in str(poor.error)
            assert one.stop() == 0
