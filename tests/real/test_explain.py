"""``tenure explain`` and ``tenure plan`` on a real cluster agree with the replica at work there."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.main import run
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, POD_DISRUPTION_BUDGETS, PODS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from testbed.controlplane import ControlPlane, control_plane
from tests.builders import a_cluster, a_deployment, a_pdb, a_pod
from tests.real.account import NAMESPACE, PROVIDER_NAMESPACE, account, install_account
from tests.real.cluster import install_crds
from tests.real.process import PATIENCE, Process, tenure_run
from tests.real.users import Json, running, users_at

FLAGS = (f"--leader-election-namespace={NAMESPACE}", "--drain-min=1s", "--termination-poll=1s")
#: What no other program writes here.
OURS = (NODES, NODE_CLAIMS, NODE_POOLS, KWOK_NODE_CLASSES)
Printed = pytest.CaptureFixture[str]


def asked(printed: Printed, kubeconfig: Path, *words: str) -> Any:
    """The answer, as JSON."""
    printed.readouterr()
    assert run([*words, "--kubeconfig", str(kubeconfig), "--json"]) == 0, printed.readouterr().err
    return json.loads(printed.readouterr().out)


def concluded(tenure: Process, subject: str, concern: str) -> Json:
    """What the replica last said of it."""
    status, body = tenure.get(f"/debug/journal?subject={subject}")
    assert status == 200
    entries: list[Json] = [json.loads(line) for line in body.splitlines() if line]
    of_it = [e for e in entries if (e["subject"], e["concern"]) == (subject, concern)]
    return of_it[-1]


def agree(printed: Printed, kubeconfig: Path, tenure: Process, question: str) -> None:
    """Both say the same, or do so a moment later: the replica may be about to write."""
    deadline = time.monotonic() + PATIENCE
    while True:
        said = asked(printed, kubeconfig, "explain", question)
        known = concluded(tenure, said["subject"], said["concern"])
        if said["reason"] == known["reason"]:
            return
        assert time.monotonic() < deadline, (said, known)


def test_a_look_agrees_with_the_replica_at_work_and_leaves_no_trace(
    cluster: ControlPlane, tmp_path: Path, capsys: Printed
) -> None:
    asyncio.run(_agrees(cluster, tmp_path, capsys))


def _foretells(printed: Printed, kubeconfig: Path, node: str) -> None:
    """The drain's timetable, and what lint has to say, name the budget that holds it."""
    (table,) = asked(printed, kubeconfig, "explain", f"node/{node}")["timetables"]
    assert (table["leaving"], table["goneBy"]) == (True, None)
    held = {hold["message"] for pod in table["pods"] for hold in pod["heldBy"]}
    never = "maxUnavailable 0 of 2 pods can never allow an eviction"
    assert held == {"PDB looks/web can never allow an eviction (maxUnavailable 0 of 2 pods)"}
    assert run(["lint", "--kubeconfig", str(kubeconfig), "--json"]) == 1
    findings = json.loads(printed.readouterr().out)["findings"]
    told = {finding["object"]: finding for finding in findings}
    found = told["PodDisruptionBudget/looks/web"]
    assert found["code"] == "BudgetNeverAllows"
    assert found["message"].startswith(never)


