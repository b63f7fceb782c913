"""docs/leader-election.md, command by command: from Karpenter to Tenure, and back.

Karpenter is a Deployment that kwok plays, and a stand-in that holds its Lease. Tenure is the program,
started anew whenever helm would start it, with what the chart would tell it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tenure.runtime.clock.system import SystemClock
from testbed.controlplane import ControlPlane
from testbed.manifests import rendered
from tests.folders import ROOT
from tests.kube.karpenter import NAME, Karpenter, lease_of
from tests.real.account import account, install_account
from tests.real.cluster import patient
from tests.real.leasereplicas import without_leases
from tests.real.process import Process, tenure_run
from tests.real.programs import run, said

PAGE: Final = ROOT / "docs" / "leader-election.md"
WHERE: Final = "kube-system"
LABELS: Final = {"app.kubernetes.io/name": "karpenter"}
KARPENTER: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "karpenter", "namespace": WHERE},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "controller", "image": "karpenter"}]},
        },
    },
}
#: All stories share the account, which helm does not know.
INSTEAD: Final = ("helm install ", "helm install --take-ownership ")


def steps(title: str) -> list[list[str]]:
    """The commands of each block under that heading."""
    section = next(
        part for part in re.split(r"^## ", PAGE.read_text(), flags=re.M) if part.startswith(title)
    )
    blocks = re.findall(r"```sh\n(.*?)```", section, re.S)
    return [[line.strip() for line in block.strip().splitlines()] for block in blocks]


class Move:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._starts = 0

    def follow(self, commands: list[str]) -> list[str]:
        """What was ``--set``."""
        for command in commands:
            words = command.replace(*INSTEAD)
            said(self._plane.kubeconfig, "/bin/sh", "-ec", f"cd '{ROOT}'; {words}")
        return re.findall(r"--set (\S+)", " ".join(commands))

    @contextmanager
    def tenure(self, *values: str) -> Iterator[Process]:
        chart = rendered(*(word for value in values for word in ("--set", value)))
        (pod,) = (o for o in yaml.safe_load_all(chart) if o and o["kind"] == "Deployment")
        (container,) = pod["spec"]["template"]["spec"]["containers"]
        environment = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        self._starts += 1
        name = f"tenure-{self._starts}"
        with tenure_run(account(self._plane), self._folder, name=name, **environment) as process:
            yield process

    def karpenter(self, entry: Callable[[Karpenter], Any]) -> None:
        """As it starts and stops."""

        async def done() -> None:
            async with patient(self._plane.kubeconfig) as client:
                await entry(Karpenter(client, SystemClock(), WHERE))

        asyncio.run(done())

    def holder(self) -> str:
        async def seen() -> str:
            async with patient(self._plane.kubeconfig) as client:
                return (await lease_of(client, WHERE)).spec.holder_identity

        return asyncio.run(seen())


@pytest.fixture
def move(cluster: ControlPlane, tmp_path: Path) -> Iterator[Move]:
    _forget_leases(cluster)
    said(cluster.kubeconfig, "kubectl", "create", "-f", "-", stdin=yaml.safe_dump(KARPENTER))
    yield Move(cluster, tmp_path)
    run(cluster.kubeconfig, "helm", "uninstall", "tenure", "--namespace=tenure")
    install_account(cluster)  # For those who come after.
    _forget_leases(cluster)


def _forget_leases(plane: ControlPlane) -> None:
    async def forget() -> None:
        async with patient(plane.kubeconfig) as client:
            await without_leases(client)

    asyncio.run(forget())


def test_karpenter_goes_tenure_comes_and_back_again(move: Move) -> None:
    beside, stop_karpenter, take, keep = steps("Moving from Karpenter")
    (back,) = steps("And back")
    move.karpenter(lambda karpenter: karpenter.create())

    values = move.follow(beside)
    with move.tenure(*values) as tenure:
        tenure.until_said(f"not acting: the Lease {WHERE}/{NAME} is held by karpenter-1")
        move.karpenter(lambda karpenter: karpenter.give_back())
        move.follow(stop_karpenter)
        tenure.until_said("was last held by something that is not Tenure")
        assert "tenure_held_back 1.0" in tenure.get("/metrics")[1]
        assert "not acting" in tenure.get("/readyz")[1]
        assert tenure.stop() == 0

    with move.tenure(*values, *move.follow(take)) as tenure:
        tenure.until_leading()
        assert tenure.stop() == 0
    with move.tenure(*values, *move.follow(keep)) as tenure:
        tenure.until_leading()
        assert "tenure_leader 1.0" in tenure.get("/metrics")[1]
        assert tenure.stop() == 0
    assert move.holder() == ""

    move.follow(back)
    move.karpenter(lambda karpenter: karpenter.take())
    with move.tenure(*values) as tenure:
        tenure.until_said("is held by karpenter-1, which is not Tenure,")


def test_a_replica_that_may_not_read_the_lease_is_not_ready_and_says_why(
    move: Move, cluster: ControlPlane, tmp_path: Path
) -> None:
    # Not as Tenure's account: of that one nothing may be refused, and another story counts.
    admin, jane = cluster.kubeconfig, cluster.kubeconfig_for("jane")
    binding = ("clusterrolebinding", "jane")
    said(admin, "kubectl", "create", *binding, "--clusterrole=tenure", "--user=jane")
    flags = ("--leader-election-name=another", "--leader-election-namespace=tenure")
    with tenure_run(jane, tmp_path, *flags) as tenure:
        tenure.until_said("the Lease tenure/another is out of reach: 403", level="warning")
        tenure.until_said("every kind is listed")
        status, why = tenure.get("/readyz")
        assert (status, "cannot list resource" in why) == (503, True)
    said(admin, "kubectl", "delete", *binding)


def test_the_command_that_shows_the_leases_shows_them(move: Move, cluster: ControlPlane) -> None:
    move.karpenter(lambda karpenter: karpenter.create())
    (command,) = re.findall(r"`(kubectl get leases .*?)`", PAGE.read_text())
    assert "karpenter-1" in said(cluster.kubeconfig, *command.split())
