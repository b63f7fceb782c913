"""``tenure run`` as a process, under the account that is shipped: 500 pods, and nothing left."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml

from tenure.cli.main import run
from tenure.core.reasons import Reason
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import (
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
)
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment, a_node_class, a_pool, a_requirement
from tests.real.account import NAMESPACE, account
from tests.real.process import Process, tenure_run
from tests.real.users import Json, Users, is_true, names, running, users_at

PODS_WANTED = 500
#: Room for about 70 of them.
TYPE = "c-64x-amd64-linux"
FLAGS = (f"--leader-election-namespace={NAMESPACE}", "--drain-min=1s", "--termination-poll=1s")
#: Of each kind of thing that people build dashboards and alerts on.
SERIES = (
    "karpenter_nodeclaims_created_total",
    "karpenter_nodeclaims_terminated_total",
    "karpenter_nodes_created_total",
    "karpenter_nodes_terminated_total",
    "karpenter_nodes_drained_total",
    "karpenter_nodes_termination_duration_seconds_count",
    "karpenter_nodepools_usage",
    "karpenter_pods_startup_duration_seconds_count",
    "karpenter_pods_bound_duration_seconds_count",
    "karpenter_scheduler_scheduling_duration_seconds_count",
    "karpenter_scheduler_queue_depth",
    "karpenter_cloudprovider_duration_seconds_count",
    "karpenter_cluster_state_synced",
    "karpenter_cluster_state_node_count",
    "tenure_verdicts_total",
    "tenure_actions_total",
    "tenure_api_requests_total",
    "tenure_informer_synced",
    "tenure_leader",
    "tenure_build_info",
    "process_resident_memory_bytes",
)
ONCE = re.compile(r"^(\w+)(?:\{.*\})? (\S+)$", re.MULTILINE)


def test_500_pods_get_nodes_and_run_and_no_node_is_left_when_they_are_scaled_to_zero(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = asyncio.run(_life(cluster, tmp_path))
    capsys.readouterr()
    assert run(["explain", f"claim/{claim}", "--kubeconfig", str(cluster.kubeconfig)]) == 1
    said = capsys.readouterr().err
    assert f"NodeClaim/{claim} is not there at " in said
    assert "last event: " in said


async def _life(cluster: ControlPlane, folder: Path) -> str:
    """The name of a claim that came and went."""
    kubeconfig = account(cluster)
    async with users_at(cluster, "many") as users:
        with tenure_run(kubeconfig, folder, *FLAGS) as tenure:
            tenure.until_ready()
            tenure.until_leading()
            await _scale_up(users)
            _healthy(tenure)
            await _told_by_events(users)
            (claim, *_) = names(await users.all(NODE_CLAIMS))
            await _scale_to_zero(users, tenure)
            _measured(tenure)
            assert tenure.stop() == 0
        _logged(tenure, kubeconfig)
        return claim


async def _scale_up(users: Users) -> None:
    pool = a_pool(requirements=[a_requirement(INSTANCE_TYPE, TYPE)])
    web = a_deployment("web", replicas=PODS_WANTED, cpu="900m", memory="512Mi")
    await users.apply(a_node_class(), pool, web)
    await users.until(PODS, lambda pods: len(running(pods)) == PODS_WANTED, "all running")
    claims = await users.until(
        NODE_CLAIMS, lambda claims: all(map(is_true("Ready"), claims)), "ready"
    )
    assert claims
    nodes = await users.all(NODES)
    assert sorted(c["status"]["nodeName"] for c in claims) == names(nodes), "one for each claim"
    (pool,) = await users.until(
        NODE_POOLS, lambda pools: pools[0]["status"].get("nodes") == len(nodes), "counted"
    )
    assert is_true("Ready")(pool)


def _healthy(tenure: Process) -> None:
    for page in ("/healthz", "/readyz"):
        status, body = tenure.get(page)
        assert status == 200
        assert body.startswith("ok: leading: the Lease ")
    page = tenure.get("/metrics")[1]
    pods = [line for line in page.splitlines() if line.startswith("karpenter_pods_state{")]
    assert sum('namespace="many"' in line for line in pods) == PODS_WANTED
    assert total(page, "karpenter_nodepools_usage") > 0


async def _told_by_events(users: Users) -> None:
    """On the pods themselves, once each; pods that found room by themselves are no news."""

    def nominations(events: list[Json]) -> list[str]:
        ours = [event for event in events if event["source"].get("component") == "tenure"]
        return [
            event["involvedObject"]["name"]
            for event in ours
            if event["reason"] == Reason.NOMINATED and event["involvedObject"]["kind"] == "Pod"
        ]

    events = await users.until(EVENTS, lambda events: bool(nominations(events)), "told")
    told = nominations(events)
    assert len(told) == len(set(told))
    assert set(told) <= set(names(await users.all(PODS)))


async def _scale_to_zero(users: Users, tenure: Process) -> None:
    """Emptiness takes the nodes away, a tenth of them at once: the default budget."""
    await users.scale("web", 0)
    await users.until(NODE_CLAIMS, lambda claims: not claims, "gone")
    await users.until(NODES, lambda nodes: not nodes, "gone: an instance of kwok is its Node")


def _measured(tenure: Process) -> None:
    """The replica may hear of the last end a moment after we did."""
    created, ended = "karpenter_nodeclaims_created_total", "karpenter_nodeclaims_terminated_total"

    def all_told() -> bool:
        page = tenure.get("/metrics")[1]
        found = {name for name, _ in ONCE.findall(page)}
        return set(SERIES) <= found and 0 < total(page, created) == total(page, ended)

    tenure.until(all_told, "every series, and as many ends as beginnings")
    status, page = tenure.get("/metrics")
    assert status == 200
    assert total(page, "karpenter_cluster_state_synced") == 1
    assert total(page, "tenure_leader") == 1


def total(page: str, series: str) -> float:
    return sum(float(value) for name, value in ONCE.findall(page) if name == series)


def _logged(tenure: Process, kubeconfig: Path) -> None:
    """One object on each line, in time, and no secret in it."""
    text = tenure.log_file.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert lines[0]["message"] == "tenure starts"
    assert lines[-1]["message"] == "stopped"
    assert [line for line in lines if line["level"] == "error"] == []
    assert [line for line in lines if line.get("kind") == "Forbidden"] == []
    reasons = {line.get("reason") for line in lines}
    assert reasons >= {
        "NeededForPods",
        "Launched",
        "InService",
        "NodeEmpty",
        "ClaimDeleted",
        "Drained",
    }
    for secret in secrets(kubeconfig):
        assert secret not in text


def secrets(kubeconfig: Path) -> list[str]:
    """Tokens, keys and certificates, as they stand in the file or in what it names."""
    (user,) = (each["user"] for each in yaml.safe_load(kubeconfig.read_text())["users"])
    found = [str(value) for name, value in user.items() if name.endswith(("token", "-data"))]
    files = [user[name] for name in ("client-key", "client-certificate") if name in user]
    found += [(kubeconfig.parent / file).read_text().splitlines()[1] for file in files]
    assert found
    return found


def test_a_broken_pool_among_good_ones_is_told_and_stops_no_other(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_broken(cluster, tmp_path))


async def _broken(cluster: ControlPlane, folder: Path) -> None:
    async with users_at(cluster, "broken") as users:
        with tenure_run(account(cluster), folder, *FLAGS) as tenure:
            tenure.until_leading()
            broken = a_pool("broken", node_class="nowhere", weight=100)
            await users.apply(*a_cluster(broken, a_deployment("web", replicas=3)))
            await users.until(PODS, lambda pods: len(running(pods)) == 3, "running")
            said = tenure.until_said("verdict", subject="NodePool/broken", reason="PoolNotReady")
            assert "nowhere" in said["because"]
            (pool,) = (p for p in await users.all(NODE_POOLS) if names([p]) == ["broken"])
            assert not is_true("Ready")(pool)
            assert tenure.get("/readyz")[0] == 200
            await users.delete(DEPLOYMENTS, *await users.all(DEPLOYMENTS))
            await users.delete(NODE_POOLS, *await users.all(NODE_POOLS))
            await users.until(NODE_CLAIMS, lambda claims: not claims, "gone with their pool")
            await users.until(NODES, lambda nodes: not nodes, "gone")
            assert tenure.stop() == 0


def test_without_leader_election_it_acts_at_once_and_leaves_every_lease_alone(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_alone(cluster, tmp_path))


async def _alone(cluster: ControlPlane, folder: Path) -> None:
    async with users_at(cluster, "alone") as users:
        before = (await users.client.list_all(LEASES))[0]
        with tenure_run(account(cluster), folder, *FLAGS, "--disable-leader-election") as tenure:
            tenure.until_ready()
            tenure.until_said("leader election is off: nothing else may act on this cluster")
            await users.apply(*a_cluster(a_deployment("web", replicas=2)))
            await users.until(PODS, lambda pods: len(running(pods)) == 2, "running")
            assert tenure.get("/readyz") == (200, "ok: leading: without a Lease\n")
            assert total(tenure.get("/metrics")[1], "tenure_leader") == 1
            assert tenure.stop() == 0
        named = "karpenter-leader-election"
        after = (await users.client.list_all(LEASES))[0]
        assert [item for item in after if named in bytes(item).decode()] == [
            item for item in before if named in bytes(item).decode()
        ]
