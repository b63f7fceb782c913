"""``tenure up --from FILE``: a copy of a cluster is served to kubectl, and what became of it is told at the end."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.model.api.resource import NODE_POOLS, Resource
from tenure.ports.transport import Request, Transport
from tenure.sim.apiserver.objects.kinds import ALL
from tests.real.cluster import connected
from tests.real.programs import run
from tests.sim.copied.canary import CANARY, EVERY, a_dump
from tests.sim.copied.clusters import KARPENTER, a_pool
from tests.up.running import BIN, Up, running

Places = dict[str, str]


def objects() -> list[dict[str, Any]]:
    """What Karpenter left behind, in pools whose nodes nothing consolidates."""
    found = [msgspec.json.decode(line) for line in KARPENTER.read_bytes().splitlines()]
    for one in found:
        if one["kind"] == NODE_POOLS.kind:
            one["spec"]["disruption"].update(a_pool()["spec"]["disruption"])
    return found


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(one) for one in objects()))
    return str(path)


def listed(up: Up, kind: str) -> list[dict[str, Any]]:
    ended = up.kubectl("get", kind, "--all-namespaces", "-o", "json")
    assert ended.returncode == 0, ended.stderr
    items: list[dict[str, Any]] = json.loads(ended.stdout)["items"]
    return items


def places(pods: list[dict[str, Any]]) -> Places:
    """By UID: on which node."""
    return {one["metadata"]["uid"]: one["spec"].get("nodeName", "") for one in pods}


def of(kind: str) -> list[dict[str, Any]]:
    return [one for one in objects() if one["kind"] == kind]


def uids(found: list[dict[str, Any]]) -> set[str]:
    return {one["metadata"]["uid"] for one in found}


def test_kubectl_sees_the_same_nodes_and_pods_and_ctrl_c_prints_the_difference(
    tmp_path: Path, file: str
) -> None:
    with running(tmp_path, "--from", file) as up:
        assert "A copy of the cluster as it was at 2026-11-15T08:25:06Z." in up.screen
        assert uids(listed(up, "nodes")) == uids(of("Node"))
        assert places(listed(up, "pods")) == places(of("Pod"))
        assert up.end(signal.SIGINT) == 0
        _, _, told = up.screen.partition("The cluster is gone; nothing of it was kept.\n")
    assert "What became of the cluster in " in told
    assert "  nodes        6, as before\n" in told
    assert "  disruptions  none\n" in told
    assert "  pods moved   0 of 33\n" in told


def test_the_dump_as_it_is_shows_the_same_nodes_with_the_same_pods_on_them(tmp_path: Path) -> None:
    with running(tmp_path, "--from", str(KARPENTER), "--speed", "0.1") as up:
        assert uids(listed(up, "nodes")) == uids(of("Node"))
        assert places(listed(up, "pods")) == places(of("Pod"))
        assert up.end(signal.SIGINT) == 0


@pytest.mark.parametrize("question", [["plan"], ["explain", "pool/general"], ["forecast"]])
def test_a_look_at_it_knows_the_types_of_the_copy_and_its_instances(
    question: list[str], tmp_path: Path
) -> None:
    """Types that the embedded cloud does not sell by itself would be taken as types that are no longer sold."""
    with running(tmp_path, "--from", str(KARPENTER), "--speed", "0.1") as up:
        said = run(up.kubeconfig, BIN / "tenure", *question)
        assert up.end(signal.SIGINT) == 0
    assert said.returncode == 0, said.stderr
    assert "general" in said.stdout
    for wrong in ("no longer offered", "has no price", "could not be found out", "not known"):
        assert wrong not in said.stdout + said.stderr


def test_a_pool_that_is_changed_there_is_in_the_difference(tmp_path: Path, file: str) -> None:
    change = {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}}
    claims = uids(of("NodeClaim"))
    with running(tmp_path, "--from", file, "--speed", "60") as up:
        patch = ("--type=merge", "-p", json.dumps(change))
        changed = up.kubectl("patch", "nodepool", "general", *patch)
        assert changed.returncode == 0, changed.stderr

        def one_leaves() -> bool:
            staying = [
                one
                for one in listed(up, "nodeclaims")
                if "deletionTimestamp" not in one["metadata"]
            ]
            return not claims <= uids(staying)

        up.until(one_leaves, "node that leaves")
        assert up.end(signal.SIGINT) == 0
        (said,) = (line for line in up.screen.splitlines() if line.startswith("  disruptions "))
    assert said.endswith(" Drifted")


async def _answers(transport: Transport, resource: Resource) -> list[bytes]:
    """The list, and every object on its own."""
    answer = await transport.request(Request(method="GET", path=resource.path()))
    assert answer.status == 200, (resource, answer)
    found = [answer.body]
    for one in json.loads(answer.body)["items"]:
        metadata = one["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"])
        alone = await transport.request(Request(method="GET", path=path))
        assert alone.status == 200, (path, alone)
        found.append(alone.body)
    return found


async def _served(kubeconfig: Path) -> dict[Resource, list[bytes]]:
    async with connected(kubeconfig) as transport:
        return {resource: await _answers(transport, resource) for resource in ALL}


def test_no_answer_of_a_copy_has_a_secret_of_the_cluster(tmp_path: Path) -> None:
    """A file full of secrets, in every kind that is taken; every kind that is served is asked for."""
    with running(tmp_path, "--from", str(a_dump(tmp_path))) as up:
        answers = asyncio.run(_served(up.kubeconfig))
        tables = up.kubectl("get", *_TABLES)
        assert up.end(signal.SIGINT) == 0
    there = {resource.kind for resource, bodies in answers.items() if len(bodies) > 1}
    assert {one.kind for one in EVERY} <= there
    assert not [
        str(resource)
        for resource, bodies in answers.items()
        if any(CANARY.encode() in body for body in bodies)
    ]
    assert tables.stdout
    assert CANARY not in tables.stdout + tables.stderr + up.screen


#: As people see them: the server renders these.
_TABLES = ("nodes,pods,deployments,nodepools,nodeclaims,events", "--all-namespaces", "-o", "wide")
