"""docs/getting-started.md, command by command, on a real control plane.

What the test bed cannot do is replaced, and the page says so: see ``INSTEAD``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from testbed.controlplane import KWOK_LABEL, ControlPlane
from testbed.manifests import rendered
from tests.folders import ROOT
from tests.real.account import account, install_account
from tests.real.process import Process, tenure_run
from tests.real.programs import run, said

Json = dict[str, Any]
#: Seconds that an event may take.
PATIENCE: Final = 30.0
PAGE: Final = ROOT / "docs" / "getting-started.md"
#: How a command begins → what is done here instead. None: nothing, it is there already.
INSTEAD: Final[dict[str, str | None]] = {
    "kubectl apply -f https://github.com/kubernetes-sigs/kwok/": None,
    "docker build ": None,
    # All stories share the account, which helm does not know.
    "helm install tenure charts/tenure ": "helm install tenure charts/tenure --take-ownership ",
    # kwok plays pods, and these say nothing.
    "kubectl --namespace tenure logs ": None,
}
#: A node of the user's own, where Tenure's pods may run.
NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "of-ones-own",
        "labels": {
            **dict([KWOK_LABEL.split("=")]),
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": "of-ones-own",
        },
    },
    "status": {
        "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
    },
}


def commands(title: str) -> list[str]:
    """Of the blocks under that heading."""
    section = re.split(r"^#+ ", PAGE.read_text(), flags=re.M)
    text = next(part for part in section if part.startswith(title))
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture
def admin(cluster: ControlPlane) -> Iterator[Path]:
    said(cluster.kubeconfig, "kubectl", "create", "-f", "-", stdin=yaml.safe_dump(NODE))
    yield cluster.kubeconfig
    run(cluster.kubeconfig, "helm", "uninstall", "tenure", "--namespace=tenure")
    install_account(cluster)  # For those who come after.


@pytest.fixture
def tenure(cluster: ControlPlane, admin: Path, tmp_path: Path) -> Iterator[Process]:
    """The program, as the chart would have it started."""
    pod = next(o for o in yaml.safe_load_all(rendered()) if o and o["kind"] == "Deployment")
    told = pod["spec"]["template"]["spec"]["containers"][0]["env"]
    environment = {each["name"]: each["value"] for each in told}
    with tenure_run(account(cluster), tmp_path, **environment) as process:
        yield process


def follow(admin: Path, title: str) -> dict[str, str]:
    """What each command printed."""
    return {command: do(admin, command) for command in commands(title)}


def do(admin: Path, command: str) -> str:
    """Where it asks for events, as soon as there are some."""
    deadline = time.monotonic() + PATIENCE
    while True:
        printed = do_once(admin, command)
        if "reason=" not in command or printed.strip() or time.monotonic() > deadline:
            return printed
        time.sleep(0.5)


def do_once(admin: Path, command: str) -> str:
    begin = next((begin for begin in INSTEAD if command.startswith(begin)), "")
    instead = INSTEAD.get(begin, "")
    if instead is None:
        return ""
    words = instead + command.removeprefix(begin)
    return said(admin, "/bin/sh", "-ec", f"cd '{ROOT}'; {words}")


def test_the_page_can_be_followed_to_its_end(admin: Path, tenure: Process) -> None:
    assert len(commands("Getting started")) == 5
    follow(admin, "Getting started")

    seen = follow(admin, "What you see")
    listed = seen["kubectl get nodepools,nodeclaims,nodes"]
    assert len(re.findall(r"^nodeclaim\.karpenter\.sh/played-", listed, re.M)) == 3
    assert "Launched" in seen["kubectl describe nodeclaims"]
    events = seen["kubectl get events --field-selector involvedObject.kind=NodeClaim"]
    assert {"ClaimDeleted", "Draining", "Releasing"} <= set(events.split())

    rolled = follow(admin, "Roll a change through the pool")
    freeze, *_ = (name for name in rolled if "reason=DisruptionBlocked" in name)
    assert "MaintenanceWindow freeze blocks" in rolled[freeze]
    *_, nodes = rolled.values()
    assert len(re.findall(r"^kwok-\S+ .* two$", nodes, re.M)) == 3

    away, uninstall = commands("Uninstall")
    do(admin, away)
    left = said(admin, "kubectl", "get", "nodes,nodeclaims,nodepools", "-o", "name")
    assert left.split() == ["node/of-ones-own"]
    assert tenure.stop() == 0  # As its pods would, before their account is gone.
    do(admin, uninstall)


def test_what_is_replaced_is_on_the_page() -> None:
    text = PAGE.read_text()
    assert [begin for begin in INSTEAD if begin not in text] == []
