"""A copy of a real cluster is that cluster: ``tenure snapshot``, and what ``simulate`` and ``up`` make of it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tenure.core.reasons import Reason
from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, NODES, POD_DISRUPTION_BUDGETS, PODS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.copied.redaction import TAKEN
from testbed.controlplane import KWOK_LABEL, ControlPlane
from tests.builders import (
    Manifest,
    a_deployment,
    a_node_class,
    a_pdb,
    a_pool,
    a_requirement,
    a_stateful_set,
)
from tests.real.account import PROVIDER_NAMESPACE, RESOURCES, account
from tests.real.process import PATIENCE, tenure_run
from tests.real.programs import run
from tests.real.scene import BRISK, TWO_CORES
from tests.real.users import Json, Users, is_true, running, users_at
from tests.up.running import BIN
from tests.up.running import running as up_running

#: Each fills a node of two cores; the DaemonSet has a pod on each.
CPU: Final = "1500m"
WEB, DB = 3, 1
NODES_WANTED: Final = WEB + DB
PODS_WANTED: Final = 2 * NODES_WANTED
COPIER: Final = "copier"
_STARTING: Final = {
    Reason.NODE_NOT_FOUND,
    Reason.NODE_NOT_READY,
    Reason.EPHEMERAL_TAINTS_EXIST,
    Reason.STARTUP_TAINTS_EXIST,
    Reason.RESOURCE_NOT_REGISTERED,
}
_RBAC: Final = "rbac.authorization.k8s.io"


def tenure(kubeconfig: Path, *words: str) -> tuple[str, str]:
    """What the program says, and what it notes; it has to succeed."""
    ended = run(kubeconfig, BIN / "tenure", *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


def snapshot(kubeconfig: Path, file: Path) -> str:
    """Into the file; what is missing, as it is told."""
    lines, notes = tenure(kubeconfig, "snapshot", "--kubeconfig", str(kubeconfig))
    file.write_text(lines)
    return notes


def an_hour_of(kubeconfig: Path, *source: str) -> tuple[list[Json], Json]:
    """What Tenure did in the copy, and the difference."""
    said, _ = tenure(kubeconfig, "simulate", *source, "--for", "1h", "--json")
    *events, result, difference = map(json.loads, said.splitlines())
    assert (result["type"], difference["type"]) == ("result", "difference")
    assert result["fine"], result
    done = [one for one in events if one["source"] == "tenure" and one["ended"] is not None]
    return done, difference


def plan(kubeconfig: Path) -> list[Json]:
    """What Tenure would do in the cluster now."""
    place = f"--provider-namespace={PROVIDER_NAMESPACE}"
    said, _ = tenure(kubeconfig, "plan", "--kubeconfig", str(kubeconfig), place, "--json")
    found: list[Json] = json.loads(said)["toDo"]
    return found


def a_daemon_set(name: str) -> Manifest:
    manifest = a_deployment(name, cpu="100m", memory="32Mi") | {"kind": "DaemonSet"}
    del manifest["spec"]["replicas"]
    return manifest


def of(kind: str, file: Path) -> list[Json]:
    every: list[Json] = [json.loads(line) for line in file.read_text().splitlines()]
    return [one for one in every if one["kind"] == kind]


def names(objects: list[Json]) -> set[str]:
    return {one["metadata"]["name"] for one in objects}


def uids(objects: list[Json]) -> set[str]:
    return {one["metadata"]["uid"] for one in objects}


def places(pods: list[Json]) -> dict[str, str]:
    """By UID: on which node."""
    return {one["metadata"]["uid"]: one["spec"].get("nodeName", "") for one in pods}


async def _settle(users: Users) -> None:
    pool = a_pool(requirements=[a_requirement(INSTANCE_TYPE, TWO_CORES)])
    await users.apply(
        a_node_class(),
        pool,
        a_deployment("web", replicas=WEB, cpu=CPU),
        a_stateful_set("db", replicas=DB, cpu=CPU),
        a_daemon_set("agent"),
        a_pdb("web", maxUnavailable=1),
    )
    await users.until(
        PODS, lambda pods: len(running(pods)) == len(pods) == PODS_WANTED, "all running"
    )
    await users.until(NODE_CLAIMS, lambda claims: all(map(is_true("Ready"), claims)), "all ready")


def test_an_hour_of_a_copy_is_what_the_cluster_and_its_plan_say(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_copied(cluster, tmp_path))


async def _copied(cluster: ControlPlane, folder: Path) -> None:
    kubeconfig, file = cluster.kubeconfig, folder / "cluster.jsonl"
    async with users_at(cluster, "copies") as users:
        with tenure_run(account(cluster), folder, *BRISK) as replica:
            replica.until_leading()
            await _settle(users)
            async with asyncio.timeout(PATIENCE):
                while await asyncio.to_thread(plan, kubeconfig):
                    await asyncio.sleep(0.2)  # It still writes what it has seen.
            assert replica.stop() == 0
        assert await asyncio.to_thread(snapshot, kubeconfig, file) == ""
        await _is_the_same(users, file)
        await asyncio.to_thread(_stays_as_it_is, kubeconfig, "--from", str(file))
        cluster_itself = ("--from-cluster", "--kubeconfig", str(kubeconfig))
        await asyncio.to_thread(_stays_as_it_is, kubeconfig, *cluster_itself)
        await asyncio.to_thread(_is_served, folder, *cluster_itself, nodes=of("Node", file))
        await asyncio.to_thread(_a_changed_pool_rolls, kubeconfig, folder, *cluster_itself)
        await _goes_on_where_it_was(users, cluster, folder, file)


async def _is_the_same(users: Users, file: Path) -> None:
    assert uids(of("Node", file)) == uids(await users.all(NODES))
    assert len(of("Node", file)) == NODES_WANTED
    there = [one for one in of("Pod", file) if one["metadata"]["namespace"] == users.namespace]
    assert places(there) == places(await users.all(PODS))


def _stays_as_it_is(kubeconfig: Path, *source: str) -> None:
    """The plan shows nothing to do, so nothing is done."""
    done, difference = an_hour_of(kubeconfig, *source)
    assert done == []
    nodes = difference["nodes"]
    assert (nodes["before"], nodes["after"]) == (NODES_WANTED, NODES_WANTED)
    assert nodes["gone"] == nodes["new"] == difference["podsMoved"] == []
    assert difference["disruptions"] == {}
    assert difference["price"]["after"]["nodesOfUnknownPrice"] == 0


def _is_served(folder: Path, *source: str, nodes: list[Json]) -> None:
    with up_running(folder, *source) as up:
        listed: Any = json.loads(up.kubectl("get", "nodes", "-o", "json").stdout)["items"]
        assert uids(listed) == uids(nodes)
        assert up.end(signal.SIGINT) == 0
        assert f"  nodes        {NODES_WANTED}, as before\n" in up.screen


CHANGE: Final = """
name: another label on every node
events:
- at: 1m
  patch: {pool: general, merge: {spec: {template: {metadata: {labels: {release: two}}}}}}