async def _agrees(cluster: ControlPlane, folder: Path, printed: Printed) -> None:
    async with users_at(cluster, "looks") as users:
        with tenure_run(account(cluster), folder, *FLAGS) as tenure:
            tenure.until_leading()
            web, budget = a_deployment("web", replicas=2), a_pdb("web", maxUnavailable=0)
            await users.apply(*a_cluster(web, budget, a_pod("huge", cpu="900")))
            await users.until(PODS, lambda pods: len(running(pods)) == 2, "running")
            await users.until(
                POD_DISRUPTION_BUDGETS,
                lambda budgets: all(b["status"].get("expectedPods") == 2 for b in budgets),
                "counted",
            )
            (claim, *_) = await users.all(NODE_CLAIMS)
            await users.delete(NODE_CLAIMS, claim)
            tenure.until_said("verdict", concern="termination", reason="FailedDraining")
            node = claim["status"]["nodeName"]
            questions = (f"node/{node}", f"claim/{claim['metadata']['name']}", "pool/general")
            for question in (*questions, "pod/looks/huge"):
                await asyncio.to_thread(agree, printed, cluster.kubeconfig, tenure, question)
            huge = await asyncio.to_thread(
                asked, printed, cluster.kubeconfig, "explain", "pod/looks/huge"
            )
            assert "NodePool general: 0 of " in huge["message"]
            assert huge["smallestChanges"][0]["fact"]["type"] == "AskAtMost"
            plan = await asyncio.to_thread(asked, printed, cluster.kubeconfig, "plan")
            held = {v["subject"]: v for v in plan["notNow"]}
            blockers = {each["subject"] for each in held[f"Node/{node}"]["blockers"]}
            assert "PodDisruptionBudget/looks/web" in blockers
            assert held["Pod/looks/huge"]["reason"] == "FailedScheduling"
            assert plan["leader"].startswith(tenure.said("tenure starts")[-1]["identity"])
            await asyncio.to_thread(_foretells, printed, cluster.kubeconfig, node)
            assert plan["notes"] == []
            assert tenure.stop() == 0


def test_a_plan_without_a_replica_says_what_would_be_done_and_does_nothing(
    cluster: ControlPlane, capsys: Printed
) -> None:
    asyncio.run(_plans(cluster, capsys))


async def _plans(cluster: ControlPlane, printed: Printed) -> None:
    async with users_at(cluster, "plans") as users:
        await users.apply(*a_cluster(a_deployment("web", replicas=3)))
        await users.until(
            PODS,
            lambda pods: len(pods) == 3 and all("conditions" in p["status"] for p in pods),
            "seen by the scheduler",
        )
        before = [await users.all(resource) for resource in OURS]

        async def actions() -> list[str]:
            # By the account that is shipped: its rights are enough.
            place = f"--provider-namespace={PROVIDER_NAMESPACE}"
            plan = await asyncio.to_thread(asked, printed, account(cluster), "plan", place)
            return [verdict["action"] for verdict in plan["toDo"]]

        async with asyncio.timeout(PATIENCE):
            while not any(a.startswith("Create NodeClaim general-") for a in await actions()):
                await asyncio.sleep(0.2)  # Pods are still gathered.
        after = [await users.all(resource) for resource in OURS]
        assert after == before


def test_who_may_not_look_hears_which_rights_are_missing(
    cluster: ControlPlane, capsys: Printed
) -> None:
    without_rights = cluster.kubeconfig_for("jane")
    assert run(["plan", "--kubeconfig", str(without_rights)]) == 1
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == 13, "one for each kind"
    assert lines[3].startswith("pods cannot be listed: 403 Forbidden: ")
    assert all("the role that comes with Tenure has it" in line for line in lines)


def test_without_its_kinds_it_waits_and_says_so_and_goes_on_when_they_come(
    tmp_path: Path, capsys: Printed
) -> None:
    with control_plane() as plane:
        install_account(plane)
        with tenure_run(account(plane), tmp_path, *FLAGS) as tenure:
            said = tenure.until_said("nodepools.karpenter.sh: the API server does not have this")
            assert (
                said["advice"] == "install the CRDs: tenure crds | kubectl apply --server-side -f -"
            )
            status, body = tenure.get("/readyz")
            assert status == 503
            assert "[-] nodepools.karpenter.sh: not synced: the API server does not have" in body
            assert tenure.get("/healthz")[0] == 200
            assert run(["plan", "--kubeconfig", str(plane.kubeconfig)]) == 1
            assert "install the CRDs: tenure crds | kubectl" in capsys.readouterr().err
            install_crds(plane)
            tenure.until_ready()
            tenure.until_leading()
            assert tenure.stop() == 0
        said_of_kinds = tenure.said("the API server does not have this kind")
        assert len(said_of_kinds) == 5, "once for each kind, however long it took"