"""


def _a_changed_pool_rolls(kubeconfig: Path, folder: Path, *source: str) -> None:
    """In the copy every node is replaced, and the difference says so; in the cluster nothing is."""
    change = folder / "change.yaml"
    change.write_text(CHANGE)
    said, _ = tenure(kubeconfig, "simulate", *source, str(change), "--for", "6h", "--json")
    difference = json.loads(said.splitlines()[-1])
    nodes = difference["nodes"]
    assert (nodes["before"], nodes["after"]) == (NODES_WANTED, NODES_WANTED)
    assert len(nodes["gone"]) == len(nodes["new"]) == NODES_WANTED
    assert difference["disruptions"] == {"Drifted": NODES_WANTED}
    assert len(difference["podsMoved"]) == WEB + DB, "pods of DaemonSets go with their node"
    assert plan(kubeconfig) == []


def _actions(entries: Iterable[Json], known: set[str]) -> set[tuple[str, str, str]]:
    """What was done to what, and why: of what was there before, by its name, else by its kind alone.

    Without what is written of a new node while it starts: which steps are seen depends on how fast kubelets are.
    """
    found = set()
    for one in entries:
        if one.get("action") and one.get("outcome") == "ok":
            kind, name = one["subject"].split("/", 1)
            which = name if name.rpartition("/")[2] in known else "new"
            if which != "new" or one["reason"] not in _STARTING:
                found.add((f"{kind}/{which}", one["reason"], one["action"]))
    return found


async def _goes_on_where_it_was(
    users: Users, cluster: ControlPlane, folder: Path, file: Path
) -> None:
    """A claim that a user has deleted while no replica runs: its node goes, as the plan says, and no other.

    A replica that starts then takes the same actions in the cluster as the copy shows, every one of them.
    """
    kubeconfig = cluster.kubeconfig
    (claim, *_) = await users.all(NODE_CLAIMS)
    await users.delete(NODE_CLAIMS, claim)
    await asyncio.to_thread(snapshot, kubeconfig, file)
    planned = {one["subject"] for one in await asyncio.to_thread(plan, kubeconfig)}
    node = claim["status"]["nodeName"]
    assert {f"NodeClaim/{claim['metadata']['name']}", f"Node/{node}"} & planned
    done, difference = await asyncio.to_thread(an_hour_of, kubeconfig, "--from", str(file))
    assert [one["name"] for one in difference["nodes"]["gone"]] == [node]
    first = done[0]["at"]
    assert {one["subject"] for one in done if one["at"] == first} <= planned
    known = {one["metadata"]["name"] for one in map(json.loads, file.read_text().splitlines())}
    with tenure_run(account(cluster), folder, *BRISK, name="after") as replica:
        replica.until_leading()
        await users.until(
            NODES,
            lambda nodes: len(nodes) == NODES_WANTED and node not in names(nodes),
            "another node in its place",
        )
        await users.until(NODE_CLAIMS, lambda claims: all(map(is_true("Ready"), claims)), "ready")
        async with asyncio.timeout(PATIENCE):
            while await asyncio.to_thread(plan, kubeconfig):
                await asyncio.sleep(0.2)  # It still writes what it has seen.
        _, journal = await asyncio.to_thread(replica.get, "/debug/journal")
        did = _actions(map(json.loads, journal.splitlines()), known)
        assert replica.stop() == 0
    assert did == _actions(done, known)


def _role() -> Manifest:
    """Lists all that is copied, but for one kind."""
    kinds = [one for one in (*TAKEN, KWOK_NODE_CLASSES) if one != POD_DISRUPTION_BUDGETS]
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": COPIER},
        "rules": [
            {"apiGroups": [one.group], "resources": [one.plural], "verbs": ["list"]}
            for one in kinds
        ],
    }


def _binding() -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": COPIER},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": COPIER},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": COPIER}],
    }


def _a_node() -> Manifest:
    """Of a node group: no claim owns it, and no label says its type."""
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "of-a-group", "labels": dict([KWOK_LABEL.split("=")])},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def test_a_kind_that_the_account_may_not_list_is_named_and_the_rest_is_copied(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_without_a_right(cluster, tmp_path))


async def _without_a_right(cluster: ControlPlane, folder: Path) -> None:
    kubeconfig, file = cluster.kubeconfig_for(COPIER), folder / "cluster.jsonl"
    async with users_at(cluster, "forbidden") as users:
        for manifest in (_role(), _binding()):
            await users.client.create(RESOURCES[manifest["kind"]], manifest)
        await users.apply(_a_node(), a_deployment("web", replicas=2), a_pdb("web"))
        await users.until(PODS, lambda pods: len(running(pods)) == 2, "running")
        said = await asyncio.to_thread(snapshot, kubeconfig, file)
        (note,) = said.splitlines()
        assert note.startswith("note: poddisruptionbudgets.policy cannot be listed: 403 Forbidden")
        assert note.endswith("; the copy goes without them")
        await _has_the_rest(users, file)
        for source in (("--from", str(file)), ("--from-cluster", "--kubeconfig", str(kubeconfig))):
            shown, notes = await asyncio.to_thread(
                tenure, kubeconfig, "simulate", *source, "--for", "1h"
            )
            assert note in notes.splitlines()
            assert "  nodes        1, as before\n" in shown
            assert "; the price of 1 instance is unknown\n" in shown


async def _has_the_rest(users: Users, file: Path) -> None:
    assert of("PodDisruptionBudget", file) == []
    assert uids(of("Node", file)) == uids(await users.all(NODES))
    there = [one for one in of("Pod", file) if one["metadata"]["namespace"] == users.namespace]
    assert places(there) == places(await users.all(PODS))
